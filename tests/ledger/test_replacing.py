"""Replacing the whole list in one transaction: safe, and it cannot go back. The ledger can."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from agentkit.ledger import Ledger
from agentkit.ledger.replacing import Replacing
from agentkit.log import Compaction, Log, project
from agentkit.messages import Message, assistant, user

TURNS = [
    replace(m, id=i) for m, i in ((user("q1"), "u1"), (assistant("a1"), "a1"), (user("q2"), "u2"), (assistant("a2"), "a2"))
]
SUMMARY = replace(user("S"), id="s")


def filled(path: Path | str = ":memory:", *, keep_hidden: bool = False) -> Replacing:
    table = Replacing(path, keep_hidden=keep_hidden)
    for message in TURNS:
        table.append(message)
    return table


def ids(messages: tuple[Message, ...]) -> list[str]:
    return [m.id for m in messages]


def test_without_a_compaction_it_is_a_list(tmp_path: Path) -> None:
    filled(tmp_path / "r.db").rewind("a1")
    assert Replacing(tmp_path / "r.db").messages() == tuple(TURNS[:2])


def test_a_compaction_writes_everything_anew() -> None:
    plain, hiding = filled(), filled(keep_hidden=True)
    for table in (plain, hiding):
        table.compact(SUMMARY, "u2")
        assert ids(table.messages()) == ["s", "u2", "a2"]
    assert ids(plain.everything()) == ["s", "u2", "a2"] and ids(hiding.everything()) == ["u1", "a1", "s", "u2", "a2"]
    assert (plain.written, hiding.written) == (4 + 3, 4 + 5)


@pytest.mark.parametrize("keep_hidden", [False, True])
def test_a_rewind_to_before_a_compaction_is_lost_where_the_ledger_wins(keep_hidden: bool) -> None:
    table, ledger = filled(keep_hidden=keep_hidden), Ledger(":memory:", messages=TURNS)
    table.compact(SUMMARY, "u2")
    ledger.compact(Compaction("S", "u2"))
    ledger.rewind(1)
    assert ids(ledger.messages()) == ["u1", "a1"] and project(ledger).compaction is None
    if keep_hidden:
        table.rewind("a1")
        assert ids(table.everything()) == ["u1", "a1"] and table.messages() == (), (
            "the rows are there, and the model sees none"
        )
    else:
        with pytest.raises(ValueError, match="'a1' is not in the table any more"):
            table.rewind("a1")


def test_the_ledger_writes_one_row_for_a_compaction_the_table_all_of_them() -> None:
    table, ledger = Replacing(keep_hidden=True), Ledger(":memory:")
    for n in range(40):
        message = replace(user(str(n)), id=f"m{n}")
        table.append(message)
        ledger.append(message)
        if n % 10 == 9:
            table.compact(replace(user("S"), id=f"s{n}"), message.id)
            ledger.compact(Compaction("S", message.id))
    assert len(ledger) == 40 + 4 and table.written == 40 + (11 + 22 + 33 + 44)


def test_a_failure_leaves_the_old_rows_also_when_the_caller_commits_later(tmp_path: Path) -> None:
    table = filled(tmp_path / "r.db")
    with pytest.raises(sqlite3.IntegrityError):
        table.replace([SUMMARY, SUMMARY])
    table.append(replace(user("q3"), id="u3"))
    assert ids(Replacing(tmp_path / "r.db").messages()) == ["u1", "a1", "u2", "a2", "u3"]


def test_the_log_in_memory_goes_back_as_well() -> None:
    log = Log(TURNS)
    log.compact(Compaction("S", "u2"))
    log.rewind(1)
    assert ids(log.messages()) == ["u1", "a1"]
