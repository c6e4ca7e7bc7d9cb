"""The official OpenAI client, which this project did not write, drives the simulator over a real loopback socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from agentkit.scenarios import FOUR_QUESTIONS, Settings, ask, course_workspace, start
from agentkit.simulator import PROFILES, Fault, Simulator
from agentkit.simulator.server import Server
from agentkit.tools import workspace_tools


@pytest.fixture(params=["deepseek", "openai"])
def profile(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def server(profile: str) -> Iterator[Server]:
    with Server(Simulator(profile, key="local-test")) as running:
        yield running


def client(server: Server, key: str = "local-test", retries: int = 0) -> Any:
    return openai.OpenAI(base_url=server.url, api_key=key, max_retries=retries, timeout=20)


def test_a_tool_conversation_not_streamed(server: Server, profile: str) -> None:
    tools = _tools()
    messages: list[Any] = [{"role": "user", "content": "How many lines is stats.py?"}]
    sdk, model = client(server), PROFILES[profile].model
    for _ in range(6):
        answer = sdk.chat.completions.create(model=model, messages=messages, tools=tools).choices[0].message
        messages.append(_sent_back(answer, profile))
        if not answer.tool_calls:
            break
        messages += [_run(call) for call in answer.tool_calls]
    assert "40 lines" in (answer.content or "")
    assert any(m["role"] == "tool" for m in messages)


def test_the_same_answer_streamed_with_usage_at_the_end(server: Server, profile: str) -> None:
    messages = [{"role": "user", "content": "What was the very first question I asked you?"}]
    model = PROFILES[profile].model
    whole = client(server).chat.completions.create(model=model, messages=messages)
    stream = client(server).chat.completions.create(
        model=model, messages=messages, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens > 0
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"


def test_streamed_tool_calls_join_to_whole_arguments(server: Server, profile: str) -> None:
    messages = [{"role": "user", "content": "read stats.py and config.json at once"}]
    stream = client(server).chat.completions.create(
        model=PROFILES[profile].model, messages=messages, tools=_tools(), stream=True
    )
    pieces: dict[int, str] = {}
    for chunk in stream:
        for call in chunk.choices[0].delta.tool_calls or [] if chunk.choices else []:
            pieces[call.index] = pieces.get(call.index, "") + (call.function.arguments or "")
    assert sorted(pieces.values()) == ['{"path": "config.json"}', '{"path": "stats.py"}']


def test_errors_become_the_sdks_own_exceptions(server: Server, profile: str) -> None:
    model, question = PROFILES[profile].model, [{"role": "user", "content": "q"}]
    with pytest.raises(openai.AuthenticationError):
        client(server, "wrong").chat.completions.create(model=model, messages=question)
    with pytest.raises(openai.NotFoundError):
        client(server).chat.completions.create(model="no-such-model", messages=question)
    with pytest.raises(openai.BadRequestError) as caught:
        orphan = [*question, {"role": "tool", "tool_call_id": "x", "content": "y"}]
        client(server).chat.completions.create(model=model, messages=orphan)
    assert "tool_calls" in str(caught.value)


def test_the_sdk_retries_a_rate_limit_as_told(profile: str) -> None:
    with Server(Simulator(profile, faults=[Fault("rate_limit", seconds=0.05)])) as running:
        answer = client(running, retries=2).chat.completions.create(
            model=PROFILES[profile].model, messages=[{"role": "user", "content": "hello"}]
        )
    assert answer.choices[0].message.content


def test_the_model_is_listed(server: Server, profile: str) -> None:
    assert [m.id for m in client(server).models.list()] == [PROFILES[profile].model]


def test_the_four_questions_give_the_same_bills_over_a_socket_as_in_process(profile: str) -> None:
    from agentkit.connect import connect, simulated
    from agentkit.providers.openai import OpenAI
    from agentkit.providers.profiles import DEEPSEEK, OPENAI

    inside = ask(start(Settings(), provider=simulated(profile)), FOUR_QUESTIONS)
    with Server(Simulator(profile)) as running:
        wire = DEEPSEEK if profile == "deepseek" else OPENAI
        provider = OpenAI(PROFILES[profile].model, running.url, profile=wire)
        outside = ask(start(Settings(), provider=provider), FOUR_QUESTIONS)
        named = connect(running.url, PROFILES[profile].model)
        assert named.model == PROFILES[profile].model
    assert outside.answers == inside.answers
    assert [b.usage for b in outside.bills] == [b.usage for b in inside.bills]
    assert len(inside.compactions) == 1


def _tools() -> list[dict[str, Any]]:
    specs = workspace_tools(course_workspace()).specs
    return [
        {"type": "function", "function": {"name": s.name, "description": s.description, "parameters": dict(s.parameters)}}
        for s in specs
    ]


def _run(call: Any) -> dict[str, Any]:
    from agentkit.messages import ToolCall

    result = workspace_tools(course_workspace()).run(ToolCall(call.id, call.function.name, call.function.arguments))
    return {"role": "tool", "tool_call_id": call.id, "content": result.content}


def _sent_back(answer: Any, profile: str) -> dict[str, Any]:
    message = answer.model_dump(exclude_none=True)
    return message if profile != "deepseek" else {**message, "reasoning_content": message.get("reasoning_content", "")}
