"""The counter: how many tokens a request has, and how many of them the cache already holds.

It counts what is sent: the tools in the order they came, then one segment a message. Exact bytes decide: tools in another
order are another prefix.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from agentkit.caching import CacheResult, PrefixCache, Segment
from agentkit.caching.prefix import Token
from agentkit.messages import Message, Usage
from agentkit.tokens import IMAGE_TOKENS
from agentkit.vocabulary import Unavailable, encoding, pieces

# Without a vocabulary: pieces of about the length of a token, so that prefixes still compare piece by piece.
_PIECE = re.compile(r"[⺀-\U0010ffff]|\s?[A-Za-z]{1,5}|\s?\d{1,3}|\s?[^\sA-Za-z\d]|\s+")


def tokenizer(vocabulary: str) -> tuple[Callable[[str], Sequence[Token]], str]:
    """Return (function from text to tokens, its name); without a vocabulary the name says that it is an estimate."""
    try:
        found = encoding(vocabulary)
    except Unavailable:
        return _PIECE.findall, "estimate"
    return (lambda text: [t for piece in pieces(text) for t in found.encode_ordinary(piece)]), f"tiktoken {vocabulary}"


class Counter:
    """Turn what was sent into segments and bill them against a cache model."""

    def __init__(self, vocabulary: str, cache: PrefixCache) -> None:
        tokens, self.name = tokenizer(vocabulary)
        self._tokens = functools.lru_cache(maxsize=8192)(lambda text: tuple(tokens(text)))
        self._cache = cache

    def segments(self, messages: Sequence[Message], tools: Sequence[Any]) -> list[Segment]:
        """Return the prompt as segments: all tools first, then each message."""
        parts = [self._segment(json.dumps(tools, ensure_ascii=False))] if tools else []
        return parts + [self.message(m) for m in messages]

    def message(self, message: Message) -> Segment:
        """Return the segment of one message, as the model sees it."""
        calls = "".join(f"<call {c.id} {c.name}>{c.arguments}" for c in message.tool_calls)
        header = f"<{message.role} {message.tool_call_id}>" if message.tool_call_id else f"<{message.role}>"
        text = f"{header}{message.reasoning}{message.content}{calls}"
        return self._segment(text, pictures="".join(i.data for i in message.images), count=len(message.images))

    def text(self, text: str) -> Segment:
        """Return a piece of text as a segment."""
        return self._segment(text)

    def bill(self, prompt: Sequence[Segment], output: Segment, at: float = 0.0, reasoning: int = 0) -> Usage:
        """Return the usage of a request with this prompt and this output, and remember both."""
        result = self.observe(prompt, output, at)
        return Usage(result.fresh, result.read, result.written, len(output.tokens), reasoning)

    def observe(self, prompt: Sequence[Segment], output: Segment, at: float = 0.0) -> CacheResult:
        """Return what the cache did with this prompt, and remember prompt and output."""
        return self._cache.observe(prompt, at, output)

    def _segment(self, text: str, *, pictures: str = "", count: int = 0) -> Segment:
        text = text.encode("utf-8", "replace").decode("utf-8")
        tokens = self._tokens(text) + tuple(("picture", pictures, n) for n in range(count * IMAGE_TOKENS))
        return Segment((text + pictures).encode("utf-8"), tokens)


def size(prompt: Sequence[Segment]) -> int:
    """Return the tokens of a prompt."""
    return sum(len(s.tokens) for s in prompt)
