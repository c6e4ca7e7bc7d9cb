"""What requests cost when the last compaction was at request *i*: for every *i* at once, as numpy arrays.

A segment is what lies between two compactions. Segment 0 starts with the session, segment *i* + 1 with a compaction before
request *i* (counted from 0). Within one, every request reads back what the one before left in the cache; only its first
request depends on what was before, and a cache rule sorts that into a few marks (`arrivals`). The rules are the cache models
of `agentkit.caching`, worked out for this one pattern of requests; tests hold them against the models themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from agentkit.cache_rules import cache_rule
from agentkit.caching.anthropic import LIVES
from agentkit.caching.prefix import Life, Segment, alike
from agentkit.pricing import Prices
from agentkit.replay.counted import Counted
from agentkit.replay.summaries import SummaryCall, flattened, instruction, question_before, stand_in, summary_segment

Array = Any
"""A numpy array: one number a segment (and, where said, one row a mark)."""

Arrival = tuple[Array, int, int]
"""(which segments, by mark and segment; tokens of the first request that are read from the cache; its mark)"""


class Session:
    """The lengths of one session under one keep rule. `cuts[r]` is where a compaction before request r cuts; tokens."""

    def __init__(self, counted: Counted, cuts: Sequence[int], summary: int, life: float | None, blocks: bool) -> None:
        self.counted, points = counted, counted.points
        self.ends = [p.end for p in points]
        times = [p.at or 0.0 for p in points]
        self.times = np.array(times)
        self.dead = [True, *(life is not None and b - a >= life for a, b in zip(times, times[1:], strict=False))]
        self.plain = np.array(counted.sums)
        self.sums = _sums([sum(len(b.tokens) for b in m) for m in counted.blocks]) if blocks else self.plain
        self.told = _sums([len(s.tokens) for s in counted.transcript])
        self.starts = np.array([0, *cuts])
        self.head, self.written = counted.head_tokens, summary
        texts = [stand_in(number, summary) for number in (1, 2)]
        shown = [summary_segment(counted, text) for text in texts]
        kept = [question_before(counted, cut, end) for cut, end in zip(cuts, self.ends, strict=True)]
        # What stands between head and tail, and of that the part that is flattened again: the question that stayed.
        stays = [0 if place is None else len(counted.segments[place].tokens) for place in kept]
        told = [0 if place is None else len(counted.transcript[place].tokens) for place in kept]
        self.between = np.array([0, *(len(shown[0].tokens) + tokens for tokens in stays)])
        self.base = self.head + self.between - self.sums[self.starts]
        self.instruction = len(instruction(counted).tokens)
        self.apart = (_alike(shown[0], counted.segments[0]), _alike(*shown))
        asked = [flattened(counted, 0, 0, text) for text in ("", *texts)]
        asks = [sum(len(s.tokens) for s in prompt) for prompt in asked]
        self.asks = np.array([asks[0], *(asks[1] + tokens for tokens in told)])
        self.asks_apart = (_alike(asked[0][0], asked[1][0]), _alike(asked[1][0], asked[2][0]))

    def size(self, request: int) -> Array:
        """Return the tokens of a request in each segment, as the cache counts them."""
        return self.base + self.sums[self.ends[request]]

    def flat(self, request: int) -> Array:
        """Return the tokens of a summary call that shows as text what a compaction before `request` removes."""
        return self.asks + self.told[self.starts[request + 1]] - self.told[self.starts]

    def removed(self, request: int) -> Array:
        """Return the tokens that a compaction before `request` takes out of each segment."""
        return self.plain[self.starts[request + 1]] - self.plain[self.starts] + self.between

    def shown(self, request: int) -> Array:
        """Return the tokens of a request in each segment, whole messages counted, as a window counts them."""
        return self.head + self.between - self.plain[self.starts] + self.plain[self.ends[request]]


def _sums(sizes: Sequence[int]) -> Array:
    return np.concatenate([[0], np.cumsum(sizes, dtype=int)])


def _alike(a: Segment, b: Segment) -> int:
    return alike(a.tokens, b.tokens)


class Rule:
    """A cache rule, worked out for segments; this one is no cache. `marks` is how many kinds of segment it tells apart."""

    marks = 1

    def __init__(self, session: Session) -> None:
        self.session = session
        self.number = np.arange(len(session.starts))
        self.none = np.zeros_like(self.number)

    def carried(self, request: int) -> tuple[Array, Array]:
        """Return (read, written) of `request` in each segment that began before it."""
        return self.none, self.none

    def asked(self, request: int) -> tuple[Array, Array]:
        """Return (read, written) of a summary call before `request` that shares the prefix of each segment."""
        return self.carried(request)

    def flat_read(self, request: int) -> Array:
        """Return what is read by a summary call before `request` that shares no prefix: a row a mark, or one for all."""
        return self.none[None]

    def arrivals(self, request: int, call: SummaryCall) -> Iterator[Arrival]:
        """Yield what the first request after a compaction before `request` reads, by the segment that it ends."""
        yield np.ones((1, len(self.number)), bool), 0, 0

    def first_written(self, request: int, read: int) -> int:
        """Return what the first request after a compaction before `request` writes when it reads `read` tokens."""
        return 0


class Automatic(Rule):
    """The longest prefix in whole steps (OpenAI)."""

    def __init__(self, session: Session, minimum: int, step: int) -> None:
        super().__init__(session)
        self.minimum, self.step = minimum, step

    def carried(self, request: int) -> tuple[Array, Array]:
        """Return (read, written): the prompt before, unless a pause emptied the cache."""
        if self.session.dead[request]:
            return self.none, self.none
        before = self.session.size(request - 1)
        return np.where(before >= self.minimum, before // self.step * self.step, 0), self.none

    def arrivals(self, request: int, call: SummaryCall) -> Iterator[Arrival]:
        """Yield the head, and the words that this summary begins with and another text at its place as well."""
        empty = self.session.dead[request] and call == "flatten"
        for first, apart in ((True, self.session.apart[0]), (False, self.session.apart[1])):
            shared = 0 if empty else self.session.head + apart
            read = shared // self.step * self.step if shared >= self.minimum else 0
            yield ((self.number == 0) == first)[None], read, 0


class Units(Rule):
    """Whole stored units (DeepSeek). They also end where requests parted ways, so it matters how often that happened.

    A segment's mark: 0 it began with the first compaction, 2 with the second, 3 with a later one, 4 with one after a pause
    that emptied the cache; 1 and 5 like 0 and 4, with nothing but the summary call in the cache.
    """

    marks = 6
    _PARTED = (1, 0, 2, 2, 2, 0)
    """By mark: how often prompts have parted where the next summary will begin, up to 2; later partings add nothing."""
    _NEXT = (2, 2, 3, 3, 3, 3)

    def __init__(self, session: Session, minimum: int, step: int, mixed: bool) -> None:
        super().__init__(session)
        self.minimum, self.step, self.mixed = minimum, step, mixed

    def _unit(self, shared: int, parted: int = 0) -> int:
        read = max(shared // self.step * self.step, parted)
        return read if read >= self.minimum else 0

    def _paused(self, request: int) -> Array:
        """Say for each segment whether the cache was emptied since its first request."""
        last = next((r for r in range(request, -1, -1) if self.session.dead[r]), 0)
        return self.number - 1 < last

    def carried(self, request: int) -> tuple[Array, Array]:
        """Return (read, written): the prompt before and its answer, which are one unit."""
        if self.session.dead[request]:
            return self.none, self.none
        before = self.session.base + self.session.sums[self.session.ends[request - 1] + 1]
        return np.where(before >= self.minimum, before, 0), self.none

    def flat_read(self, request: int) -> Array:
        """Return what summary calls begin with alike. Where both kinds of call are allowed it counts as not read."""
        if self.mixed:
            return self.none[None]
        one, two = self.session.asks_apart
        first, later = self._unit(one), self._unit(two)
        known = np.array([first, first, self._unit(two, one), self._unit(two, two), later, later])[:, None]
        return np.where(self._paused(request) | (self.number == 0), 0, known)

    def arrivals(self, request: int, call: SummaryCall) -> Iterator[Arrival]:
        """Yield the head, up to where earlier requests parted ways."""
        one, two = (self.session.head + apart for apart in self.session.apart)
        empty = self.session.dead[request] and call == "flatten"
        none, paused = self.number == 0, self._paused(request)
        rows = np.arange(self.marks)[:, None]
        yield (rows == 0) & none, 0 if empty else self._unit(one), int(empty)
        yield (rows >= 0) & ~none & paused, 0 if empty else self._unit(two), 4 + empty
        for mark, parted in enumerate(self._PARTED):
            read = self._unit(two, (0, one, two)[parted])
            yield (rows == mark) & ~none & ~paused, read, self._NEXT[mark]


class Marked(Rule):
    """Marks at the end of the head and of the newest user messages (Anthropic, placed as recommended).

    After a compaction the mark stands behind the summary, so the entry at the end of the head is used once and never made
    again: mark 0 is for segments whose first request found it, mark 1 for the others.
    """

    marks = 2

    def __init__(self, session: Session, minimum: int, life: float) -> None:
        super().__init__(session)
        self.minimum, self.life = minimum, life
        said = [0]
        for i, message in enumerate(session.counted.body):
            said.append(said[-1] if message.role == "assistant" else i + 1)
        self.said = [said[end] for end in session.ends]

    def _marked(self, request: int) -> Array:
        """Return the tokens up to the newest mark of `request` in each segment; 0 where that is too short to be kept."""
        session, said = self.session, self.said[request]
        end = np.where(said > session.starts, session.base + session.sums[said], session.head + session.between)
        return np.where(end >= self.minimum, end, 0)

    def _read(self, request: int) -> Array:
        return self.none if self.session.dead[request] else self._marked(request - 1)

    def carried(self, request: int) -> tuple[Array, Array]:
        """Return (read, written): up to the newest mark of the request before, and from there to its own."""
        read = self._read(request)
        return read, np.maximum(self._marked(request) - read, 0)

    def asked(self, request: int) -> tuple[Array, Array]:
        """Return (read, written); the instruction is the newest user message, so everything is stored."""
        read, size = self._read(request), self.session.size(request) + self.session.instruction
        return read, np.where(size >= self.minimum, size - read, 0)

    def arrivals(self, request: int, call: SummaryCall) -> Iterator[Arrival]:
        """Yield the head, where its entry still lives."""
        session, kept = self.session, self.session.head >= self.minimum
        since = session.times[request] - session.times[np.maximum(self.number - 1, 0)]
        alive = np.array([since < self.life, np.zeros_like(since, bool)])
        alive[0, 0] = call == "shared" or not session.dead[request]
        yield alive & kept, session.head, 0
        yield ~(alive & kept), 0, 1

    def first_written(self, request: int, read: int) -> int:
        """Return what lies between the head and the newest mark."""
        return max(0, int(self._marked(request)[request + 1]) - read)


def make_rule(
    counted: Counted,
    prices: Prices,
    cuts: Sequence[int],
    *,
    summary: int,
    cache: str | None,
    life: Life,
    pauses: bool,
    calls: Sequence[SummaryCall],
) -> Rule:
    """Return the cache rule of `prices` (or the one named `cache`) for this session, as `replay.caches.cache_for` does.

    Raises `ValueError` for a cache model that is not worked out here.
    """
    rule = cache_rule(prices.provider, prices.model)
    kind = cache or rule.kind
    own = rule.kind == kind
    if kind == "anthropic":
        return Marked(Session(counted, cuts, summary, LIVES[life], True), rule.minimum if own else 1_024, LIVES[life])
    session = Session(counted, cuts, summary, rule.life if own and pauses else None, False)
    if kind == "openai":
        return Automatic(session, *((rule.minimum, rule.step) if own else (1_024, 128)))
    if kind == "deepseek":
        return Units(session, *((rule.minimum, rule.step) if own else (64, 128)), mixed=len(calls) > 1)
    if kind != "none":
        raise ValueError(f"no optimum for the cache model {kind!r}; there is one for anthropic, openai, deepseek and none")
    return Rule(session)
