"""The records that everything else is made of: messages, tool calls, usage, tool specs and requests.

All are frozen. A record never changes after it was made; `dataclasses.replace` makes a changed copy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class ToolCall:
    """One call that the model asks for.

    `arguments` is the raw JSON text exactly as it came: an invalid one must survive a round trip.
    """

    id: str
    name: str
    arguments: str = "{}"

    def parsed(self) -> dict[str, Any]:
        """Return the arguments as a dict; empty text counts as `{}`.

        Raises `ValueError` when the text is not a JSON object.
        """
        text = self.arguments.strip()
        try:
            value = json.loads(text) if text else {}
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None
        if not isinstance(value, dict):
            raise ValueError(f"expected a JSON object, got {type(value).__name__}")
        return value


@dataclass(frozen=True)
class Image:
    """One picture: media type (`image/png` …) and its bytes in base64."""

    media_type: str
    data: str


@dataclass(frozen=True)
class Opaque:
    """Provider data that must be returned unchanged, but only to the provider that issued it."""

    issuer: str
    data: Any


@dataclass(frozen=True)
class Message:
    """One message of the conversation.

    `id` is given by the log when empty. `tool_call_id` names the call that a tool message answers.
    `reasoning` is the model's own thinking where the provider shows it as text.
    """

    role: Role
    content: str = ""
    id: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    reasoning: str = ""
    opaque: tuple[Opaque, ...] = ()
    images: tuple[Image, ...] = ()
    is_error: bool = False


def system(text: str) -> Message:
    """Make a system message."""
    return Message("system", text)


def user(text: str, *images: Image) -> Message:
    """Make a user message, with pictures or without."""
    return Message("user", text, images=images)


def assistant(text: str = "", *calls: ToolCall) -> Message:
    """Make an assistant message, with tool calls or without."""
    return Message("assistant", text, tool_calls=calls)


def tool_result(call_id: str, text: str, *, is_error: bool = False) -> Message:
    """Make the tool message that answers the call `call_id`."""
    return Message("tool", text, tool_call_id=call_id, is_error=is_error)


@dataclass(frozen=True)
class Usage:
    """What one request was billed for, in tokens.

    `fresh` were neither read from the cache nor written to it; `prompt` is the sum of the three input parts. Providers
    disagree on whether "input tokens" includes cached ones; the provider settles it once, when it makes this record.
    `reasoning` is the part of `output` that was thinking.
    """

    fresh: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        """Return all prompt tokens: fresh + cache read + cache write."""
        return self.fresh + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.fresh + other.fresh,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the model sees it: name, description and the JSON schema of its parameters."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def canonical(self) -> str:
        """Return the spec as JSON text with sorted keys, so its bytes are the same every time."""
        spec = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return json.dumps(spec, sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True)
class Request:
    """Everything that is sent to the model at once.

    `max_output` is in tokens (None: the provider's default). `thinking=False` asks the provider to switch thinking off.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output: int | None = None
    thinking: bool = True


FinishReason = Literal["stop", "tool_calls", "length", "overflow", "refused", "other"]


@dataclass(frozen=True)
class Reply:
    """The model's whole answer to one request; `usage` is None when the provider sent no bill."""

    message: Message
    usage: Usage | None = None
    finish: FinishReason = "stop"
