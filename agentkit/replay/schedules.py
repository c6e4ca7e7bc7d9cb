"""When a replay compacts: never, as the log did, or by threshold and keep. Each decision costs the same, early or late."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from agentkit.caching.prefix import Segment
from agentkit.compaction.cut import Boundary, Keep
from agentkit.replay.counted import Counted
from agentkit.replay.references import identifiers
from agentkit.replay.summaries import (
    STAND_IN,
    SummaryCall,
    flattened,
    instruction,
    names_in,
    question_before,
    stand_in,
    summary_segment,
)


@dataclass
class View:
    """What is sent at present: the head, the summary in force, the body from `start` on.

    `text` is what the summary says, `names` are the identifiers in it.
    """

    counted: Counted
    start: int = 0
    summary: Segment | None = None
    text: str = ""
    names: frozenset[str] = frozenset()

    def change(self, step: Step) -> None:
        """Take over what a compaction leaves."""
        self.start, self.summary, self.text, self.names = step.start, step.summary, step.text, step.names

    def size(self, end: int) -> int:
        """Return the tokens of a request that sends the body up to `end`."""
        summary = len(self.summary.tokens) if self.summary else 0
        return self.counted.head_tokens + summary + self.counted.sums[end] - self.counted.sums[self.start]


@dataclass(frozen=True)
class Step:
    """A summary call. `extra` is what it sends: alone, or behind the request of the moment when it shares that prefix.

    After a failed one nothing changes, but it is paid.
    """

    extra: tuple[Segment, ...]
    shares: bool
    output: int
    start: int
    summary: Segment
    messages: int
    text: str
    names: frozenset[str] = frozenset()
    failed: str = ""


Decide = Callable[[View, int], "Step | None"]


class Schedule(Protocol):
    """A policy as a replay runs it: when to compact, and where to cut."""

    @property
    def name(self) -> str:
        """Return what is shown to the reader."""
        ...

    def begin(self, counted: Counted) -> Decide:
        """Return a function that decides before each request of `counted`, with a state of its own."""
        ...


@dataclass(frozen=True)
class KeepAll:
    """Send everything, every time."""

    name: str = "keep everything"

    def begin(self, counted: Counted) -> Decide:
        """Never compact."""
        return lambda view, request: None


@dataclass(frozen=True)
class AsRecorded:
    """Compact where the log did, with the summaries of the log.

    The log does not show the summary calls; they are modelled as flattened transcripts.
    """

    name: str = "as recorded"

    def begin(self, counted: Counted) -> Decide:
        """Return the compactions of the log."""
        waiting = {summary.request: summary for summary in counted.summaries}

        def decide(view: View, request: int) -> Step | None:
            made = waiting.get(request)
            if made is None:
                return None
            extra = flattened(counted, view.start, max(made.start, view.start), view.text)
            size, text, removed = len(made.segment.tokens), made.message.content, max(0, made.start - view.start)
            return Step(extra, False, size, made.start, made.segment, removed, text, identifiers(text))

        return decide


@dataclass(frozen=True)
class Middle:
    """Summarise the middle when a request reaches `threshold` tokens, keep the tail (the policy `SummariseMiddle`).

    The summary is a stand-in of `summary` tokens that saves no identifier, so recall counts only what stays word for word.
    `call`: `flatten` sends the history as text and shares nothing; `shared` asks behind the cached prefix. `limit` is the
    budget: a view that is larger after compaction is refused (None: no limit).
    """

    threshold: int
    keep: Keep = field(default_factory=lambda: Keep(8, "messages"))
    boundary: Boundary = "user"
    summary: int = STAND_IN
    call: SummaryCall = "flatten"
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.threshold < 1 or self.summary < 1:
            raise ValueError("threshold and summary are tokens, 1 or more")

    @property
    def name(self) -> str:
        """Return what is shown to the reader."""
        return f"summarise the middle (from {self.threshold:,} tokens, keeps {self.keep})"

    def begin(self, counted: Counted) -> Decide:
        """Return a decider with no failures behind it."""
        return _Middle(self, counted).decide


class _Middle:
    """The state of one run of `Middle`: how often it failed, and when it may try again."""

    def __init__(self, policy: Middle, counted: Counted) -> None:
        self.policy, self.counted = policy, counted
        self.done = self.failures = 0
        self.failed_at: tuple[int, int] | None = None
        self.question: int | None = None

    def decide(self, view: View, request: int) -> Step | None:
        point = self.counted.points[request]
        size = view.size(point.end)
        if size < self.policy.threshold or self._must_wait(point.turn, size):
            return None
        cut = self._cut(view.start, point.end)
        asked = question_before(self.counted, cut, point.end)
        if cut - view.start + (self.question is not None) - (asked is not None) < 1:
            return None  # nothing would go, or nothing but the question that stays
        step = self._step(view, cut, size, asked)
        if step.failed:
            self.failures, self.failed_at = self.failures + 1, (point.turn, size)
        else:
            self.failures, self.failed_at, self.done, self.question = 0, None, self.done + 1, asked
        return step

    def _must_wait(self, turn: int, size: int) -> bool:
        """After a failure wait for the next turn, after three for a fifth more: as `SummariseMiddle` does."""
        if self.failed_at is None:
            return False
        return self.failed_at[0] == turn or (self.failures >= 3 and size < 1.2 * self.failed_at[1])

    def _cut(self, start: int, end: int) -> int:
        wanted = min(self._wanted(start, end), end - 1)
        first = start - (self.question is not None)  # a question that stayed stands before the body, and can go too
        return self.counted.cut_before(wanted, self.policy.boundary) if wanted > first else first

    def _wanted(self, start: int, end: int) -> int:
        keep, counted = self.policy.keep, self.counted
        if keep.unit == "messages":
            return end - keep.amount
        if keep.unit == "tokens":
            return self._fitting(start, end, keep.amount)
        fits = self._fitting(start, end, keep.max_tokens)
        turns = counted.turn_starts[bisect_left(counted.turn_starts, start) : bisect_left(counted.turn_starts, end)]
        if not turns or (len(turns) < keep.amount and fits <= start):
            return start
        return min((t for t in turns[-keep.amount :] if t >= fits), default=turns[-1])

    def _fitting(self, start: int, end: int, tokens: int) -> int:
        sums = self.counted.sums
        return min(end, max(start, bisect_left(sums, sums[end] - tokens, start, end + 1)))

    def _step(self, view: View, cut: int, size: int, asked: int | None) -> Step:
        policy, counted = self.policy, self.counted
        text = stand_in(self.done + 1, policy.summary)
        summary = summary_segment(counted, text, asked)
        removed = counted.sums[cut] - counted.sums[view.start] + (len(view.summary.tokens) if view.summary else 0)
        after = size - removed + len(summary.tokens)
        failed = ""
        if len(summary.tokens) >= removed:
            failed = "the summary is longer than what it replaces"
        elif policy.limit is not None and after > policy.limit:
            failed = f"still over the budget: {after:,} tokens"
        shares = policy.call == "shared"
        extra = (instruction(counted),) if shares else flattened(counted, view.start, cut, view.text, self.question)
        names = names_in(counted, asked)
        gone = cut - view.start + (self.question is not None)
        return Step(extra, shares, policy.summary, cut, summary, gone, text, names, failed)
