"""Anthropic's official client, which this project did not write, drives what `agentkit serve` serves; OpenAI's beside it."""

from __future__ import annotations

import re
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import httpx
import openai
import pytest

from agentkit import serve_cli
from agentkit.connect import client_for, simulated
from agentkit.messages import ToolCall
from agentkit.scenarios import FOUR_QUESTIONS, Settings, ask, course_workspace, start
from agentkit.simulator import PROFILES, Fault
from agentkit.tools import workspace_tools

MODEL = PROFILES["anthropic"].model


class Served:
    """Addresses and key, read from what `agentkit serve` printed."""

    def __init__(self, printed: str) -> None:
        self.printed = printed
        self.root = re.search(r"Messages: base_url (\S+),", printed)[1]  # type: ignore[index]
        chat = re.search(r"Chat Completions: base_url (\S+),", printed)
        self.chat = chat[1] if chat else ""
        self.key = re.search(r"key, shown this once: (\S+)", printed)[1]  # type: ignore[index]


@contextmanager
def serving(capsys: pytest.CaptureFixture[str], *faults: Fault, profile: str | None = None) -> Iterator[Served]:
    """Run the command itself in a thread until the block ends."""
    ready, done = threading.Event(), threading.Event()

    def wait() -> None:
        ready.set()
        done.wait(60)

    options = Namespace(port=0, profile=profile, window=None, fault=list(faults))
    thread = threading.Thread(target=serve_cli.run_serve, args=(options, wait), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield Served(capsys.readouterr().out)
    finally:
        done.set()
        thread.join(20)


@pytest.fixture
def served(capsys: pytest.CaptureFixture[str]) -> Iterator[Served]:
    with serving(capsys) as running:
        yield running


def client(served: Served, key: str = "", retries: int = 0) -> Any:
    return anthropic.Anthropic(base_url=served.root, api_key=key or served.key, max_retries=retries, timeout=20)


def create(served: Served, messages: list[Any], **more: Any) -> Any:
    return client(served).messages.create(model=MODEL, max_tokens=1_000, messages=messages, **more)


def tools() -> list[dict[str, Any]]:
    specs = workspace_tools(course_workspace()).specs
    return [{"name": s.name, "description": s.description, "input_schema": dict(s.parameters)} for s in specs]


def run_all(blocks: list[Any]) -> list[dict[str, Any]]:
    """Run every call among `blocks` and return the results as the SDK wants them."""
    import json

    box = workspace_tools(course_workspace())
    found = [(b.id, box.run(ToolCall(b.id, b.name, json.dumps(b.input)))) for b in blocks if b.type == "tool_use"]
    return [{"type": "tool_result", "tool_use_id": i, "content": m.content, "is_error": m.is_error} for i, m in found]


def converse(answer: Callable[[list[Any]], Any]) -> tuple[Any, list[Any]]:
    """Ask, run the tools, ask again, until there is an answer without a call."""
    messages: list[Any] = [{"role": "user", "content": "How many lines is stats.py?"}]
    for _ in range(6):
        found = answer(messages)
        messages.append({"role": "assistant", "content": found.content})
        if found.stop_reason != "tool_use":
            return found, messages
        messages.append({"role": "user", "content": run_all(found.content)})
    raise AssertionError("no answer after six rounds")


def test_a_tool_conversation_not_streamed(served: Served) -> None:
    found, messages = converse(lambda m: create(served, m, tools=tools()))
    assert "40 lines" in found.content[0].text and found.stop_reason == "end_turn"
    assert len(messages) == 4


@pytest.mark.parametrize("thinking", [{"type": "disabled"}, {"type": "adaptive"}])
def test_a_tool_conversation_streamed_with_thinking_and_without(served: Served, thinking: Any) -> None:
    def streamed(messages: list[Any]) -> Any:
        kwargs = {"model": MODEL, "max_tokens": 1_000, "messages": messages, "tools": tools(), "thinking": thinking}
        with client(served).messages.stream(**kwargs) as stream:
            shown = "".join(stream.text_stream)
            final = stream.get_final_message()
        assert shown == "".join(b.text for b in final.content if b.type == "text")
        return final

    found, messages = converse(streamed)
    assert "40 lines" in found.content[-1].text
    kinds = [b.type for m in messages if m["role"] == "assistant" for b in m["content"]]
    assert kinds.count("thinking") == (2 if thinking["type"] == "adaptive" else 0)
    assert found.usage.input_tokens > 0 and found.usage.output_tokens > 0


def test_marks_are_billed_and_read_back(served: Served) -> None:
    system = [{"type": "text", "text": "rule " * 1_500, "cache_control": {"type": "ephemeral"}}]
    first, second = (create(served, [{"role": "user", "content": "hello"}], system=system).usage for _ in range(2))
    assert first.cache_creation_input_tokens == first.cache_creation.ephemeral_5m_input_tokens > 1_500
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert second.cache_creation_input_tokens == 0


def test_counting_and_listing(served: Served) -> None:
    messages = [{"role": "user", "content": "hello"}]
    counted = client(served).messages.count_tokens(model=MODEL, messages=messages)
    assert counted.input_tokens == create(served, messages).usage.input_tokens
    assert [m.id for m in client(served).models.list()] == [MODEL]


def test_errors_become_the_sdks_own_exceptions(served: Served) -> None:
    question = [{"role": "user", "content": "q"}]
    with pytest.raises(anthropic.AuthenticationError):
        client(served, "wrong").messages.create(model=MODEL, max_tokens=9, messages=question)
    with pytest.raises(anthropic.NotFoundError):
        client(served).messages.create(model="no-such-model", max_tokens=9, messages=question)
    with pytest.raises(anthropic.BadRequestError, match="unexpected `tool_use_id`"):
        create(served, [*question, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}])


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server_error"])
def test_the_sdk_tries_again_after_an_error_that_passes(kind: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(capsys, Fault(kind, seconds=0.05)) as served:
        answer = client(served, retries=2).messages.create(
            model=MODEL, max_tokens=100, messages=[{"role": "user", "content": "hello"}]
        )
        assert answer.content[0].text


@pytest.mark.parametrize(("kind", "error"), [("overloaded", 529), ("error_in_stream", None), ("cut_stream", None)])
def test_an_error_that_stays_is_raised(kind: Any, error: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(capsys, Fault(kind, times=3)) as served:
        with pytest.raises((anthropic.APIError, Exception)) as caught:
            list(create(served, [{"role": "user", "content": "hello there"}], stream=True))
        if error:
            assert isinstance(caught.value, anthropic.APIStatusError) and caught.value.status_code == error
        if kind == "error_in_stream":
            assert "overloaded_error" in str(caught.value)


def test_a_cut_tool_call_and_a_full_window_have_their_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(capsys, profile="anthropic") as served:
        short = client(served).messages.create(
            model=MODEL,
            max_tokens=2,
            messages=[{"role": "user", "content": "What was the very first question I asked you?"}],
        )
        assert short.stop_reason == "max_tokens"


def test_both_clients_at_one_address_with_one_key(served: Served) -> None:
    chat = openai.OpenAI(base_url=served.chat, api_key=served.key, max_retries=0, timeout=20)
    model = PROFILES["openai"].model
    answer = chat.chat.completions.create(model=model, messages=[{"role": "user", "content": "hello"}])
    assert answer.choices[0].message.content
    assert [m.id for m in chat.models.list()] == [model]
    assert [m.id for m in client(served).models.list()] == [MODEL]


def test_the_key_is_random_long_needed_and_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    with serving(capsys) as one:
        pass
    with serving(capsys) as two:
        body = {"model": MODEL, "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
        for headers in ({}, {"x-api-key": one.key}, {"authorization": f"Bearer {one.key}"}):
            for path in ("/v1/messages", "/v1/chat/completions", "/v1/models"):
                answer = httpx.post(two.root + path, json=body, headers=headers, timeout=20)
                assert answer.status_code == 401 and one.key not in answer.text and two.key not in answer.text
    assert one.key != two.key and len(one.key) >= 32
    assert one.printed.count(one.key) == 1


def test_the_four_questions_give_the_same_bills_over_a_socket_as_in_process(capsys: pytest.CaptureFixture[str]) -> None:
    inside = ask(start(Settings(), provider=simulated("anthropic")), FOUR_QUESTIONS)
    with serving(capsys) as served:
        provider = client_for(MODEL, served.root, "anthropic", api_key=served.key)
        outside = ask(start(Settings(), provider=provider), FOUR_QUESTIONS)
    assert outside.answers == inside.answers
    assert [b.usage for b in outside.bills] == [b.usage for b in inside.bills]
    assert len(inside.compactions) == 1
