"""The live table against the replayed one: the same work and the same budget, and where the two disagree, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentkit.agent import Agent
from agentkit.budget import Budget
from agentkit.closed_loop.cells import MODEL, Row, provider_for
from agentkit.policies.keep_everything import KeepEverything
from agentkit.policies.registry import POLICIES
from agentkit.pricing import prices
from agentkit.replay.frontier import Settings, compare_policies
from agentkit.scenarios.library import scenario as find_scenario
from agentkit.scenarios.playing import play
from agentkit.sessions import Recorder, Session

APART = 3
"""Places by which the ranks of a policy must differ to count as a disagreement."""
BASE = KeepEverything.name


@dataclass(frozen=True)
class Replayed:
    """One policy on the session of a scenario, open loop: USD, reference recall (None: nothing was referred to)."""

    scenario: str
    policy: str
    usd: float
    recall: float | None


@dataclass(frozen=True)
class Disagreement:
    """A policy whose place in the two tables differs. Places count from 1, equals share one; `reasons` were measured."""

    scenario: str
    policy: str
    replayed: int
    live: int
    usd_replayed: float
    usd_live: float
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        costs = f"{self.usd_replayed:.4f} → {self.usd_live:.4f} USD"
        return f"{self.policy}: place {self.replayed} replayed, {self.live} live ({costs}): {'; '.join(self.reasons)}"


def session_of_scenario(name: str, model: str = MODEL) -> Session:
    """Play the scenario `name` under keep everything, and return it as a recorded session."""
    found, chosen = prices(model), find_scenario(name)
    recorders: list[Recorder] = []

    def listeners(agent: Agent) -> list[Recorder]:
        recorders.append(Recorder(agent.log, agent.tools.specs, clock=lambda: 0.0))
        return recorders

    def make(provider: object) -> KeepEverything:
        return KeepEverything()

    play(chosen, make, budget=Budget.ratio(1_000_000, 1.0), provider=provider_for(found), listeners=listeners)  # type: ignore[arg-type]
    return recorders[0].session(name, title=chosen.about, model=found.model)


def replayed(
    scenario: str, policies: Sequence[str] = tuple(POLICIES), model: str = MODEL, *, processes: int | None = 1
) -> list[Replayed]:
    """Replay the session of `scenario` under each policy, with the scenario's own budget. Open loop."""
    chosen = find_scenario(scenario)
    settings = Settings(prices(model), Budget.ratio(chosen.budget, chosen.threshold))
    scores = compare_policies([(session_of_scenario(scenario, model), settings)], policies, processes=processes)
    return [Replayed(scenario, score.policy, round(score.usd, 6), score.recall) for score in scores]


def disagreements(open_loop: Sequence[Replayed], rows: Sequence[Row], *, apart: int = APART) -> list[Disagreement]:
    """Return where the two tables of one scenario disagree, the furthest apart first.

    Replayed, policies are ranked by cost; live, first by turns that did not do their work, then by cost. A policy that left
    work undone is always listed: the replay cannot see that. Raises `ValueError` when a policy is in one table only.
    """
    names = {one.policy for one in open_loop}
    if names != {row.policy for row in rows}:
        raise ValueError("the two tables must have the same policies")
    before = {one.policy: one.usd for one in open_loop}
    base = next((row for row in rows if row.policy == BASE), None)
    found = []
    for row in rows:
        usd = before[row.policy]
        was = 1 + sum(_cheaper(other, usd) for other in before.values())
        now = 1 + sum(_better(other, row) for other in rows)
        if abs(now - was) >= apart or not row.answered:
            why = tuple(_reasons(row, base, usd)) or ("others moved",)
            found.append(Disagreement(row.scenario, row.policy, was, now, usd, row.usd, why))
    return sorted(found, key=lambda d: (-abs(d.live - d.replayed), d.policy))


def _cheaper(one: float, other: float) -> bool:
    """Say whether `one` costs less; a thousandth is no difference, so policies that did the same share a place."""
    return one < other * 0.999


def _better(one: Row, other: Row) -> bool:
    if one.unanswered != other.unanswered:
        return one.unanswered < other.unanswered
    return _cheaper(one.usd, other.usd)


def _reasons(row: Row, base: Row | None, usd: float) -> list[str]:
    reasons = []
    if row.problem:
        reasons.append(f"it ended early: {row.problem}")
    if not row.answered:
        reasons.append(f"{row.unanswered} of {row.asked} turns did not do their work")
    if row.read_again:
        reasons.append(f"{row.read_again} files read again")
    if base and row.rounds != base.rounds:
        reasons.append(f"{abs(row.rounds - base.rounds)} rounds {'more' if row.rounds > base.rounds else 'fewer'}")
    wrote = row.output - base.output if base else row.output
    if row.extra and abs(row.usd - usd) > 0.1 * usd:
        reasons.append(f"its {row.extra} own calls were made for real: {max(0, wrote):,} tokens more written than by {BASE}")
    elif base and not reasons and abs(row.usd - usd) > 0.02 * usd:
        sizes = f"{row.prompt:,} prompt tokens, {base.prompt:,} under {BASE}"
        reasons.append(f"the same rounds cost {row.usd / usd - 1:+.0%} live: {sizes}, its own tools included")
    return reasons
