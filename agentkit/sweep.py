"""Replay one session for a whole grid of keep and threshold, on as many processors as there are.

Two cells that cut at the same places are one replay: finding the cuts is cheap, so that is done first for all cells.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from agentkit.caching.prefix import Life
from agentkit.compaction.cut import Keep
from agentkit.pricing import Prices
from agentkit.progress import bar
from agentkit.replay.caches import cache_for
from agentkit.replay.counted import Counted, count
from agentkit.replay.run import replay_sums
from agentkit.replay.schedules import Middle, View
from agentkit.sessions.form import Session

Cuts = tuple[tuple[int, int, str], ...]


@dataclass(frozen=True)
class Cell:
    """One cell of the grid: USD for the whole session, `summaries_usd` of it for summary calls; shares between 0 and 1."""

    keep: int
    threshold: int
    usd: float
    summaries_usd: float
    compactions: int
    sent: int
    read_share: float
    recall: float | None


@dataclass(frozen=True)
class Job:
    """What every worker needs, sent to it once: the session (it counts for itself), prices, cache, policy."""

    session: Session
    prices: Prices
    policy: Middle
    unit: str = "messages"
    cache: str | None = None
    placement: str = "recommended"
    life: Life = "5m"
    vocabulary: str = "o200k_base"

    def policy_at(self, keep: int, threshold: int) -> Middle:
        """Return the policy of one cell."""
        return replace(self.policy, threshold=threshold, keep=Keep(keep, self.unit))  # type: ignore[arg-type]


def sweep(
    job: Job,
    keeps: Sequence[int],
    thresholds: Sequence[int],
    *,
    executor: Executor | None = None,
    counted: Counted | None = None,
    progress: bool | Callable[[int], Any] = False,
    chunks: int | None = None,
) -> list[Cell]:
    """Return one cell for each keep and threshold (tokens), keeps outside, in the order given.

    `executor` is any of `concurrent.futures`' kind, a cluster's too (None: a process for each processor, or no process at
    all for a small grid). `progress` shows a bar, or is called with the number of replays done so far.
    Raises `ValueError` for an empty grid or a keep or threshold under 1.
    """
    cells = [(keep, threshold) for keep in keeps for threshold in thresholds]
    if not cells:
        raise ValueError("the grid is empty: give at least one keep and one threshold")
    counted = counted or count(job.session, vocabulary=job.vocabulary)
    groups = _same_cuts(job, counted, cells)
    work = [group[0] for group in groups]
    _remember(job, counted)
    with bar(progress, len(work), "sweep") as advance, _pool(executor, len(work)) as pool:
        found = _here(job, counted, work, advance) if pool is None else _there(pool, job, work, chunks, advance)
    by_cell = {cell: replace(found[group[0]], keep=cell[0], threshold=cell[1]) for group in groups for cell in group}
    return [by_cell[cell] for cell in cells]


def cuts(policy: Middle, counted: Counted) -> Cuts:
    """Return where `policy` would cut: (request, first kept, failure), found from sizes alone."""
    view, decide, found = View(counted), policy.begin(counted), []
    for request in range(len(counted.points)):
        if (step := decide(view, request)) is not None:
            found.append((request, step.start, step.failed))
            if not step.failed:
                view.change(step)
    return tuple(found)


def _same_cuts(job: Job, counted: Counted, cells: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    groups: dict[Cuts, list[tuple[int, int]]] = {}
    for cell in cells:
        groups.setdefault(cuts(job.policy_at(*cell), counted), []).append(cell)
    return list(groups.values())


# ------------------------------------------------------------------------------------------------------------------ workers


def _cell(job: Job, counted: Counted, keep: int, threshold: int) -> Cell:
    choice = cache_for(job.prices, job.cache, placement=job.placement, life=job.life)
    run = replay_sums(counted, job.policy_at(keep, threshold), job.prices, choice)
    share = run.read / max(1, run.sent)
    return Cell(keep, threshold, run.usd, run.summaries_usd, run.compactions, run.sent, share, run.recall)


_LAST: tuple[Job, Counted] | None = None  # where processes are forked, a worker has the counts from the start


def work_on(job: Job, cells: Sequence[tuple[int, int]]) -> list[Cell]:
    """Replay some cells in a worker. A worker counts a session once and keeps the counts for the next cells."""
    global _LAST
    if _LAST is None or _LAST[0] != job:
        _LAST = job, count(job.session, vocabulary=job.vocabulary)
    return [_cell(job, _LAST[1], *cell) for cell in cells]


def _here(
    job: Job, counted: Counted, cells: Iterable[tuple[int, int]], advance: Callable[[int], Any]
) -> dict[tuple[int, int], Cell]:
    found = {}
    for cell in cells:
        found[cell] = _cell(job, counted, *cell)
        advance(1)
    return found


def _remember(job: Job, counted: Counted) -> None:
    global _LAST
    _LAST = job, counted.prepare(blocks=cache_for(job.prices, job.cache).blocks)


def _there(
    pool: Executor, job: Job, cells: Sequence[tuple[int, int]], chunks: int | None, advance: Callable[[int], Any]
) -> dict[tuple[int, int], Cell]:
    # Every third cell of the list in one chunk: cheap and dear cells lie side by side, so the chunks take equally long.
    number = min(len(cells), chunks or 4 * (os.cpu_count() or 1))
    futures: list[Future[list[Cell]]] = [pool.submit(work_on, job, cells[i::number]) for i in range(number)]
    found = {}
    for future in _done(futures):
        for cell in future.result():
            found[cell.keep, cell.threshold] = cell
        advance(len(future.result()))
    return found


def _done(futures: Sequence[Future[list[Cell]]]) -> Iterator[Future[list[Cell]]]:
    """Yield futures as they end. Those of a cluster may be of another class: they are waited for in order."""
    return as_completed(futures) if all(isinstance(f, Future) for f in futures) else iter(futures)


@contextmanager
def _pool(executor: Executor | None, cells: int) -> Iterator[Executor | None]:
    processors = os.cpu_count() or 1
    if executor is not None:
        yield executor
    elif processors == 1 or cells < 12:
        yield None  # starting processes and counting again in each takes longer than so few replays
    else:
        from concurrent.futures import ProcessPoolExecutor  # here: it loads all of multiprocessing

        with ProcessPoolExecutor(processors) as pool:
            yield pool
