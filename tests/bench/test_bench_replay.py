"""Replay and sweep of the longest real session: how long, and how it grows. Figures are printed, never asserted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from session_support import LONG, NAMES, needs_sessions, real

from agentkit.pricing import prices
from agentkit.replay import AsRecorded, Counted, KeepAll, Middle, compare, count, replay, report
from agentkit.sessions import Session, load
from agentkit.sweep import Job, sweep

pytestmark = needs_sessions
MODELS = ("gpt-5.4", "claude-opus-4-5", "deepseek-flash")


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def printed(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}", end="")

    return printed


def best(work: Callable[[], object], times: int = 5) -> tuple[float, float]:
    """Return seconds on the clock and of the processor, each the best of a few runs."""
    clock, processor = [], []
    for _ in range(times):
        start, used = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    return min(clock), min(processor)


def doubled(session: Session) -> Session:
    """Return the session with everything once more behind it, in other words and with its compactions."""
    size, shift = len(session.items), 10**6
    again = tuple(
        replace(
            item,
            message=replace(item.message, content=f"again: {item.message.content}"),
            at=None if item.at is None else item.at + shift,
            cut=replace(item.cut, kept_from=item.cut.kept_from + size) if item.cut else None,
        )
        for item in session.items
    )
    return replace(session, items=session.items + again, usage=session.usage * 2)


@pytest.fixture(scope="module")
def counted() -> Counted:
    return count(load(real(LONG))).prepare(blocks=True)


def test_counting(show: Callable[[str], None]) -> None:
    made: list[Counted] = []
    clock, processor = best(lambda: made.append(count(load(real(LONG))).prepare(blocks=True)), 1)
    show(f"load and count {LONG}: {clock:.2f} s ({processor:.2f} s of the processor)")
    assert len(made[0].points) == len(made[0].session.usage) > 400
    assert made[0].sums[-1] == sum(len(segment.tokens) for segment in made[0].segments)


@pytest.mark.parametrize("model", MODELS)
def test_replay_and_its_growth(model: str, counted: Counted, show: Callable[[str], None]) -> None:
    twice = count(doubled(counted.session)).prepare(blocks=True)
    for schedule in (AsRecorded(), KeepAll(), Middle(100_000)):
        once_clock, once = best(lambda s=schedule: replay(counted, s, prices(model)))
        _, double = best(lambda s=schedule: replay(twice, s, prices(model)))
        figures = (
            f"{once_clock:.3f} s ({once:.3f} s of the processor; target 0.1 s), doubled: {double / once:.2f} x (target 2.3)"
        )
        show(f"replay, {model}, {schedule.name}: {figures}")
        rows = replay(counted, schedule, prices(model)).rows
        assert all(row.read + row.written + row.fresh == row.sent > 0 for row in rows)
        assert rows[-1].cumulative == pytest.approx(sum(row.usd for row in rows))
    assert len(twice.points) == 2 * len(counted.points)


@pytest.mark.parametrize("boundary", ["user", "pair"])
@pytest.mark.parametrize("model", MODELS)
def test_sweep(model: str, boundary: str, counted: Counted, show: Callable[[str], None]) -> None:
    job = Job(counted.session, prices(model), Middle(1, boundary=boundary))  # type: ignore[arg-type]
    done: list[int] = []
    start = time.perf_counter()
    cells = sweep(job, range(4, 46, 2), range(20_000, 180_001, 8_000), counted=counted, progress=done.append)
    took = time.perf_counter() - start
    show(f"sweep 21 x 21, {model}, boundary {boundary}: {took:.1f} s for {done[-1]} replays (target 5 s)")
    assert len(cells) == 441


def test_as_recorded_against_real_bills(show: Callable[[str], None]) -> None:
    sessions = [session for session in map(load, map(real, NAMES)) if session.billed]
    show(report([compare(count(session)) for session in sessions]))
    assert len(sessions) >= 20
