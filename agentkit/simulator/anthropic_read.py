"""A request of the Messages API, read by the server: from content blocks to records, and to the blocks that a cache sees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from agentkit.caching import Kind, Life, Segment, arrange
from agentkit.messages import Image, Message, Request, ToolCall, ToolSpec, system
from agentkit.simulator.api import Json, Refused
from agentkit.simulator.counter import Counter

_ROLES = ("user", "assistant")
_THOUGHTS = ("thinking", "redacted_thinking")
_ALLOWED = {"user": ("text", "image", "tool_result"), "assistant": ("text", "tool_use", *_THOUGHTS)}


@dataclass(frozen=True)
class Spot:
    """One content block, with the place where it came: `messages.{message}.content.{block}`."""

    role: str
    block: Json
    message: int
    number: int

    @property
    def place(self) -> str:
        """Return the place as the API writes it."""
        return f"messages.{self.message}.content.{self.number}"


@dataclass
class Turn:
    """Neighbours of one role are one turn."""

    role: str
    spots: list[Spot] = field(default_factory=list)


def turns_of(body: Json) -> list[Turn]:
    """Return the turns of a body. Raises `Refused` for a role or a block that the API does not know."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise Refused(400, "messages: Field required")
    turns: list[Turn] = []
    for i, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "system":
            raise Refused(400, f'messages.{i}: role "system" is not supported at this position')
        if role not in _ROLES:
            raise Refused(400, f"messages.{i}.role: Input should be 'user' or 'assistant'")
        if more := sorted(message.keys() - {"role", "content"}):
            raise Refused(400, f"messages.{i}.{more[0]}: Extra inputs are not permitted")
        if not turns or turns[-1].role != role:
            turns.append(Turn(role))
        turns[-1].spots += (Spot(role, block, i, j) for j, block in enumerate(_content(message, i)))
    for turn in turns:
        for spot in turn.spots:
            _check_block(spot)
    return turns


def _content(message: Json, i: int) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list) or not content:
        raise Refused(400, f"messages.{i}.content: Input should be a valid string or a list with at least 1 item")
    return content


def _check_block(spot: Spot) -> None:
    block, place = spot.block, spot.place
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in _ALLOWED[spot.role]:
        raise Refused(
            400, f"{place}: Input tag {kind!r} found using 'type' is not allowed in a message of role {spot.role!r}"
        )
    if kind == "text" and not str(block.get("text") or "").strip():
        mark = "cache_control cannot be set for empty text blocks" if "cache_control" in block else ""
        raise Refused(400, mark or f"messages.{spot.message}: text content blocks must be non-empty")
    if kind in _THOUGHTS and "cache_control" in block:
        raise Refused(400, f"{place}.{kind}.cache_control: Extra inputs are not permitted")
    if kind == "tool_use" and not isinstance(block.get("input"), dict):
        raise Refused(400, f"{place}.tool_use.input: Input should be a valid dictionary")
    if kind == "tool_result" and isinstance(block.get("content"), list):
        for j, inner in enumerate(block["content"]):
            if "cache_control" in inner:
                raise Refused(400, f"{place}.tool_result.content.{j}.cache_control: Extra inputs are not permitted")


# ------------------------------------------------------------------------------------------------------------ to records


def read_body(body: Json) -> tuple[Request, list[int]]:
    """Return the request, and for each of its messages the position that the API would name."""
    pairs = [(system(text), 0) for text in system_texts(body)]
    for turn in turns_of(body):
        pairs += _answer(turn) if turn.role == "assistant" else _user(turn)
    thinking = (body.get("thinking") or {}).get("type", "disabled") != "disabled"
    request = Request(tuple(m for m, _ in pairs), tuple(_tools(body)), body.get("max_tokens"), thinking)
    return request, [i for _, i in pairs]


def system_texts(body: Json) -> list[str]:
    """Return the texts of the system prompt. Raises `Refused` for an empty one."""
    return [str(block["text"]) for block in system_blocks(body)]


def system_blocks(body: Json) -> list[Json]:
    """Return the system prompt as blocks. Raises `Refused` for an empty one."""
    given = body.get("system") or []
    blocks = [{"type": "text", "text": given}] if isinstance(given, str) else given
    for i, block in enumerate(blocks):
        if not str(block.get("text") or "").strip():
            raise Refused(400, f"system.{i}: text content blocks must be non-empty")
    return blocks


def _tools(body: Json) -> Iterator[ToolSpec]:
    for i, tool in enumerate(body.get("tools") or []):
        schema = tool.get("input_schema") if isinstance(tool, dict) else None
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise Refused(400, f"tools.{i}.custom.input_schema.type: Input should be 'object'")
        yield ToolSpec(str(tool.get("name", "")), str(tool.get("description", "")), schema)


