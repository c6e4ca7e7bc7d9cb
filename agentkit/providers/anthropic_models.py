"""Where Claude models differ in what they take on the wire. Source: Anthropic's model and thinking pages as of 2026-11."""

from __future__ import annotations

import re
from typing import Any

_OLD = re.compile(r"claude-(?:\d|[a-z]+-4)(?![0-9])")
_ALWAYS_THINKS = re.compile(r"claude-(?:fable|mythos)-|claude-opus-5-5")
_BETWEEN_TOOLS = re.compile(r"claude-(?:sonnet|haiku)-5-5")

ROOM_TO_THINK = 4_096
"""Tokens that a model which cannot stop thinking gets on top: thinking counts as output, and would use up a summary's."""


def thinking_off(model: str, max_output: int) -> dict[str, Any]:
    """Return the fields that ask `model` to think as little as it can, with `max_output` tokens for what it says.

    To some newer models `disabled` is an error: one family calls its least `between_tools`, another only takes an effort.
    """
    if _ALWAYS_THINKS.search(model):
        return {"max_tokens": max_output + ROOM_TO_THINK, "output_config": {"effort": "low"}}
    least = "between_tools" if _BETWEEN_TOOLS.search(model) else "disabled"
    return {"max_tokens": max_output, "thinking": {"type": least}}


def binds_thinking(model: str) -> bool:
    """Say whether `model` takes earlier thinking back only behind the very messages that it stood behind.

    Since Claude Fable 5.1 a request that changed anything before is refused. Older models want the thinking of a running
    turn whatever stands before it, so with them it always goes back; a model of unknown name counts as a new one.
    """
    return _OLD.search(model) is None
