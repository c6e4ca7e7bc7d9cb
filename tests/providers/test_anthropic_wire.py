"""The wire form of the Messages API: pure data, and what holds for any history at all."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import PICTURE, TOOLS, conversations, histories

from agentkit.caching import PLACEMENTS
from agentkit.messages import Message, Opaque, Request, ToolCall, ToolSpec, assistant, system, tool_result, user
from agentkit.protocol import DIALECTS, violations
from agentkit.providers.anthropic_blocks import NOT_AN_OBJECT
from agentkit.providers.anthropic_wire import MOST_OUTPUT, Style, spots, to_wire, written
from agentkit.providers.openai_wire import encode
from agentkit.settle import settle
from agentkit.simulator import PROFILES
from agentkit.simulator.anthropic_api import MessagesApi
from agentkit.simulator.counter import Counter

MODEL = PROFILES["anthropic"].model


def wire(*messages: Message, tools: tuple[ToolSpec, ...] = TOOLS, **style: Any) -> dict[str, Any]:
    return to_wire(Request(messages, tools), MODEL, Style(**style))


def bare(body: dict[str, Any]) -> list[tuple[str, list[Any]]]:
    """Return the messages as (role, blocks without marks)."""
    return [
        (m["role"], [{k: v for k, v in b.items() if k != "cache_control"} for b in m["content"]]) for m in body["messages"]
    ]


def types(body: dict[str, Any]) -> list[tuple[str, list[str]]]:
    return [(role, [b["type"] for b in blocks]) for role, blocks in bare(body)]


def call(call_id: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(call_id, "read_file", arguments)


# ------------------------------------------------------------------------------------------------------------------- shape


def test_system_text_stands_beside_the_messages_and_neighbours_are_one_message() -> None:
    body = wire(system("rules"), system("summary"), user("one"), user("two"), assistant("a"), assistant("b"), user("three"))
    assert [b["text"] for b in body["system"]] == ["rules", "summary"]
    assert types(body) == [("user", ["text"] * 2), ("assistant", ["text"] * 2), ("user", ["text"])]


def test_a_round_of_results_is_one_user_message_with_the_results_first() -> None:
    body = wire(
        user("q"), assistant("hm", call("c1"), call("c2")), tool_result("c1", "1"), tool_result("c2", "2"), user("and?")
    )
    assert types(body)[1:] == [
        ("assistant", ["text", "tool_use", "tool_use"]),
        ("user", ["tool_result", "tool_result", "text"]),
    ]


def test_pictures_of_a_result_stand_inside_it_and_errors_are_marked() -> None:
    result = replace(tool_result("c1", "ok", is_error=True), images=(PICTURE,))
    (found,) = bare(wire(user("q"), assistant("", call("c1")), result))[-1][1]
    assert found["is_error"] is True
    assert [b["type"] for b in found["content"]] == ["text", "image"]
    assert found["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": PICTURE.data}
    assert "is_error" not in bare(wire(user("q"), assistant("", call("c1")), tool_result("c1", "x")))[-1][1][0]


def test_tools_are_sorted_and_their_schema_says_object() -> None:
    one, two = ToolSpec("b", "B."), ToolSpec("a", "A.", {"properties": {"z": {}, "y": {}}, "type": "object"})
    tools = wire(user("q"), tools=(one, two))["tools"]
    assert [t["name"] for t in tools] == ["a", "b"]
    assert [t["input_schema"] for t in tools] == [
        {"type": "object", "properties": {"y": {}, "z": {}}},
        {"type": "object"},
    ]


def test_there_is_always_a_limit_for_the_answer() -> None:
    assert wire(user("q"))["max_tokens"] == MOST_OUTPUT
    assert to_wire(Request((user("q"),), max_output=7), MODEL)["max_tokens"] == 7
    assert to_wire(Request((user("q"),), max_output=0), MODEL)["max_tokens"] == 0


@pytest.mark.parametrize(
    "arguments",
    ["", " ", "{}", '{"p": 1}', '{"p": "测试", "q": [1, {"r": null}]}'],
)
def test_arguments_become_an_object(arguments: str) -> None:
    block = bare(wire(user("q"), assistant("", call("c1", arguments)), tool_result("c1", "x")))[1][1][0]
    assert block["input"] == json.loads(arguments.strip() or "{}")


@pytest.mark.parametrize(
    "arguments", ['{"p": "a', "[]", "null", "NaN", '{"p": NaN}', '{"p": 1e999}', "[" * 5_000, "[" * 99_999]
)
def test_arguments_that_are_no_object_travel_inside_one(arguments: str) -> None:
    body = wire(user("q"), assistant("", call("c1", arguments)), tool_result("c1", "x"))
    assert bare(body)[1][1][0]["input"] == {NOT_AN_OBJECT: arguments}
    assert json.loads(encode(body))


# ------------------------------------------------------------------------------------------------------------------- marks


def marked(body: dict[str, Any]) -> list[str]:
    return [s.kind for s in spots(body) if "cache_control" in s.data]


def test_marks_stand_on_system_and_on_the_two_newest_user_messages() -> None:
    body = wire(system("s"), user("a"), assistant("b"), user("c"), assistant("d"), user("e"))
    assert marked(body) == ["system", "user", "user"]
    assert body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert marked(wire(system("s"), user("a"), placement=PLACEMENTS["none"])) == []


def test_a_long_life_is_written_into_every_mark() -> None:
    body = wire(system("s"), user("a"), life="1h")
    assert body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


def test_a_mark_is_no_part_of_what_an_answer_stands_behind() -> None:
    request = Request((system("s"), user("a")), TOOLS)
    names = {written(request, MODEL, Style(placement=p))[1] for p in PLACEMENTS.values()}
    assert len(names) == 1
    assert written(Request((system("s"), user("b")), TOOLS), MODEL, Style())[1] not in names


def test_blocks_that_were_kept_are_never_written_into() -> None:
    kept = [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "a"}]
    message = replace(assistant("a"), opaque=(Opaque("anthropic", {"blocks": kept}),))
    before = json.dumps(kept)
    for _ in range(2):
        to_wire(Request((user("q"), message, user("r"), assistant("x"), user("y"))), "claude-opus-4-8", Style())
    assert json.dumps(kept) == before


# -------------------------------------------------------------------------------- thinking, other hands


def thoughtful(text: str, *calls: ToolCall) -> Message:
    blocks = [
        {"type": "thinking", "thinking": "t", "signature": "s"},
        *([{"type": "text", "text": text}] if text else []),
        *({"type": "tool_use", "id": c.id, "name": c.name, "input": c.parsed()} for c in calls),
        {"type": "redacted_thinking", "data": "zzz"},
    ]
    return replace(assistant(text, *calls), opaque=(Opaque("anthropic", {"blocks": blocks}),))


def test_where_a_policy_changed_the_text_the_thinking_in_front_stays_and_the_rest_is_new() -> None:
    message = thoughtful("a long text", call("c1"))
    same, folded, other = message, replace(message, content="a …"), replace(message, tool_calls=(call("c1", '{"p": 1}'),))
    for sent, right in [
        (same, ["thinking", "text", "tool_use", "redacted_thinking"]),
        (folded, ["thinking", "text", "tool_use"]),
        (other, ["thinking", "text", "tool_use"]),
    ]:
        body = to_wire(Request((user("q"), sent, tool_result("c1", "x")), TOOLS), "claude-opus-4-8")
        assert types(body)[1] == ("assistant", right)
    assert "a long text" not in json.dumps(to_wire(Request((user("q"), folded), TOOLS), "claude-opus-4-8"))


def test_another_issuers_thinking_is_never_sent() -> None:
    message = replace(thoughtful("a"), opaque=(Opaque("somebody", {"blocks": [{"type": "thinking"}]}),), reasoning="secret")
    assert "secret" not in json.dumps(wire(user("q"), message, user("r")))
    assert types(wire(user("q"), message, user("r")))[1] == ("assistant", ["text"])


def test_calls_keep_matching_their_results_when_ids_were_rewritten() -> None:
    settled = settle([user("q"), thoughtful("", call("k"), call("k")), tool_result("k", "1"), tool_result("k", "2")])
    _, (_, blocks), (_, results) = bare(to_wire(Request(settled, TOOLS), "claude-opus-4-8"))
    ids = [b["id"] for b in blocks if b["type"] == "tool_use"]
    assert ids == [r["tool_use_id"] for r in results] and len(set(ids)) == 2


# -------------------------------------------------------------------------------------------------------------- any history

ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def judged(body: dict[str, Any]) -> None:
    """Let the simulator's server judge a body. Raises `Refused`."""
    body = json.loads(encode(body))
    api = MessagesApi(PROFILES["anthropic"], Counter("o200k_base", PROFILES["anthropic"].cache()))
    api.check(body, api.read(body))


