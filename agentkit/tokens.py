"""Estimate tokens before a request is sent; only the provider's bill knows them afterwards.

Every estimator answers the same questions: how many tokens has a text, a message, a list of tool specs, a request. They
differ in how they read text. All counts are tokens.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Protocol

from agentkit.messages import Message, Request, ToolSpec, Usage

IMAGE_TOKENS = 1_200
"""Flat allowance per picture, whatever its file size (pi's default). Providers bill by pixels, never by bytes."""

CJK_START = 0x2E80
"""First code point of the Chinese, Japanese and Korean blocks; close enough as a border."""

_RUN = re.compile(r"[A-Za-z0-9+/=_-]{80,}")
_HEX = re.compile(r"[0-9a-f]{80,}|[0-9A-F]{80,}")
_DATA_URI = re.compile(r"data:image/[\w.+-]+;base64,[A-Za-z0-9+/=]*")


class Estimator(Protocol):
    """Anything that estimates a request and may learn from its bill. `name` is shown to the reader."""

    name: str

    def text(self, text: str) -> int:
        """Return the tokens of `text`."""
        ...

    def message(self, message: Message) -> int:
        """Return the tokens of one message as it is sent."""
        ...

    def request(self, request: Request) -> int:
        """Return the tokens of everything that is sent: tools, system prompt, messages."""
        ...

    def observe(self, request: Request, usage: Usage) -> None:
        """Learn from the bill of exactly this request."""
        ...


class TextEstimator:
    """The shared part: sum the texts of a message, the messages of a request, and the tools.

    `per_message`, `per_call` and `per_tool` are for the structure around the text, which is sent and billed too.
    `count_reasoning` says whether thinking is sent back (with tools DeepSeek wants it, others drop it).
    """

    name = "text"
    per_message = 0
    per_call = 0
    per_tool = 0

    def __init__(self, *, count_reasoning: bool = True, image_tokens: int = IMAGE_TOKENS) -> None:
        self.count_reasoning = count_reasoning
        self.image_tokens = image_tokens

    def text(self, text: str) -> int:
        """Return the tokens of `text`; pictures inside it as data: addresses count as pictures."""
        pictures = len(_DATA_URI.findall(text)) if "data:image/" in text else 0
        if pictures:
            text = _DATA_URI.sub("", text)
        return self._plain(text) + pictures * self.image_tokens

    def _plain(self, text: str) -> int:
        raise NotImplementedError

    def message(self, message: Message) -> int:
        """Return the tokens of one message: text, reasoning, calls, pictures and the structure around them."""
        total = self.per_message + self.text(message.content) + len(message.images) * self.image_tokens
        if self.count_reasoning:
            total += self.text(message.reasoning)
        for call in message.tool_calls:
            total += self.per_call + self.text(call.name) + self.text(call.arguments)
        return total

    def messages(self, messages: Sequence[Message]) -> int:
        """Return the tokens of a list of messages."""
        return sum(self.message(m) for m in messages)

    def tools(self, specs: Sequence[ToolSpec]) -> int:
        """Return the tokens of the tool specs. They are sent with every request, used or not."""
        return sum(self.per_tool + self.text(s.canonical()) for s in specs)

    def request(self, request: Request) -> int:
        """Return the tokens of everything that is sent."""
        return self.tools(request.tools) + self.messages(request.messages)

    def observe(self, request: Request, usage: Usage) -> None:
        """Learn nothing: the same text always has the same estimate."""


class CharsPerFour(TextEstimator):
    """Characters divided by four: the rule that everybody starts with."""

    name = "characters / 4"

    def _plain(self, text: str) -> int:
        return math.ceil(len(text) / 4)


class PerScript(TextEstimator):
    """One weight for each kind of text.

    0.6 tokens per Chinese, Japanese or Korean character, 0.3 per other character (DeepSeek's documentation, 2026-09), 1 per
    character outside the basic plane (emoji, rare ideographs). Long runs without a space have weights of their own: base64
    0.8, hexadecimal 0.6 (a little above what o200k_base needs: 0.68 and 0.57), because prose weights are far too low there.
    """

    name = "per script"
    per_message = 8
    per_call = 12
    per_tool = 30
    cjk, other, rare, base64, hexadecimal = 0.6, 0.3, 1.0, 0.8, 0.6

    def _plain(self, text: str) -> int:
        extra = sum(self._extra_of_run(run) for run in _RUN.findall(text))
        if text.isascii():
            return math.ceil(len(text) * self.other + extra)
        rare = sum(1 for c in text if ord(c) > 0xFFFF)
        cjk = sum(1 for c in text if CJK_START <= ord(c) <= 0xFFFF)
        plain = len(text) - rare - cjk
        return math.ceil(cjk * self.cjk + rare * self.rare + plain * self.other + extra)

    def _extra_of_run(self, run: str) -> float:
        """Return what a long run needs above prose. Text put behind or before it never lowers that."""
        digits = any(c.isdigit() for c in run)
        if digits and any(c.islower() for c in run) and any(c.isupper() for c in run) and not _HEX.fullmatch(run):
            return len(run) * (self.base64 - self.other)
        dumps = (dump for dump in _HEX.findall(run) if any(c.isdigit() for c in dump))
        return sum(len(dump) for dump in dumps) * (self.hexadecimal - self.other)


def relative_error(estimate: float, actual: float) -> float:
    """Return how far `estimate` is from `actual`, as a share of `actual`: -0.2 means 20 % too low."""
    return (estimate - actual) / actual if actual else 0.0
