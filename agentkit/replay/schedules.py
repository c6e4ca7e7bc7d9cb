"""When a replay compacts: never, as the log did, or by threshold and keep. Each decision costs the same, early or late."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agentkit.caching.prefix import Segment
from agentkit.compaction.compactor import summary_message
from agentkit.compaction.cut import Boundary, Keep
from agentkit.compaction.prompts import KEEP_LIST, summary_prompt
from agentkit.log import Compaction
from agentkit.messages import user
from agentkit.replay.counted import Counted
from agentkit.replay.references import identifiers

STAND_IN = 1_000
"""Tokens of a stand-in summary. Real ones at hand have 951 to 2,812 tokens for 175,000 to 372,000 tokens of history."""

SummaryCall = Literal["flatten", "shared"]


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

    def decide(self, view: View, request: int) -> Step | None:
        point = self.counted.points[request]
        size = view.size(point.end)
        if size < self.policy.threshold or self._must_wait(point.turn, size):
            return None
        cut = self._cut(view.start, point.end)
        if cut <= view.start:
            return None
        step = self._step(view, cut, size)
        if step.failed:
            self.failures, self.failed_at = self.failures + 1, (point.turn, size)
        else:
            self.failures, self.failed_at, self.done = 0, None, self.done + 1
        return step

    def _must_wait(self, turn: int, size: int) -> bool:
        """After a failure wait for the next turn, after three for a fifth more: as `SummariseMiddle` does."""
        if self.failed_at is None:
            return False
        return self.failed_at[0] == turn or (self.failures >= 3 and size < 1.2 * self.failed_at[1])

    def _cut(self, start: int, end: int) -> int:
        wanted = min(self._wanted(start, end), end - 1)
        return self.counted.cut_before(wanted, self.policy.boundary) if wanted > start else start

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

    def _step(self, view: View, cut: int, size: int) -> Step:
        policy, counted = self.policy, self.counted
        text = stand_in(self.done + 1, policy.summary)
        summary = _as_system(counted.texts.counter.message(summary_message(Compaction(text, ""))))
        removed = counted.sums[cut] - counted.sums[view.start] + (len(view.summary.tokens) if view.summary else 0)
        after = size - removed + len(summary.tokens)
        failed = ""
        if len(summary.tokens) >= removed:
            failed = "the summary is longer than what it replaces"
        elif policy.limit is not None and after > policy.limit:
            failed = f"still over the budget: {after:,} tokens"
        shares = policy.call == "shared"
        extra = (_instruction(counted),) if shares else flattened(counted, view.start, cut, view.text)
        return Step(extra, shares, policy.summary, cut, summary, cut - view.start, text, failed=failed)


# --------------------------------------------------------------------------------------------------------- what is sent then


def flattened(counted: Counted, start: int, cut: int, previous: str) -> tuple[Segment, ...]:
    """Return the prompt of a summary call that shows the history as text: instructions, transcript, end."""
    before, _, after = summary_prompt("\0", KEEP_LIST, previous).partition("\0")
    return (counted.texts.text(before), *counted.transcript[start:cut], counted.texts.text(after))


def _instruction(counted: Counted) -> Segment:
    return counted.texts.counter.message(user(summary_prompt("(the conversation above)", KEEP_LIST)))


def stand_in(number: int, tokens: int) -> str:
    """Return a text in place of summary `number`. It says nothing; only its length counts."""
    return f"Stand-in for summary {number}." + " word" * max(0, tokens - 6)


def _as_system(segment: Segment) -> Segment:
    return Segment(segment.data, segment.tokens, "system")
