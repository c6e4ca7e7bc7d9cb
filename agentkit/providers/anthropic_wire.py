"""A request as Anthropic's Messages API writes it: pure data in, pure data out.

There are two roles, `user` and `assistant`. System text stands beside the messages, a result is a block of a user message, a
call a block of an assistant message, and neighbours of one role become one message. The same request always gives the same
bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agentkit.caching.breakpoints import Placement, place
from agentkit.caching.prefix import Kind, Life
from agentkit.messages import Image, Message, Request, ToolSpec
from agentkit.protocol import batches
from agentkit.providers.anthropic_blocks import THOUGHTS, Block, own_blocks, text_block
from agentkit.providers.anthropic_models import binds_thinking, thinking_off
from agentkit.settle import wire_id

Wire = dict[str, Any]

MOST_OUTPUT = 16_384
"""`max_tokens` has no default at this API; this is a long answer, and less than every present model may write."""


@dataclass(frozen=True)
class Style:
    """What one client asks for.

    `issuer` signs opaque data: it goes back only to the issuer that made it. `placement` puts the cache marks, `life` says
    how long what they store is kept. `thinking` is the API's own field (None: not sent, so the model's default counts).
    """

    issuer: str = "anthropic"
    placement: Placement = place
    life: Life = "5m"
    thinking: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Spot:
    """A block of a request, as a placement of marks sees it, and the data that a mark would be written into."""

    kind: Kind
    data: Block
    mark: Life | None = None


def to_wire(request: Request, model: str, style: Style | None = None, *, stream: bool = True) -> Wire:
    """Return the body of the HTTP request as plain data.

    It repairs nothing: a call without a result goes out as it is, and the server refuses it.
    """
    return written(request, model, style or Style(), stream=stream)[0]


def written(request: Request, model: str, style: Style, *, stream: bool = True) -> tuple[Wire, str]:
    """Return the body, and a name for everything that an answer to it will stand behind."""
    body: Wire = {"model": model, **_limits(request, model, style)}
    if stream:
        body["stream"] = True
    if request.tools:
        body["tools"] = [_tool(spec) for spec in sorted(request.tools, key=lambda spec: spec.name)]
    size = next((i for i, m in enumerate(request.messages) if m.role != "system"), len(request.messages))
    if size:
        body["system"] = [text_block(message.content) for message in request.messages[:size]]
    story = _Story(model, style, [body.get("tools"), body.get("system")])
    for message in in_call_order(request.messages[size:]):
        story.add(message)
    body["messages"] = merged(story.pairs)
    _mark(body, style)
    return body, story.prefix


def in_call_order(messages: tuple[Message, ...]) -> list[Message]:
    """Put the results of each batch in the order of their calls: tools that ran in parallel end in any order."""
    ordered = list(messages)
    for batch in batches(messages):
        results = slice(batch.start + 1, batch.stop)
        ordered[results] = sorted(ordered[results], key=partial(_turn_of, batch.calls))
    return ordered


def _turn_of(calls: tuple[str, ...], result: Message) -> int:
    return calls.index(result.tool_call_id) if result.tool_call_id in calls else len(calls)


def spots(body: Wire) -> list[Spot]:
    """Return every block of `body` in the order in which it is hashed: tools, system, messages."""
    head = [Spot("tools", tool) for tool in body.get("tools") or ()]
    head += [Spot("system", block) for block in body.get("system") or ()]
    return head + [Spot(_kind(m["role"], block), block) for m in body["messages"] for block in m["content"]]


def _limits(request: Request, model: str, style: Style) -> Wire:
    most = request.max_output if request.max_output is not None else MOST_OUTPUT
    if not request.thinking:
        return thinking_off(model, most)
    return {"max_tokens": most, **({"thinking": dict(style.thinking)} if style.thinking else {})}


def _tool(spec: ToolSpec) -> Wire:
    """Write one tool. Its schema comes from `canonical()`, so the order in which keys were typed does not show."""
    schema = json.loads(spec.canonical())["parameters"]
    return {"name": spec.name, "description": spec.description, "input_schema": {"type": "object", **schema}}


class _Story:
    """Messages as (role, blocks), one after the other; `prefix` names what has been written so far."""

    def __init__(self, model: str, style: Style, head: list[Any]) -> None:
        self.pairs: list[tuple[str, list[Block]]] = []
        self._issuer, self._binds = style.issuer, binds_thinking(model)
        self._done = hashlib.sha256(_bytes(head))

    @property
    def prefix(self) -> str:
        """Return a name for tools, system text and messages so far."""
        return self._done.hexdigest()

    def add(self, message: Message) -> None:
        """Write `message`. Nothing to say is still said, with an empty text, so that the server can refuse it."""
        role, blocks = self._blocks(message)
        self.pairs.append((role, blocks or [text_block(message.content)]))
        self._done.update(_bytes(self.pairs[-1]))

    def _blocks(self, message: Message) -> tuple[str, list[Block]]:
        if message.role == "tool":
            return "user", [_result(message)]
        if message.role == "assistant":
            return message.role, own_blocks(message, self._issuer, self.prefix if self._binds else None)
        return message.role, [*_texts(message.content), *_pictures(message.images)]


def merged(pairs: Iterable[tuple[str, Sequence[Block]]]) -> list[Wire]:
    """Return messages: neighbours of one role become one, with the results in front."""
    messages: list[Wire] = []
    for role, blocks in pairs:
        if not messages or messages[-1]["role"] != role:
            messages.append({"role": role, "content": []})
        messages[-1]["content"] += blocks
    return [{**message, "content": results_first(message["content"])} for message in messages]


def results_first(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks of one message with its results in front; within each kind the order stays."""
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def _result(message: Message) -> Block:
    content: Any = message.content
    if message.images:
        content = [*_texts(message.content), *_pictures(message.images)]
    result = {"type": "tool_result", "tool_use_id": wire_id(message.tool_call_id), "content": content}
    return {**result, "is_error": True} if message.is_error else result


def _texts(text: str) -> list[Block]:
    return [text_block(text)] if text.strip() else []


def _pictures(images: Sequence[Image]) -> Iterator[Block]:
    for image in images:
        source = {"type": "base64", "media_type": image.media_type, "data": image.data}
        yield {"type": "image", "source": source}


def _kind(role: str, block: Block) -> Kind:
    if block["type"] in THOUGHTS:
        return "thinking"
    if block["type"] == "text" and not block["text"].strip():
        return "empty"
    return "assistant" if role == "assistant" else "user"


def _mark(body: Wire, style: Style) -> None:
    """Write the marks where the placement wants them. They are no part of the prompt: moving one changes no prefix."""
    every = spots(body)
    control = {"type": "ephemeral"} if style.life == "5m" else {"type": "ephemeral", "ttl": style.life}
    for i in style.placement(every):
        every[i].data["cache_control"] = dict(control)


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode("ascii")
