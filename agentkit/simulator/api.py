"""What the simulator asks of an API: read a request, judge it, and write an answer, each in that API's own shape."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agentkit.caching import CacheResult, Segment
from agentkit.messages import FinishReason, Message, Request, Usage

Json = dict[str, Any]


class Refused(Exception):
    """The request is refused: HTTP status, message, and the API's own type, code and parameter."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.type, self.code, self.param, self.retry_after = status, type, code, param, retry_after


@dataclass(frozen=True)
class Said:
    """An answer before it is written: its number among all answers, message, reason to finish, bill, and what the cache did.

    `shown` is the bill that is sent, None where a fault keeps it back.
    """

    number: int
    message: Message
    finish: FinishReason
    shown: Usage | None
    cache: CacheResult
    request: Request


class Api(Protocol):
    """One API as the server sees it. `endpoint` is what the path of its requests ends with."""

    endpoint: str

    def admit(self, headers: Mapping[str, str], size: int) -> None:
        """Look at headers and the size of the body in bytes. Raises `Refused`."""
        ...

    def read(self, body: Json) -> Request:
        """Turn a body into records. Raises `Refused` for a body of the wrong shape."""
        ...

    def check(self, body: Json, request: Request) -> None:
        """Judge what was read. Raises `Refused`."""
        ...

    def prompt(self, body: Json, request: Request) -> list[Segment]:
        """Return the prompt as the cache sees it."""
        ...

    def room(self, prompt: int, request: Request) -> tuple[int, FinishReason]:
        """Return how many tokens the answer may have behind `prompt` tokens, and why one that needs more ends.

        Raises `Refused` for an overflow.
        """
        ...

    def thought(self, body: Json, request: Request, message: Message) -> str:
        """Return the thinking that is shown before `message`, if any."""
        ...

    def answer(self, body: Json, said: Said) -> Json:
        """Return the whole answer in one piece."""
        ...

    def events(self, body: Json, said: Said) -> Iterator[bytes]:
        """Yield the same answer as a stream, without its end marker."""
        ...

    def end(self) -> Iterator[bytes]:
        """Yield what marks the end of a stream, where the API has something besides its events."""
        ...

    def refusal(self, refused: Refused) -> tuple[int, Json]:
        """Return status and body of an error."""
        ...

    def broken_off(self, refused: Refused) -> bytes:
        """Return an error in the middle of a stream."""
        ...

    def models(self) -> Json:
        """Return the list of models."""
        ...


def thinking_aloud(message: Message) -> str:
    """Return the thinking that a thinking profile shows: this much is sent back with later requests."""
    if not message.tool_calls:
        return "I answer from the messages that I was sent, and from nothing else."
    names = ", ".join(c.name for c in message.tool_calls)
    return f"What I need for the answer is not in the messages that I was sent, so I call {names}."


def pieces(text: str) -> list[str]:
    """Return `text` word by word, as it is streamed."""
    return re.findall(r"\S+\s*|\s+", text)


def sse(value: Json | str, event: str = "") -> bytes:
    """Return one server-sent event."""
    data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (f"event: {event}\n" if event else "").encode() + f"data: {data}\n\n".encode()
