"""Make the provider that a name or an address stands for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentkit.providers.base import Provider, ProviderError
from agentkit.simulator.core import Simulator
from agentkit.simulator.faults import Fault


def simulated(profile: str = "deepseek", *, faults: Iterable[Fault] = (), **options: Any) -> Provider:
    """Return the real client, talking to a simulator in process: no network, no key.

    `options` go to `Simulator` (`window`, `reader` …); the simulator itself is at `provider.simulator`.
    """
    from agentkit.providers.openai import OpenAI
    from agentkit.providers.profiles import DEEPSEEK, OPENAI
    from agentkit.simulator.transport import SimulatorTransport

    simulator = Simulator(profile, faults=faults, **options)
    wire = DEEPSEEK if profile == "deepseek" else OPENAI
    provider = OpenAI(
        simulator.profile.model, "http://127.0.0.1/v1", transport=SimulatorTransport(simulator), profile=wire, api_key=""
    )
    provider.name, provider.simulator = f"simulator ({profile} rules)", simulator
    return provider


def connect(target: str = "simulator", model: str | None = None, profile: str = "deepseek") -> Provider:
    """Return the provider for `target`: `simulator`, or the base address of any OpenAI-compatible server.

    The key comes from the environment (`AGENTKIT_API_KEY`, else `OPENAI_API_KEY`). Raises `ProviderError` for an address
    that is none, or without a model.
    """
    if target == "simulator":
        provider = simulated(profile)
        if model not in (None, provider.model):
            raise ProviderError(
                f"the simulator has no model {model!r}, only {provider.model!r}; name a real model's server with --provider",
                kind="not_found",
            )
        return provider
    if not target.startswith(("http://", "https://")):
        raise ProviderError(
            f"provider {target!r} is neither 'simulator' nor an address that starts with http:// or https://",
            kind="configuration",
        )
    if not model:
        raise ProviderError(f"which model of {target}? say it with --model", kind="configuration")
    from agentkit.providers.openai import OpenAI

    return OpenAI(model, target)
