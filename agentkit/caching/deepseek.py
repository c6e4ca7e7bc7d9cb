"""DeepSeek's disk cache: a stored unit is read whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.caching.prefix import CacheResult, Match, Node, PrefixTree, Segment


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
        self._learn_shared(match)
        self._store(prompt, output)
        return CacheResult(read, 0, total - read)

    def _longest_unit(self, match: Match) -> int:
        stepped = match.shared // self.step * self.step if self.step else 0
        nodes = [*match.path, *([match.partly] if match.partly else [])]
        marks = (mark for node in nodes for mark in node.marks if mark <= match.shared)
        unit = max(stepped, max(marks, default=0))
        return unit if unit >= self.minimum else 0

    def _learn_shared(self, match: Match) -> None:
        """Two requests share this much and then part: the server stores the shared part as a unit, for the next one."""
        if match.partly:
            match.partly.marks.add(match.shared)
        elif match.path:
            match.path[-1].marks.add(match.shared)

    def _store(self, prompt: Sequence[Segment], output: Segment | None) -> None:
        path = self._tree.insert(prompt)
        _mark_end(path)
        if output is not None:
            _mark_end(self._tree.insert([*prompt, output]))


def _mark_end(path: tuple[Node, ...]) -> None:
    if path:
        path[-1].marks.add(path[-1].end)
