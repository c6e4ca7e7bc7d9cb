"""Cache models: what a provider reads from its prompt cache, as a rule that one can read."""

from agentkit.caching.anthropic import AnthropicCache
from agentkit.caching.blocks import BlockCache
from agentkit.caching.breakpoints import PLACEMENTS, Block, Placement, add_marks, place
from agentkit.caching.deepseek import DeepSeekCache
from agentkit.caching.openai import OpenAICache
from agentkit.caching.parts import CHANGES, Change, arrange
from agentkit.caching.prefix import CacheResult, Kind, Life, PrefixCache, Segment
from agentkit.caching.tree import TokenTree

__all__ = [
    "CHANGES",
    "PLACEMENTS",
    "AnthropicCache",
    "Block",
    "BlockCache",
    "CacheResult",
    "Change",
    "DeepSeekCache",
    "Kind",
    "Life",
    "OpenAICache",
    "Placement",
    "PrefixCache",
    "Segment",
    "TokenTree",
    "add_marks",
    "arrange",
    "place",
]
