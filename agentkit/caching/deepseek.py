"""DeepSeek's disk cache: a stored unit is read whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.caching.prefix import CacheResult, Node, PrefixTree, Segment, alike


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
        path, known = self._tree.follow(prompt)
        total = path[-1].end if path else 0
        parent = path[known - 1] if known else self._tree.root
        kin = _kin(path[known], parent) if known < len(path) else []
        shared = max([parent.end, *(reach for _, reach in kin)])
        if kin:
            _share_units(path[known], kin)
        read = self._longest_unit(path, known, shared)
        if path:
            path[-1].marks |= {total}
            path[_reaching(path, known, shared)].marks |= {shared}
        if kin:
            _share_units(path[known], kin)
        if output is not None:
            self._store_output(path[-1] if path else self._tree.root, output)
        return CacheResult(read, 0, total - read)

    def _longest_unit(self, path: Sequence[Node], known: int, shared: int) -> int:
        """Return the end of the longest unit within the shared tokens. Most are near their end, so look from there."""
        unit = shared // self.step * self.step if self.step else 0
        for i in range(min(known, len(path) - 1), -1, -1):
            node = path[i]
            if node.end <= unit:
                break
            if node.marks:
                unit = max([unit, *(mark for mark in node.marks if mark <= shared)])
        return unit if unit >= self.minimum else 0

    def _store_output(self, parent: Node, output: Segment) -> None:
        new = output.data not in parent.children
        node = self._tree.child(parent, output)
        node.marks |= {node.end}
        if new:
            _share_units(node, _kin(node, parent))


def _reaching(path: Sequence[Node], known: int, depth: int) -> int:
    """Return the place of the first node that reaches `depth`, which is at the end of what is known or a little behind."""
    i = min(known, len(path) - 1)
    while i and path[i - 1].end >= depth:
        i -= 1
    return i


def _kin(new: Node, parent: Node) -> list[tuple[Node, int]]:
    """Return the nodes that stand at the same place as `new`, each with the number of tokens up to where it is the same."""
    return [(other, parent.end + alike(other.tokens, new.tokens)) for other in parent.children.values() if other is not new]


def _share_units(new: Node, kin: list[tuple[Node, int]]) -> None:
    """Let nodes that begin alike know the same units there, so that one who follows either of them finds all of them."""
    for other, reach in kin:
        new.marks |= {mark for mark in other.marks if mark <= reach}
        other.marks |= {mark for mark in new.marks if mark <= reach}
