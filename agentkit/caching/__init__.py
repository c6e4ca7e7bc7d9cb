"""Cache models: what a provider reads from its prompt cache, as a rule that one can read."""

from agentkit.caching.deepseek import DeepSeekCache
from agentkit.caching.openai import OpenAICache
from agentkit.caching.prefix import CacheResult, PrefixCache, Segment

__all__ = ["CacheResult", "DeepSeekCache", "OpenAICache", "PrefixCache", "Segment"]
