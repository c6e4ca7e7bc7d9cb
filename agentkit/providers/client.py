"""What every client over HTTP has in common: one exchange with its limits, one kind of error for all that goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import httpx

from agentkit.messages import Reply, Request
from agentkit.providers.base import Done, ProviderError, ReasoningDelta, StreamEvent, TextDelta
from agentkit.providers.errors import Caller, error_body, error_in, retry_after, server_error, should_retry
from agentkit.providers.sse import Patience, Payload, payloads
from agentkit.providers.text import redact
from agentkit.providers.transport import TIMEOUT, find_key, is_loopback, network_error, open_client

_ERROR_BYTES = 65_536
"""More of an error page is not read."""


class Answer(Protocol):
    """One answer under way. `finish` is None until the server gave a reason, `ended` once nothing more will come."""

    finish: Any
    started: bool
    ended: bool

    @property
    def text(self) -> str:
        """Return the text that has arrived."""
        ...

    def feed(self, data: object) -> Iterator[TextDelta | ReasoningDelta]:
        """Take in one piece."""
        ...

    def reply(self) -> Reply:
        """Return the whole answer."""
        ...


class Client:
    """A model behind an HTTP server. A dialect adds its body, its headers and how an answer is put together.

    `keys` are the environment variables that may hold the key, `hint` what the address usually looks like. Limits in
    seconds: `timeout` for connecting and for each wait; `max_silence` without data; `deadline` for the whole answer. Each
    can be passed by one `timeout`.
    """

    path, hint = "", ""

    def __init__(
        self,
        model: str,
        url: httpx.URL,
        *,
        keys: tuple[str, ...],
        api_key: str | None = None,
        transport: httpx.BaseTransport | None = None,
        timeout: float | httpx.Timeout = TIMEOUT,
        max_silence: float = 600,
        deadline: float = 1800,
    ) -> None:
        self.model = model
        self.name = ""
        self._url, self._transport, self._key_names = url, transport, keys
        self._max_silence, self._deadline = max_silence, deadline
        self._timeout = _shortened(httpx.Timeout(timeout), min(max_silence, deadline))
        # In a closure, so that neither vars() nor a debugger's list of attributes shows it.
        self._given_key: Callable[[], str | None] = lambda: api_key

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, server={self._server!r})"

    def check_key(self) -> None:
        """Raise `ProviderError` now, rather than at the first request, when there is no key, or one that cannot be sent."""
        self._key()

    def stream(self, request: Request) -> Iterator[StreamEvent]:
        """Send `request`; yield deltas, then exactly one `Done`. Raises `ProviderError`, never an error of httpx."""
        key = self._key()
        caller = self._caller(key)
        answer, rounds = self._begin(request)
        with one_kind_of_error(caller, answer):
            for body in rounds:
                yield from self._exchange(body, answer, caller, key)
        yield Done(answer.reply())

    def _begin(self, request: Request) -> tuple[Answer, Iterator[bytes]]:
        """Return the answer to fill, and the bodies to send for it: one, or more where the server may pause."""
        raise NotImplementedError

    def _headers(self, key: str) -> dict[str, str]:
        raise NotImplementedError

    def _exchange(self, body: bytes, answer: Answer, caller: Caller, key: str) -> Iterator[StreamEvent]:
        for payload in self._post(self.path, body, caller, key):
            yield from answer.feed(payload.data)
            if payload.last:
                answer.ended = True
            if answer.ended:
                return

    def _post(self, path: str, body: bytes, caller: Caller, key: str) -> Iterator[Payload]:
        """Send `body` and yield the pieces of what comes back. Raises `ProviderError` for an error among them."""
        headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
        patience = Patience(self._max_silence, self._deadline)
        heard = False
        with (
            open_client(self._url, self._transport, self._timeout) as client,
            client.stream("POST", self._address(path), content=body, headers={**headers, **self._headers(key)}) as response,
        ):
            if not response.is_success:
                raise _refusal(response, caller)
            for payload in payloads(response.iter_bytes(), patience):
                if error := error_in(payload.data, payload.event):
                    at = f"{caller.host} broke off with an error"
                    raise server_error(error, caller, status=200, wait=retry_after(response.headers), at=at)
                heard = True
                yield payload
            if not heard and "html" in response.headers.get("content-type", ""):
                text = f"{caller.host} answered with a web page; check base_url, which usually {self.hint}"
                raise ProviderError(text, kind="configuration")

    def _address(self, path: str) -> httpx.URL:
        return self._url.copy_with(path=f"{self._url.path.rstrip('/')}{path}")

    @property
    def _server(self) -> str:
        """Return the address without user name, password and query, which may be secrets."""
        return f"{self._url.scheme}://{self._host}{self._url.path.rstrip('/')}"

    @property
    def _host(self) -> str:
        return self._url.netloc.decode("ascii")

    @property
    def _local(self) -> bool:
        return is_loopback(self._url.host)

    def _key(self) -> str:
        if (given := self._given_key()) == "":
            return ""
        return find_key(given, self._key_names, needed=not self._local and self._transport is None)

    def _caller(self, key: str) -> Caller:
        first, *others = self._key_names
        also = f" (or {' or '.join(others)})" if others else ""
        advice = {
            "authentication": f"check the key in {first}{also} and its account",
            "not_found": f"check the model name {self.model!r} and base_url",
            "unreachable": "start the server" if self._local else "check base_url and the network",
        }
        return Caller(self._host, advice, partial(redact, key=key))


@contextmanager
def one_kind_of_error(caller: Caller, answer: Answer | None = None) -> Iterator[None]:
    """Turn whatever goes wrong into a `ProviderError` with the text that had arrived."""
    try:
        yield
    except (ProviderError, httpx.HTTPError, httpx.StreamError) as fault:
        error = fault if isinstance(fault, ProviderError) else network_error(fault, caller)
        # The reason to finish is the answer's last word: what breaks behind it takes nothing away.
        if answer is None or answer.finish is None or error.kind not in ("broken_stream", "timeout"):
            error.partial = caller.hide(answer.text) if answer else ""
            raise error from None


def _shortened(timeout: httpx.Timeout, limit: float) -> httpx.Timeout:
    """Let no single wait last longer than the limits for the whole, since they are checked between two waits."""
    read = limit if timeout.read is None else min(timeout.read, limit)
    return httpx.Timeout(connect=timeout.connect, read=read, write=timeout.write, pool=timeout.pool)


def _refusal(response: httpx.Response, caller: Caller) -> ProviderError:
    """Make the error for a status that is no success. The body of a streamed answer must be read first."""
    if response.is_redirect:
        text = f"{caller.host} answered {response.status_code}: it has moved; set base_url to its new address"
        return ProviderError(text, kind="configuration", status=response.status_code)
    body = bytearray()
    try:
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > _ERROR_BYTES:
                break
    except (httpx.HTTPError, httpx.StreamError):
        pass  # a broken error page still has its status
    error = error_body(body.decode("utf-8", "replace"))
    told = response.headers
    return server_error(error, caller, status=response.status_code, wait=retry_after(told), again=should_retry(told))
