"""A tree of token runs with a limited number of tokens, as in SGLang: prompts that share a start share its run."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from agentkit.caching.prefix import CacheResult, Node, PrefixTree, Segment, Token, spell


class _Run:
    """Tokens that belong together: `start` of them stand before it. Only a run with none behind it can be given up."""

    __slots__ = ("children", "parent", "resident", "start", "tokens", "used")

    def __init__(self, parent: _Run | None, start: int, tokens: tuple[Token, ...]) -> None:
        self.parent = parent
        self.start = start
        self.tokens = tokens
        self.children: dict[Hashable, _Run] = {}
        self.resident = True
        self.used = 0

    @property
    def end(self) -> int:
        """Return how many tokens there are up to the end of this run."""
        return self.start + len(self.tokens)

    def at(self, depth: int) -> _Run:
        """Return the run that holds token number `depth`: this one, or one before it since a split."""
        run = self
        while run.parent and run.start >= depth:
            run = run.parent
        return run


@dataclass(frozen=True)
class _Spot:
    """The end of a segment: `depth` tokens end in `run` or before it, `rest` follows, parameters wait for a token."""

    run: _Run
    depth: int = 0
    rest: tuple[Token, ...] = ()
    waiting: tuple[bytes, ...] = ()


@dataclass
class _Text:
    """The tokens of a prompt from number `base` on; what stands before need not be read."""

    base: int
    tokens: tuple[Token, ...]

    def cut(self, start: int, stop: int) -> tuple[Token, ...]:
        return self.tokens[start - self.base : stop - self.base]


class TokenTree:
    """Read the longest prefix that is in the tree, in whole pages; at least the last token of a prompt is always computed.

    `page` tokens a page (1), `capacity` tokens in all (None: no limit). A full tree gives up whole runs, the least recently
    used first, and only those with nothing behind them. A prompt is put in as one run, its output as another; a run is split
    where two prompts part ways, and both halves count as used. One request at a time; no write price. Source: SGLang's
    radix cache, 2026.
    """

    def __init__(self, capacity: int | None = None, page: int = 1) -> None:
        self.capacity, self.page = capacity, page
        self._tree = PrefixTree()
        self._root = _Run(None, 0, ())
        self._filled = 0
        self._clock = 0
        self._queue: list[tuple[int, int, _Run]] = []
        self._order = itertools.count()

    def observe(self, prompt: Sequence[Segment], at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Account for `prompt`, then keep its tokens and those of `output` but for the last, which is never computed.

        Raises `ValueError` when the request has more tokens than the tree may hold.
        """
        whole = list(prompt) if output is None else [*prompt, output]
        path, _ = self._tree.follow(whole)
        total = path[len(prompt) - 1].end if prompt else 0
        stored = max(total, path[-1].end - 1) if output is not None else total
        self._require(stored)
        first, spot = self._known(path)
        text, spots = self._read(whole[first:], spot)
        run, read = self._match(spot.run, spot.depth, text, self._whole(max(total - 1, 0)))
        end = read
        for limit in sorted({self._whole(total), self._whole(stored)}):
            if end < spot.depth:  # the lookup stopped before what is known to be there, and `text` starts there
                run, end = spot.run, spot.depth
            run, end = self._insert(run, end, text, limit)
        self._note(path[first:], spots, run, end, text)
        return CacheResult(read, 0, total - read)

    def _whole(self, tokens: int) -> int:
        return tokens // self.page * self.page

    def _require(self, stored: int) -> None:
        if self.capacity is not None and self._whole(stored) > self.capacity:
            raise ValueError(
                f"a request of {stored:,} tokens does not fit into a tree of {self.capacity:,}; enlarge it or send less"
            )

    def _known(self, path: Sequence[Node]) -> tuple[int, _Spot]:
        """Return how many segments are in the tree for certain, and the end of the last; the rest is compared anew."""
        for i in range(len(path) - 1, -1, -1):
            spot: _Spot | None = path[i].note
            if spot and spot.run.at(spot.depth).resident:
                return i + 1, spot
        return 0, _Spot(self._root)

    def _read(self, segments: Sequence[Segment], spot: _Spot) -> tuple[_Text, list[tuple[int, tuple[bytes, ...]]]]:
        """Return the tokens behind `spot`, and for each segment where it ends and which parameters wait there."""
        tokens, waiting, ends = list(spot.rest), spot.waiting, []
        for segment in segments:
            more, waiting = spell(segment, waiting)
            tokens += more
            ends.append((spot.depth + len(tokens), waiting))
        return _Text(spot.depth, tuple(tokens)), ends

    def _match(self, run: _Run, depth: int, text: _Text, limit: int) -> tuple[_Run, int]:
        """Follow `text` from `depth` as far as the tree has it, at most to `limit`, and split the run where that ends."""
        self._clock += 1
        depth = min(depth, limit)
        run = run.at(depth)
        while depth < limit:
            if depth == run.end:
                child = run.children.get(self._key(text.cut(depth, depth + self.page)))
                if child is None:
                    break
                run = child
            depth = self._agree(run, depth, text, limit)
            if depth < run.end:
                break
        if depth < run.end:
            run = self._split(run, depth)
        self._touch(run)
        return run, depth

    def _agree(self, run: _Run, depth: int, text: _Text, limit: int) -> int:
        stop, i = min(run.end, limit), depth
        while i < stop and run.tokens[i - run.start] == text.tokens[i - text.base]:
            i += 1
        return self._whole(i)

    def _insert(self, run: _Run, depth: int, text: _Text, limit: int) -> tuple[_Run, int]:
        """Follow `text` up to `limit` and add what the tree does not have, as one run."""
        run, depth = self._match(run, depth, text, limit)
        if depth == limit:
            return run, depth
        self._make_room(limit - depth)
        new = _Run(run, depth, text.cut(depth, limit))
        run.children[self._key(new.tokens)] = new
        self._filled += limit - depth
        self._touch(new)
        return new, limit

    def _split(self, run: _Run, depth: int) -> _Run:
        """Split `run` before token number `depth` and return the first half; the second half keeps the object."""
        size, parent = depth - run.start, run.parent or self._root
        upper = _Run(parent, run.start, run.tokens[:size])
        parent.children[self._key(upper.tokens)] = upper
        run.parent, run.start, run.tokens = upper, depth, run.tokens[size:]
        upper.children[self._key(run.tokens)] = run
        self._touch(run)
        return upper

    def _key(self, tokens: tuple[Token, ...]) -> Hashable:
        return tokens[: self.page]

    def _note(
        self, path: Sequence[Node], spots: list[tuple[int, tuple[bytes, ...]]], run: _Run, stored: int, text: _Text
    ) -> None:
        """Note at the end of each segment where in the tree it ends."""
        for node, (end, waiting) in zip(path, spots, strict=True):
            depth = min(self._whole(end), stored)
            node.note = _Spot(run, depth, text.cut(depth, end), waiting)

    def _touch(self, run: _Run) -> None:
        """Note that `run` is used now. So are all before it, which needs no note: see `_make_room`."""
        run.used = self._clock
        self._offer(run)

    def _offer(self, run: _Run) -> None:
        if self.capacity is not None and not run.children and run.parent:
            heappush(self._queue, (run.used, next(self._order), run))

    def _make_room(self, new: int) -> None:
        """Give up runs until `new` tokens fit. The run before one that goes is next, unless it was used again since."""
        while self.capacity is not None and self._filled + new > self.capacity:
            used, _, run = heappop(self._queue)
            if not run.resident or run.children or run.used != used:
                continue
            run.resident = False
            self._filled -= len(run.tokens)
            parent = run.parent or self._root
            del parent.children[self._key(run.tokens)]
            self._offer(parent)
