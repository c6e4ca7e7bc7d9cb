"""The client for every server that speaks the OpenAI Chat Completions dialect. Synchronous: no event loop is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import httpx

from agentkit.messages import Request
from agentkit.providers.assemble import Assembly
from agentkit.providers.base import Done, ProviderError, StreamEvent
from agentkit.providers.errors import Caller, error_body, error_in, retry_after, server_error
from agentkit.providers.openai_wire import encode, to_wire
from agentkit.providers.profiles import Profile, profile_for
from agentkit.providers.sse import Patience, payloads
from agentkit.providers.text import redact
from agentkit.providers.transport import TIMEOUT, find_key, is_loopback, network_error, open_client, server_url

KEY_NAMES = ("AGENTKIT_API_KEY", "OPENAI_API_KEY")

_ERROR_BYTES = 65_536
"""More of an error page is not read."""


class OpenAI:
    """A model behind an OpenAI-like server.

    `api_key` defaults to the environment variable `AGENTKIT_API_KEY`, then `OPENAI_API_KEY`, read when a request is
    sent; this machine needs none and never gets the second. An empty text means: send none. `transport` takes the
    network's place (the simulator, a test); then no key is needed. `profile` defaults to the one known for the host.

    Limits in seconds: `timeout` for connecting and for each wait; `max_silence` without data, where keep-alive comments
    do not count (DeepSeek closes after 600); `deadline` for the whole answer. Each can be passed by one `timeout`.
    """

    def __init__(
        self,
        model: str,
        base_url: str = "https://api.openai.com/v1",
        *,
        api_key: str | None = None,
        transport: httpx.BaseTransport | None = None,
        profile: Profile | None = None,
        timeout: float | httpx.Timeout = TIMEOUT,
        max_silence: float = 600,
        deadline: float = 1800,
    ) -> None:
        url = server_url(base_url.strip().rstrip("/").removesuffix("/chat/completions"))
        profile = profile or profile_for(url.host)
        self.model = model
        self.profile = profile if profile.issuer else replace(profile, issuer=url.host)
        self.name = profile.name
        self._url = url
        self._transport = transport
        self._max_silence, self._deadline = max_silence, deadline
        self._timeout = _shortened(httpx.Timeout(timeout), min(max_silence, deadline))
        # In a closure, so that neither vars() nor a debugger's list of attributes shows it.
        self._given_key: Callable[[], str | None] = lambda: api_key

    def __repr__(self) -> str:
        return f"OpenAI(model={self.model!r}, server={self._server!r})"

    def stream(self, request: Request) -> Iterator[StreamEvent]:
        """Send `request`; yield deltas, then exactly one `Done`. Raises `ProviderError`, never an error of httpx."""
        key = self._key()
        caller = self._caller(key)
        answer = Assembly(self.profile.issuer)
        try:
            yield from self._exchange(request, answer, caller, key)
        except (ProviderError, httpx.HTTPError, httpx.StreamError) as fault:
            error = fault if isinstance(fault, ProviderError) else network_error(fault, caller)
            # The reason to finish is the answer's last word: what breaks behind it takes nothing away.
            if answer.finish is None or error.kind not in ("broken_stream", "timeout"):
                error.partial = caller.hide(answer.text)
                raise error from None
        yield Done(answer.reply())

    def _exchange(self, request: Request, answer: Assembly, caller: Caller, key: str) -> Iterator[StreamEvent]:
        body = encode(to_wire(request, self.model, self.profile))
        patience = Patience(self._max_silence, self._deadline)
        headers = _headers(key)
        url = self._url.copy_with(path=f"{self._url.path.rstrip('/')}/chat/completions")
        with (
            open_client(self._url, self._transport, self._timeout) as client,
            client.stream("POST", url, content=body, headers=headers) as response,
        ):
            if not response.is_success:
                raise _refusal(response, caller)
            for payload in payloads(response.iter_bytes(), patience):
                if error := error_in(payload.data, payload.event):
                    at = f"{caller.host} broke off with an error"
                    raise server_error(error, caller, status=200, wait=retry_after(response.headers), at=at)
                yield from answer.feed(payload.data)
                if payload.last:
                    answer.ended = True
                    return
            if not answer.started and "html" in response.headers.get("content-type", ""):
                text = f"{caller.host} answered with a web page; check base_url, which usually ends in /v1"
                raise ProviderError(text, kind="configuration")

    @property
    def _server(self) -> str:
        """Return the address without user name, password and query, which may be secrets."""
        return f"{self._url.scheme}://{self._host}{self._url.path.rstrip('/')}"

    @property
    def _host(self) -> str:
        return self._url.netloc.decode("ascii")

    def _key(self) -> str:
        if (given := self._given_key()) == "":
            return ""
        local = is_loopback(self._url.host)
        names = KEY_NAMES[:1] if local else KEY_NAMES
        return find_key(given, names, needed=not local and self._transport is None)

    def _caller(self, key: str) -> Caller:
        local = is_loopback(self._url.host)
        advice = {
            "authentication": f"check the key in {KEY_NAMES[0]} (or {KEY_NAMES[1]}) and its account",
            "not_found": f"check the model name {self.model!r} and base_url",
            "unreachable": "start the server" if local else "check base_url and the network",
        }
        return Caller(self._host, advice, partial(redact, key=key))


def _headers(key: str) -> dict[str, str]:
    headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
    return {**headers, "authorization": f"Bearer {key}"} if key else headers


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
    return server_error(error, caller, status=response.status_code, wait=retry_after(response.headers))
