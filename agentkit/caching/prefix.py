"""The law behind every prompt cache: only an unchanged prefix can be read again, token for token.

A prompt is a list of segments (the tools, then one per message). The tree remembers every prompt that was seen; following a
new prompt down the tree costs work only for what is new.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Token = Hashable


@dataclass(frozen=True)
class Segment:
    """One part of a prompt: its exact bytes and its tokens. The bytes decide whether two segments are the same."""

    data: bytes
    tokens: tuple[Token, ...] = field(compare=False)


@dataclass(frozen=True)
class CacheResult:
    """How the tokens of one prompt were billed: read from the cache, written to it at a price of its own, or fresh."""

    read: int
    written: int
    fresh: int


class PrefixCache(Protocol):
    """A cache model. It sees every request in order and says what each would have been billed."""

    def observe(self, prompt: Sequence[Segment], at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Account for `prompt`, sent at `at` seconds; `output` is the answer, which the provider may store as well."""
        ...


class Node:
    """One segment in the tree; `end` is the number of tokens from the root to its end."""

    __slots__ = ("children", "end", "marks", "tokens")

    def __init__(self, tokens: tuple[Token, ...], end: int) -> None:
        self.tokens = tokens
        self.end = end
        self.children: dict[bytes, Node] = {}
        # Prefix lengths at which something was stored inside or at the end of this segment (used by whole-unit caches).
        self.marks: set[int] = set()


@dataclass(frozen=True)
class Match:
    """How far a prompt follows the tree: the nodes passed whole, the node left half-way, and the shared tokens."""

    path: tuple[Node, ...]
    partly: Node | None
    shared: int


class PrefixTree:
    """Every prompt seen so far, sharing what they share."""

    def __init__(self) -> None:
        self.root = Node((), 0)

    def match(self, prompt: Sequence[Segment]) -> Match:
        """Return the longest prefix of `prompt` that was seen before, to the token."""
        node, path = self.root, []
        for segment in prompt:
            child = node.children.get(segment.data)
            if child is None:
                partly, extra = _closest(node, segment.tokens)
                return Match(tuple(path), partly, node.end + extra)
            node = child
            path.append(node)
        return Match(tuple(path), None, node.end)

    def insert(self, prompt: Sequence[Segment]) -> tuple[Node, ...]:
        """Remember `prompt` and return its nodes in order."""
        node, path = self.root, []
        for segment in prompt:
            if segment.data not in node.children:
                node.children[segment.data] = Node(segment.tokens, node.end + len(segment.tokens))
            node = node.children[segment.data]
            path.append(node)
        return tuple(path)


def _closest(node: Node, tokens: tuple[Token, ...]) -> tuple[Node | None, int]:
    """Return the child that shares the most first tokens with `tokens`, and how many."""
    best: tuple[Node | None, int] = (None, 0)
    for child in node.children.values():
        shared = _common(child.tokens, tokens)
        if shared > best[1]:
            best = (child, shared)
    return best


def _common(a: tuple[Token, ...], b: tuple[Token, ...]) -> int:
    size = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        size += 1
    return size
