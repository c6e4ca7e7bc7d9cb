"""Where a replay and a live run disagree, and that the reasons are those of the run."""

from __future__ import annotations

import pytest

from agentkit.closed_loop.against import Replayed, disagreements, replayed, session_of_scenario
from agentkit.closed_loop.cells import Row, run_cell

BASE = Row("needle", "keep everything", "m", 0, 2, 2, (), 10, 0, 0, 0, 100, 90, 10, 0, 5, 20, 1.0)


def row(policy: str, usd: float, **more: object) -> Row:
    return Row(**{**vars(BASE), "policy": policy, "usd": usd, **more})  # type: ignore[arg-type]


def test_a_policy_that_leaves_work_undone_falls_behind_with_the_reason() -> None:
    rows = [BASE, row("cheap", 0.4, done=1, failed=(2,), rounds=14, read_again=3), row("dear", 2.0)]
    before = [Replayed("needle", name, usd, 0.9) for name, usd in (("cheap", 0.2), ("keep everything", 1.0), ("dear", 2.0))]
    (found,) = disagreements(before, rows)
    assert (found.policy, found.replayed, found.live) == ("cheap", 1, 3)
    assert found.reasons == ("1 of 2 turns did not do their work", "3 files read again", "4 rounds more")
    assert str(found).startswith("cheap: place 1 replayed, 3 live (0.2000 → 0.4000 USD): 1 of 2 turns")


def test_tables_that_agree_have_no_disagreement() -> None:
    rows = [BASE, row("dear", 2.0)]
    before = [Replayed("needle", r.policy, r.usd, None) for r in rows]
    assert disagreements(before, rows) == []
    assert {d.policy for d in disagreements(before, rows, apart=0)} == {"keep everything", "dear"}
    with pytest.raises(ValueError, match="the same policies"):
        disagreements(before[:1], rows)


def test_the_replayed_session_is_the_scenario_s_own() -> None:
    session = session_of_scenario("big file")
    live = run_cell("big file", "keep everything")
    assert session.calls == live.rounds
    before = replayed("big file", ["keep everything", "jai"])
    assert [one.policy for one in before] == ["keep everything", "jai"]
    assert before[0].usd == pytest.approx(live.usd, rel=0.02)
