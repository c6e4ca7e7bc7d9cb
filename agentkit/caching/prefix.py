"""The law behind every prompt cache: only an unchanged prefix can be read again, token for token.

A prompt is a list of segments (the tools, then one per message, or one per content block where a provider counts blocks).
The tree remembers every prompt that was seen; following a new prompt down the tree costs work only for what is new.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Token = Hashable
Life = Literal["5m", "1h"]
Kind = Literal["parameter", "tools", "system", "user", "assistant", "thinking", "empty"]
"""What a segment is. A tool result is of kind `user`, as at Anthropic; `empty` is text with nothing in it, not sent.

A `parameter` (model, tool_choice …) has no tokens; it stands in front of the part of a prompt that a change of it loses.
"""


@dataclass(frozen=True)
class Segment:
    """One part of a prompt: its exact bytes and its tokens. The bytes decide whether two segments are the same.

    `mark` is a breakpoint with the life that is asked for. It is no part of the prompt: moving a mark changes no prefix.
    """

    data: bytes
    tokens: tuple[Token, ...] = field(compare=False)
    kind: Kind = field(default="user", compare=False)
    mark: Life | None = field(default=None, compare=False)


@dataclass(frozen=True)
class CacheResult:
    """How the tokens of one prompt were billed: read from the cache, written to it at a price of its own, or fresh.

    `written_1h` is the part of `written` that is kept for an hour and costs more. `cause` says why something that was
    cached before, or could have been, was not read (only the Anthropic model knows); it is empty when nothing was lost.
    """

    read: int
    written: int
    fresh: int
    written_1h: int = 0
    cause: str = field(default="", compare=False)


class PrefixCache(Protocol):
    """A cache model. It sees every request in order and says what each would have been billed."""

    def observe(self, prompt: Sequence[Segment], at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Account for `prompt`, sent at `at` seconds; `output` is the answer, which the provider may store as well."""
        ...


_NOTHING: frozenset[int] = frozenset()


class Node:
    """One segment in the tree; `end` is the number of tokens from the root to its end."""

    __slots__ = ("children", "end", "kind", "marks", "note", "tokens")

    def __init__(self, tokens: tuple[Token, ...], end: int, kind: Kind = "user") -> None:
        self.tokens = tokens
        self.end = end
        self.kind = kind
        self.note: Any = None  # whatever the cache model keeps about the prompt up to here
        self.children: dict[bytes, Node] = {}
        # Prefix lengths at which something was stored inside or at the end of this segment (used by whole-unit caches).
        self.marks: frozenset[int] = _NOTHING


class PrefixTree:
    """Every prompt seen so far, sharing what they share."""

    def __init__(self) -> None:
        self.root = Node((), 0)
        self._last: list[Segment] = []
        self._path: list[Node] = []

    def follow(self, prompt: Sequence[Segment]) -> tuple[Sequence[Node], int]:
        """Return the nodes of all segments, made where they are new, and how many of them were there before.

        What the last prompt started with as well is taken over from it, without looking anything up. The nodes are good
        until the next call.
        """
        known = self._same_as_last(prompt)
        path = self._path
        del path[known:]
        parent = path[-1] if path else self.root
        for segment in prompt[known:]:
            node = parent.children.get(segment.data)
            if node is None:
                node = self.child(parent, segment)
            else:
                known += 1
            path.append(node)
            parent = node
        self._last = list(prompt)
        return path, known

    def child(self, parent: Node, segment: Segment) -> Node:
        """Return the node of `segment` behind `parent`, made if it is new."""
        node = parent.children.get(segment.data)
        if node is None:
            node = Node(segment.tokens, parent.end + len(segment.tokens), segment.kind)
            parent.children[segment.data] = node
        return node

    def shared(self, path: Sequence[Node], known: int) -> int:
        """Return how many first tokens some earlier prompt had as well; `path` and `known` are what `follow` returned.

        They end where the known nodes end, or inside the first new one, if another one there begins alike.
        """
        before = path[known - 1] if known else self.root
        if known == len(path) or len(before.children) == 1:
            return before.end
        return before.end + _longest(path[known], before.children.values())

    def _same_as_last(self, prompt: Sequence[Segment]) -> int:
        size = len(self._last)
        if list(prompt[:size]) == self._last:  # the usual case, and one comparison of lists is much faster than a loop
            return size
        pairs = enumerate(zip(prompt, self._last, strict=False))
        return next((i for i, (new, old) in pairs if new.data != old.data), min(len(prompt), size))


def spell(segment: Segment, waiting: tuple[bytes, ...] = ()) -> tuple[tuple[Token, ...], tuple[bytes, ...]]:
    """Return the tokens of `segment` for a cache that sees tokens only, and the parameters that still wait for a token.

    A parameter has no token of its own, so it makes the next token another one: what follows it is another text.
    """
    if segment.kind == "parameter":
        return (), (*waiting, segment.data)
    if not waiting or not segment.tokens:
        return segment.tokens, waiting
    return ((*waiting, segment.tokens[0]), *segment.tokens[1:]), ()


def _longest(new: Node, nodes: Iterable[Node]) -> int:
    """Return how many first tokens of `new` another node has as well. One that cannot beat the best is not compared."""
    best = 0
    for other in nodes:
        if other is new or best >= min(len(new.tokens), len(other.tokens)) or new.tokens[best] != other.tokens[best]:
            continue
        best = max(best, alike(new.tokens, other.tokens))
    return best


def alike(a: Sequence[Token], b: Sequence[Token]) -> int:
    """Return how many first tokens are the same.

    Slices are compared much faster than single tokens: twice as many at a time while they agree, then half as many.
    """
    size, step = 0, 1
    while size < len(a) and a[size : size + step] == b[size : size + step]:
        size, step = size + step, 2 * step
    while step > 1:
        step //= 2
        if a[size : size + step] == b[size : size + step]:
            size += step
    return min(size, len(a), len(b))
