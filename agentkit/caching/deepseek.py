"""DeepSeek's disk cache: a stored unit is read whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.caching.prefix import CacheResult, Match, Node, PrefixTree, Segment, Token


class DeepSeekCache:
    """Read up to the end of the longest stored unit that the prompt starts with.

    Units end at the end of each request's input and of each output, at every `step` tokens inside long text, and where the
    server has seen two requests part ways (DeepSeek's KV cache guide, 2026-09). The step is not published: 128 fits the
    figures that the M4 course measured. Prefixes under `minimum` are not stored (64: the announcement of 2024-08). No write
    price. Entries live for hours to days; they do not expire here.
    """

    def __init__(self, step: int = 128, minimum: int = 64) -> None:
        self.step, self.minimum = step, minimum
        self._tree = PrefixTree()

    def observe(self, prompt: Sequence[Segment], at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Account for `prompt`, then store its units and those of `output`."""
        total = sum(len(s.tokens) for s in prompt)
        match = self._tree.match(prompt)
        read = self._longest_unit(match)
        self._store(prompt, match.shared)
        if output is not None:
            self._store([*prompt, output])
        return CacheResult(read, 0, total - read)

    def _longest_unit(self, match: Match) -> int:
        stepped = match.shared // self.step * self.step if self.step else 0
        nodes = [*match.path, *([match.partly] if match.partly else [])]
        marks = (mark for node in nodes for mark in node.marks if mark <= match.shared)
        unit = max(stepped, max(marks, default=0))
        return unit if unit >= self.minimum else 0

    def _store(self, prompt: Sequence[Segment], parted: int = 0) -> None:
        """Store a unit up to the end of `prompt`, and one up to `parted`, where it leaves an earlier request."""
        known = len(self._tree.match(prompt).path)
        path = self._tree.insert(prompt)
        for node in path[-1:]:
            node.marks.add(node.end)
        for node in [n for n in path if n.end >= parted][:1]:
            node.marks.add(parted)
        if known < len(path):
            _share_marks(path[known], path[known - 1] if known else self._tree.root)


def _share_marks(new: Node, parent: Node) -> None:
    """Let nodes that begin alike know the same units there, so that one who follows either of them finds all of them."""
    for other in parent.children.values():
        reach = parent.end + _common(other.tokens, new.tokens)
        new.marks |= {mark for mark in other.marks if mark <= reach}
        other.marks |= {mark for mark in new.marks if mark <= reach}


def _common(a: Sequence[Token], b: Sequence[Token]) -> int:
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))
