"""Is it an overflow? By structured code, then by type, then by status, then by text; throttling is excluded first.

An overflow wants a smaller request and never the same one again; throttling wants the same request later. Both speak of
too many tokens. Shapes of 22 servers as of 2026-11 (vendors' pages, SDKs, issue threads; the detector of pi for most texts).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentkit.messages import Reply, Request, Usage
from agentkit.providers.base import ProviderError

CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded", "request_too_large"}
)
"""Codes and types that mean nothing else."""

THROTTLED = re.compile(r"(?i)rate.?limit|too many (?:requests|tokens, please)|throttl|quota exceeded|insufficient_quota")

_NOT_BY_TEXT = frozenset({401, 402, 403, 404, 429})
"""These statuses say what is wrong; a text that mentions a length changes nothing."""

_WORDINGS = re.compile(
    "(?i)"
    + "|".join(
        (
            r"prompt is too long|too long: [\d,]+ tokens",  # Anthropic
            r"input length and `?max_tokens`? exceed context limit",  # Anthropic, older models
            r"request exceeds the maximum size",  # Anthropic: bytes
            r"maximum context length (?:is|of|\()",  # OpenAI, DeepSeek, OpenRouter, vLLM
            r"exceeds? (?:the |this |model'?s? )?(?:the |model'?s? )?maximum context length",
            r"exceeds the context window|context window exceeds limit",  # OpenAI Responses, MiniMax
            r"input token count.{0,20}exceeds the maximum number of tokens",  # Gemini
            r"maximum prompt length is \d",  # xAI
            r"reduce the length of the messages",  # Groq
            r"(?:longer|greater) than the (?:model'?s )?context length",  # Together, LM Studio
            r"input is too long for requested model",  # Bedrock
            r"prompt tokens.{0,14}exceed model maximum",  # Bedrock Mantle
            r"too large for model with \d+ maximum context length",  # Mistral
            r"prompt token count of \d+ exceeds the limit",  # GitHub Copilot
            r"exceeded model token limit",  # Moonshot
            r"range of input length should be \[1",  # Qwen
            r"current length is \d+ while limit is",  # Cerebras
            r"exceeds the available context size|context shift is disabled",  # llama.cpp
            r"context length is only \d+ tokens|input length.{0,40}exceeds.{0,40}(?:context|input) length",  # vLLM
            r"prompt too long; exceeded (?:max )?context length",  # Ollama
            r"prompt has \d+ tokens, but the configured context size",  # ds4
        )
    )
)


def is_throttling(text: str) -> bool:
    """Say whether `text` is about pace, whatever it says about tokens."""
    return THROTTLED.search(text) is not None


def says_overflow(text: str, status: int | None = 400) -> bool:
    """Say whether the text of an error with this HTTP status means that the context is too long.

    Also behind a 500 or a 503: gateways wrap what another server said.
    """
    return status not in _NOT_BY_TEXT and not is_throttling(text) and _WORDINGS.search(text) is not None


def is_overflow(error: BaseException) -> bool:
    """Say whether `error` is an overflow. The provider classified it when it made the error."""
    return isinstance(error, ProviderError) and error.kind == "overflow"


# --- the numbers in it --------------------------------------------------------------------------------------------------

_N = r"(\d[\d,]*)"
_USED = (
    rf"too long: {_N} tokens|limit: {_N} \+ |requested(?: about|:)? {_N}\b|resulted in {_N}"
    rf"|request contains {_N}|token count (?:of |\(){_N}|input \({_N} tokens|prompt tokens \({_N}|prompt contains {_N}"
    rf"|length is {_N} while|request \({_N} tokens|prompt has (?:at least )?{_N}|input length \(?{_N}"
    rf"|\({_N} tokens in a context of"
)
_PROMPT = rf"\({_N} in the messages"
"""DeepSeek names the sum first; the prompt's own part is what counts."""
_OUTPUT = rf" \+ {_N} >|{_N} in the completion"
_LIMIT = (
    rf" > {_N}|maximum context length (?:is |of |\(){_N}|maximum prompt length is {_N}|limit of {_N}|allowed \({_N}"
    rf"|input length of {_N}|context size (?:is |\(){_N}|while limit is {_N}|model maximum \({_N}|context length \({_N}"
    rf"|with {_N} maximum context|token limit: ?{_N}|\[1, ?{_N}|length is only {_N}|maximum {_N}|in a context of {_N}"
)


