"""OpenAI's automatic cache: the longest seen prefix, from a minimum on, in whole steps."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.caching.prefix import CacheResult, PrefixTree, Segment


class OpenAICache:
    """Read the longest prefix that was sent before, if it has `minimum` tokens, rounded down to `step`.

    Minimum 1,024, step 128, no write price (models before GPT-5.6; OpenAI's prompt caching page, 2026). Entries do not
    expire here: the real ones live 5 to 60 minutes.
    """

    def __init__(self, minimum: int = 1_024, step: int = 128) -> None:
        self.minimum, self.step = minimum, step
        self._tree = PrefixTree()

    def observe(self, prompt: Sequence[Segment], at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Account for `prompt`; the output is stored only when it is sent again as part of a later prompt."""
        path, known = self._tree.follow(prompt)
        total = path[-1].end if path else 0
        shared = self._tree.shared(path, known)
        read = shared // self.step * self.step if shared >= self.minimum else 0
        return CacheResult(read, 0, total - read)
