"""Count a session once: tokens of every message, where requests stand, where a cut is allowed. Replays only add up.

All texts are tokenised here, so that a replay afterwards costs work for what is new in each request and little else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from agentkit.caching.openai import OpenAICache
from agentkit.caching.prefix import Segment, Token
from agentkit.compaction.cut import Boundary
from agentkit.compaction.transcript import CLIP, flatten
from agentkit.messages import Message, Usage
from agentkit.replay.references import References, find_references
from agentkit.sessions.form import Item, Session
from agentkit.settle import settle
from agentkit.simulator.counter import Counter, tokenizer

VOCABULARY = "o200k_base"


class NothingToReplay(ValueError):
    """The session has no model call."""


@dataclass(frozen=True)
class Point:
    """One request of the session: it sends `body[:end]`, at `at` seconds since 1970, and its answer has `output` tokens.

    `turn` counts the user messages before it; `usage` is the real bill, if there is one.
    """

    end: int
    at: float | None
    output: int
    turn: int
    usage: Usage | None


@dataclass(frozen=True)
class Summary:
    """A compaction in the log: from request number `request` on, `message` and then the body from `start` on are sent."""

    request: int
    start: int
    message: Message
    segment: Segment


@dataclass(frozen=True)
class Texts:
    """Turns texts and messages into segments, each text once."""

    counter: Counter
    tokens: Callable[[str], tuple[Token, ...]]
    name: str

    @classmethod
    def of(cls, vocabulary: str) -> Texts:
        """Return the texts of a vocabulary; without its file on this machine the name says that it is an estimate."""
        encode, name = tokenizer(vocabulary)
        cached = functools.lru_cache(maxsize=1024)(lambda text: tuple(encode(text)))
        return cls(Counter(vocabulary, OpenAICache()), cached, name)

    def text(self, text: str) -> Segment:
        """Return a piece of text as a segment."""
        plain = text.encode("utf-8", "replace")
        return Segment(plain, self.tokens(plain.decode("utf-8")))


@dataclass(frozen=True)
class Counted:
    """A session, counted. `head` starts every request: tools, what the log does not show, system prompt.

    `body` are the messages as they are sent, without recorded summaries; `sums[i]` are the tokens of `body[:i]`. `fixed` are
    the tokens that the first real bill has beyond what is logged. `output_from` says where the output counts come from.
    """

    session: Session
    system: tuple[Message, ...]
    head: tuple[Segment, ...]
    body: tuple[Message, ...]
    segments: tuple[Segment, ...]
    sums: tuple[int, ...]
    points: tuple[Point, ...]
    summaries: tuple[Summary, ...]
    references: References
    fixed: int
    output_from: str
    texts: Texts = field(repr=False, compare=False)

    @functools.cached_property
    def head_tokens(self) -> int:
        """Return the tokens of the head."""
        return sum(len(segment.tokens) for segment in self.head)

    @functools.cached_property
    def blocks(self) -> tuple[tuple[Segment, ...], ...]:
        """Return the body as content blocks, one tuple a message, for a cache that counts blocks."""
        return tuple(tuple(self.blocks_of(m, s)) for m, s in zip(self.body, self.segments, strict=True))

    @functools.cached_property
    def transcript(self) -> tuple[Segment, ...]:
        """Return each message as a summariser is shown it: plain text, clipped."""
        return tuple(self.texts.text(flatten([message], CLIP) + "\n") for message in self.body)

    @functools.cached_property
    def turn_starts(self) -> tuple[int, ...]:
        """Return the positions of the user messages in the body."""
        return tuple(i for i, message in enumerate(self.body) if message.role == "user")

    @functools.cached_property
    def _cuts(self) -> dict[Boundary, tuple[int, ...]]:
        return {"user": _last_at(self.body, ("user",)), "pair": _last_at(self.body, ("user", "assistant"))}

    def cut_before(self, wanted: int, boundary: Boundary) -> int:
        """Return the last position up to `wanted` where a tail may start.

        Every result stands right behind its call (`settle` sees to that), so the role alone decides.
        """
        return self._cuts[boundary][wanted]

    def prepare(self, *, blocks: bool = False) -> Counted:
        """Count now what else would be counted at first use, and return this session."""
        _ = self.transcript, self._cuts, self.turn_starts, self.head_tokens, blocks and self.blocks
        return self

    def blocks_of(self, message: Message, whole: Segment) -> Iterator[Segment]:
        """Yield the content blocks of a message: the text of an answer and each of its calls are one each."""
        if message.role != "assistant":
            yield whole
            return
        if not message.tool_calls:
            yield replace(whole, kind="assistant")
            return
        parts = [Message("assistant", tool_calls=(call,)) for call in message.tool_calls]
        if message.content or message.reasoning:
            parts.insert(0, replace(message, tool_calls=()))
        yield from (replace(self.texts.counter.message(part), kind="assistant") for part in parts)


def _last_at(body: Sequence[Message], roles: Sequence[str]) -> tuple[int, ...]:
    found, last = [], 0
    for i, message in enumerate(body):
        last = i if message.role in roles else last
        found.append(last)
    return tuple(found)


# ------------------------------------------------------------------------------------------------------------------ counting


def count(session: Session, *, vocabulary: str = VOCABULARY, fixed: int | None = None) -> Counted:
    """Count `session`. `fixed` are tokens that every request has beyond what is logged (None: as the first bill says).

    Raises `NothingToReplay` when it has no model call.
    """
    if not session.calls:
        raise NothingToReplay(f"{session.id}: no model calls in this session, so there is nothing to replay")
    texts = Texts.of(vocabulary)
    named = [_named(item, i) for i, item in enumerate(session.items)]
    sent = settle([item.message for item in named if item.cut is None])
    size = next((i for i, message in enumerate(sent) if message.role != "system"), len(sent))
    body, system = sent[size:], sent[:size]
    segments = tuple(texts.counter.message(message) for message in body)
    sums = [0]
    for segment in segments:
        sums.append(sums[-1] + len(segment.tokens))
    points, output_from = _points(session, named, body, segments)
    tools = [replace(texts.text(spec.canonical()), kind="tools") for spec in session.tools]
    logged = [*tools, *(replace(texts.counter.message(message), kind="system") for message in system)]
    known = sum(len(segment.tokens) for segment in logged) + sums[points[0].end]
    bill = points[0].usage
    fixed = (max(0, bill.prompt - known) if bill else 0) if fixed is None else fixed
    unseen = [Segment(f"{fixed} tokens".encode(), tuple(("fixed", n) for n in range(fixed)), "system")] if fixed else []
    head = (*tools, *unseen, *logged[len(tools) :])
    references = find_references(body, [p.end for p in points], "\n".join(m.content for m in system))
    return Counted(
        session,
        system,
        head,
        body,
        segments,
        tuple(sums),
        points,
        tuple(_summaries(named, body, points, texts)),
        references,
        fixed,
        output_from,
        texts,
    )


def _named(item: Item, number: int) -> Item:
    """Name each message by its place in the session, so that it can be found again after settling."""
    return replace(item, message=replace(item.message, id=f"i{number}"))


def _number(message: Message) -> int:
    return int(message.id[1:]) if message.id else -1


def _points(
    session: Session, named: Sequence[Item], body: Sequence[Message], segments: Sequence[Segment]
) -> tuple[tuple[Point, ...], str]:
    ends = [i for i, message in enumerate(body) if message.role == "assistant"]
    guesses = [len(segments[end].tokens) for end in ends]
    usage = session.usage or (None,) * len(ends)
    believable, source = _outputs(usage, guesses)
    points, turn, at, done = [], 0, None, 0
    for end, output, bill in zip(ends, believable, usage, strict=True):
        turn += sum(message.role == "user" for message in body[done:end])
        done = end
        at = _sent_at(named, _number(body[end]), at)
        points.append(Point(end, at, output, turn, bill))
    return tuple(points), source


def _sent_at(named: Sequence[Item], number: int, before: float | None) -> float | None:
    """Return when a request went out: at the time of the message before its answer. Time never runs backwards."""
    times = [named[i].at for i in (number - 1, number) if i >= 0 and named[i].at is not None]
    at = times[0] if times else before
    return at if before is None or at is None else max(at, before)


def _outputs(usage: Sequence[Usage | None], guesses: Sequence[int]) -> tuple[list[int], str]:
    """Return the output tokens of every call. Some logs hold 1 to 8 for whole answers; such counters are not believed."""
    known = [(bill.output, guess) for bill, guess in zip(usage, guesses, strict=True) if bill]
    if not known or sum(bill for bill, _ in known) < 0.5 * sum(guess for _, guess in known):
        return list(
            guesses
        ), "counted in the text" if not known else "counted in the text (the log's counters are too small)"
    return [bill.output if bill else guess for bill, guess in zip(usage, guesses, strict=True)], "the log's bills"


def _summaries(named: Sequence[Item], body: Sequence[Message], points: Sequence[Point], texts: Texts) -> Iterator[Summary]:
    places = [_number(message) for message in body]
    for number, item in enumerate(named):
        if item.cut is None:
            continue
        request = next((i for i, point in enumerate(points) if places[point.end] > number), len(points))
        start = next((i for i, place in enumerate(places) if place >= item.cut.kept_from), len(body))
        if request < len(points) and start < points[request].end:
            yield Summary(request, start, item.message, texts.counter.message(item.message))