def _answer(turn: Turn) -> Iterator[tuple[Message, int]]:
    blocks = [spot.block for spot in turn.spots]
    text = "\n\n".join(b["text"] for b in blocks if b["type"] == "text")
    thinking = "\n\n".join(b.get("thinking", "") for b in blocks if b["type"] == "thinking")
    calls = tuple(_call(b) for b in blocks if b["type"] == "tool_use")
    yield Message("assistant", text, tool_calls=calls, reasoning=thinking), turn.spots[0].message


def _call(block: Json) -> ToolCall:
    return ToolCall(str(block.get("id", "")), str(block.get("name", "")), json.dumps(block["input"], ensure_ascii=False))


def _user(turn: Turn) -> Iterator[tuple[Message, int]]:
    """Yield a message for each result, and one for whatever else stands together, in the order in which it came."""
    held: Message | None = None
    at = 0
    for spot in turn.spots:
        if spot.block["type"] == "tool_result":
            if held:
                yield held, at
                held = None
            yield _result(spot.block), spot.message
            continue
        text, images = _said(spot.block)
        at = at if held else spot.message
        before = held or Message("user")
        joined = f"{before.content}\n\n{text}" if before.content and text else before.content or text
        held = replace(before, content=joined, images=before.images + images)
    if held:
        yield held, at


def _said(block: Json) -> tuple[str, tuple[Image, ...]]:
    if block["type"] == "text":
        return block["text"], ()
    source = block.get("source") or {}
    return "", (Image(str(source.get("media_type", "")), str(source.get("data", ""))),)


def _result(block: Json) -> Message:
    content = block.get("content") or ""
    parts = [("text", content)] if isinstance(content, str) else [(b.get("type"), b) for b in content]
    text = "".join(b if isinstance(b, str) else b.get("text", "") for kind, b in parts if kind == "text")
    images = tuple(image for kind, b in parts if kind == "image" for image in _said(b)[1])
    call = str(block.get("tool_use_id", ""))
    return Message("tool", text, tool_call_id=call, images=images, is_error=bool(block.get("is_error")))


# ------------------------------------------------------------------------------------------------------------ to segments


def segments(body: Json, counter: Counter) -> list[Segment]:
    """Return the prompt block by block, in the order in which it is hashed: tools, system, messages.

    Parameters that a change of would lose a part of the cache stand in front of that part, without tokens.
    """
    spots = [spot for turn in turns_of(body) for spot in turn.spots]
    found = arrange(
        [_segment(counter.text(_plain(tool)), tool, "tools") for tool in body.get("tools") or []],
        [_segment(counter.message(system(b["text"])), b, "system") for b in system_blocks(body)],
        [_segment(_counted(spot, counter), spot.block, _kind(spot)) for spot in spots],
        _parameters(body, spots),
    )
    if body.get("cache_control"):
        last = max((i for i, s in enumerate(found) if s.kind not in ("thinking", "parameter")), default=None)
        if last is not None and not found[last].mark:
            found[last] = replace(found[last], mark=_life(body["cache_control"]))
    return found


def _parameters(body: Json, spots: list[Spot]) -> dict[str, object]:
    pictures = sum(json.dumps(spot.block).count('"type": "image"') for spot in spots)
    fields = {"model": body.get("model"), "tool_choice": body.get("tool_choice"), "thinking": body.get("thinking")}
    return {**{name: json.dumps(value, sort_keys=True) for name, value in fields.items()}, "images": pictures}


def _segment(counted: Segment, block: Json, kind: Kind) -> Segment:
    """Give a block its exact bytes: they decide whether two are the same. A mark is no part of them."""
    return Segment(_plain(block).encode("utf-8", "replace"), counted.tokens, kind, _life(block.get("cache_control")))


def _plain(block: Json) -> str:
    return json.dumps({k: v for k, v in block.items() if k != "cache_control"}, ensure_ascii=False)


def _life(mark: Any) -> Life | None:
    if mark is None:
        return None
    life = mark.get("ttl", "5m") if isinstance(mark, dict) and mark.get("type") == "ephemeral" else None
    if life not in ("5m", "1h"):
        raise Refused(400, "cache_control: Input should be {'type': 'ephemeral'}, with a ttl of '5m' or '1h'")
    return life


def _kind(spot: Spot) -> Kind:
    if spot.block["type"] in _THOUGHTS:
        return "thinking"
    return "assistant" if spot.role == "assistant" else "user"


def _counted(spot: Spot, counter: Counter) -> Segment:
    """Count a block as a message of its own would be counted, so that all profiles count alike."""
    block = spot.block
    if block["type"] == "tool_result":
        return counter.message(_result(block))
    if block["type"] == "tool_use":
        return counter.message(Message("assistant", tool_calls=(_call(block),)))
    if block["type"] in _THOUGHTS:
        return counter.text(block.get("thinking") or block.get("data") or "")
    text, images = _said(block)
    return counter.message(Message(spot.role, text, images=images))  # type: ignore[arg-type]
