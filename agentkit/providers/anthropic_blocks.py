"""One assistant message as the content blocks of the Messages API, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentkit.messages import Message, ToolCall
from agentkit.settle import wire_id

Block = dict[str, Any]

THOUGHTS = ("thinking", "redacted_thinking")
PARAGRAPH = "\n\n"
"""What stands between two text blocks when they become one text."""

BLOCKS, PREFIX, UNKNOWN = "blocks", "prefix", "unknown"
"""The parts of an opaque record: the blocks as they came, what they stood behind, and pieces that nobody knows."""

NOT_AN_OBJECT = "text_that_is_no_json_object"
"""The one argument of a call whose arguments cannot be read: here they must be an object, so the text goes into one."""


def text_of(blocks: Sequence[Block]) -> str:
    """Return the text of all text blocks, as paragraphs."""
    return PARAGRAPH.join(b["text"] for b in blocks if b.get("type") == "text" and b.get("text"))


def text_block(text: str) -> Block:
    """Return a text block."""
    return {"type": "text", "text": text}


def call_block(call: ToolCall) -> Block:
    """Return a `tool_use` block. Its id is written in the alphabet that is allowed here."""
    return {"type": "tool_use", "id": wire_id(call.id), "name": call.name, "input": _input(call)}


def plain_blocks(message: Message) -> list[Block]:
    """Return text and calls as blocks. Empty text is left out: the API sends such blocks, but takes none back."""
    text = [text_block(message.content)] if message.content.strip() else []
    return text + [call_block(call) for call in message.tool_calls]


def kept_of(message: Message, blocks: Sequence[Block], prefix: str, unknown: Sequence[Any] = ()) -> dict[str, Any]:
    """Return what has to be kept of `blocks` because text and calls of `message` do not say it; nothing if they do.

    `prefix` names what the blocks stand behind; `unknown` are pieces that nobody knows: kept, and never sent.
    """
    if list(blocks) == plain_blocks(message) and not unknown:
        return {}
    return {BLOCKS: list(blocks), PREFIX: prefix, **({UNKNOWN: list(unknown)} if unknown else {})}


def own_blocks(message: Message, issuer: str, prefix: str | None = None) -> list[Block]:
    """Return the blocks to send for `message`: as they came, where they still fit it and may go back.

    `prefix` names what stands before the message now; thinking that stood behind something else is left out (None: it
    never is). Where a policy changed text or calls, the thinking in front stays and the rest is written anew.
    """
    kept = next((o.data for o in message.opaque if o.issuer == issuer and isinstance(o.data, Mapping)), {})
    came = [dict(block) for block in kept.get(BLOCKS) or () if not _says_nothing(block)]
    if prefix is not None and kept.get(PREFIX) != prefix:
        came = [block for block in came if block.get("type") not in THOUGHTS]
    return _renamed(came, message) if came and _fits(came, message) else [*_in_front(came), *plain_blocks(message)]


def _says_nothing(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and not str(block.get("text")).strip()


def _in_front(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        if block.get("type") not in THOUGHTS:
            return
        yield block


def _fits(blocks: Sequence[Block], message: Message) -> bool:
    calls = [(b.get("name"), b.get("input")) for b in blocks if b.get("type") == "tool_use"]
    texts = message.content.strip() == text_of(blocks).strip()
    return texts and calls == [(call.name, _input(call)) for call in message.tool_calls]


def _renamed(blocks: Sequence[Block], message: Message) -> list[Block]:
    """Give the calls the ids that they have in the message by now, as their results do."""
    ids = iter([wire_id(call.id) for call in message.tool_calls])
    return [{**b, "id": next(ids)} if b.get("type") == "tool_use" else b for b in blocks]


def _input(call: ToolCall) -> dict[str, Any]:
    try:
        value = call.parsed()
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return {NOT_AN_OBJECT: call.arguments}
    return value
