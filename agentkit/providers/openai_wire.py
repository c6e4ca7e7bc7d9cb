"""A request as the OpenAI Chat Completions dialect writes it: pure data in, pure data out.

A cache compares bytes, so the same request must always give the same bytes, and a longer history must begin with the
bytes of the shorter one: keys in a fixed order, tools sorted, and the messages last.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentkit.messages import Image, Message, Request, ToolSpec
from agentkit.protocol import batches
from agentkit.providers.profiles import Profile
from agentkit.providers.text import paired
from agentkit.settle import wire_id

Wire = dict[str, Any]

EXTRA = "extra_content"
"""Where Gemini's dialect hangs a signature on a tool call; it must come back unchanged (Google, thought signatures)."""

BRIDGE = "(results received)"


def to_wire(request: Request, model: str, profile: Profile) -> Wire:
    """Return the body of the HTTP request as plain data, ready for `encode`.

    It repairs nothing: a call without a result goes out as it is, and the server refuses it.
    """
    body: Wire = {"model": model, "stream": True}
    if profile.include_usage:
        body["stream_options"] = {"include_usage": True}
    if request.max_output is not None:
        body[profile.max_output_field] = request.max_output
    if not request.thinking:
        body.update(profile.thinking_off)
    if request.tools:
        body["tools"] = [_tool(spec) for spec in sorted(request.tools, key=lambda spec: spec.name)]
    body["messages"] = wire_messages(request, profile)
    return body


def encode(body: Wire) -> bytes:
    """Return `body` as JSON in UTF-8: always the same bytes for the same data."""
    return paired(json.dumps(body, ensure_ascii=False, separators=(",", ":"))).encode("utf-8")


def wire_messages(request: Request, profile: Profile) -> list[Wire]:
    """Return the messages of `request` in the form that `profile` asks for."""
    messages: Iterator[Wire] = _messages(request, profile)
    if profile.reply_after_tools:
        messages = _bridged(messages)
    if profile.strict_alternation:
        messages = _merged(messages, profile)
    return list(messages)


def _tool(spec: ToolSpec) -> Wire:
    """Write one tool. Its schema comes from `canonical()`, so the order in which keys were typed does not show."""
    parameters = json.loads(spec.canonical())["parameters"] or {"type": "object", "properties": {}}
    return {
        "type": "function",
        "function": {"name": spec.name, "description": spec.description, "parameters": parameters},
    }


def _messages(request: Request, profile: Profile) -> Iterator[Wire]:
    names: dict[str, str] = {}
    pictures: list[Wire] = []
    for message in _in_call_order(request.messages):
        if message.role == "tool":
            yield _result(message, names, profile)
            pictures += _pictures(message.images)
            continue
        if pictures:
            yield _shown(pictures)
            pictures = []
        if message.role == "assistant":
            names.update((call.id, call.name) for call in message.tool_calls)
            yield _assistant(message, profile, with_tools=bool(request.tools))
        else:
            yield {"role": message.role, "content": _content(message)}
    if pictures:
        yield _shown(pictures)


def _in_call_order(messages: tuple[Message, ...]) -> list[Message]:
    """Put the results of each batch in the order of their calls: tools that ran in parallel end in any order."""
    ordered = list(messages)
    for batch in batches(messages):
        results = slice(batch.start + 1, batch.stop)
        ordered[results] = _sorted_results(ordered[results], batch.calls)
    return ordered


def _sorted_results(results: list[Message], calls: tuple[str, ...]) -> list[Message]:
    return sorted(results, key=lambda m: calls.index(m.tool_call_id) if m.tool_call_id in calls else len(calls))


def _result(message: Message, names: Mapping[str, str], profile: Profile) -> Wire:
    wire: Wire = {"role": "tool", "tool_call_id": _id(message.tool_call_id, profile), "content": message.content}
    if profile.tool_name and message.tool_call_id in names:
        wire["name"] = names[message.tool_call_id]
    return wire


def _shown(pictures: list[Wire]) -> Wire:
    """Tool messages hold text only, so the pictures of a batch follow it as a user message."""
    return {"role": "user", "content": [{"type": "text", "text": "(pictures from the tool results)"}, *pictures]}


def _assistant(message: Message, profile: Profile, *, with_tools: bool) -> Wire:
    wire: Wire = {"role": "assistant", "content": message.content}
    if message.tool_calls and not message.content:
        wire["content"] = None
    if profile.reasoning_field and with_tools:
        wire[profile.reasoning_field] = message.reasoning
    if message.tool_calls:
        wire["tool_calls"] = list(_calls(message, profile))
    return wire


def _calls(message: Message, profile: Profile) -> Iterator[Wire]:
    extras = _own_extras(message, profile)
    for place, call in enumerate(message.tool_calls):
        # A call without arguments arrives as an empty text, but only an object is taken back.
        arguments = call.arguments if call.arguments.strip() else "{}"
        wire: Wire = {"id": _id(call.id, profile), "type": "function"}
        wire["function"] = {"name": call.name, "arguments": arguments}
        if extras and extras[place] is not None:
            wire[EXTRA] = extras[place]
        yield wire


def _own_extras(message: Message, profile: Profile) -> list[Any]:
    """Return what this issuer hung on the calls, one per call; nothing when it no longer fits them."""
    for opaque in message.opaque:
        if profile.issuer and opaque.issuer == profile.issuer and isinstance(opaque.data, Mapping):
            extras = opaque.data.get(EXTRA)
            if isinstance(extras, Sequence) and len(extras) == len(message.tool_calls):
                return list(extras)
    return []


def _id(call_id: str, profile: Profile) -> str:
    return wire_id(call_id, profile.id_pattern) if profile.id_pattern else call_id


def _content(message: Message) -> str | list[Wire]:
    if not message.images:
        return message.content
    text = [{"type": "text", "text": message.content}] if message.content else []
    return text + _pictures(message.images)


def _pictures(images: Sequence[Image]) -> list[Wire]:
    return [{"type": "image_url", "image_url": {"url": f"data:{i.media_type};base64,{i.data}"}} for i in images]


def _bridged(messages: Iterator[Wire]) -> Iterator[Wire]:
    last = ""
    for wire in messages:
        if last == "tool" and wire["role"] == "user":
            yield {"role": "assistant", "content": BRIDGE}
        last = wire["role"]
        yield wire


def _merged(messages: Iterator[Wire], profile: Profile) -> Iterator[Wire]:
    held: Wire | None = None
    for wire in messages:
        if held and held["role"] == wire["role"] != "tool" and "tool_calls" not in held:
            held = {**held, **wire, **_joined_texts(held, wire, profile)}
        else:
            if held:
                yield held
            held = wire
    if held:
        yield held


def _joined_texts(one: Wire, two: Wire, profile: Profile) -> Wire:
    fields = (f for f in ("content", profile.reasoning_field) if f in one or f in two)
    return {f: _joined(one.get(f), two.get(f)) for f in fields if f}


def _joined(one: Any, two: Any) -> Any:
    if not one or not two:
        return one or two
    if isinstance(one, str) and isinstance(two, str):
        return f"{one}\n\n{two}"
    return _parts(one) + _parts(two)


def _parts(content: str | list[Wire]) -> list[Wire]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
