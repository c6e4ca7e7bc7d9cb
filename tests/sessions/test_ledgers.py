"""The ledger and the session file: a run goes out and comes in again as the same session."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agentkit.ledger import Ledger, history
from agentkit.log import Compaction, project
from agentkit.messages import Opaque, ToolCall, Usage, assistant, system, tool_result, user
from agentkit.sessions import Item, RecordedCut, Session, dumps, from_ledger, into_ledger, loads


def a_run(path: Path) -> Ledger:
    ticks = iter(range(1_780_000_000, 1_790_000_000))
    ledger = Ledger(path, clock=lambda: float(next(ticks)))
    for message in (system("rules"), user("q1"), assistant("", ToolCall("c", "read", "{}")), tool_result("c", "x")):
        ledger.append(message)
        if message.role == "assistant":
            ledger.bill(Usage(10, 20, 30, 4))
    ledger.append(assistant("a1"))
    ledger.append(user("q2"))
    ledger.compact(Compaction("S", "m5", 4, 100, 50, usage=Usage(7, output=1)))
    ledger.append(assistant("a2"))
    ledger.bill(Usage(5))
    return ledger


def test_a_run_goes_out_with_compaction_times_and_bills(tmp_path: Path) -> None:
    with a_run(tmp_path / "a.db") as ledger:
        session = from_ledger(ledger, "mine")
    assert session.id == "mine" and session.usage == (Usage(10, 20, 30, 4), None, Usage(5))
    assert [item.message.content for item in session.items] == ["rules", "q1", "", "x", "a1", "q2", "S", "a2"]
    assert session.items[6].cut == RecordedCut(5, 100, Usage(7, output=1))
    assert None not in [item.at for item in session.items]


def test_what_comes_in_is_what_went_out(tmp_path: Path) -> None:
    with a_run(tmp_path / "a.db") as ledger:
        session = loads(dumps(from_ledger(ledger)))
    with into_ledger(session, tmp_path / "b.db") as again:
        assert from_ledger(again) == session
        view = project(again)
        assert view.compaction is not None and view.compaction.messages == 4
        assert [m.content for m in view.head + view.tail] == ["rules", "q2", "a2"]
        with pytest.raises(ValueError, match="has 8 entries already"):
            into_ledger(session, again.file)
        assert len(into_ledger(session, again.file, "second")) == 8


def test_only_the_present_branch_goes_out(tmp_path: Path) -> None:
    with a_run(tmp_path / "a.db") as ledger:
        ledger.rewind(4)
        ledger.append(replace(user("other"), opaque=(Opaque("v", {}),)))
        assert [i.message.content for i in from_ledger(ledger).items] == ["rules", "q1", "", "x", "a1", "other"]
        assert from_ledger(ledger).items[-1].cut is None


def test_a_compaction_that_keeps_from_no_message_becomes_a_note(tmp_path: Path) -> None:
    items = (Item(user("q")), Item(user("S1"), kind="compaction_summary", cut=RecordedCut(0)))
    again = Item(user("S2"), kind="compaction_summary", cut=RecordedCut(1))
    with into_ledger(Session("s", (*items, again)), tmp_path / "a.db") as ledger:
        assert [line.place for line in history(ledger)] == ["word for word", "in force", "no message"]
        assert "S2" in history(ledger)[2].words
