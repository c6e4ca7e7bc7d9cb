"""Make the provider that a name or an address stands for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from agentkit.providers.base import Provider, ProviderError
from agentkit.simulator.core import Simulator
from agentkit.simulator.faults import Fault

Dialect = Literal["openai", "anthropic"]
DIALECTS: tuple[Dialect, ...] = ("openai", "anthropic")
"""The two protocols that a server may speak: Chat Completions, Messages."""


def simulated(
    profile: str = "deepseek",
    *,
    faults: Iterable[Fault] = (),
    client: dict[str, Any] | None = None,
    **options: Any,
) -> Provider:
    """Return the real client, talking to a simulator in process: no network, no key.

    `options` go to `Simulator` (`window`, `reader` …), `client` to the client; the simulator is at `provider.simulator`.
    """
    from agentkit.simulator.transport import SimulatorTransport

    simulator = Simulator(profile, faults=faults, **options)
    provider = client_for(
        simulator.profile.model,
        "http://127.0.0.1/v1",
        profile,
        transport=SimulatorTransport(simulator),
        api_key="",
        **(client or {}),
    )
    provider.name, provider.simulator = f"simulator ({profile} rules)", simulator  # type: ignore[attr-defined]
    return provider


def client_for(model: str, url: str, profile: str, **options: Any) -> Provider:
    """Return the client for a server at `url` that plays the simulator's `profile`."""
    if profile == "anthropic":
        from agentkit.providers.anthropic import Anthropic

        return Anthropic(model, url, issuer="simulator", **options)
    from agentkit.providers.openai import OpenAI
    from agentkit.providers.profiles import DEEPSEEK, OPENAI

    return OpenAI(model, url, profile=DEEPSEEK if profile == "deepseek" else OPENAI, **options)


def connect(
    target: str = "simulator", model: str | None = None, profile: str = "deepseek", dialect: Dialect | None = None
) -> Provider:
    """Return the provider for `target`: `simulator`, `anthropic`, or the base address of a server.

    `dialect` says what a server speaks (None: Messages at Anthropic's address, else Chat Completions). The key comes from
    the environment: `ANTHROPIC_API_KEY` for Anthropic's own servers, for others `AGENTKIT_API_KEY`, else `OPENAI_API_KEY`.
    Raises `ProviderError` for an address that is none, without a model, or without Anthropic's key.
    """
    if target == "simulator":
        return _simulator(model, "anthropic" if dialect == "anthropic" else profile)
    if target != "anthropic" and not target.startswith(("http://", "https://")):
        text = f"provider {target!r} is neither 'simulator' nor an address that starts with http:// or https://"
        raise ProviderError(f"{text}, nor 'anthropic'", kind="configuration")
    if not model:
        raise ProviderError(f"which model of {target}? say it with --model", kind="configuration")
    if (dialect or _usual(target)) == "anthropic":
        return _anthropic(model, target)
    if target == "anthropic":
        raise ProviderError("Anthropic's own server speaks its own dialect only; leave --dialect out", kind="configuration")
    from agentkit.providers.openai import OpenAI

    return OpenAI(model, target)


def _simulator(model: str | None, profile: str) -> Provider:
    provider = simulated(profile)
    if model not in (None, provider.model):
        text = f"the simulator has no model {model!r}, only {provider.model!r}; name a real model's server with --provider"
        raise ProviderError(text, kind="not_found")
    return provider


def _anthropic(model: str, target: str) -> Provider:
    from agentkit.providers.anthropic import ANTHROPIC, Anthropic

    provider = Anthropic(model, ANTHROPIC if target == "anthropic" else target)
    provider.check_key()
    return provider


def _usual(target: str) -> Dialect:
    """Return what the server at `target` is known to speak."""
    from urllib.parse import urlsplit

    try:
        host = urlsplit(target).hostname or target
    except ValueError:
        host = ""
    return "anthropic" if host == "anthropic" or f".{host}".endswith(".anthropic.com") else "openai"
