"""The simulator is as strict as the real API, counts what is sent, and fails on demand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentkit.caching import DeepSeekCache
from agentkit.connect import simulated
from agentkit.messages import Request, ToolCall, ToolSpec, assistant, system, tool_result, user
from agentkit.providers.base import ProviderError, complete
from agentkit.simulator import KINDS, PROFILES, Fault, Simulator
from agentkit.simulator.counter import Counter, size

TOOLS = (ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)


def post(simulator: Simulator, body: dict[str, Any], **headers: str) -> tuple[int, dict[str, Any]]:
    answer = simulator.handle("POST", "/v1/chat/completions", headers, json.dumps(body).encode())
    return answer.status, json.loads(b"".join(answer.chunks))


def body(profile: str = "openai", **more: Any) -> dict[str, Any]:
    return {"model": PROFILES[profile].model, "messages": [{"role": "user", "content": "hello"}], **more}


CHAT = sorted(name for name, p in PROFILES.items() if p.dialect != "anthropic")


@pytest.mark.parametrize("profile", CHAT)
def test_an_orphan_result_is_a_400_in_the_shape_of_the_api(profile: str) -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "tool", "tool_call_id": "x9", "content": "stale"}]
    status, answer = post(Simulator(profile), body(profile, messages=messages))
    assert status == 400
    assert "must be a response to a preceeding message with 'tool_calls'" in answer["error"]["message"]
    wanted = (None, "messages.[1].role") if profile == "openai" else ("invalid_request_error", None)
    assert (answer["error"]["code"], answer["error"]["param"]) == wanted


def test_unknown_model_wrong_key_wrong_path_and_broken_json_are_errors_with_a_status() -> None:
    simulator = Simulator("openai", key="right")
    assert post(simulator, body())[0] == 401
    assert post(simulator, body(), authorization="Bearer right")[0] == 200
    assert post(simulator, body() | {"model": "gpt-none"}, authorization="Bearer right")[0] == 404
    assert Simulator().handle("POST", "/v1/other", {}, b"{}").status == 404
    assert Simulator().handle("POST", "/v1/chat/completions", {}, b"{").status == 400
    assert post(Simulator(), {"model": PROFILES["openai"].model})[0] == 400


def test_the_wrong_key_is_never_repeated_in_the_answer() -> None:
    status, answer = post(Simulator(key="right"), body(), authorization="Bearer TEST-KEY-0001")
    assert status == 401
    assert "TEST" not in json.dumps(answer)


@pytest.mark.parametrize(("profile", "code"), [("openai", "context_length_exceeded"), ("deepseek", "invalid_request_error")])
def test_a_prompt_over_the_window_is_refused_with_that_apis_code(profile: str, code: str) -> None:
    provider = simulated(profile, window=200)
    with pytest.raises(ProviderError) as caught:
        complete(provider, Request((user("word " * 400),)))
    assert caught.value.kind == "overflow"
    assert caught.value.code == code


def test_deepseek_wants_the_reasoning_of_every_earlier_turn_back_when_there_are_tools() -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    assert post(Simulator("deepseek"), body("deepseek", messages=messages))[0] == 200
    status, answer = post(Simulator("deepseek"), body("deepseek", messages=messages, tools=tools))
    assert status == 400
    assert "reasoning_content" in answer["error"]["message"]
    messages[1]["reasoning_content"] = ""
    assert post(Simulator("deepseek"), body("deepseek", messages=messages, tools=tools))[0] == 200


def test_the_answer_is_cut_off_at_max_output_and_says_so() -> None:
    provider = simulated(reader=lambda request: assistant("word " * 300))
    reply = complete(provider, Request((user("q"),), max_output=40))
    assert reply.finish == "length"
    assert 0 < len(reply.message.content) < 300


def test_usage_counts_what_was_sent_and_the_cache_grows_with_an_append_only_history() -> None:
    provider = simulated("openai", reader=lambda request: assistant("fine"))
    long = system("rule " * 1_500)
    first = complete(provider, Request((long, user("one")), TOOLS)).usage
    second = complete(provider, Request((long, user("one"), assistant("fine"), user("two")), TOOLS)).usage
    assert first is not None and second is not None
    assert first.cache_read == 0
    assert second.cache_read == first.prompt // 128 * 128 >= 1_024
    assert second.prompt > first.prompt


def test_the_same_tools_in_another_order_share_nothing() -> None:
    counter = Counter("o200k_base", PROFILES["deepseek"].cache())
    tools = [{"name": n, "text": f"{n} " * 300} for n in ("a", "b")]
    prompt = counter.segments((system("s" * 2_000), user("q")), tools)
    counter.bill(prompt, counter.message(assistant("x")))
    swapped = counter.segments((system("s" * 2_000), user("q")), tools[::-1])
    assert size(swapped) == size(prompt)
    assert counter.bill(swapped, counter.message(assistant("x"))).cache_read < 64


def test_deepseek_reads_the_answer_back_as_well_but_openai_only_what_was_sent() -> None:
    messages = (system("rule " * 1_500), user("one"))
    answer = assistant("word " * 1_000)
    read = {}
    for profile in ("openai", "deepseek"):
        provider = simulated(profile, reader=lambda request: answer)
        complete(provider, Request(messages, thinking=False))
        usage = complete(provider, Request((*messages, answer, user("two")), thinking=False)).usage
        assert usage is not None
        read[profile] = usage.cache_read
    assert read["deepseek"] > read["openai"] + 900


@pytest.mark.parametrize("kind", [k for k in KINDS if "summary" not in k])
def test_every_fault_shows_itself_once_and_then_is_over(kind: Any) -> None:
    provider = simulated(faults=[Fault(kind, seconds=0.01)], reader=lambda request: assistant("some words of an answer"))
    request = Request((user("hello there"),))
    kinds = {
        "rate_limit": "rate_limit",
        "overloaded": "overloaded",
        "server_error": "server",
        "cut_stream": "broken_stream",
        "error_in_stream": "overloaded",
        "overflow": "overflow",
        "overflow_in_stream": "overflow",
    }
    if kind in kinds:
        with pytest.raises(ProviderError) as caught:
            complete(provider, request)
        assert caught.value.kind == kinds[kind]
        assert caught.value.retry_after == (0.01 if kind == "rate_limit" else None)
        faulty = None
    else:
        faulty = complete(provider, request)
    fine = complete(provider, request)
    assert fine.message.content == "some words of an answer" and fine.usage is not None
    if kind in ("overflow_stop", "cut_by_window"):
        assert faulty is not None and faulty.finish == "overflow"
        assert faulty.message.content == ("" if kind == "overflow_stop" else "some words")
    if kind == "silent_truncation":
        assert faulty is not None and faulty.usage is not None and 2 * faulty.usage.prompt < fine.usage.prompt
    assert fine.usage is not None
    if kind == "no_usage":
        assert faulty is not None and faulty.usage is None
    if kind == "wrong_usage":
        assert faulty is not None and faulty.usage is not None and faulty.usage.prompt > fine.usage.prompt


def test_a_fault_of_summaries_waits_for_a_summary_call() -> None:
    provider = simulated(faults=[Fault("empty_summary")])
    assert complete(provider, Request((user("hello"),))).message.content.strip()
    summary = Request((user("Keep:\n- goal: what\n\n<history>\n[user] hi\n</history>"),), thinking=False)
    assert not complete(provider, summary).message.content.strip()
    assert complete(provider, summary).message.content.strip()


def test_a_fault_can_be_aimed_at_a_kind_of_call_and_let_some_pass() -> None:
    summary = Request((user("Keep:\n- goal: what\n\n<history>\n[user] hi\n</history>"),), thinking=False)
    turn = Request((user("hello"),))
    provider = simulated(faults=[Fault("server_error", hits="summary"), Fault("rate_limit", hits="turn", after=1)])
    complete(provider, turn)
    with pytest.raises(ProviderError, match="500"):
        complete(provider, summary)
    complete(provider, summary)
    complete(provider, turn)
    with pytest.raises(ProviderError, match="429"):
        complete(provider, turn)
    complete(provider, turn)
    with pytest.raises(ValueError, match="turn"):
        Fault("overflow", hits="nobody")  # type: ignore[arg-type]


def test_an_unknown_fault_or_profile_lists_what_there_is() -> None:
    with pytest.raises(ValueError, match="cut_stream"):
        Fault("boom")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="deepseek, openai|openai, deepseek"):
        Simulator("nobody")


def test_a_conversation_with_calls_and_results_is_accepted_and_repeatable() -> None:
    messages = (user("q"), assistant("", ToolCall("c1", "read_file", "{}")), tool_result("c1", "text"), user("and?"))
    answers = [complete(simulated(profile), Request(messages, TOOLS)) for profile in PROFILES for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[2] == answers[3]


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_another_counter_counts_the_prompt_too(name: str) -> None:
    """Chapter 02 gives the simulator a foreign vocabulary: prompt and answer are then counted with it."""
    home, abroad = simulated(name), simulated(name)
    abroad.simulator.counter = Counter("cl100k_base", DeepSeekCache())
    asked = Request((user("请阅读这个文件，然后说明它有多少行。" * 20),), max_output=500)
    counts = [complete(provider, asked).usage.prompt for provider in (home, abroad)]
    assert counts[1] > 1.2 * counts[0]
