"""The client for every server that speaks the OpenAI Chat Completions dialect. Synchronous: no event loop is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from agentkit.messages import Request
from agentkit.providers.assemble import Assembly
from agentkit.providers.client import Answer, Client
from agentkit.providers.openai_wire import encode, to_wire
from agentkit.providers.profiles import Profile, profile_for
from agentkit.providers.transport import is_loopback, server_url

KEY_NAMES = ("AGENTKIT_API_KEY", "OPENAI_API_KEY")


class OpenAI(Client):
    """A model behind an OpenAI-like server.

    `api_key` defaults to the environment variable `AGENTKIT_API_KEY`, then `OPENAI_API_KEY`, read when a request is
    sent; this machine needs none and never gets the second. An empty text means: send none. `transport` takes the
    network's place (the simulator, a test); then no key is needed. `profile` defaults to the one known for the host.
    `limits` are those of `Client`; keep-alive comments do not end a silence (DeepSeek closes after 600 seconds of them).
    """

    path, hint = "/chat/completions", "ends in /v1"

    def __init__(
        self,
        model: str,
        base_url: str = "https://api.openai.com/v1",
        *,
        profile: Profile | None = None,
        **limits: Any,
    ) -> None:
        url = server_url(base_url.strip().rstrip("/").removesuffix("/chat/completions"))
        super().__init__(model, url, keys=KEY_NAMES[:1] if is_loopback(url.host) else KEY_NAMES, **limits)
        profile = profile or profile_for(url.host)
        self.profile = profile if profile.issuer else replace(profile, issuer=url.host)
        self.name = profile.name

    def _begin(self, request: Request) -> tuple[Answer, Iterator[bytes]]:
        return Assembly(self.profile.issuer), iter([encode(to_wire(request, self.model, self.profile))])

    def _headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}
