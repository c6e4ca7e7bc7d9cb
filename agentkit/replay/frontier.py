"""Every policy on the same recorded sessions: what each costs, what is still in view, and which of them no other beats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from typing import Any

from agentkit.budget import Budget
from agentkit.compaction.compactor import Compactor
from agentkit.policies.base import Policy
from agentkit.policies.registry import POLICIES, make_policy
from agentkit.pricing import Prices
from agentkit.progress import bar
from agentkit.providers.base import Provider
from agentkit.replay.any_policy import replay_policy
from agentkit.replay.caches import cache_for
from agentkit.replay.counted import Counted, count
from agentkit.replay.exact import Exact
from agentkit.sessions.form import Session

LONG = 100
"""Calls from which on a session is given to several workers, some policies to each."""
_PARTS = 4


@dataclass(frozen=True)
class Score:
    """One policy on one session or on several: sums, and the largest request of all. USD and tokens.

    `optimum` is what the cheapest schedule of compactions would have cost (`replay.optimum`, tails as the cost-aware policy
    keeps them). `used` are references of later calls, `in_view` those that the policy still showed. `extra` are calls for
    summaries and the like, `failed` attempts that came to nothing.
    """

    policy: str
    usd: float
    optimum: float
    used: int
    in_view: int
    compactions: int
    sent: int
    read: int
    largest: int
    extra: int
    failed: int

    @property
    def ratio(self) -> float:
        """Return the cost divided by the optimum's."""
        return self.usd / self.optimum

    @property
    def recall(self) -> float | None:
        """Return the share of references that were in view; None when there were none."""
        return self.in_view / self.used if self.used else None

    @property
    def read_share(self) -> float:
        """Return the share of all prompt tokens that was read from the cache."""
        return self.read / max(1, self.sent)

    def __add__(self, other: Score) -> Score:
        mine, theirs = vars(self), vars(other)
        sums = {name: mine[name] + theirs[name] for name in mine if name not in ("policy", "largest")}
        return Score(self.policy, largest=max(self.largest, other.largest), **sums)


@dataclass(frozen=True)
class Settings:
    """Under what the policies are compared: a price list, another cache model than its own (None: its own), a budget."""

    prices: Prices
    budget: Budget
    cache: str | None = None


def compare_policies(
    sessions: Sequence[tuple[Session, Settings]],
    policies: Iterable[str] = tuple(POLICIES),
    *,
    processes: int | None = None,
    progress: bool | Callable[[int], Any] = False,
) -> list[Score]:
    """Return one score a policy, over all sessions, in the order of `policies`. Open loop.

    `processes` is how many work at the same time (None: one for each processor). `progress` shows a bar, or is called with
    the number of replays done so far. Raises `ValueError` for an unknown policy or no session, `NothingToReplay` for a
    session without a model call.
    """
    names = list(policies)
    for name in names:
        if name not in POLICIES:
            raise ValueError(f"unknown policy {name!r}; there are {', '.join(POLICIES)}")
    if not sessions or not names:
        raise ValueError("there is nothing to compare: give at least one session and one policy")
    tasks, best = list(_tasks(sessions, names)), 0.0
    found: dict[str, Score] = {}
    with bar(progress, len(sessions) * len(names), "compare") as advance:
        for scores, optimum in _results(tasks, min(processes or os.cpu_count() or 1, len(tasks))):
            best += optimum
            for score in scores:
                found[score.policy] = found[score.policy] + score if score.policy in found else score
            advance(len(scores))
    return [replace(found[name], optimum=best) for name in names]


def frontier(scores: Sequence[Score]) -> list[Score]:
    """Return the policies that no other beats (cheaper at no less recall), cheapest first."""
    best: list[Score] = []
    for score in sorted(scores, key=lambda s: (s.usd, -(s.recall or 0.0))):
        if not best or (score.recall or 0.0) > (best[-1].recall or 0.0):
            best.append(score)
    return best


# ------------------------------------------------------------------------------------------------------------- one session


