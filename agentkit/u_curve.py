"""What a session costs over the threshold, replayed beside the square-root law; and when one compaction is paid back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from statistics import mean

from agentkit.break_even import Pace, request_usd, square_root_threshold
from agentkit.pricing import Prices, Rates, Tier
from agentkit.replay.caches import CacheChoice, cache_for
from agentkit.replay.counted import Counted
from agentkit.replay.run import Replay, replay_sums
from agentkit.replay.schedules import Decide, KeepAll, Middle, Step, View
from agentkit.replay.summaries import flattened
from agentkit.sweep import Cell, Cuts, cuts


@dataclass(frozen=True)
class PriceProfile:
    """A price list with the cache rule that goes with it. `cache` is one of `replay.CACHES`."""

    name: str
    prices: Prices
    cache: str

    def choice(self) -> CacheChoice:
        """Return the cache model."""
        return cache_for(self.prices, self.cache)


def _listed(provider: str, model: str, rates: Rates, source: str, day: date) -> Prices:
    return Prices(model, provider, (Tier(-1, rates),), source, day)


_SONNET = ("anthropic", "claude-sonnet-5", "Anthropic documentation, pricing", date(2026, 8, 21))
_GPT = ("openai", "gpt-5.4", "litellm 1.110.2, price catalogue", date(2026, 11, 30))
_FLASH = ("deepseek", "deepseek-flash", "DeepSeek documentation, pricing, off-peak", date(2026, 9, 10))


def _profile(name: str, known: tuple[str, str, str, date], rates: Rates, cache: str) -> PriceProfile:
    provider, model, source, day = known
    return PriceProfile(name, _listed(provider, model, rates, source, day), cache)


PROFILES: tuple[PriceProfile, ...] = (
    _profile("Anthropic, 5 minutes", _SONNET, Rates(2.0, 0.2, 2.5, 4.0, 10.0), "anthropic"),
    _profile("OpenAI, no write price", _GPT, Rates(2.5, 0.25, 2.5, 2.5, 15.0), "openai"),
    _profile("DeepSeek, off-peak", _FLASH, Rates(0.15, 0.003, 0.15, 0.15, 0.6), "deepseek"),
    _profile("no cache", _SONNET, Rates(2.0, 2.0, 2.0, 2.0, 10.0), "none"),
)
"""Four price profiles as fixed *example prices*: what a chapter prints does not change when a catalogue does."""


# -------------------------------------------------------------------------------------------------------------- the U-curve


def pace_of(counted: Counted, policy: Middle) -> Pace:
    """Return the pace of a recorded session under `policy`: growth per request, and the tail that its cuts would leave.

    Raises `ValueError` for a session of one request: nothing grows in it.
    """
    points, sums = counted.points, counted.sums
    if len(points) < 2:
        raise ValueError(f"{counted.session.id}: one request only, so there is no growth to measure")
    growth = (sums[points[-1].end] - sums[points[0].end]) / (len(points) - 1)
    told = sum(len(s.tokens) for s in counted.transcript) / max(1, sums[-1])
    instruction = sum(len(s.tokens) for s in flattened(counted, 0, 0, ""))
    return Pace(growth, counted.head_tokens, policy.summary, _tail(counted, policy), instruction, told)


def _tail(counted: Counted, policy: Middle) -> float:
    """Return the tokens that stay word for word, on average over all places where a cut could fall."""
    keep, sums = policy.keep, counted.sums
    if keep.unit != "messages":
        return keep.amount if keep.unit == "tokens" else keep.max_tokens
    ends = [point.end for point in counted.points if point.end > keep.amount]
    return (
        mean(sums[end] - sums[counted.cut_before(end - keep.amount, policy.boundary)] for end in ends) if ends else sums[-1]
    )


@dataclass(frozen=True)
class Curve:
    """The cost of one session over the threshold, under one price profile.

    `cells` are replays, one a threshold; `never` is the cost without any compaction. `law` is the threshold that the
    square-root law names, `outputs` the price of all answers, which no threshold changes. USD for the whole session.
    """

    name: str
    prices: Prices
    policy: Middle
    cells: tuple[Cell, ...]
    never: float
    pace: Pace
    requests: int
    outputs: float

    @cached_property
    def best(self) -> Cell:
        """Return the cheapest replay."""
        return min(self.cells, key=lambda cell: cell.usd)

    @property
    def law(self) -> float:
        """Return the threshold of the square-root law."""
        return square_root_threshold(self.prices.rates, self.pace, self.policy.call)

    def law_usd(self, threshold: float) -> float:
        """Return what the formula says for the whole session, its outputs included."""
        return self.outputs + self.requests * request_usd(self.prices.rates, self.pace, threshold, self.policy.call)

    def near(self, threshold: float) -> Cell:
        """Return the replay whose threshold is nearest."""
        return min(self.cells, key=lambda cell: abs(cell.threshold - threshold))


def u_curve(counted: Counted, profile: PriceProfile, policy: Middle, thresholds: Sequence[int]) -> Curve:
    """Replay `counted` under `policy` at each of `thresholds` (tokens). Open loop.

    Thresholds that cut at the same places are replayed once.
    """
    known: dict[Cuts, Cell] = {}
    cells = []
    for threshold in thresholds:
        at = replace(policy, threshold=threshold)
        places = cuts(at, counted)
        if places not in known:
            known[places] = replay_at(counted, profile, at)
        cells.append(replace(known[places], threshold=threshold))
    outputs = sum(point.output for point in counted.points) * profile.prices.rates.output / 1_000_000
    never = replay_sums(counted, KeepAll(), profile.prices, profile.choice()).usd
    pace = pace_of(counted, policy)
    return Curve(profile.name, profile.prices, policy, tuple(cells), never, pace, len(counted.points), outputs)


def replay_at(counted: Counted, profile: PriceProfile, policy: Middle) -> Cell:
    """Replay `counted` under `policy` and return its sums. Open loop."""
    run = replay_sums(counted, policy, profile.prices, profile.choice())
    share = run.read / max(1, run.sent)
    keep = policy.keep.amount
    return Cell(keep, policy.threshold, run.usd, run.summaries_usd, run.compactions, run.sent, share, run.recall)


def spread(low: int, high: int, steps: int) -> list[int]:
    """Return `steps` thresholds from `low` to `high`, each the same factor above the one before, rounded to hundreds."""
    factor = (high / low) ** (1 / max(1, steps - 1))
    return sorted({round(low * factor**i / 100) * 100 for i in range(steps)})


# ---------------------------------------------------------------------------------------------------------- one compaction


@dataclass(frozen=True)
class Once:
    """Do what `policy` does, but only the first time: a schedule with one compaction."""

    policy: Middle

    @property
    def name(self) -> str:
        """Return what is shown to the reader."""
        return f"{self.policy.name}, once"

    @property
    def summary(self) -> int:
        """Return the tokens of the stand-in summary."""
        return self.policy.summary

    def begin(self, counted: Counted) -> Decide:
        """Return a decider that has not compacted yet."""
        decide, done = self.policy.begin(counted), False

        def once(view: View, request: int) -> Step | None:
            nonlocal done
            step = None if done else decide(view, request)
            done = done or (step is not None and not step.failed)
            return step

        return once


@dataclass(frozen=True)
class PaidBack:
    """One compaction in a replay, as the break-even formula wants it, and when the bill really was even.

    `after` counts requests from the first one after the compaction on, that one included; None: not within the session.
    """

    removed: int
    rewritten: int
    call_usd: float
    after: int | None


def paid_back(once: Replay, kept: Replay) -> PaidBack:
    """Compare a replay with one compaction with one that keeps everything, under the same prices and cache.

    Raises `ValueError` when `once` has no compaction.
    """
    call = next((row for row in once.rows if row.kind == "summary" and row.events[0].startswith("compacted")), None)
    if call is None:
        raise ValueError("there is no compaction in this replay; take a lower threshold")
    first = call.number - 1
    new, old = once.requests[first], kept.requests[first]
    rewritten = (new.fresh + new.written) - (old.fresh + old.written)
    pairs = zip(once.requests[first:], kept.requests[first:], strict=True)
    after = next((n for n, (a, b) in enumerate(pairs, 1) if a.cumulative <= b.cumulative), None)
    return PaidBack(old.sent - new.sent, rewritten, call.usd, after)