@settings(max_examples=150, deadline=None)
@given(histories(), st.sampled_from(sorted(PLACEMENTS)))
def test_any_settled_history_is_accepted(messages: list[Message], placement: str) -> None:
    settled = (*settle(messages), user("go on"))
    request = Request(settled, TOOLS)
    assert not [v for dialect in DIALECTS for v in violations(request, dialect)]
    body = to_wire(request, MODEL, Style(placement=PLACEMENTS[placement]))
    judged(body)
    blocks = [b for m in body["messages"] for b in m["content"]]
    ids = [b.get("id") or b.get("tool_use_id") for b in blocks if b["type"] in ("tool_use", "tool_result")]
    assert all(ID.fullmatch(i) for i in ids)
    found = [s for s in spots(body) if "cache_control" in s.data]
    assert len(found) <= 4 and not {s.kind for s in found} & {"thinking", "empty"}
    roles = [m["role"] for m in body["messages"]]
    assert all(a != b for a, b in zip(roles, roles[1:], strict=False))


@settings(max_examples=100, deadline=None)
@given(conversations(), st.data())
def test_a_longer_history_begins_with_the_bytes_of_the_shorter_one(messages: list[Message], data: st.DataObject) -> None:
    settled = settle(messages)
    cut = data.draw(st.integers(0, len(settled)))
    short = [s.data for s in spots(wire(*settled[:cut], placement=PLACEMENTS["none"]))]
    long = [s.data for s in spots(wire(*settled, placement=PLACEMENTS["none"]))]
    assert json.dumps(long[: len(short)]) == json.dumps(short)
    assert encode(wire(*settled)) == encode(wire(*settled))


@settings(max_examples=100, deadline=None)
@given(histories())
def test_what_is_not_settled_is_written_all_the_same(messages: list[Message]) -> None:
    """It repairs nothing, and crashes on nothing: the server says what is wrong."""
    assert json.loads(encode(to_wire(Request(tuple(messages), TOOLS), MODEL)))