def optimum_of(counted: Counted, settings: Settings) -> float:
    """Return the price in USD of the cheapest schedule of compactions, with tails as the cost-aware policy keeps them."""
    from agentkit.policies.cost_aware import WIDEST
    from agentkit.replay.optimum import optimum  # here: it needs numpy
    from agentkit.replay.planned import lately_cuts

    window = settings.budget.threshold
    cuts = lately_cuts(counted, most=window // WIDEST)
    return optimum(counted, settings.prices, cuts, window=window, cache=settings.cache).usd


def score_of(counted: Counted, settings: Settings, name: str) -> Score:
    """Return the score of one policy on one counted session, without the optimum."""

    def make(provider: Provider) -> Policy:
        made = make_policy(name, Compactor(provider, estimator=Exact(counted)))
        priced = getattr(made, "priced", None)  # a policy that decides by prices is told them
        return priced(settings.prices, settings.cache) if priced else made

    run = replay_policy(counted, make, settings.budget, settings.prices, cache_for(settings.prices, settings.cache))
    rows, requests = run.rows, run.requests
    return Score(
        name,
        run.usd,
        0.0,
        sum(row.used for row in requests),
        sum(row.in_view for row in requests),
        run.compactions,
        run.sent,
        sum(row.read for row in rows),
        max(row.sent for row in requests),
        len(rows) - len(requests),
        sum(event.startswith("failed") for row in rows for event in row.events),
    )


# ----------------------------------------------------------------------------------------------------------------- workers

Task = tuple[Session, Settings, tuple[str, ...], bool]
"""A session, under what, some of the policies, and whether the optimum is wanted too."""

_LAST: tuple[Session, Counted] | None = None


def work_on(task: Task) -> tuple[list[Score], float]:
    """Do one task in a worker. A worker keeps the counts of the last session, for its next part."""
    global _LAST
    session, settings, policies, wanted = task
    if _LAST is None or _LAST[0] != session:
        _LAST = session, count(session).prepare(blocks=cache_for(settings.prices, settings.cache).blocks)
    counted = _LAST[1]
    scores = [score_of(counted, settings, name) for name in policies]
    return scores, optimum_of(counted, settings) if wanted else 0.0


def _tasks(sessions: Sequence[tuple[Session, Settings]], names: Sequence[str]) -> Iterator[Task]:
    """Yield the work, the longest sessions first and in parts: else one worker would be left alone with one at the end."""
    for session, settings in sorted(sessions, key=lambda pair: -pair[0].calls):
        parts = min(len(names), _PARTS if session.calls >= LONG else 1)
        yield from ((session, settings, tuple(names[n::parts]), n == 0) for n in range(parts))


def _results(tasks: Sequence[Task], processes: int) -> Iterator[tuple[list[Score], float]]:
    if processes == 1:
        yield from map(work_on, tasks)
        return
    from concurrent.futures import ProcessPoolExecutor  # here: it loads all of multiprocessing

    with ProcessPoolExecutor(processes) as pool:
        for future in as_completed([pool.submit(work_on, task) for task in tasks]):
            yield future.result()


# ------------------------------------------------------------------------------------------------------------------- table

COLUMNS: Mapping[str, Callable[[Score], str]] = {
    "USD": lambda s: f"{s.usd:,.3f}",
    "÷ optimum": lambda s: f"{s.ratio:.2f}",
    "recall": lambda s: "–" if s.recall is None else f"{s.recall:.1%}",
    "compactions": lambda s: f"{s.compactions:,}",
    "cache read": lambda s: f"{s.read_share:.1%}",
    "largest": lambda s: f"{s.largest:,}",
    "extra calls": lambda s: f"{s.extra:,}",
}
"""The columns of the table, with what stands in them."""


def as_table(scores: Sequence[Score]) -> str:
    """Return the scores as a table of text, cheapest first; `*` marks the frontier."""
    best = {score.policy for score in frontier(scores)}
    rows = [["", "policy", *COLUMNS]]
    for score in sorted(scores, key=lambda s: s.usd):
        rows.append(["*" if score.policy in best else "", score.policy, *(show(score) for show in COLUMNS.values())])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    )
