"""What a provider is: it takes a request and yields a stream of events that ends in one reply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from agentkit.messages import Reply, Request


@dataclass(frozen=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    """A piece of the model's thinking."""

    text: str


@dataclass(frozen=True)
class Done:
    """The end of the stream: the whole reply, put together."""

    reply: Reply


StreamEvent = TextDelta | ReasoningDelta | Done


class Provider(Protocol):
    """Anything that answers requests. `model` and `name` are shown to the reader and never hold a secret."""

    name: str
    model: str

    def stream(self, request: Request) -> Iterator[StreamEvent]:
        """Send `request`; yield deltas, then exactly one `Done`. Raises `ProviderError`."""
        ...


class ProviderError(Exception):
    """A request failed. The text is one line that says what went wrong and what to do; it never holds a key.

    `kind`: `bad_request`, `authentication`, `not_found`, `overflow`, `too_large`, `rate_limit`, `overloaded`, `server`,
    `unreachable`, `timeout`, `broken_stream`, `configuration`. `status` is the HTTP status (None: there was none),
    `code` the provider's own code, `partial` the text that had arrived, `retry_after` in seconds where it was told,
    `should_retry` what the server says about trying again (None: nothing).
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        status: int | None = None,
        code: str | None = None,
        partial: str = "",
        retry_after: float | None = None,
        should_retry: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.code = code
        self.partial = partial
        self.retry_after = retry_after
        self.should_retry = should_retry


def complete(provider: Provider, request: Request) -> Reply:
    """Run `request` to its end and return the reply, ignoring the deltas. Raises `ProviderError`."""
    for event in provider.stream(request):
        if isinstance(event, Done):
            return event.reply
    raise ProviderError("the stream ended without an answer; try again", kind="broken_stream")
