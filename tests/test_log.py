"""The log, in memory and on SQLite: nothing is ever changed or lost; branches and projections are read off it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import histories

from agentkit.ledger import Ledger
from agentkit.log import Compaction, HistoryReplaced, Log, project
from agentkit.messages import Message, assistant, system, tool_result, user

New = Callable[..., Log]


def stored(messages: Sequence[Message] = ()) -> Ledger:
    """Return a ledger; what a file adds to it is tested in tests/ledger."""
    return Ledger(":memory:", messages=messages)


pytestmark = pytest.mark.parametrize("new", [Log, stored], ids=["log", "ledger"])


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [m.content for m in messages]


def five(new: New) -> Log:
    return new([system("rules"), user("1"), assistant("2"), user("3"), assistant("4")])


def test_a_message_without_id_gets_one(new: New) -> None:
    assert [m.id for m in five(new).messages()] == ["m0", "m1", "m2", "m3", "m4"]


def test_a_message_with_an_id_keeps_it(new: New) -> None:
    log = new([replace(user("1"), id="x")])
    assert log.append(user("2")).message == replace(user("2"), id="m1")
    assert log.messages()[0].id == "x"


def test_a_given_id_is_never_one_that_is_taken(new: New) -> None:
    log = new([replace(user("1"), id="m1"), user("2"), user("3")])
    ids = [m.id for m in log.messages()]
    assert ids[0] == "m1" and len(set(ids)) == 3 and all(ids)


def test_a_used_id_is_refused_and_nothing_is_appended(new: New) -> None:
    log = new([replace(user("1"), id="x")])
    with pytest.raises(ValueError, match="'x' is already in the log; leave the id empty"):
        log.append(replace(user("2"), id="x"))
    assert len(log) == 1


def test_an_id_of_another_branch_is_used_up_as_well(new: New) -> None:
    log = new([user("1"), replace(user("2"), id="x")])
    log.rewind(0)
    with pytest.raises(ValueError, match="already in the log"):
        log.append(replace(user("other"), id="x"))


def test_a_rewind_makes_a_branch_and_loses_nothing(new: New) -> None:
    log = five(new)
    entry = log.rewind(2)
    log.append(user("other"))
    assert (entry.kind, entry.parent, entry.text) == ("rewind", 2, "back to 2")
    assert texts(log.messages()) == ["rules", "1", "2", "other"]
    assert [e.message.content for e in log if e.message] == ["rules", "1", "2", "3", "4", "other"]
    log.rewind(4)
    assert texts(log.messages()) == ["rules", "1", "2", "3", "4"]


@pytest.mark.parametrize("seq", [-1, 5])
def test_a_rewind_to_nowhere_is_refused(new: New, seq: int) -> None:
    with pytest.raises(ValueError, match=f"no entry {seq} in a log of 5"):
        five(new).rewind(seq)


def test_a_note_is_never_seen_by_the_model(new: New) -> None:
    log = five(new)
    log.note("the user left for lunch")
    assert "lunch" not in repr(log.messages()) and "lunch" not in repr(project(log))
    assert [e.kind for e in log][-1] == "note"


def test_an_iterator_is_a_snapshot(new: New) -> None:
    log = five(new)
    entries = iter(log)
    log.append(user("5"))
    assert len(list(entries)) == 5


@pytest.mark.parametrize("first_kept", ["m9", "", "m0", "late note"])
def test_a_compaction_must_start_on_a_message_of_this_branch(new: New, first_kept: str) -> None:
    log = five(new)
    log.append(replace(system("note"), id="late note"))
    with pytest.raises(ValueError, match="is not a message of this branch"):
        log.compact(Compaction("S", first_kept))
    assert len(log) == 6


def test_a_message_of_an_abandoned_branch_is_not_of_this_branch(new: New) -> None:
    log = five(new)
    log.rewind(2)
    with pytest.raises(ValueError, match="'m4' is not a message of this branch"):
        log.compact(Compaction("S", "m4"))


def test_without_compaction_the_projection_is_everything(new: New) -> None:
    view = project(five(new))
    assert (texts(view.head), view.compaction, texts(view.tail)) == (["rules"], None, ["1", "2", "3", "4"])


def test_the_projection_of_an_empty_log_is_empty(new: New) -> None:
    view = project(new())
    assert (view.head, view.compaction, view.tail) == ((), None, ())


def test_the_head_is_every_system_message_before_the_first_other(new: New) -> None:
    view = project(new([system("a"), system("b"), user("1"), system("note")]))
    assert (texts(view.head), texts(view.tail)) == (["a", "b"], ["1", "note"])


def test_what_comes_after_a_compaction_joins_the_tail(new: New) -> None:
    log = five(new)
    log.compact(Compaction("S", "m3"))
    log.append(user("5"))
    view = project(log)
    assert view.compaction is not None and view.compaction.summary == "S"
    assert (texts(view.head), texts(view.tail)) == (["rules"], ["3", "4", "5"])
    assert texts(log.messages()) == ["rules", "1", "2", "3", "4", "5"]


def test_the_newest_compaction_alone_says_where_the_tail_starts(new: New) -> None:
    log = five(new)
    log.compact(Compaction("OLD", "m2"))
    log.compact(Compaction("NEW", "m3"))
    assert texts(project(log).tail) == ["3", "4"]
    log.compact(Compaction("FAILED", "m4", status="failed"))
    assert texts(project(log).tail) == ["3", "4"]


def test_a_rewind_to_before_a_compaction_takes_it_out_of_force(new: New) -> None:
    log = five(new)
    log.compact(Compaction("S", "m3"))
    log.append(user("5"))
    log.rewind(4)
    assert (project(log).compaction, texts(project(log).tail)) == (None, ["1", "2", "3", "4"])
    log.rewind(5)
    assert project(log).compaction is not None


def test_a_listener_hears_of_what_replaces_the_view(new: New) -> None:
    log, heard = five(new), []
    log.listeners.append(heard.append)
    log.compact(Compaction("S", "m3"))
    log.append(user("5"))
    log.note("n")
    log.compact(Compaction("FAILED", "m3", status="failed"))
    log.rewind(2)
    assert heard == [HistoryReplaced(5, "compaction", 5, 4), HistoryReplaced(9, "rewind", 5, 3)]


def test_the_past_is_the_log_as_it_was(new: New) -> None:
    log = five(new)
    log.compact(Compaction("S", "m3"))
    log.rewind(1)
    log.append(user("other"))
    for seq in range(len(log)):
        past = log.at(seq)
        assert tuple(past) == tuple(log)[: seq + 1]
    assert project(log.at(5)).compaction is not None and texts(log.at(6).messages()) == ["rules", "1"]
    past = log.at(4)
    past.append(user("nothing of this reaches the log"))
    assert len(log) == 8


def test_a_fork_goes_on_by_itself(new: New) -> None:
    log = five(new)
    log.compact(Compaction("S", "m3"))
    fork = log.fork(2)
    fork.append(user("other"))
    log.append(user("5"))
    assert texts(fork.messages()) == ["rules", "1", "2", "other"] and project(fork).compaction is None
    assert texts(log.messages()) == ["rules", "1", "2", "3", "4", "5"]
    again = fork.fork(len(fork) - 1)
    again.append(user("more"))
    assert texts(again.messages()) == ["rules", "1", "2", "other", "more"] and len(fork) == 4
    for nowhere in (-1, 4):
        with pytest.raises(ValueError, match="no entry"):
            fork.fork(nowhere)


@st.composite
def operations(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Return things to do to a log: append, note, rewind, compact."""
    kinds = st.sampled_from(["append", "append", "append", "note", "rewind", "compact", "failed"])
    return [(draw(kinds), draw(st.integers(0, 50))) for _ in range(draw(st.integers(0, 25)))]


