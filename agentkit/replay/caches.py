"""The cache model that goes with a price list, made ready for a replay: with marks, with pauses, with charged writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from agentkit.cache_rules import CacheRule, cache_rule
from agentkit.caching.anthropic import AnthropicCache
from agentkit.caching.blocks import BlockCache
from agentkit.caching.breakpoints import PLACEMENTS, Placement, place
from agentkit.caching.deepseek import DeepSeekCache
from agentkit.caching.openai import OpenAICache
from agentkit.caching.prefix import CacheResult, Life, PrefixCache, Segment
from agentkit.caching.tree import TokenTree
from agentkit.pricing import Prices


class Forgets:
    """A cache that loses everything when nothing was asked for `life` seconds.

    Exact for one conversation: every entry was used at the last request or before it.
    """

    def __init__(self, make: Callable[[], PrefixCache], life: float) -> None:
        self._make, self.life = make, life
        self._cache, self._last = make(), 0.0

    def observe(self, prompt: Sequence[Segment], at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Account for `prompt`, with an empty cache after a long pause."""
        if at - self._last >= self.life:
            self._cache = self._make()
        self._last = at
        return self._cache.observe(prompt, at, output)


class Charged:
    """A cache that charges for storing whatever was not read, once there is enough to store (OpenAI from GPT-5.6 on)."""

    def __init__(self, cache: PrefixCache, minimum: int) -> None:
        self._cache, self.minimum = cache, minimum

    def observe(self, prompt: Sequence[Segment], at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Account for `prompt`."""
        result = self._cache.observe(prompt, at, output)
        if result.read + result.fresh < self.minimum:
            return result
        return CacheResult(result.read, result.written + result.fresh, 0)


class Marked:
    """A cache that needs marks, and a client that puts them. `unmarked` is the same cache for a request without any."""

    def __init__(self, cache: AnthropicCache, placement: Placement, life: Life) -> None:
        self.unmarked, self._placement, self._life = cache, placement, life

    def observe(self, prompt: Sequence[Segment], at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Put the marks, then account for `prompt`."""
        return self.unmarked.observe_marked(prompt, dict.fromkeys(self._placement(prompt), self._life), at)


class NoCache:
    """No cache at all: every token is fresh, every time."""

    def observe(self, prompt: Sequence[Segment], at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Account for `prompt`."""
        return CacheResult(0, 0, sum(len(segment.tokens) for segment in prompt))


@dataclass(frozen=True)
class CacheChoice:
    """Which cache model a replay uses. `blocks`: it wants content blocks instead of whole messages. `label` is shown."""

    make: Callable[[], PrefixCache]
    label: str
    blocks: bool = False


CACHES = ("anthropic", "openai", "deepseek", "blocks", "tree", "none")
"""The cache models that can be asked for by name."""


def cache_for(
    prices: Prices, kind: str | None = None, *, placement: str = "recommended", life: Life = "5m", pauses: bool = True
) -> CacheChoice:
    """Return the cache model that goes with `prices`, or the one named `kind`.

    `placement` and `life` are for marks. `pauses=False` ignores that entries die: for sessions without times.
    Raises `ValueError` for an unknown name.
    """
    rule = cache_rule(prices.provider, prices.model)
    kind = kind or rule.kind
    if kind == "anthropic":
        marks = _placement(placement)
        minimum = rule.minimum if rule.kind == "anthropic" else 1_024
        label = f"Anthropic's marks ({placement}, {life}), minimum {minimum:,}"
        return CacheChoice(lambda: Marked(AnthropicCache(minimum), marks, life), label, blocks=True)
    if kind in ("openai", "deepseek"):
        return _automatic(kind, rule, pauses)
    simple = {
        "blocks": CacheChoice(BlockCache, "blocks of 16 tokens (vLLM)"),
        "tree": CacheChoice(TokenTree, "a tree of tokens (SGLang)"),
        "none": CacheChoice(NoCache, "no cache"),
    }
    if kind not in simple:
        raise ValueError(f"unknown cache model {kind!r}; there are {', '.join(CACHES)}")
    return simple[kind]


def _placement(name: str) -> Placement:
    if name not in PLACEMENTS:
        raise ValueError(f"unknown placement of marks {name!r}; there are {', '.join(PLACEMENTS)}")
    # The prompts of a replay carry no marks, and not having to look for any keeps a long session cheap.
    return partial(place, carried=()) if name == "recommended" else PLACEMENTS[name]


def _automatic(kind: str, rule: CacheRule, pauses: bool) -> CacheChoice:
    own = rule if rule.kind == kind else None
    make = _maker(kind, own)
    life = own.life if own and pauses else None
    label = {"openai": "automatic prefix (OpenAI)", "deepseek": "whole stored units (DeepSeek)"}[kind]
    if life:
        label += f", forgotten after {life / 60:,.0f} minutes without a request"
    charged = own is not None and own.charged
    label += ", storing is charged" if charged else ""

    def made() -> PrefixCache:
        cache = Forgets(make, life) if life else make()
        return Charged(cache, own.minimum) if own and charged else cache

    return CacheChoice(made, label)


def _maker(kind: str, rule: CacheRule | None) -> Callable[[], PrefixCache]:
    if rule is None:
        return OpenAICache if kind == "openai" else DeepSeekCache
    minimum, step = rule.minimum, rule.step
    return (lambda: OpenAICache(minimum, step)) if kind == "openai" else (lambda: DeepSeekCache(step, minimum))
