"""The cheapest schedule of compactions for a recorded session: the limit that no policy with the same tails can beat.

Dynamic programming over the request of the last compaction. Exact under the replay's own cost model: every prompt, every
read, every write, the summary calls, pauses, tiers and peak hours. Open loop, and with hindsight: it knows how the session
goes on. The only assumption: with both kinds of summary call allowed, a DeepSeek call that flattens does not read back its
own instructions (some 250 tokens); with one kind, nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agentkit.cache_rules import cache_rule
from agentkit.caching.prefix import Life
from agentkit.pricing import Prices
from agentkit.replay.counted import Counted
from agentkit.replay.planned import Planned
from agentkit.replay.segments import Array, Rule, make_rule
from agentkit.replay.summaries import STAND_IN, SummaryCall

_OVER = 1e6
"""USD that a request over the window counts as: more than any session costs, so that as few as possible are over it."""

_MILLION = 1_000_000


@dataclass(frozen=True)
class Optimum:
    """The cheapest schedule. `usd` is its price, summary calls included; `over` requests do not fit the window even so."""

    usd: float
    over: int
    schedule: Planned

    @property
    def compactions(self) -> int:
        """Return how many compactions it has."""
        return len(self.schedule.calls)


def optimum(
    counted: Counted,
    prices: Prices,
    cuts: Sequence[int],
    *,
    call: SummaryCall | Literal["either"] = "either",
    window: int | None = None,
    summary: int = STAND_IN,
    cache: str | None = None,
    life: Life = "5m",
    pauses: bool = True,
) -> Optimum:
    """Return the cheapest schedule of compactions, each of which cuts at `cuts[request]` (`planned.keep_cuts`).

    `call` is how summaries are asked for; `either`: each time as is cheaper. No request and no summary call has more than
    `window` tokens as far as that can be helped. The other options are those of `replay.caches.cache_for`.
    Raises `ValueError` for a cache model that is not worked out.
    """
    calls: tuple[SummaryCall, ...] = ("flatten", "shared") if call == "either" else (call,)
    rule = make_rule(counted, prices, cuts, summary=summary, cache=cache, life=life, pauses=pauses, calls=calls)
    search = _Search(rule, prices, calls, window or 10**12, cache, life)
    for request in range(len(counted.points)):
        search.step(request)
    cost, chosen = search.best_plan()
    over = int(cost // _OVER)
    return Optimum(cost - over * _OVER, over, Planned(chosen, cuts, summary, "optimum"))


class _Search:
    """The state: for each segment and mark the cheapest way to its start, and what its requests so far cost."""

    def __init__(
        self, rule: Rule, prices: Prices, calls: Sequence[SummaryCall], window: int, cache: str | None, life: Life
    ) -> None:
        self.rule, self.session, self.calls, self.window = rule, rule.session, calls, window
        own = cache_rule(prices.provider, prices.model)
        charged = own.charged and (cache or own.kind) == own.kind
        self.money = _Money(prices, life, own.minimum if charged else None)
        size = len(self.session.starts)
        self.best = np.full((rule.marks, size), np.inf)
        self.best[0, 0] = 0.0
        self.spent = np.zeros(size)
        self.before: dict[tuple[int, int], tuple[int, int, SummaryCall]] = {}

    def step(self, request: int) -> None:
        """Try a compaction before `request` from every segment, then let each segment send it."""
        if self.session.starts[request + 1] > 0:
            for call in self.calls:
                self._compact(request, call)
        read, written = self.rule.carried(request)
        size, output = self.session.size(request), self.session.counted.points[request].output
        usd = self.money.usd(self._at(request), size, read, written, output)
        sent = self.rule.number <= request
        self.spent += np.where(sent, usd + _OVER * (self.session.shown(request) > self.window), 0.0)

    def best_plan(self) -> tuple[float, dict[int, SummaryCall]]:
        """Return the cheapest cost of the whole session and its compactions."""
        total = self.best + self.spent
        mark, segment = np.unravel_index(int(np.argmin(total)), total.shape)
        place, calls = (int(mark), int(segment)), dict[int, SummaryCall]()
        while place[1]:
            *back, call = self.before[place]
            calls[place[1] - 1] = call
            place = (back[0], back[1])
        return float(total[mark, segment]), dict(sorted(calls.items()))

    def _at(self, request: int) -> float | None:
        return self.session.counted.points[request].at

    def _compact(self, request: int, call: SummaryCall) -> None:
        gains = (self.session.starts[request + 1] > self.session.starts) & (self.rule.number <= request)
        gains &= self.session.removed(request) > self.session.between[request + 1]
        if not gains.any():
            return
        cost = np.where(gains, self.best + self.spent + self._call_usd(request, call), np.inf)
        for where, read, mark in self.rule.arrivals(request, call):
            reached = np.where(where, cost, np.inf)
            old, segment = divmod(int(np.argmin(reached)), len(gains))
            if reached[old, segment] == np.inf:
                continue
            usd = reached[old, segment] + self._first_usd(request, read)
            if usd < self.best[mark, request + 1]:
                self.best[mark, request + 1] = usd
                self.before[mark, request + 1] = old, segment, call

    def _call_usd(self, request: int, call: SummaryCall) -> Array:
        session, at = self.session, self._at(request)
        if call == "shared":
            size = session.size(request) + session.instruction
            usd = self.money.usd(at, size, *self.rule.asked(request), session.written)[None]
        else:
            size = session.flat(request)
            usd = self.money.usd(at, size, self.rule.flat_read(request), self.rule.none, session.written)
        return np.where(size > self.window, np.inf, usd)

    def _first_usd(self, request: int, read: int) -> float:
        segment, output = request + 1, self.session.counted.points[request].output
        size, written = self.session.size(request)[segment], self.rule.first_written(request, read)
        usd = self.money.usd(self._at(request), size, np.array(read), np.array(written), output)
        return float(usd + _OVER * (self.session.shown(request)[segment] > self.window))


class _Money:
    """Prices for many requests at once. `charged`: from this size on, whatever is not read is stored and paid for."""

    def __init__(self, prices: Prices, life: Life, charged: int | None) -> None:
        self.prices, self.life, self.charged = prices, life, charged
        tiers = [*prices.tiers, *(tier for peak in prices.peaks for tier in peak.tiers)]
        self.above = sorted({tier.above for tier in tiers})

    def usd(self, at: float | None, size: Array, read: Array, written: Array, output: int) -> Array:
        """Return USD of requests of `size` tokens that are sent at `at`."""
        fresh = size - read - written
        if self.charged is not None:
            stored = size >= self.charged
            fresh, written = np.where(stored, 0, fresh), np.where(stored, written + fresh, written)
        band = np.searchsorted(self.above, size, side="left") - 1
        rates = np.array([self._rates(above, at) for above in self.above])[band]
        return (fresh * rates[..., 0] + read * rates[..., 1] + written * rates[..., 2] + output * rates[..., 3]) / _MILLION

    def _rates(self, above: int, at: float | None) -> tuple[float, float, float, float]:
        rates = self.prices.rates_at(above + 1, at)
        return rates.fresh, rates.read, rates.write if self.life == "5m" else rates.write_long, rates.output