@settings(max_examples=200)
@given(histories(), operations())
def test_nothing_is_ever_changed_and_the_branch_is_what_a_list_says(
    new: New, history: list[Message], todo: list[tuple[str, int]]
) -> None:
    """The reference keeps, for every entry, the whole branch as a list; the log keeps one parent."""
    log = new(history)
    paths = [list(range(n + 1)) for n in range(len(log))]
    for kind, number in todo:
        before, here = tuple(log), paths[-1] if paths else []
        _do(log, kind, number)
        assert tuple(log)[: len(before)] == before
        if len(log) == len(before):
            continue  # it was refused
        base = paths[number % len(before)] if kind == "rewind" else here
        paths.append([*base, len(log) - 1])
        assert [e.seq for e in log.branch()] == paths[-1]
        entries = [tuple(log)[i] for i in paths[-1]]
        assert log.messages() == tuple(e.message for e in entries if e.message)
        done = [e.compaction for e in entries if e.compaction and e.compaction.status == "done"]
        assert project(log).compaction == (done[-1] if done else None)


def _do(log: Log, kind: str, number: int) -> None:
    messages = [m for m in log.messages() if m.role != "system"]
    if kind == "append":
        log.append([user("u"), assistant("a"), system("s"), tool_result("t", "r")][number % 4])
    elif kind == "note":
        log.note("n")
    elif kind == "rewind" and len(log):
        log.rewind(number % len(log))
    elif kind in ("compact", "failed") and messages:
        status = "done" if kind == "compact" else "failed"
        log.compact(Compaction("S", messages[number % len(messages)].id, status=status))
