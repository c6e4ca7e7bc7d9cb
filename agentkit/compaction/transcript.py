"""What the summariser is shown: the history as plain text, without roles, calls or results that an API could refuse."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.messages import Message

CLIP = 4_000
"""Most characters of one message (M4). The summary call is billed for what it reads: a clipped message is cheaper and loses
its middle, a whole one is dearer and loses nothing."""


def clip(text: str, limit: int = CLIP) -> str:
    """Return at most `limit` characters of `text`, its start and its end, with a note of how many are left out."""
    if len(text) <= limit:
        return text
    head = limit * 3 // 4
    tail = limit - head
    return f"{text[:head]}\n… ({len(text) - limit:,} characters left out) …\n{text[len(text) - tail :]}"


def flatten(messages: Sequence[Message], limit: int = CLIP) -> str:
    """Return `messages` as plain text, one paragraph each, every message clipped at `limit` characters."""
    return "\n".join(_line(m, limit) for m in messages)


def _line(message: Message, limit: int) -> str:
    parts = [f"[{message.role}]", clip(message.content, limit)] if message.content else [f"[{message.role}]"]
    parts += [f"<call {c.name}({clip(c.arguments, limit)})>" for c in message.tool_calls]
    parts += [f"<picture {image.media_type}>" for image in message.images]
    return " ".join(parts)
