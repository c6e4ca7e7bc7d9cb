"""llama.cpp's own server on this machine: the same questions to a cache that this project did not write.

The package xllamacpp carries llama.cpp ready-made; it is optional. The server listens on loopback only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from agentkit.kv.changes import Change, Chat
from agentkit.kv.optional import SERVER, load, weights

_WAIT = 300.0


@dataclass(frozen=True)
class Measured:
    """What the server says about one request: tokens of the prompt, those read from the cache, milliseconds for the rest."""

    name: str
    prompt: int
    cached: int
    ms: float


@contextmanager
def smollm2_server(context: int = 4096, threads: int = 1) -> Iterator[httpx.Client]:
    """Run the server while the block lasts, and give a client for it. Raises `NotInstalled`."""
    server = load(SERVER).Server(_parameters(load(SERVER), context, threads))
    try:
        # A connection that is kept open was closed by the server now and then.
        yield httpx.Client(base_url=server.listening_address, timeout=_WAIT, headers={"connection": "close"})
    finally:
        del server


def _parameters(package: Any, context: int, threads: int) -> Any:
    wanted = package.CommonParams()
    wanted.model.path = str(weights())
    wanted.n_ctx, wanted.n_parallel, wanted.n_gpu_layers = context, 1, 0
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = threads
    wanted.hostnames, wanted.port = ["127.0.0.1"], 0
    wanted.ui, wanted.offline, wanted.verbosity = False, True, -1
    # One conversation, one cache: without this, llama.cpp keeps further ones in memory.
    wanted.cache_ram_mib = 0
    return wanted


def ask(client: httpx.Client, chat: Chat, name: str = "") -> Measured:
    """Send `chat` as OpenAI chat completions and let the model write one token. Raises `httpx.HTTPError`."""
    messages = [{"role": message.role, "content": message.content} for message in chat]
    body = {"messages": messages, "max_tokens": 1, "temperature": 0}
    answer = client.post("/v1/chat/completions", json=body).raise_for_status().json()
    usage = answer["usage"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return Measured(name, usage["prompt_tokens"], cached, answer["timings"]["prompt_ms"])


def measure(client: httpx.Client, wanted: Sequence[Change]) -> list[Measured]:
    """Bring the cache into the state of each change's `before`, then send its `after`."""
    found = []
    for change in wanted:
        ask(client, change.before)
        found.append(ask(client, change.after, change.name))
    return found


def tokens_of(client: httpx.Client, text: str) -> list[int]:
    """Return the tokens of `text` as llama.cpp counts them."""
    body = {"content": text, "add_special": False, "parse_special": True}
    return client.post("/tokenize", json=body).raise_for_status().json()["tokens"]
