"""The data of the context strip: for every request, which part of the prompt is how large, and where the cache ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from agentkit.compaction.compactor import summary_message
from agentkit.events import Billed, Compacted
from agentkit.log import Compaction
from agentkit.messages import Message, Request, Usage
from agentkit.tokens import PerScript, TextEstimator

MOST_ROWS = 40
"""More requests than this are drawn in groups."""

Part = Literal["tools", "system", "summary", "user", "assistant", "tool"]
State = Literal["read", "written", "fresh"]


@dataclass(frozen=True)
class Block:
    """One block of a row. `tokens` are its share of the bill, `read` and `written` the part that the cache had or took.

    `index` is the message's position in the request (None: the tools).
    """

    part: Part
    tokens: int
    read: int = 0
    written: int = 0
    index: int | None = None

    @property
    def fresh(self) -> int:
        """Return the tokens that were neither read from the cache nor written to it."""
        return self.tokens - self.read - self.written

    def pieces(self) -> Iterator[tuple[State, int]]:
        """Yield the states of the block with their tokens, in the order of the prompt."""
        states: tuple[tuple[State, int], ...] = (("read", self.read), ("written", self.written), ("fresh", self.fresh))
        yield from ((state, tokens) for state, tokens in states if tokens)


@dataclass(frozen=True)
class Row:
    """One request: its bill, its blocks and what is to be said about it.

    `marks` are `compaction` (one came before this request), `cache miss` (the read fell by more than half) and `no bill`
    (the numbers are an estimate).
    """

    number: int
    prompt: int
    cache_read: int
    cache_write: int
    fresh: int
    output: int
    blocks: tuple[Block, ...]
    marks: tuple[str, ...] = ()


class HasBills(Protocol):
    """A run, or anything else that holds bills."""

    @property
    def bills(self) -> Sequence[Billed]:
        """Return estimate and bill of every request, in order."""
        ...


def bills_of(source: HasBills | Sequence[Billed]) -> Sequence[Billed]:
    """Return the bills of a run, or the bills themselves."""
    return source if isinstance(source, Sequence) else source.bills


def strip_rows(
    bills: Sequence[Billed],
    compactions: Sequence[Compacted | Compaction] = (),
    estimator: TextEstimator | None = None,
) -> list[Row]:
    """Return one row for each request.

    The bill says how many tokens the whole prompt had, not how many each message had: the estimator divides it, and the
    blocks of a row sum to the bill exactly. `compactions` are needed to recognise summaries inside a user message.
    """
    records = [c.compaction if isinstance(c, Compacted) else c for c in compactions]
    measure = _Measure(estimator or PerScript(), records)
    rows: list[Row] = []
    summary: str | None = None
    for bill in bills:
        found = measure.summary(bill.request)
        usage = bill.usage or Usage(fresh=bill.estimate)
        marks = ["compaction"] if rows and found not in (None, summary) else []
        if rows and usage.cache_read < rows[-1].cache_read / 2:
            marks.append("cache miss")
        if bill.usage is None:
            marks.append("no bill")
        rows.append(_row(bill.number, usage, measure.pieces(bill.request), tuple(marks)))
        summary = found
    return rows


def apportion(total: int, weights: Sequence[int]) -> list[int]:
    """Divide `total` in proportion to `weights` into whole numbers that sum to `total` (largest remainder)."""
    if not weights:
        return []
    whole = sum(weights)
    weights = weights if whole else [1] * len(weights)
    shares = [divmod(total * weight, sum(weights)) for weight in weights]
    missing = total - sum(share for share, _ in shares)
    largest = sorted(range(len(shares)), key=lambda i: (-shares[i][1], i))[:missing]
    return [share + (i in largest) for i, (share, _) in enumerate(shares)]


@dataclass(frozen=True)
class Group:
    """What one drawn row stands for: usually one request. The row is the last of the group, the marks are all of them."""

    label: str
    row: Row


def groups(rows: Sequence[Row]) -> list[Group]:
    """Return what is drawn: every request for itself, or groups of equal size when there are more than `MOST_ROWS`."""
    size = -(-len(rows) // MOST_ROWS)
    return [_group(rows[i : i + size]) for i in range(0, len(rows), size)] if rows else []


def _group(rows: Sequence[Row]) -> Group:
    last = rows[-1]
    marks = tuple(dict.fromkeys(mark for row in rows for mark in row.marks))
    label = str(last.number) if len(rows) == 1 else f"{rows[0].number}–{last.number}"
    return Group(label, replace(last, marks=marks))


Piece = tuple[Part, int, int | None]
"""(part, estimated tokens, index of the message)"""


def _row(number: int, usage: Usage, pieces: Sequence[Piece], marks: tuple[str, ...]) -> Row:
    shares = apportion(usage.prompt, [weight for _, weight, _ in pieces])
    blocks, read, written = [], usage.cache_read, usage.cache_write
    for (part, _, index), tokens in zip(pieces, shares, strict=True):
        from_cache = min(tokens, read)
        into_cache = min(tokens - from_cache, written)
        read, written = read - from_cache, written - into_cache
        blocks.append(Block(part, tokens, from_cache, into_cache, index))
    return Row(number, usage.prompt, usage.cache_read, usage.cache_write, usage.fresh, usage.output, tuple(blocks), marks)


class _Measure:
    """Measure the parts of requests. The same message is in many requests and is measured once."""

    def __init__(self, estimator: TextEstimator, records: Sequence[Compaction]) -> None:
        self._estimator = estimator
        self._summaries = {c.first_kept: summary_message(c).content for c in records}
        # By identity, with the message kept alive: a message may hold provider data that cannot be hashed.
        self._known: dict[int, tuple[Message, int]] = {}

    def pieces(self, request: Request) -> list[Piece]:
        """Return the parts of a request in the order in which they are sent."""
        tools: list[Piece] = [("tools", self._estimator.tools(request.tools), None)] if request.tools else []
        return tools + [piece for i, m in enumerate(request.messages) for piece in self._message(m, i)]

    def summary(self, request: Request) -> str | None:
        """Return the text of the summary that stands in a request; None when there is none."""
        return next((text for text in map(self._summary_in, request.messages) if text is not None), None)

    def _message(self, message: Message, index: int) -> Iterator[Piece]:
        tokens = self._tokens(message)
        summary = self._summary_in(message)
        if summary is None:
            yield message.role, tokens, index
        elif len(summary) == len(message.content):
            yield "summary", tokens, index
        else:
            # Placed as a user message, the summary shares that message with the question behind it.
            ahead = min(tokens, self._estimator.text(summary))
            yield from (("summary", ahead, index), ("user", tokens - ahead, index))

    def _tokens(self, message: Message) -> int:
        if id(message) not in self._known:
            self._known[id(message)] = (message, self._estimator.message(message))
        return self._known[id(message)][1]

    def _summary_in(self, message: Message) -> str | None:
        if message.id.startswith("summary-"):
            return message.content
        text = self._summaries.get(message.id)
        return text if text is not None and message.role == "user" and message.content.startswith(text) else None
