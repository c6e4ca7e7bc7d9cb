"""Public failures of groups A and G, as the Messages API shows them: one test each, with the value that is right."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from agentkit.messages import Message, Request, ToolCall, ToolSpec, Usage, assistant, tool_result, user
from agentkit.providers.anthropic_assemble import Assembly
from agentkit.providers.base import ProviderError, complete
from agentkit.settle import NO_OUTPUT, NO_TEXT, settle, wire_id

from .messages_api import STOP, answer, block, call, client, sent, sse, start, stop, text
from .servers import HELLO, Server

TOOLS = (ToolSpec("f", "Do f."),)


def turns(*messages: Message) -> list[tuple[str, list[Any]]]:
    body = sent(messages, TOOLS)
    return [
        (m["role"], [{k: v for k, v in b.items() if k != "cache_control"} for b in m["content"]]) for m in body["messages"]
    ]


def f(call_id: str, name: str = "f") -> ToolCall:
    return ToolCall(call_id, name)


@pytest.mark.parametrize("arrival", list(itertools.permutations(["c1", "c2", "c3"])))
def test_a03_parallel_results_are_one_user_message_in_the_order_of_the_calls(arrival: tuple[str, ...]) -> None:
    called = assistant("", f("c1"), f("c2", "g"), f("c3", "h"))
    results = [tool_result(call_id, f"result of {call_id}") for call_id in arrival]
    _, _, (role, blocks) = turns(user("q"), called, *results)
    assert role == "user"
    assert [(b["type"], b["tool_use_id"]) for b in blocks] == [("tool_result", c) for c in ("c1", "c2", "c3")]


def test_a05_results_come_first_whatever_stood_before_them() -> None:
    history = [
        user("q"),
        assistant("", f("c1"), f("c2")),
        user("note"),
        tool_result("c1", "42"),
        user("n2"),
        tool_result("c2", "43"),
    ]
    for messages in (history, list(settle(history))):
        _, _, (role, blocks) = turns(*messages)
        assert role == "user"
        assert [b.get("tool_use_id") or b["text"] for b in blocks] == ["c1", "c2", "note", "n2"]


def test_a06_extra_content_stands_behind_both_results_in_one_message() -> None:
    history = [
        user("q"),
        assistant("", f("c1", "shot"), f("c2", "ls")),
        tool_result("c1", "ok"),
        user("[picture]"),
        tool_result("c2", "a.py"),
    ]
    _, _, (role, blocks) = turns(*settle(history))
    assert [b.get("tool_use_id") or b["text"] for b in blocks] == ["c1", "c2", "[picture]"]


def test_a07_empty_text_blocks_are_left_out_and_the_call_stays() -> None:
    events = [start(), *text(0, ""), *text(1, "  \n"), *call(2, "c1", "f"), stop("tool_use"), STOP]
    message = answer(*events).message
    _, (_, blocks), _ = turns(user("hello"), message, tool_result("c1", "ok"))
    assert blocks == [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]


def test_a07_an_answer_with_nothing_in_it_gets_a_visible_text() -> None:
    message = answer(start(), *text(0, " \n"), stop("end_turn"), STOP).message
    _, (_, blocks), _ = turns(*settle([user("hello"), message, user("well?")]))
    assert blocks == [{"type": "text", "text": NO_TEXT}]


def test_a08_a_silent_command_gets_a_marker_with_its_id() -> None:
    history = [user("q"), assistant("", f("c1"), f("c2")), tool_result("c1", ""), tool_result("c2", "\n\n")]
    _, _, (_, blocks) = turns(*settle(history))
    assert [(b["tool_use_id"], b["content"]) for b in blocks] == [("c1", NO_OUTPUT), ("c2", NO_OUTPUT)]


def signed(thought: str = "plan", signature: str = "sigA") -> list[dict[str, Any]]:
    return block(
        0,
        "thinking",
        {"type": "thinking_delta", "thinking": thought},
        {"type": "signature_delta", "signature": signature},
        thinking="",
    )


def test_a10_thinking_keeps_its_signature_and_its_place() -> None:
    message = answer(*signed(), *call(1, "c1", "f"), stop("tool_use"), STOP).message
    right = [
        {"type": "thinking", "thinking": "plan", "signature": "sigA"},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
    ]
    assert message.opaque[0].data["blocks"] == right
    assert message.tool_calls == (f("c1"),) and message.reasoning == "plan"
    server = Server(*sse(start(), *text(0, "ok"), stop("end_turn"), STOP))
    complete(client(server), Request((*HELLO.messages, message, tool_result("c1", "x"))))
    assert server.body["messages"][1]["content"] == right


def test_a10_an_unknown_delta_is_kept_and_never_text() -> None:
    odd = {"type": "aroma_delta", "aroma": "coffee"}
    events = [start(), *block(0, "text", {"type": "text_delta", "text": "hi"}, odd, text=""), stop("end_turn"), STOP]
    message = answer(*events).message
    assert message.content == "hi"
    assert message.opaque[0].data["unknown"] == [odd]
    assert "coffee" not in json.dumps(sent([user("hello"), message, user("more")]))


def test_a13_four_calls_with_empty_and_equal_ids_get_four_ids() -> None:
    calls = [("", "f"), ("", "f"), ("k", "g"), ("k", "g")]
    events = [e for i, (call_id, name) in enumerate(calls) for e in call(i, call_id, name, json.dumps({"n": i}))]
    found = [answer(start(), *events, stop("tool_use"), STOP).message.tool_calls for _ in range(2)]
    assert found[0] == found[1]
    ids = [c.id for c in found[0]]
    assert len(set(ids)) == 4 and all(ids)
    assert [c.parsed()["n"] for c in found[0]] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "foreign", ["call_PT-12x", "toolu_01AbCdEfGh", "a", "call:1", "functions.f:0", "ключ", "z" * 65, ""]
)
def test_a14_ids_of_another_provider_are_written_in_this_alphabet_and_the_log_keeps_its_own(foreign: str) -> None:
    history = [user("q"), assistant("", f(foreign)), tool_result(foreign, "x")]
    _, (_, (used,)), (_, (result,)) = turns(*history)
    assert used["id"] == result["tool_use_id"] == wire_id(foreign)
    assert history[1].tool_calls[0].id == foreign
    fits = foreign in ("call_PT-12x", "toolu_01AbCdEfGh", "a")
    assert (used["id"] == foreign) is fits


# ---------------------------------------------------------------------------------------------------------------- group G

PART = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Part"}}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "busy"}, "overloaded"),
        ({"type": "invalid_request_error", "message": "bad field"}, "bad_request"),
        ({"type": "rate_limit_error", "message": "slow down"}, "rate_limit"),
        ({"type": "api_error", "message": "boom"}, "server"),
        ({"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}, "overflow"),
    ],
)
def test_g11_error_event_after_text(error: dict[str, str], kind: str) -> None:
    chunks = sse(PART, {"type": "ping"}, {"type": "error", "error": error})
    with pytest.raises(ProviderError) as caught:
        complete(client(Server(*chunks)), HELLO)
    assert (caught.value.kind, caught.value.partial, caught.value.status) == (kind, "Part", 200)
    assert error["message"] in str(caught.value)


def test_g17_a_call_without_arguments() -> None:
    for events in (call(0, "c1", "now"), call(0, "c1", "now", ""), call(0, "c1", "now", "", "  ")):
        (found,) = answer(start(), *events, stop("tool_use"), STOP).message.tool_calls
        assert found == ToolCall("c1", "now", "{}")
        assert found.parsed() == {}
    _, (_, blocks), _ = turns(user("q"), assistant("", found), tool_result("c1", "noon"))
    assert blocks[0]["input"] == {}


def test_g18_running_totals_are_not_added_up() -> None:
    events = [
        start(input_tokens=25, cache_read_input_tokens=9, output_tokens=1),
        *text(0, "x"),
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}},
        stop("end_turn", output_tokens=15, cache_read_input_tokens=9),
        STOP,
    ]
    assert answer(*events).usage == Usage(25, 9, 0, 15)


@pytest.mark.parametrize(
    ("first", "then", "right"),
    [(25, {"input_tokens": None}, 25), (25, {}, 25), (0, {"input_tokens": 31}, 31), (25, {"input_tokens": 31}, 31)],
)
def test_g19_null_does_not_overwrite_a_known_count(first: int, then: dict[str, Any], right: int) -> None:
    found = answer(start(input_tokens=first), *text(0, "x"), stop("end_turn", output_tokens=15, **then), STOP).usage
    assert found == Usage(right, output=15)


def test_an_assembly_needs_no_server() -> None:
    assembly = Assembly("anthropic")
    for event in [start(input_tokens=1), *text(0, "hi"), stop("end_turn", output_tokens=1), STOP]:
        list(assembly.feed(event))
    assert assembly.reply().message.content == "hi" and assembly.ended
