"""A cache of whole blocks with a limited number of places, as in vLLM: each block stands for itself and all before it.

A block is found under its parent by its tokens, so the same tokens behind another start are another block. (vLLM computes a
hash of the parent's hash and the tokens; this is the same chain without collisions.)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from agentkit.caching.prefix import CacheResult, Node, PrefixTree, Segment, Token, spell


class _Block:
    """A block of tokens behind `parent`. `held` counts the blocks in the cache directly behind it; `used` is a request."""

    __slots__ = ("children", "depth", "held", "parent", "resident", "used")

    def __init__(self, parent: _Block | None, depth: int, resident: bool = False) -> None:
        self.parent = parent
        self.children: dict[tuple[Token, ...], _Block] = {}
        self.depth = depth
        self.resident = resident
        self.held = 0
        self.used = 0


@dataclass(frozen=True)
class _Spot:
    """The end of a segment: the last whole block, the tokens behind it, the parameters that still wait for a token."""

    block: _Block
    rest: tuple[Token, ...] = ()
    waiting: tuple[bytes, ...] = ()


class BlockCache:
    """Read the longest chain of blocks that are in the cache; at least the last token of a prompt is always computed.

    `size` tokens a block (16), `capacity` blocks in all (None: no limit). A full cache gives up the block that was released
    first; a finished request releases its last block first, so the start of a prompt stays longest. The last, half-filled
    block takes a place too and can never be read. One request at a time; no write price. Source: vLLM's design page on
    prefix caching, 2026. (vLLM keeps the old copy of a last block that it computes again; here that is one block.)
    """

    def __init__(self, capacity: int | None = None, size: int = 16) -> None:
        self.capacity, self.size = capacity, size
        self._tree = PrefixTree()
        self._root = _Block(None, 0, resident=True)
        self._filled = 0
        self._clock = 0
        self._queue: list[tuple[int, int, _Block]] = []
        self._order = itertools.count()

    def observe(self, prompt: Sequence[Segment], at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Account for `prompt`, then keep its blocks and those of `output` but for its last token, which is never computed.

        Raises `ValueError` when the request needs more blocks than there are.
        """
        whole = list(prompt) if output is None else [*prompt, output]
        path, _ = self._tree.follow(whole)
        total = path[len(prompt) - 1].end if prompt else 0
        stored = max(total, path[-1].end - 1) if output is not None else total
        self._require(stored)
        self._learn(whole, path)
        read = self._read(path[len(prompt) - 1].note.block, total) if prompt else 0
        if path:
            self._clock += 1
            self._keep(_up_to(path[-1].note.block, stored // self.size), stored)
        return CacheResult(read, 0, total - read)

    def _read(self, last: _Block, total: int) -> int:
        return min(_resident(last).depth, max(total - 1, 0) // self.size) * self.size

    def _require(self, stored: int) -> None:
        needed = -(-stored // self.size)
        if self.capacity is not None and needed > self.capacity:
            raise ValueError(
                f"a request of {stored:,} tokens needs {needed:,} blocks and the cache has {self.capacity:,}; "
                "give it more blocks or send less"
            )

    def _learn(self, prompt: Sequence[Segment], path: Sequence[Node]) -> None:
        """Note at the end of each new segment which block it ends in. Known segments are not read again."""
        new = len(path)
        while new and path[new - 1].note is None:
            new -= 1
        spot: _Spot = path[new - 1].note if new else _Spot(self._root)
        for segment, node in zip(prompt[new:], path[new:], strict=True):
            spot = node.note = self._after(spot, segment)

    def _after(self, spot: _Spot, segment: Segment) -> _Spot:
        more, waiting = spell(segment, spot.waiting)
        tokens, block = spot.rest + more, spot.block
        whole = len(tokens) // self.size * self.size
        for start in range(0, whole, self.size):
            key = tokens[start : start + self.size]
            child = block.children.get(key)
            if child is None:
                child = block.children[key] = _Block(block, block.depth + 1)
            block = child
        return _Spot(block, tokens[whole:], waiting)

    def _keep(self, last: _Block, stored: int) -> None:
        """Put the blocks up to `last`, and the half-filled one behind it, into the cache."""
        found = _resident(last)
        self._touch(found)
        half = 1 if stored % self.size else 0
        self._make_room(last.depth - found.depth + half)
        missing = last
        while not missing.resident:
            missing.resident = True
            self._hold(missing)
            missing = missing.parent or self._root
        if half:
            tail = _Block(last, last.depth + 1, resident=True)
            self._hold(tail)
            self._touch(tail)
        self._touch(last)

    def _hold(self, block: _Block) -> None:
        self._filled += 1
        if block.parent:
            block.parent.held += 1

    def _touch(self, block: _Block) -> None:
        """Release `block` now. Those before it are released later, and need no note: see `_evict`."""
        block.used = self._clock
        self._offer(block)

    def _offer(self, block: _Block) -> None:
        if self.capacity is not None and block.held == 0 and block.parent:
            heappush(self._queue, (block.used, next(self._order), block))

    def _make_room(self, new: int) -> None:
        while self.capacity is not None and self._filled + new > self.capacity:
            used, _, block = heappop(self._queue)
            if block.resident and block.held == 0 and block.used == used:
                self._evict(block)

    def _evict(self, block: _Block) -> None:
        """Give up `block`. The one before it was released right after it, so it is next, unless it was used again since."""
        block.resident = False
        self._filled -= 1
        if block.parent:
            block.parent.held -= 1
            self._offer(block.parent)


def _up_to(block: _Block, depth: int) -> _Block:
    while block.depth > depth and block.parent:
        block = block.parent
    return block


def _resident(block: _Block) -> _Block:
    """Return the last block of the chain up to `block` that is in the cache (the root always is)."""
    while not block.resident and block.parent:
        block = block.parent
    return block
