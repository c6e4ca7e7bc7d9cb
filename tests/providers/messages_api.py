"""A server of the Messages API for the tests: its events, written by hand, and a client that reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import httpx

from agentkit.messages import Message, Reply, Request
from agentkit.providers.anthropic import Anthropic
from agentkit.providers.base import StreamEvent, complete

from .servers import HELLO, Server

STOP = {"type": "message_stop"}


def sse(*events: dict[str, Any]) -> list[bytes]:
    """Return each event as one chunk, with its name."""
    return [f"event: {e['type']}\ndata: {json.dumps(e, ensure_ascii=False)}\n\n".encode() for e in events]


def start(**usage: Any) -> dict[str, Any]:
    """Return the first event, with these counts."""
    return {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": usage}}


def block(index: int, kind: str, *deltas: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """Return the events of one block."""
    opened = {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}
    grown = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [opened, *grown, {"type": "content_block_stop", "index": index}]


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    """Return the events of a text block."""
    return block(index, "text", *({"type": "text_delta", "text": piece} for piece in pieces), text="")


def call(index: int, call_id: str, name: str, *pieces: str) -> list[dict[str, Any]]:
    """Return the events of a tool call."""
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)
    return block(index, "tool_use", *deltas, id=call_id, name=name, input={})


def stop(reason: str, **usage: Any) -> dict[str, Any]:
    """Return the event with the reason to stop."""
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}


def client(server: httpx.BaseTransport, **options: Any) -> Anthropic:
    """Return a client that talks to `server`."""
    return Anthropic("claude-opus-5", transport=server, api_key="", **options)


def answer(*events: dict[str, Any], **options: Any) -> Reply:
    """Return the reply that the client makes of `events`."""
    return complete(client(Server(*sse(*events), **options)), HELLO)


def deltas(*events: dict[str, Any]) -> list[StreamEvent]:
    """Return everything that the client yields for `events`."""
    return list(client(Server(*sse(*events))).stream(HELLO))


def sent(messages: Iterable[Message], tools: tuple[Any, ...] = (), **options: Any) -> dict[str, Any]:
    """Return the body that the client sends for `messages`."""
    server = Server(*sse(start(), *text(0, "ok"), stop("end_turn"), STOP))
    complete(client(server, **options), Request(tuple(messages), tools))
    return server.body
