"""What the simulator bills under Anthropic's rules, and what a replay of the recorded session computes, is the same."""

from __future__ import annotations

from agentkit.connect import simulated
from agentkit.messages import Usage
from agentkit.pricing import prices
from agentkit.replay import Replay, count, replay
from agentkit.replay.caches import cache_for
from agentkit.replay.schedules import AsRecorded
from agentkit.scenarios import FOUR_QUESTIONS, Run, Settings, ask, start
from agentkit.sessions.recording import Recorder

MODEL = "claude-opus-4-8"
"""Its shortest cached prompt is that of the simulator's profile."""
QUESTIONS = (*FOUR_QUESTIONS, "Read config.json.", "read stats.py and config.json at once", "How many lines is stats.py?")


def both(budget: int, marks: str = "recommended", life: str = "5m") -> tuple[Run, Replay]:
    """Run the questions on the simulator, record them, and replay the record as it was."""
    provider = simulated("anthropic", client={"marks": marks, "life": life})
    run = start(Settings(budget=budget), provider=provider)
    recorder = Recorder(run.agent.log, run.agent.tools.specs)
    run.agent.listeners.append(recorder)
    ask(run, QUESTIONS)
    listed = prices(MODEL)
    counted = count(recorder.session("simulated", model=MODEL))
    return run, replay(counted, AsRecorded(), listed, cache_for(listed, placement=marks, life=life))  # type: ignore[arg-type]


def billed(run: Run) -> list[tuple[int, int, int]]:
    usages = [b.usage or Usage() for b in run.bills]
    return [(u.fresh, u.cache_read, u.cache_write) for u in usages]


def computed(replayed: Replay) -> list[tuple[int, int, int]]:
    return [(row.fresh, row.read, row.written) for row in replayed.requests]


def test_every_request_agrees_to_the_token() -> None:
    run, replayed = both(60_000)
    assert len(run.bills) >= 11 and not run.compactions
    assert billed(run) == computed(replayed)
    assert sum(read for _, read, _ in billed(run)) > 25_000


def test_it_agrees_under_every_placement_of_marks() -> None:
    for marks in ("none", "system only", "last message only"):
        run, replayed = both(60_000, marks)
        assert billed(run) == computed(replayed), marks


def test_up_to_a_compaction_it_agrees_and_behind_it_only_the_summarys_heading_differs() -> None:
    run, replayed = both(8_000)
    assert len(run.compactions) == 1
    pairs = list(zip(billed(run), computed(replayed), strict=True))
    split = next(i for i, (one, _) in enumerate(pairs) if i > 3 and one[1] == 0)
    assert all(one == two for one, two in pairs[:split])
    for one, two in pairs[split:]:
        assert abs(sum(one) - sum(two)) < 60 and (one[1] > 0) == (two[1] > 0)
