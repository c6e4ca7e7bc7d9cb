"""Whose rules the simulator plays: dialect, vocabulary, window, cache model, and the names of the usage fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentkit.caching import AnthropicCache, DeepSeekCache, OpenAICache, PrefixCache
from agentkit.protocol import Dialect


@dataclass(frozen=True)
class Profile:
    """One provider's rules.

    `window` and `max_output` are tokens. Source: the vendors' pages as of 2026-11. A simulator may get another window.
    """

    name: str
    dialect: Dialect
    model: str
    window: int
    max_output: int
    cache: Callable[[], PrefixCache]
    vocabulary: str = "o200k_base"


PROFILES: dict[str, Profile] = {
    "openai": Profile("openai", "openai", "simulated-openai", 128_000, 16_384, OpenAICache),
    "deepseek": Profile("deepseek", "deepseek", "simulated-deepseek", 1_000_000, 393_216, DeepSeekCache),
    "anthropic": Profile("anthropic", "anthropic", "simulated-anthropic", 200_000, 64_000, AnthropicCache),
}


def profile(name: str) -> Profile:
    """Return the profile `name`. Raises `ValueError` that lists the names there are."""
    if name not in PROFILES:
        raise ValueError(f"unknown profile {name!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]
