"""The simulator's Messages API is as strict as the real one, bills by its marks, and fails on demand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentkit.agent import Agent
from agentkit.connect import simulated
from agentkit.messages import Reply, Request, ToolCall, ToolSpec, Usage, assistant, system, tool_result, user
from agentkit.providers.base import ProviderError, complete
from agentkit.simulator import KINDS, PROFILES, Fault, Simulator

MODEL = PROFILES["anthropic"].model
HEADERS = {"Anthropic-Version": "2023-06-01"}
TOOLS = (ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
WIRE_TOOLS = [{"name": "f", "description": "Do f.", "input_schema": {"type": "object", "properties": {}}}]
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
LONG = "rule " * 1_500


def post(simulator: Simulator, body: Any, path: str = "/v1/messages", headers: dict[str, str] = HEADERS) -> tuple[int, Any]:
    answer = simulator.handle("POST", path, headers, json.dumps(body).encode())
    return answer.status, json.loads(b"".join(answer.chunks))


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 100, "messages": list(messages) or [said("hello")], **more}


def said(text: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text, **more}] if isinstance(text, str) else text}


def used(*ids: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "f", "input": {}, **more} for i in ids]}


def results(*ids: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": "ok", **more} for i in ids]}


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "forged"}
FIVE = said([{"type": "text", "text": f"part {n}", "cache_control": MARK} for n in range(5)])

BAD: list[tuple[dict[str, Any], str]] = [
    ({"model": MODEL, "max_tokens": 9}, "messages: Field required"),
    ({"model": MODEL, "messages": [said("q")]}, "max_tokens: Field required"),
    (body(max_tokens=0), "max_tokens: Input should be at least 1"),
    (body(max_tokens=10**6), "maximum allowed number of output tokens"),
    ({**body(), "messages": []}, "at least one message"),
    (body(said("q", "wizard")), "messages.0.role"),
    (body({**said("q"), "tool_calls": []}), "messages.0.tool_calls: Extra inputs are not permitted"),
    (body(said("q"), said("s", "system")), 'messages.1: role "system" is not supported'),
    (body(said("q"), said([], "assistant")), "messages.1.content"),
    (body(said([{"type": "poem", "text": "x"}])), "Input tag 'poem'"),
    (body(said([{"type": "tool_use", "id": "a", "name": "f", "input": {}}])), "not allowed in a message of role 'user'"),
    (body(said("q"), said(" \n", "assistant"), said("r")), "messages.1: text content blocks must be non-empty"),
    (body(said("q"), said("The answer is", "assistant")), "messages.1: this model does not support"),
    (body(said("q"), used("a"), said("no"), tools=WIRE_TOOLS), "messages.1: `tool_use` ids were found without"),
    (
        body(said("q"), used("a"), said("no"), results("a"), tools=WIRE_TOOLS),
        "messages.1: `tool_use` ids were found without",
    ),
    (body(said("q"), used("a", "b"), results("a"), tools=WIRE_TOOLS), "immediately after: b"),
    (body(said("q"), results("x")), "unexpected `tool_use_id` found in `tool_result` blocks: x"),
    (body(said("q"), used("a"), results("a", "a"), tools=WIRE_TOOLS), "each tool_use must have a single result"),
    (body(said("q"), used("a", "a"), results("a"), tools=WIRE_TOOLS), "`tool_use` ids must be unique"),
    (body(said("q"), used("a b"), results("a b"), tools=WIRE_TOOLS), "should match pattern"),
    (body(said("q"), used("a"), results("a")), "need `tools`"),
    (body(said("q"), used("a", input="{}"), results("a"), tools=WIRE_TOOLS), "Input should be a valid dictionary"),
    (body(tools=[{"name": "f", "input_schema": {}}]), "tools.0.custom.input_schema.type"),
    (body(system=" "), "system.0: text content blocks must be non-empty"),
    (body(FIVE), "A maximum of 4 blocks with cache_control may be provided. Found 5."),
    (body(said("", cache_control=MARK)), "cache_control cannot be set for empty text blocks"),
    (
        body(said("q"), said([{**THOUGHT, "cache_control": MARK}], "assistant"), said("r")),
        "thinking.cache_control: Extra inputs",
    ),
    (
        body(
            said(
                [{"type": "text", "text": "a", "cache_control": MARK}, {"type": "text", "text": "b", "cache_control": HOUR}]
            )
        ),
        "a ttl='1h' cache_control block must not come after a ttl='5m'",
    ),
    (body(said("q", cache_control={"type": "for ever"})), "cache_control: Input should be"),
    (
        body(
            said("q"),
            used("a"),
            results("a", content=[{"type": "text", "text": "x", "cache_control": MARK}]),
            tools=WIRE_TOOLS,
        ),
        "tool_result.content.0.cache_control",
    ),
    (
        body(said("q"), said([THOUGHT, {"type": "text", "text": "a"}], "assistant"), said("r")),
        "messages.1.content.0: Invalid `signature`",
    ),
    (
        body(said("q"), used("a"), results("a"), tools=WIRE_TOOLS, thinking={"type": "enabled", "budget_tokens": 1024}),
        "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    ),
]


@pytest.mark.parametrize(("request_body", "says"), BAD, ids=[says[:40] for _, says in BAD])
def test_what_the_api_refuses_is_a_400_in_its_shape(request_body: dict[str, Any], says: str) -> None:
    status, answer = post(Simulator("anthropic"), request_body)
    assert (status, answer["type"], answer["error"]["type"]) == (400, "error", "invalid_request_error")
    assert says in answer["error"]["message"]


GOOD = [
    body(said("one"), said("two")),
    body(said("hi", "assistant"), said("q")),
    body({"role": "user", "content": "plain"}, system="rules"),
    body(said("q"), used("a", "b"), results("b"), results("a"), said("and?"), tools=WIRE_TOOLS),
    body(said(FIVE["content"][:4]), said("last")),
    body(said(FIVE["content"][:3]), said("last"), cache_control=MARK),
    body(said("q"), used("a"), results("a", content=[{"type": "text", "text": "x"}], cache_control=MARK), tools=WIRE_TOOLS),
]


@pytest.mark.parametrize("request_body", GOOD)
def test_what_the_api_takes_is_answered(request_body: dict[str, Any]) -> None:
    status, answer = post(Simulator("anthropic"), request_body)
    assert (status, answer["type"], answer["role"], answer["stop_reason"]) == (200, "message", "assistant", "end_turn")


def test_a_mark_on_the_whole_request_takes_one_of_the_four() -> None:
    status, answer = post(Simulator("anthropic"), body(said(FIVE["content"][:4]), said("last"), cache_control=MARK))
    assert status == 400 and "Found 5" in answer["error"]["message"]


def test_key_version_model_path_and_size_are_errors_with_their_type() -> None:
    simulator = Simulator("anthropic", key="right")
    assert post(simulator, body())[1]["error"]["type"] == "authentication_error"
    for header in ({"X-API-Key": "right"}, {"Authorization": "Bearer right"}):
        assert post(simulator, body(), headers={**HEADERS, **header})[0] == 200
    assert post(Simulator("anthropic"), body(), headers={})[1]["error"]["message"] == "anthropic-version: header is required"
    assert post(Simulator("anthropic"), {**body(), "model": "gpt"})[1]["error"]["type"] == "not_found_error"
    assert post(Simulator("anthropic"), body(), "/v1/chat/completions")[0] == 404
    assert post(Simulator("anthropic"), [1])[0] == 400
    huge = Simulator("anthropic").handle("POST", "/v1/messages", HEADERS, b" " * (32 * 2**20 + 1))
    assert (huge.status, json.loads(b"".join(huge.chunks))["error"]["type"]) == (413, "request_too_large")


# ---------------------------------------------------------------------------------------------------------------- the stream


def events(simulator: Simulator, request_body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    answer = simulator.handle("POST", "/v1/messages", HEADERS, json.dumps({**request_body, "stream": True}).encode())
    found = []
    for chunk in answer.chunks:
        name, data = chunk.decode().strip().split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_the_events_come_in_the_order_of_the_documentation() -> None:
    reader = lambda request: assistant("two words", ToolCall("c1", "f", '{"p": 1}'))  # noqa: E731
    found = events(Simulator("anthropic", reader=reader), body(thinking={"type": "adaptive"}, tools=WIRE_TOOLS))
    assert all(name == data["type"] for name, data in found)
    names = [name for name, _ in found]
    assert names[:2] == ["message_start", "ping"] and names[-2:] == ["message_delta", "message_stop"]
    kinds = [d["content_block"]["type"] for n, d in found if n == "content_block_start"]
    assert kinds == ["thinking", "text", "tool_use"]
    deltas = [d["delta"]["type"] for n, d in found if n == "content_block_delta"]
    assert [k for i, k in enumerate(deltas) if i == 0 or deltas[i - 1] != k] == [
        "thinking_delta", "signature_delta", "text_delta", "input_json_delta",
    ]  # fmt: skip
    assert names.count("content_block_start") == names.count("content_block_stop") == 3


def test_streamed_or_not_the_answer_and_its_bill_are_the_same() -> None:
    request = Request((system(LONG), user("hello")), TOOLS)
    replies = [complete(simulated("anthropic", client={"streamed": s}), request) for s in (True, False)]
    assert replies[0] == replies[1]
    assert replies[0].usage is not None and replies[0].usage.cache_write > 1_024


# -------------------------------------------------------------------------------------------------------------------- usage


def bill(simulator: Simulator, request_body: dict[str, Any]) -> dict[str, Any]:
    status, answer = post(simulator, request_body)
    assert status == 200, answer
    return answer["usage"]


def test_without_a_mark_nothing_is_cached_and_with_one_it_is() -> None:
    simulator = Simulator("anthropic")
    for _ in range(2):
        found = bill(simulator, body(system=LONG))
        assert found["input_tokens"] > 1_500
        assert found["cache_read_input_tokens"] == found["cache_creation_input_tokens"] == 0
    marked = [{"type": "text", "text": LONG, "cache_control": MARK}]
    first, second = (bill(simulator, body(system=marked)) for _ in range(2))
    assert first["cache_creation_input_tokens"] == second["cache_read_input_tokens"] > 1_500
    assert second["cache_creation_input_tokens"] == 0
    assert first["cache_creation"] == {
        "ephemeral_5m_input_tokens": first["cache_creation_input_tokens"],
        "ephemeral_1h_input_tokens": 0,
    }


def test_what_is_kept_for_an_hour_is_counted_apart_and_lives_longer() -> None:
    now = [0.0]
    simulator = Simulator("anthropic", clock=lambda: now[0])
    head = [{"type": "text", "text": LONG, "cache_control": HOUR}]
    question = said("word " * 2_000, cache_control=MARK)
    first = bill(simulator, body(question, system=head))
    parts = first["cache_creation"]
    assert parts["ephemeral_1h_input_tokens"] > 1_500 and parts["ephemeral_5m_input_tokens"] > 2_000
    assert sum(parts.values()) == first["cache_creation_input_tokens"]
    now[0] = 400.0
    later = bill(simulator, body(question, system=head))
    assert later["cache_read_input_tokens"] == parts["ephemeral_1h_input_tokens"]
    assert later["cache_creation"]["ephemeral_5m_input_tokens"] == parts["ephemeral_5m_input_tokens"]


@pytest.mark.parametrize(
    "change",
    [
        {"tool_choice": {"type": "any"}},
        {"thinking": {"type": "adaptive"}},
        {"messages": [said("other", cache_control=MARK)]},
    ],
)
def test_a_changed_parameter_loses_the_messages_and_keeps_the_system_prompt(change: dict[str, Any]) -> None:
    simulator = Simulator("anthropic")
    plain = body(said("word " * 2_000, cache_control=MARK), system=[{"type": "text", "text": LONG, "cache_control": MARK}])
    first = bill(simulator, plain)
    assert bill(simulator, plain)["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    kept = bill(simulator, {**plain, **change})["cache_read_input_tokens"]
    assert 1_500 < kept < first["cache_creation_input_tokens"] - 1_900


def test_too_short_a_prompt_is_silently_not_cached() -> None:
    found = bill(Simulator("anthropic"), body(system=[{"type": "text", "text": "short", "cache_control": MARK}]))
    assert found["cache_creation_input_tokens"] == 0 and found["input_tokens"] > 0


def test_count_tokens_is_the_size_of_the_prompt_and_costs_nothing() -> None:
    provider = simulated("anthropic")
    request = Request((system(LONG), user("hello")), TOOLS)
    counted = provider.count_tokens(request)  # type: ignore[attr-defined]
    assert provider.simulator.calls == []  # type: ignore[attr-defined]
    reply = complete(provider, request)
    assert reply.usage is not None and counted == reply.usage.prompt
    assert reply.usage.cache_read == 0, "counting has written nothing into the cache"


def test_all_profiles_count_alike() -> None:
    messages = (system("rules"), user("q"), assistant("hm", ToolCall("c1", "read_file", "{}")), tool_result("c1", "x" * 500))
    sizes = {}
    for name in PROFILES:
        usage = complete(simulated(name), Request((*messages, user("and?")), thinking=True, tools=TOOLS)).usage
        assert usage is not None
        sizes[name] = usage.prompt
    assert max(sizes.values()) - min(sizes.values()) <= 60, sizes


# ------------------------------------------------------------------------------------------------------- windows and reasons


def test_a_prompt_over_the_window_is_refused_and_an_answer_over_it_is_a_200() -> None:
    with pytest.raises(ProviderError) as caught:
        complete(simulated("anthropic", window=200), Request((user("word " * 400),)))
    assert (caught.value.kind, caught.value.status, caught.value.code) == ("overflow", 400, "invalid_request_error")
    provider = simulated("anthropic", window=500, reader=lambda request: assistant("word " * 300))
    reply = complete(provider, Request((user("word " * 400),)))
    assert reply.finish == "overflow" and 0 < len(reply.message.content) < 600


def test_the_answer_is_cut_at_max_tokens() -> None:
    provider = simulated("anthropic", reader=lambda request: assistant("word " * 300))
    assert complete(provider, Request((user("q"),), max_output=40)).finish == "length"


def test_a_reader_may_refuse() -> None:
    provider = simulated("anthropic", reader=lambda request: Reply(assistant("I cannot."), finish="refused"))
    assert complete(provider, Request((user("q"),))).finish == "refused"
    chat = simulated("openai", reader=lambda request: Reply(assistant("I cannot."), finish="refused"))
    assert complete(chat, Request((user("q"),))).finish == "refused"


def test_an_answer_that_pauses_may_be_sent_back_though_others_may_not() -> None:
    def reader(request: Request) -> Reply:
        paused = request.messages[-1].role == "assistant"
        return Reply(assistant("The end." if paused else "So far."), finish="stop" if paused else "other")

    reply = complete(simulated("anthropic", reader=reader), Request((user("q"),)))
    assert (reply.message.content, reply.finish) == ("So far.\n\nThe end.", "stop")
    assert reply.usage is not None and reply.usage.output > 4


# ---------------------------------------------------------------------------------------------------------------- thinking


def test_a_conversation_with_thinking_is_taken_back_block_by_block() -> None:
    provider = simulated("anthropic", client={"thinking": {"type": "adaptive"}})
    first = complete(provider, Request((user("How many lines is a.py?"),), TOOLS))
    (made,) = first.message.tool_calls
    history = (user("How many lines is a.py?"), first.message, tool_result(made.id, "1\tx = 1"))
    second = complete(provider, Request(history, TOOLS))
    assert first.message.reasoning and second.message.reasoning
    assert second.usage is not None and second.usage.prompt > 0


def test_after_a_compaction_the_thinking_of_the_tail_would_be_a_400_and_the_client_leaves_it_out() -> None:
    provider = simulated("anthropic", client={"thinking": {"type": "adaptive"}})
    first = complete(provider, Request((user("a"), assistant("b"), user("How many lines is a.py?")), TOOLS)).message
    compacted = (system("summary of a and b"), user("How many lines is a.py?"), first)
    request = Request((*compacted, tool_result(first.tool_calls[0].id, "1\tx = 1")), TOOLS)
    assert complete(provider, request).message.content
    naive = simulated("anthropic", client={"thinking": {"type": "adaptive"}})
    kept = first.opaque[0].data["blocks"]
    status, answer = post(
        naive.simulator,  # type: ignore[attr-defined]
        body(said("How many lines is a.py?"), {"role": "assistant", "content": kept}, results(first.tool_calls[0].id),
             system="summary", tools=WIRE_TOOLS),
    )  # fmt: skip
    assert status == 400 and "bound to a different conversation" in answer["error"]["message"]


# ------------------------------------------------------------------------------------------------------------------ faults

_RAISED = {
    "rate_limit": ("rate_limit", 429),
    "overloaded": ("overloaded", 529),
    "server_error": ("server", 500),
    "cut_stream": ("broken_stream", None),
    "error_in_stream": ("overloaded", 200),
}


@pytest.mark.parametrize("kind", [k for k in KINDS if "summary" not in k])
def test_every_fault_shows_itself_once_and_then_is_over(kind: Any) -> None:
    provider = simulated(
        "anthropic", faults=[Fault(kind, seconds=0.01)], reader=lambda r: assistant("some words of an answer")
    )
    request = Request((user("hello there"),))
    faulty = None
    try:
        faulty = complete(provider, request)
    except ProviderError as error:
        if kind in _RAISED:
            assert (error.kind, error.status) == _RAISED[kind]
        else:
            assert kind not in ("no_usage", "wrong_usage", "slow_first_byte")
    else:
        assert kind not in _RAISED
    fine = complete(provider, request)
    assert fine.message.content == "some words of an answer" and fine.usage is not None
    if kind == "no_usage":
        assert faulty is not None and faulty.usage is None
    if kind == "wrong_usage":
        assert faulty is not None and faulty.usage is not None and faulty.usage.prompt > 2 * fine.usage.prompt


@pytest.mark.parametrize("kind", ["empty_summary", "long_summary", "tool_call_summary"])
def test_a_fault_of_summaries_waits_for_a_summary_call(kind: Any) -> None:
    provider = simulated("anthropic", faults=[Fault(kind)])
    assert complete(provider, Request((user("hello"),))).message.content.strip()
    summary = Request((user("Keep:\n- goal: what\n\n<history>\n[user] hi\n</history>"),), thinking=False)
    first, second = complete(provider, summary), complete(provider, summary)
    assert second.message.content.strip() and first != second


def test_an_agent_runs_on_it_and_reads_the_prompt_back_from_the_cache() -> None:
    agent = Agent(simulated("anthropic"), system_prompt=LONG)
    for question in ("hello", "hello again", "thanks"):
        agent.run(question)
    usages = [b.usage or Usage() for b in agent.bills]
    for before, after in zip(usages, usages[1:], strict=False):
        assert after.cache_read == before.cache_read + before.cache_write
    assert [u.fresh for u in usages] == [0, 0, 0]
