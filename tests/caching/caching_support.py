"""Prompts to test cache models with, and tokens that count how often they are looked at."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from agentkit.caching import PrefixCache, Segment
from agentkit.caching.parts import parameter

Prompt = list[Segment]
Request = tuple[Prompt, Segment | None]


def flat(prompt: Prompt) -> list[object]:
    """Return what a cache of tokens sees: the tokens, each parameter merged into the token behind it."""
    tokens: list[object] = []
    waiting: tuple[bytes, ...] = ()
    for part in prompt:
        if part.kind == "parameter":
            waiting += (part.data,)
            continue
        for token in part.tokens:
            tokens.append((*waiting, token) if waiting else token)
            waiting = ()
    return tokens


def size(prompt: Prompt) -> int:
    return sum(len(part.tokens) for part in prompt)


def common(one: list[object], two: list[object]) -> int:
    length = 0
    while length < min(len(one), len(two)) and one[length] == two[length]:
        length += 1
    return length


def letters(text: str) -> Segment:
    """Return a segment with a token for each letter and no end: cut elsewhere, the same letters are the same tokens."""
    return Segment(text.encode(), tuple(text))


_TEXTS = st.text("ab", max_size=11).map(letters)
_PARTS = _TEXTS | _TEXTS | _TEXTS | st.sampled_from([parameter("model", "m"), parameter("model", "n")])


def alter(draw: st.DrawFn, prompt: Prompt, parts: st.SearchStrategy[Segment]) -> Prompt:
    """Return `prompt` unchanged, cut short, or with one part replaced."""
    place = draw(st.integers(0, len(prompt)))
    how = draw(st.sampled_from(["keep", "keep", "cut", "replace"]))
    if how == "cut":
        return prompt[:place]
    return prompt[:place] + [draw(parts)] + prompt[place + 1 :] if how == "replace" else list(prompt)


@st.composite
def traffic(draw: st.DrawFn, parts: st.SearchStrategy[Segment] = _PARTS) -> list[Request]:
    """Return requests in order; most go on from an earlier one, with its output or without, whole or altered."""
    sent: list[Request] = []
    for _ in range(draw(st.integers(1, 12))):
        prompt: Prompt = []
        if sent and draw(st.integers(0, 3)):
            before, output = sent[draw(st.integers(0, len(sent) - 1))]
            prompt = alter(draw, before + ([output] if output and draw(st.booleans()) else []), parts)
        sent.append((prompt + draw(st.lists(parts, max_size=4)), draw(st.none() | _TEXTS)))
    return sent


def longest(requests: list[Request]) -> int:
    """Return the tokens of the longest request with its output."""
    return max(size(prompt) + (size([output]) if output else 0) for prompt, output in requests)


class Counted:
    """A token that counts every comparison and every hash of any token."""

    looks = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        Counted.looks += 1
        return isinstance(other, Counted) and self.value == other.value

    def __hash__(self) -> int:
        Counted.looks += 1
        return hash(self.value)


class CountedBytes(bytes):
    """Bytes that count every comparison and every hash of any."""

    looks = 0

    def __eq__(self, other: object) -> bool:
        CountedBytes.looks += 1
        return bytes.__eq__(self, other)

    def __hash__(self) -> int:
        CountedBytes.looks += 1
        return bytes.__hash__(self)


def counted(number: int, tokens: int) -> Segment:
    """Return a segment whose tokens and bytes are counted, another one for each number."""
    values = range(number * tokens, (number + 1) * tokens)
    return Segment(CountedBytes(b"segment %d" % number), tuple(Counted(v) for v in values))


def looks(make: Callable[[], PrefixCache], requests: int, tokens: int = 40) -> tuple[int, int]:
    """Return how often tokens, and bytes, are looked at by a model in a session that grows by one segment a request."""
    model, session = make(), list[Segment]()
    Counted.looks = CountedBytes.looks = 0
    for n in range(requests):
        session.append(counted(n, tokens))
        model.observe(session)
    return Counted.looks, CountedBytes.looks
