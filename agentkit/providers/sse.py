"""The body of an answer, taken apart: server-sent events, or one JSON document from a server that does not stream.

httpx-sse splits lines and events, and does it right for any chunks, any line ends, comments and several data lines. Four
things it leaves to its caller, and they are done here: bytes that are not UTF-8 (it would turn them into U+FFFD), a
last event without its blank line (it would be dropped), a wrong content type, and how long to wait.
"""

from __future__ import annotations

import codecs
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import httpx
from httpx_sse import EventSource

from agentkit.providers.base import ProviderError


@dataclass(frozen=True)
class Payload:
    """One piece of the answer: the event's name and its JSON. After the `last` one the answer is complete."""

    event: str
    data: Any = None
    last: bool = False


class Patience:
    """How long to wait for an answer: at most `silence` seconds without data, at most `total` seconds in all.

    Only waiting for the server counts, not what the reader does between two pieces. Keep-alives, comments or events, are no
    data.
    """

    def __init__(self, silence: float, total: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.silence, self.total = silence, total
        self._clock = clock
        self._silent = self._waited = 0.0

    def heard(self) -> None:
        """Note that data came: the silence starts again from zero."""
        self._silent = 0.0

    def watch(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Pass on `chunks`. Raises `ProviderError` (`timeout`) when one of the limits is over."""
        while True:
            before = self._clock()
            chunk = next(chunks, None)
            waited = self._clock() - before
            self._silent += waited
            self._waited += waited
            if chunk is None:
                return
            yield chunk
            self._check()

    def _check(self) -> None:
        if self._silent > self.silence:
            text = f"the server sent nothing but keep-alives for {self.silence:g} s; try again or raise max_silence"
            raise ProviderError(text, kind="timeout")
        if self._waited > self.total:
            text = f"the answer was not complete after {self.total:g} s; ask for less or raise deadline"
            raise ProviderError(text, kind="timeout")


def payloads(chunks: Iterable[bytes], patience: Patience) -> Iterator[Payload]:
    """Yield the payloads of a body that arrives in `chunks`; a plain JSON body is one payload.

    Raises `ProviderError`: `broken_stream` for bytes or JSON that cannot be read, `timeout` when `patience` is over.
    """
    text = _decoded(patience.watch(iter(chunks)))
    head = _first_text(text)
    if head.lstrip().startswith(("{", "[")):
        # No line of an event stream begins like this; some servers answer a stream request with one document.
        yield Payload("message", _parsed(head + "".join(text)), last=True)
        return
    for event in EventSource(_as_response(chain([head], text))).iter_sse():
        if event.data.strip():
            if event.event != "ping":
                patience.heard()
            done = event.data.strip() == "[DONE]"
            yield Payload(event.event, None if done else _parsed(event.data), last=done)


def _decoded(chunks: Iterator[bytes]) -> Iterator[str]:
    """Decode across chunk borders. Raises `ProviderError` on anything that is not UTF-8, also at the very end."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("strict")
    try:
        for chunk in chunks:
            if text := decoder.decode(chunk):
                yield text
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise ProviderError("the answer has bytes that are not UTF-8; try again", kind="broken_stream") from None


def _first_text(text: Iterator[str]) -> str:
    """Read until something other than white space came: some servers send blank lines while they wait."""
    head = ""
    for piece in text:
        head += piece
        if head.strip():
            break
    return head


class _Utf8(httpx.SyncByteStream):
    """The checked text as bytes again, with two line ends: the first ends a line that was cut off, the second its event."""

    def __init__(self, text: Iterator[str]) -> None:
        self._text = text

    def __iter__(self) -> Iterator[bytes]:
        yield from (piece.encode("utf-8") for piece in self._text)
        yield b"\n\n"


def _as_response(text: Iterator[str]) -> httpx.Response:
    """Wrap `text` as the response that httpx-sse expects, with the content type it insists on."""
    return httpx.Response(200, headers={"content-type": "text/event-stream; charset=utf-8"}, stream=_Utf8(text))


def _parsed(data: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        text = "a piece of the answer is not JSON, so it is cut off or garbled; try again"
        raise ProviderError(text, kind="broken_stream") from None
