"""Servers for the tests: a transport that answers with given bytes and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import httpx

from agentkit.messages import Reply, Request, user
from agentkit.providers.base import Done, StreamEvent, complete
from agentkit.providers.openai import OpenAI

DONE = b"data: [DONE]\n\n"
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
CALLS = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'
HELLO = Request((user("hello"),))


class Server(httpx.BaseTransport):
    """Answers every request with the same `chunks`, each in a read of its own, then raises `fault` if there is one."""

    def __init__(
        self,
        *chunks: bytes,
        status: int = 200,
        headers: dict[str, str] | None = None,
        fault: Exception | None = None,
    ) -> None:
        self.chunks, self.status, self.fault = chunks, status, fault
        self.headers = headers or {"content-type": "text/event-stream"}
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        return httpx.Response(self.status, headers=self.headers, stream=_Chunks(self.chunks, self.fault))

    @property
    def body(self) -> Any:
        """Return the newest request's body."""
        return json.loads(self.requests[-1].content)


class _Chunks(httpx.SyncByteStream):
    def __init__(self, chunks: Iterable[bytes], fault: Exception | None) -> None:
        self._chunks, self._fault = chunks, fault

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks
        if self._fault:
            raise self._fault


def sse(value: object) -> bytes:
    """Return `value` as one event."""
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def delta(**fields: Any) -> bytes:
    """Return a chunk with this delta."""
    return sse({"choices": [{"index": 0, "delta": fields, "finish_reason": None}]})


def text(piece: str) -> bytes:
    """Return a chunk with a piece of text."""
    return delta(content=piece)


def call(**fields: Any) -> bytes:
    """Return a chunk with one piece of a tool call; `name` and `arguments` go into its function."""
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return delta(tool_calls=[{**fields, "function": function}])


def client(server: httpx.BaseTransport, **options: Any) -> OpenAI:
    """Return a client that talks to `server`."""
    return OpenAI("m", transport=server, **options)


def answer(*chunks: bytes, **options: Any) -> Reply:
    """Return the reply that the client makes of `chunks`."""
    return complete(client(Server(*chunks, **options)), HELLO)


def events(*chunks: bytes, **options: Any) -> list[StreamEvent]:
    """Return all events that the client makes of `chunks`."""
    return list(client(Server(*chunks, **options)).stream(HELLO))


def shown(found: Iterable[StreamEvent], kind: type) -> str:
    """Return the text of all deltas of one kind."""
    return "".join(event.text for event in found if isinstance(event, kind) and not isinstance(event, Done))
