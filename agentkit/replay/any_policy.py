"""Replay any policy by its log: slower than a schedule, as it looks at the whole view every time, but every policy fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from agentkit.budget import Budget
from agentkit.caching.prefix import PrefixCache, Segment
from agentkit.compaction.compactor import Outcome
from agentkit.log import Log
from agentkit.messages import Message, Reply, Request, Usage, assistant
from agentkit.policies.base import Policy, Situation
from agentkit.pricing import Prices
from agentkit.providers.base import Done, Provider, StreamEvent
from agentkit.replay.caches import CacheChoice, cache_for
from agentkit.replay.counted import Counted, Point
from agentkit.replay.references import identifiers, said
from agentkit.replay.run import Account, Replay
from agentkit.replay.schedules import STAND_IN, stand_in


class StandIn:
    """A provider in place of the summariser: it asks no model, and its text of `tokens` tokens says nothing."""

    name = model = "stand-in"

    def __init__(self, tokens: int = STAND_IN) -> None:
        self.tokens = tokens
        self.requests: list[Request] = []

    def stream(self, request: Request) -> Iterator[StreamEvent]:
        """Answer `request`."""
        self.requests.append(request)
        yield Done(Reply(assistant(stand_in(len(self.requests), self.tokens)), Usage(output=self.tokens)))


def replay_policy(
    counted: Counted,
    make: Callable[[Provider], Policy],
    budget: Budget,
    prices: Prices,
    cache: CacheChoice | None = None,
    *,
    summary: int = STAND_IN,
) -> Replay:
    """Replay `counted` under the policy that `make` returns for a summariser.

    Its summaries are a stand-in of `summary` tokens. The estimate that the policy sees is the exact count.
    """
    choice = cache or cache_for(prices)
    provider = StandIn(summary)
    run = _Run(counted, make(provider), budget, provider, Account(counted, prices, choice), choice.blocks)
    for number, point in enumerate(counted.points):
        run.request(number, point)
    return run.account.result(run.policy.name, choice.label, summary)


class _Run:
    def __init__(
        self, counted: Counted, policy: Policy, budget: Budget, provider: StandIn, account: Account, blocks: bool
    ) -> None:
        self.counted, self.policy, self.budget, self.provider = counted, policy, budget, provider
        self.account, self.blocks = account, blocks
        self.log = Log(counted.system)
        self.reached = 0
        self.seen: dict[int, tuple[Message, tuple[Segment, ...]]] = {}
        self.named: dict[str, frozenset[str]] = {}
        fixed = len(counted.head) - len(counted.system)
        self.start, self.fixed = counted.head[:fixed], sum(len(s.tokens) for s in counted.head[:fixed])

    def request(self, number: int, point: Point) -> None:
        for message in self.counted.body[self.reached : point.end]:
            self.log.append(message)
        self.reached = point.end
        before = self.prompt()
        size = sum(len(segment.tokens) for segment in before)
        record = self.policy.decide(self.log, Situation(size, self.fixed, self.budget, (), self._note))
        if record is not None:
            self.log.compact(record)
            after = sum(len(segment.tokens) for segment in self.prompt())
            self.account.events = [f"compacted: {record.messages:,} messages, {size:,} -> {after:,} tokens"]
        self._summary_calls(number, point)
        result = self.account.cache.observe(self.prompt(), point.at or 0.0, self.counted.segments[point.end])
        self.account.look(point, result)
        names = self.counted.references.names[number]
        self.account.add_row(number + 1, "request", point, result, point.output, len(names), self._in_view(number))
        self.account.before, self.account.read_back = point, result.read + result.written + result.fresh

    def prompt(self) -> list[Segment]:
        """Return what would be sent now."""
        return [*self.start, *(s for message in self.policy.view(self.log) for s in self._segments(message))]

    def _segments(self, message: Message) -> tuple[Segment, ...]:
        """Return the segments of a message; a message that was seen before (the very same object) is not counted again."""
        known = self.seen.get(id(message))
        if known is None or known[0] is not message:
            whole = self.counted.texts.counter.message(message)
            kind = "system" if message.role == "system" else whole.kind
            parts = self.counted.blocks_of(message, whole) if self.blocks else [replace(whole, kind=kind)]
            known = self.seen[id(message)] = message, tuple(parts if kind != "system" else [replace(whole, kind=kind)])
        return known[1]

    def _summary_calls(self, number: int, point: Point) -> None:
        for asked in self.provider.requests[self._paid() :]:
            cache: PrefixCache = getattr(self.account.cache, "unmarked", self.account.cache)
            prompt = [s for message in asked.messages for s in self._segments(message)]
            result = cache.observe(prompt, point.at or 0.0)
            self.account.add_row(number + 1, "summary", point, result, self.provider.tokens)

    def _paid(self) -> int:
        return sum(row.kind == "summary" for row in self.account.rows)

    def _note(self, news: str | Outcome) -> None:
        if isinstance(news, Outcome) and news.status == "failed":
            self.account.events.append(f"failed: {news.reason}")

    def _in_view(self, number: int) -> int:
        view = self.policy.view(self.log)
        return sum(self._sees(view, name) for name in self.counted.references.names[number])

    def _sees(self, view: Sequence[Message], name: str) -> bool:
        for message in reversed(view):
            text = said(message)
            if text not in self.named:
                self.named[text] = identifiers(text)
            if name in self.named[text] or (" " in name and name in text):
                return True
        return False