@dataclass(frozen=True)
class Sizes:
    """What an error says about sizes, in tokens: the prompt, the output asked for, the limit. None: it does not say."""

    used: int | None = None
    output: int | None = None
    limit: int | None = None


def sizes_in(text: str) -> Sizes:
    """Read the numbers out of the text of an overflow."""
    used = _number(_PROMPT, text)
    return Sizes(_number(_USED, text) if used is None else used, _number(_OUTPUT, text), _number(_LIMIT, text))


def sizes_of(text: str, estimate: int, asked: int) -> Sizes:
    """Read the numbers for a request of about `estimate` tokens that asked for `asked` tokens of output.

    OpenAI counts the output asked for into the prompt; where the numbers fit better without it, it is taken out again.
    """
    sizes = sizes_in(text)
    if sizes.used and not sizes.output and abs(sizes.used - asked - estimate) < abs(sizes.used - estimate):
        return Sizes(max(1, sizes.used - asked), asked, sizes.limit)
    return sizes


def _number(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text, re.IGNORECASE)
    digits = next((group for group in found.groups() if group), None) if found else None
    return int(digits.replace(",", "")) if digits else None


# --- overflows that are no error ----------------------------------------------------------------------------------------

_NEARLY = 0.98
"""A request that fills this share of the window has filled it: the counts of two parties never agree to the token."""
_NOTICEABLE = 4_096
"""Tokens. In smaller requests an estimate and a count differ too easily."""


def came_with_nothing(reply: Reply) -> bool:
    """Say whether the answer is an overflow with status 200: the window was full before a word was said.

    `model_context_window_exceeded` (Anthropic 4.5, z.ai), or `length` with no output at all (Xiaomi MiMo).
    """
    if reply.message.content.strip() or reply.message.tool_calls:
        return False
    nothing_written = reply.usage is not None and reply.usage.output == 0
    return reply.finish == "overflow" or (reply.finish == "length" and nothing_written)


def cut_by_context(reply: Reply, request: Request, window: int | None = None) -> bool:
    """Say whether an answer ended early because the window was full, not because it reached the output asked for.

    The next request would be cut again, so a compaction has to come first (jai). `window` in tokens, None: not known.
    """
    if reply.finish == "overflow":
        return True
    if reply.finish != "length" or reply.usage is None:
        return False
    if window and reply.usage.prompt + reply.usage.output >= _NEARLY * window:
        return True
    return request.max_output is not None and reply.usage.output < 0.7 * request.max_output


def silent_truncation(estimate: int, usage: Usage, before: tuple[int, int] | None = None, window: int | None = None) -> str:
    """Return why it looks as if the server had dropped a part of the prompt and said nothing; empty: it does not.

    `before` is (estimate, counted prompt) of the request before, if this one only added to it. Ollama drops the oldest
    messages, and only the count shows it; z.ai counts more than the window holds.
    """
    if window and usage.prompt > window:
        return f"{usage.prompt:,} tokens were counted in a window of {window:,}"
    if estimate < _NOTICEABLE or usage.prompt <= 0:
        return ""
    if usage.prompt < 0.5 * estimate:
        return f"about {estimate:,} tokens were sent, {usage.prompt:,} were counted"
    if before and estimate >= before[0] + max(500, before[0] // 5) and usage.prompt <= before[1] + 50:
        return f"the prompt grew by about {estimate - before[0]:,} tokens, its count stayed at {usage.prompt:,}"
    return ""
