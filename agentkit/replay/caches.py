"""The cache model that goes with a price list, made ready for a replay: with marks, with pauses, with charged writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentkit.cache_rules import CacheRule, cache_rule
from agentkit.caching.anthropic import AnthropicCache
from agentkit.caching.blocks import BlockCache
from agentkit.caching.breakpoints import PLACEMENTS, Placement, add_marks
from agentkit.caching.deepseek import DeepSeekCache
from agentkit.caching.openai import OpenAICache
from agentkit.caching.prefix import CacheResult, Life, PrefixCache, Segment, Token
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


class Followed(OpenAICache):
    """OpenAI's rule over a tree that remembers the last prompt: each request costs work only for what is new in it."""

    def observe(self, prompt: Sequence[Segment], at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Account for `prompt`; the same answers as `OpenAICache`."""
        path, known = self._tree.follow(prompt)
        total = path[-1].end if path else 0
        before = path[known - 1] if known else self._tree.root
        shared = before.end
        if known < len(path) and len(before.children) > 1:
            new = path[known]
            shared += _longest(new.tokens, [other.tokens for other in before.children.values() if other is not new])
        read = shared // self.step * self.step if shared >= self.minimum else 0
        return CacheResult(read, 0, total - read)


def _longest(new: tuple[Token, ...], others: Sequence[tuple[Token, ...]]) -> int:
    """Return how many first tokens of `new` one of the others has. One that cannot beat the best so far is not compared."""
    best = 0
    for other in others:
        if best < min(len(new), len(other)) and new[best] == other[best]:
            best = max(best, _alike(new, other))
    return best


def _alike(a: tuple[Token, ...], b: tuple[Token, ...]) -> int:
    """Return how many first tokens are the same, by halving: slices are compared much faster than single tokens."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


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
        return self.unmarked.observe(add_marks(prompt, self._placement(prompt), self._life), at, output)


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
    simple: dict[str, tuple[Callable[[], PrefixCache], str]] = {
        "blocks": (BlockCache, "blocks of 16 tokens (vLLM)"),
        "tree": (TokenTree, "a tree of tokens (SGLang)"),
        "none": (NoCache, "no cache"),
    }
    if kind not in simple:
        raise ValueError(f"unknown cache model {kind!r}; there are {', '.join(CACHES)}")
    return CacheChoice(*simple[kind])


def _placement(name: str) -> Placement:
    if name not in PLACEMENTS:
        raise ValueError(f"unknown placement of marks {name!r}; there are {', '.join(PLACEMENTS)}")
    return PLACEMENTS[name]


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
        return Followed if kind == "openai" else DeepSeekCache
    minimum, step = rule.minimum, rule.step
    return (lambda: Followed(minimum, step)) if kind == "openai" else (lambda: DeepSeekCache(step, minimum))
