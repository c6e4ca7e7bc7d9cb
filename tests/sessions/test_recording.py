"""A run of this project's own agent, recorded, is a session like any other, and its replay bills what the run was billed."""

from __future__ import annotations

from itertools import count as numbers

import pytest

from agentkit.pricing import prices
from agentkit.replay import AsRecorded, KeepAll, cache_for, count, replay
from agentkit.scenarios import FOUR_QUESTIONS, Run, Settings, ask, start
from agentkit.sessions import Recorder, Session, dumps, loads


def recorded(settings: Settings) -> tuple[Run, Session]:
    run = start(settings)
    ticks = numbers(1_780_000_000, 2)
    recorder = Recorder(run.agent.log, run.agent.tools.specs, clock=lambda: float(next(ticks)))
    run.agent.listeners.append(recorder)
    ask(run, FOUR_QUESTIONS)
    return run, recorder.session("four", title="Four questions", model="simulated")


def test_live_and_replay_agree_to_the_token() -> None:
    run, session = recorded(Settings(compact=False, budget=100_000))
    usage = [b.usage for b in run.bills]
    assert session.usage == tuple(usage) and session.calls == len(usage)
    # The tools are sent in the API's own wrapping, which is longer; `count` learns the difference from the first bill.
    counted = count(session)
    rows = replay(counted, KeepAll(), prices("deepseek-flash"), cache_for(prices("deepseek-flash"), pauses=False)).rows
    for row, bill in zip(rows, usage, strict=True):
        assert bill is not None
        assert (row.sent, row.read, row.fresh, row.output) == (bill.prompt, bill.cache_read, bill.fresh, bill.output)


def test_a_compaction_is_recorded_and_replayed() -> None:
    run, session = recorded(Settings(budget=4_000, keep=4))
    assert len(run.compactions) == 1
    (made,) = [item for item in session.items if item.cut]
    cut = made.cut
    assert cut is not None and cut.tokens_before == run.compactions[0].compaction.tokens_before and cut.usage is not None
    kept = session.items[cut.kept_from].message
    assert kept.content == next(
        m.content for m in run.agent.log.messages() if m.id == run.compactions[0].compaction.first_kept
    )
    result = replay(count(session), AsRecorded(), prices("deepseek-flash"))
    assert result.compactions == 1 and [row.kind for row in result.rows].count("summary") == 1
    prompts = [row.sent for row in result.requests]
    real = [u.prompt for u in session.usage if u]
    assert prompts == pytest.approx(real, rel=0.03)


def test_a_recording_survives_the_file() -> None:
    _, session = recorded(Settings(budget=4_000, keep=4))
    assert loads(dumps(session)) == session
    times = [item.at for item in session.items[1:]]
    assert times == sorted(times) and None not in times  # type: ignore[type-var]


def test_a_branch_that_was_left_is_not_in_the_session() -> None:
    run = start(Settings(compact=False, budget=100_000))
    recorder = Recorder(run.agent.log)
    run.agent.listeners.append(recorder)
    run.agent.run(FOUR_QUESTIONS[3])
    before = len(run.agent.log)
    run.agent.run(FOUR_QUESTIONS[3])
    run.agent.log.rewind(before - 1)
    assert recorder.session("x").calls == 1
