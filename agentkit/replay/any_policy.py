"""Replay any policy by its log: slower than a schedule, as it looks at the whole view every time, but every policy fits."""

from __future__ import annotations

import functools
import itertools
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
from agentkit.replay.summaries import STAND_IN, stand_in


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
        self.reached = self.paid = 0
        self.known: dict[int, _Known] = {}
        fixed = len(counted.head) - len(counted.system)
        self.start, self.fixed = counted.head[:fixed], sum(len(s.tokens) for s in counted.head[:fixed])

    def request(self, number: int, point: Point) -> None:
        for message in self.counted.body[self.reached : point.end]:
            self.log.append(message)
        self.reached = point.end
        before = self.policy.view(self.log)
        size = self._size(before)
        record = self.policy.decide(self.log, Situation(size, self.fixed, self.budget, (), self._note))
        if record is not None:
            self.log.compact(record)
        view = self.policy.view(self.log)
        if record is not None:
            change = f"{record.messages:,} messages, {size:,} -> {self._size(view):,} tokens"
            self.account.events = [f"compacted: {change}"]
        self._summary_calls(number, point, before)
        result = self.account.cache.observe(self._prompt(view), point.at or 0.0, self.counted.segments[point.end])
        self.account.look(point, result)
        names = self.counted.references.names[number]
        in_view = sum(self._sees(view, name) for name in names)
        self.account.add_row(number + 1, "request", point, result, point.output, len(names), in_view)
        self.account.before, self.account.read_back = point, result.read + result.written + result.fresh

    def _size(self, view: Sequence[Message]) -> int:
        return self.fixed + sum([self._look(message).tokens for message in view])

    def _prompt(self, view: Sequence[Message]) -> list[Segment]:
        return [*self.start, *itertools.chain.from_iterable([self._look(message).segments for message in view])]

    def _look(self, message: Message) -> _Known:
        """Return what is known of a message; one that was seen before (the very same object) is not counted again."""
        known = self.known.get(id(message))
        if known is None or known.message is not message:
            known = self.known[id(message)] = _Known(message, self._segments(message))
        return known

    def _segments(self, message: Message) -> tuple[Segment, ...]:
        whole = self.counted.texts.counter.message(message)
        if message.role == "system":
            return (replace(whole, kind="system"),)
        return tuple(self.counted.blocks_of(message, whole)) if self.blocks else (whole,)

    def _summary_calls(self, number: int, point: Point, before: Sequence[Message]) -> None:
        """Bill the calls that were made to decide. One that begins with the whole view shares what is cached of it."""
        for asked in self.provider.requests[self.paid :]:
            shares = len(asked.messages) > len(before) and asked.messages[: len(before)] == tuple(before)
            cache: PrefixCache = self.account.cache
            prompt = self._prompt(asked.messages)
            if not shares:
                cache = getattr(cache, "unmarked", cache)
                prompt = prompt[len(self.start) :]
            result = cache.observe(prompt, point.at or 0.0)
            self.account.add_row(number + 1, "summary", point, result, self.provider.tokens)
        self.paid = len(self.provider.requests)

    def _note(self, news: str | Outcome) -> None:
        if isinstance(news, Outcome) and news.status == "failed":
            self.account.events.append(f"failed: {news.reason}")

    def _sees(self, view: Sequence[Message], name: str) -> bool:
        for message in reversed(view):
            known = self._look(message)
            # Looking for a text is fast, finding all names in one is not.
            if name in known.text and (" " in name or name in known.names):
                return True
        return False


class _Known:
    """A message with what was found out about it."""

    def __init__(self, message: Message, segments: tuple[Segment, ...]) -> None:
        self.message, self.segments = message, segments
        self.tokens = sum(len(segment.tokens) for segment in segments)

    @functools.cached_property
    def text(self) -> str:
        return said(self.message)

    @functools.cached_property
    def names(self) -> frozenset[str]:
        return identifiers(self.text)
