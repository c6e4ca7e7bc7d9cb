"""The client for Anthropic's Messages API, and for other servers that speak it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentkit.caching.breakpoints import PLACEMENTS
from agentkit.caching.prefix import Life
from agentkit.messages import Request
from agentkit.providers.anthropic_assemble import Assembly
from agentkit.providers.anthropic_wire import Style, Wire, written
from agentkit.providers.base import ProviderError
from agentkit.providers.client import Answer, Client, one_kind_of_error
from agentkit.providers.openai_wire import encode
from agentkit.providers.transport import server_url

ANTHROPIC = "https://api.anthropic.com"
VERSION = "2023-06-01"

OWN_KEY, OTHER_KEY = "ANTHROPIC_API_KEY", "AGENTKIT_API_KEY"
_HOME = "anthropic.com"
_MOST_PAUSES = 8
"""How often one answer may pause to be sent on; a server that only ever pauses must not be asked for ever."""


class Anthropic(Client):
    """A model behind a server that speaks the Messages API.

    Anthropic's own servers get the key in `ANTHROPIC_API_KEY` and no other server does: those get `AGENTKIT_API_KEY`, and
    this machine needs none. `api_key`, `transport` and the limits are as for `Client`.

    `marks` names a placement of cache marks (`caching.PLACEMENTS`), `life` says how long what they store is kept. `thinking`
    is the API's own field (None: the model's default). `streamed=False` asks for the answer in one piece.
    """

    path, hint = "/v1/messages", "ends before /v1"

    def __init__(
        self,
        model: str,
        base_url: str = ANTHROPIC,
        *,
        marks: str = "recommended",
        life: Life = "5m",
        thinking: Mapping[str, Any] | None = None,
        streamed: bool = True,
        issuer: str = "",
        **limits: Any,
    ) -> None:
        url = server_url(base_url.strip().rstrip("/").removesuffix("/messages").removesuffix("/v1"))
        self._at_home = url.host == _HOME or url.host.endswith("." + _HOME)
        super().__init__(model, url, keys=(OWN_KEY if self._at_home else OTHER_KEY,), **limits)
        if marks not in PLACEMENTS:
            raise ProviderError(f"marks {marks!r}: there are {', '.join(PLACEMENTS)}", kind="configuration")
        self.name = "anthropic" if self._at_home else "anthropic-compatible"
        self.streamed = streamed
        self.style = Style(issuer or ("anthropic" if self._at_home else url.host), PLACEMENTS[marks], life, thinking)

    def count_tokens(self, request: Request) -> int:
        """Ask the server how many tokens the prompt of `request` has. It costs nothing and is an estimate.

        Raises `ProviderError`.
        """
        body, _ = written(request, self.model, self.style, stream=False)
        body = {field: value for field, value in body.items() if field not in ("max_tokens", "output_config")}
        key = self._key()
        caller = self._caller(key)
        with one_kind_of_error(caller):
            for payload in self._post(f"{self.path}/count_tokens", encode(body), caller, key):
                if isinstance(payload.data, Mapping) and isinstance(payload.data.get("input_tokens"), int):
                    return payload.data["input_tokens"]
        raise ProviderError(f"{caller.host} sent no count; try again", kind="broken_stream")

    def _begin(self, request: Request) -> tuple[Answer, Iterator[bytes]]:
        body, prefix = written(request, self.model, self.style, stream=self.streamed)
        answer = Assembly(self.style.issuer, prefix)
        return answer, _rounds(body, answer)

    def _headers(self, key: str) -> dict[str, str]:
        headers = {"anthropic-version": VERSION}
        return {**headers, "x-api-key": key} if key else headers


def _rounds(body: Wire, answer: Assembly) -> Iterator[bytes]:
    """Yield the body, and as long as the answer pauses, the body with what has come of it: so the server goes on."""
    yield encode(body)
    for _ in range(_MOST_PAUSES):
        if not answer.paused:
            return
        so_far = {"role": "assistant", "content": answer.blocks}
        answer.resume()
        yield encode({**body, "messages": [*body["messages"], so_far]})
