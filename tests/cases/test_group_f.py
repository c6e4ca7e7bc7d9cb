"""Public bug reports about storing, rewinding and resuming (group F), as small inputs with the right result."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from ledger.test_ledger import fill
from ledger.test_processes import said, write_together

from agentkit.compaction import Compactor, Keep
from agentkit.compaction.compactor import assemble
from agentkit.connect import simulated
from agentkit.ledger import Ledger, LedgerError, turns
from agentkit.ledger.replacing import Replacing
from agentkit.log import Compaction, Log, project
from agentkit.messages import Message, Request, ToolCall, ToolSpec, assistant, system, user
from agentkit.policies import SummariseMiddle
from agentkit.providers.openai_wire import encode, to_wire
from agentkit.providers.profiles import OPENAI
from agentkit.sessions import loads
from agentkit.settle import settle
from agentkit.tools import Tool, Toolbox

PACKAGE = Path(__file__).resolve().parents[2] / "agentkit" / "ledger"


def named(*ids: str) -> list[Message]:
    """Return messages with these ids: `u…` from the user, `a…` from the assistant, others in turn."""
    roles = {"u": user, "a": assistant}
    return [replace(roles.get(i[0], user)(f"text of {i}"), id=i) for i in ids]


def ids(messages: Sequence[Message]) -> list[str]:
    return [m.id for m in messages]


def seen(log: Log) -> tuple[Message, ...]:
    return settle(assemble(project(log)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.db"


def test_f01_replace_is_all_or_nothing_and_the_ledger_never_deletes(path: Path) -> None:
    table = Replacing(path)
    for message in named("ua", "ub", "uc"):
        table.append(message)
    with pytest.raises(sqlite3.IntegrityError):
        table.replace(named("us", "us"))
    table._db.commit()  # the caller commits later
    assert ids(Replacing(path).messages()) == ["ua", "ub", "uc"]
    changing = re.compile(r"\b(DELETE\s+FROM|UPDATE\s+\w+\s+SET|REPLACE\s+INTO|INSERT\s+OR|DROP\s+\w)", re.IGNORECASE)
    sources = {p.name: p.read_text(encoding="utf-8") for p in PACKAGE.glob("*.py")}
    assert changing.search(sources["replacing.py"]), "the search can find something"
    assert [name for name, text in sources.items() if name != "replacing.py" and changing.search(text)] == []


def test_f02_a_compaction_and_its_figures_are_one_row(path: Path) -> None:
    with Ledger(path, messages=named("u1", "a1", "u2")) as ledger:
        fill(ledger)
        with pytest.raises(LedgerError):
            ledger.compact(Compaction("S" * 9_000, "u2", 2, tokens_before=900, tokens_after=100))
    with Ledger(path) as again:
        assert again.file.rows("SELECT count(*) FROM compactions") == [(0,)] and project(again).compaction is None
        again.compact(Compaction("S", "u2", 2, tokens_before=900, tokens_after=100))
        assert again.file.rows("SELECT tokens_before, tokens_after FROM compactions") == [(900, 100)]


def test_f04_a_resumed_session_sends_what_it_would_have_sent(path: Path) -> None:
    history = [system("rules"), *named(*(f"m{n}" for n in range(1, 101)))]
    policy = SummariseMiddle(Compactor(simulated()))
    with Ledger(path, messages=history) as ledger:
        ledger.compact(Compaction("S", "m95"))
        ledger.append(named("m101")[0])
        before = encode(to_wire(Request(policy.view(ledger)), "m", OPENAI))
    with Ledger(path) as again:
        view = policy.view(again)
        assert encode(to_wire(Request(view), "m", OPENAI)) == before
        assert len(view) == 1 + 1 + 7 and "S" in view[1].content and view[-1].id == "m101"
        assert len(again.messages()) == 1 + 101


def test_f05_undo_reaches_to_before_a_compaction(path: Path) -> None:
    with Ledger(path, messages=named("u1", "a1", "u2", "a2")) as ledger:
        ledger.compact(Compaction("S", "u2"))
        for message in named("u3", "a3"):
            ledger.append(message)
        targets = {t.message.id: t.before for t in turns(ledger)}
        assert list(targets) == ["u1", "u2", "u3"]
        earlier = ledger.fork(len(ledger) - 1)
        earlier.rewind(targets["u2"] or 0)
        assert ids(seen(earlier)) == ["u1", "a1"] and not any(m.content == "S" for m in seen(earlier))
        ledger.rewind(targets["u3"] or 0)
        assert project(ledger).compaction is not None and ids(project(ledger).tail) == ["u2", "a2"]


def test_f07_kept_messages_are_not_written_again(path: Path) -> None:
    with Ledger(path, messages=named("u1", "a1", "u2", "a2")) as ledger:
        ledger.compact(Compaction("S", "u2"))
        assert len(ledger) == 5 and ids(ledger.messages()) == ["u1", "a1", "u2", "a2"]
        assert ids([t.message for t in turns(ledger)]) == ["u1", "u2"]


def test_f08_a_second_compaction_adds_one_row(path: Path) -> None:
    compactor = Compactor(simulated(), Keep(4, "messages"), "pair")
    with Ledger(path) as ledger:
        for n in range(50):
            ledger.append(user(f"question {n}: " + "word " * 40) if n % 2 == 0 else assistant(f"answer {n}"))
            if n % 12 == 11:
                outcome = compactor.compact(project(ledger))
                assert outcome.compaction is not None and outcome.request is not None
                read = outcome.request.messages[0].content
                assert ("[user] question 0:" in read) == (n == 11), "folded: nothing is read twice"
                ledger.compact(outcome.compaction)
        here = tuple(ledger)
        assert len(here) == 50 + 4
    with Ledger(path) as again:
        assert tuple(again) == here and again.file.rows("SELECT count(*) FROM entries") == [(54,)]


def test_f09_a_cut_in_the_view_names_a_message_of_the_store(path: Path) -> None:
    with Ledger(path, messages=named(*(f"m{n}" for n in range(10)))) as ledger:
        ledger.compact(Compaction("S " * 400, "m6"))
        view = assemble(project(ledger))
        assert [m.id for m in view] == ["summary-m6", "m6", "m7", "m8", "m9"]
        outcome = Compactor(simulated(), Keep(2, "messages"), "pair").compact(project(ledger))
        assert outcome.compaction is not None and outcome.compaction.first_kept == view[3].id == "m8"
        with pytest.raises(ValueError, match="'summary-m6' is not a message of this branch"):
            ledger.compact(Compaction("S", view[0].id))


def test_f10_a_torn_last_record_swallows_nothing(tmp_path: Path, path: Path) -> None:
    """The write-ahead log is cut in the middle of the last record, as a crash of the machine would leave it."""
    torn = tmp_path / "torn.db"
    ledger = Ledger(path)
    for number in ("1", "2"):
        ledger.append(user(number))
    whole = Path(f"{path}-wal").stat().st_size
    ledger.append(user("3 " + "é" * 3_000))
    shutil.copy(path, torn)
    data = Path(f"{path}-wal").read_bytes()
    ledger.close()
    Path(f"{torn}-wal").write_bytes(data[: whole + (len(data) - whole) // 2])
    with Ledger(torn) as again:
        assert [m.content for m in again.messages()] == ["1", "2"]
        again.append(user("4"))
    with Ledger(torn) as once_more:
        assert [m.content for m in once_more.messages()] == ["1", "2", "4"]


def test_f11_what_cannot_be_read_does_not_hide_the_rest() -> None:
    """A session file is one line; what stands for the bad lines of the report are bad messages in it."""
    good = [{"role": "user", "content": str(n)} for n in (1, 2, 3)]
    session = loads(json.dumps({"messages": [good[0], "\0\0\0", good[1], "not json", good[2]]}))
    assert [item.message.content for item in session.items] == ["1", "2", "3"]
    assert ("message left out: no object", 2) in session.warnings


def test_f12_two_writers_wait_for_each_other(path: Path) -> None:
    with Ledger(path) as reader:
        write_together(path, ["main", "main"], 200)
        reader.refresh()
        assert len(reader.messages()) == 400
        for name in ("w0", "w1"):
            assert said(reader, name) == [f"{name} {n}" for n in range(200)]
        assert reader.file.rows("PRAGMA journal_mode") == [("wal",)]


def test_f13_the_order_is_a_number_and_not_a_time(path: Path) -> None:
    times = iter([5.0, 5.5, 5.5, 5.5, 1.0])
    with Ledger(path, clock=lambda: next(times)) as ledger:
        for text in ("first", "second", "third", "after the clock went back"):
            ledger.append(user(text))
    with Ledger(path) as again:
        assert [m.content for m in again.messages()] == ["first", "second", "third", "after the clock went back"]
        assert list(again.times().values()) == [5.5, 5.5, 5.5, 1.0]


def test_f14_a_message_typed_during_a_compaction_comes_after_the_tail(path: Path) -> None:
    with Ledger(path, messages=named(*(f"u{n}" for n in range(1, 11)))) as ledger:
        arriving = Compaction("S", "u9")
        ledger.append(named("u11")[0])
        ledger.compact(arriving)
        assert ids(project(ledger).tail) == ["u9", "u10", "u11"] and ids(ledger.messages()).count("u11") == 1
        ledger.rewind(4)
        with pytest.raises(ValueError, match="'u9' is not a message of this branch"):
            ledger.compact(arriving)
        assert project(ledger).compaction is None


def test_f15_what_is_stored_can_be_sent(path: Path) -> None:
    raw = b"caf\x97 ok".decode("utf-8", "surrogateescape")

    call = ToolCall("c", "shout")
    message = Toolbox([Tool(ToolSpec("shout", "Return what no encoder takes."), lambda _: f"{raw} a\0b")]).run(call)
    with Ledger(path) as ledger:
        ledger.append(assistant("", call))
        ledger.append(message)
    with Ledger(path) as again:
        text = again.messages()[1].content
        text.encode("utf-8")
        assert "\0" not in text and "�" in text
        wire = to_wire(Request((user("q"), *again.messages())), "m", OPENAI)
        assert wire["messages"][-1]["content"] == text and encode(wire)
        ((stored, length),) = again.file.rows("SELECT content, length(content) FROM messages WHERE role = 'tool'")
        assert stored == text and length == len(text)
