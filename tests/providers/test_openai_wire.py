"""What is sent: the same bytes for the same request, and what each server wants."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.messages import Image, Message, Opaque, Request, ToolCall, ToolSpec, assistant, system, tool_result, user
from agentkit.providers.openai_wire import BRIDGE, encode, to_wire
from agentkit.providers.profiles import DEEPSEEK, GENERIC, OPENAI, STRICT, profile_for

from .servers import CALLS, DONE, HELLO, STOP, Server, answer, call, client, complete, delta, text

F = ToolSpec("f", "does f", {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}})
G = ToolSpec("g", "does g")
ROUND = (user("go"), assistant("", ToolCall("c1", "f")), tool_result("c1", "ok"))


def messages(request: Request, profile: object = GENERIC) -> list[dict]:
    return to_wire(request, "m", profile)["messages"]


def test_plain_round_as_the_dialect_writes_it() -> None:
    body = to_wire(Request((system("s"), *ROUND, assistant("done")), tools=(F,), max_output=9), "m", OPENAI)
    assert body == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 9,
        "tools": [{"type": "function", "function": {"name": "f", "description": "does f", "parameters": F.parameters}}],
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
            {"role": "assistant", "content": "done"},
        ],
    }
    assert to_wire(HELLO, "m", GENERIC).keys() == {"model", "stream", "stream_options", "messages"}
    assert to_wire(replace(HELLO, max_output=9), "m", GENERIC)["max_tokens"] == 9


def test_tools_give_the_same_bytes_in_any_order() -> None:
    turned = ToolSpec("f", "does f", {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "type": "object"})
    one = encode(to_wire(Request(ROUND, tools=(F, G)), "m", GENERIC))
    assert one == encode(to_wire(Request(ROUND, tools=(G, turned)), "m", GENERIC))
    assert json.loads(one)["tools"][1]["function"]["parameters"] == {"type": "object", "properties": {}}


def test_a_longer_history_begins_with_the_bytes_of_the_shorter() -> None:
    longer = (*ROUND, assistant("你好"), user("more"))
    for profile in (OPENAI, DEEPSEEK, GENERIC):
        sizes = (1, 3, 4, 5)
        bodies = [encode(to_wire(Request(longer[:n], tools=(F,)), "m", profile)) for n in sizes]
        assert all(b.startswith(a.removesuffix(b"]}")) for a, b in zip(bodies, bodies[1:], strict=False))
    assert "你好".encode() in bodies[-1], "not escaped"


def test_results_stand_in_the_order_of_their_calls() -> None:
    calls = tuple(ToolCall(i, "f") for i in ("c1", "c2", "c3"))
    results = [tool_result(i, f"r{i}") for i in ("c3", "stray", "c1", "c2")]
    sent = messages(Request((user("go"), assistant("", *calls), *results, user("next"))))
    assert [m.get("tool_call_id") for m in sent[2:]] == ["c1", "c2", "c3", "stray", None]


def test_nothing_is_repaired() -> None:
    sent = messages(Request((user("go"), assistant("", ToolCall("c1", "f")), user("and?"))))
    assert [m["role"] for m in sent] == ["user", "assistant", "user"], "an unanswered call must reach the server's 400"


def test_pictures_are_data_urls() -> None:
    picture = Image("image/png", "aGk=")
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    assert messages(Request((user("see", picture),)))[0]["content"] == [{"type": "text", "text": "see"}, part]
    assert messages(Request((user("", picture),)))[0]["content"] == [part]


def test_pictures_of_results_follow_the_whole_batch() -> None:
    calls = (ToolCall("c1", "f"), ToolCall("c2", "f"))
    shot = replace(tool_result("c1", "taken"), images=(Image("image/png", "aGk="),))
    batch = (user("go"), assistant("", *calls), shot, tool_result("c2", "ok"))
    for history in (batch, (*batch, assistant("nice"))):
        sent = messages(Request(history))
        assert [m["role"] for m in sent[2:5]] == ["tool", "tool", "user"]
        assert sent[2]["content"] == "taken"
        assert sent[4]["content"][1]["image_url"]["url"].endswith("aGk=")
        assert len(sent) == len(history) + 1


def test_half_a_surrogate_pair_can_be_sent() -> None:
    body = json.loads(encode(to_wire(Request((user("caf\udc97 ok\ud83c\udf0d"),)), "m", GENERIC)))
    assert body["messages"][0]["content"] == "caf\ufffd ok🌍"


def test_thinking_is_switched_off_where_the_server_knows_how() -> None:
    quiet = replace(HELLO, thinking=False)
    assert to_wire(quiet, "m", DEEPSEEK)["thinking"] == {"type": "disabled"}
    assert "thinking" not in to_wire(HELLO, "m", DEEPSEEK)
    assert to_wire(quiet, "m", OPENAI) == to_wire(HELLO, "m", OPENAI)


def test_a09_reasoning_travels_back_with_tool_calls() -> None:
    chunks = (delta(reasoning_content="r-1"), call(index=0, id="c1", name="f", arguments="{}"), CALLS, DONE)
    reply = answer(*chunks, headers={"content-type": "text/event-stream"})
    assert reply.message.reasoning == "r-1"
    history = (user("go"), reply.message, tool_result("c1", "ok"))
    sent = messages(Request(history, tools=(F,)), DEEPSEEK)[1]
    assert sent["reasoning_content"] == "r-1"
    assert sent["tool_calls"] == [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    for profile in (OPENAI, GENERIC, STRICT):
        assert "r-1" not in json.dumps(messages(Request(history, tools=(F,)), profile))


def test_a09_every_assistant_message_carries_it_when_there_are_tools_and_none_otherwise() -> None:
    history = (user("a"), assistant("b"), user("c"), replace(assistant("d"), reasoning="r"), user("e"))
    with_tools = messages(Request(history, tools=(F,)), DEEPSEEK)
    assert [m.get("reasoning_content") for m in with_tools] == [None, "", None, "r", None]
    assert not any("reasoning_content" in m for m in messages(Request(history), DEEPSEEK))


SIGNED = Message("assistant", "", tool_calls=(ToolCall("c1", "f"), ToolCall("c2", "f")), opaque=(
    Opaque("prov_x", {"extra_content": [{"google": {"thought_signature": "zzz"}}, None]}),
))  # fmt: skip


def test_a11_opaque_data_goes_back_to_its_issuer_only() -> None:
    history = (user("go"), SIGNED, tool_result("c1", "ok"), tool_result("c2", "ok"))
    other = messages(Request(history), replace(GENERIC, issuer="prov_y"))
    assert "zzz" not in json.dumps(other)
    assert [c["id"] for c in other[1]["tool_calls"]] == ["c1", "c2"]
    assert [m["tool_call_id"] for m in other[2:]] == ["c1", "c2"]
    back = messages(Request(history), replace(GENERIC, issuer="prov_x"))[1]["tool_calls"]
    assert back[0]["extra_content"] == {"google": {"thought_signature": "zzz"}}
    assert "extra_content" not in back[1]


@pytest.mark.parametrize("data", ["zzz", {"extra_content": ["zzz"]}, {"extra_content": None}, {"other": "zzz"}, None])
def test_a11_a_blob_that_does_not_fit_is_dropped_rather_than_corrupted(data: object) -> None:
    odd = replace(SIGNED, opaque=(Opaque("prov_x", data),))
    assert "zzz" not in json.dumps(messages(Request((user("go"), odd)), replace(GENERIC, issuer="prov_x")))


def test_a11_a_signature_of_a_stream_is_returned_to_the_same_server() -> None:
    extra = {"google": {"thought_signature": "sig"}}
    pieces = (call(id="c1", name="f", arguments="{}", extra_content=extra), CALLS, DONE)
    server = Server(*pieces)
    agent = client(server, base_url="https://gemini.example/v1")
    reply = complete(agent, HELLO)
    assert [o.issuer for o in reply.message.opaque] == ["gemini.example"]
    complete(agent, Request((user("go"), reply.message, tool_result("c1", "ok"))))
    assert server.body["messages"][1]["tool_calls"][0]["extra_content"] == extra
    elsewhere = Server(text("x"), STOP, DONE)
    complete(client(elsewhere), Request((user("go"), reply.message, tool_result("c1", "ok"))))
    assert b"sig" not in elsewhere.requests[0].content


def test_a14_ids_are_mapped_on_the_wire_and_kept_in_the_log() -> None:
    ids = ["call_PT-12x", "toolu_01AbCdEfGh", "a", "Abc123xyz"]
    history = (
        user("go"),
        assistant("", *(ToolCall(i, "f") for i in ids)),
        *(tool_result(i, "ok") for i in ids),
    )
    sent = messages(Request(history), STRICT)
    called = [c["id"] for c in sent[1]["tool_calls"]]
    assert all(re.fullmatch("[A-Za-z0-9]{9}", i) for i in called)
    assert len(set(called)) == 4 and called[3] == "Abc123xyz"
    assert [m["tool_call_id"] for m in sent[2:]] == called
    assert messages(Request(history), STRICT) == sent
    assert [c.id for c in history[1].tool_calls] == ids
    assert [c["id"] for c in messages(Request(history))[1]["tool_calls"]] == ids


def test_a14_openai_takes_ids_of_forty_characters_at_most() -> None:
    for length in (40, 41):
        history = (user("go"), assistant("", ToolCall("x" * length, "f")), tool_result("x" * length, "ok"))
        sent = messages(Request(history), OPENAI)
        assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"]
        assert (sent[2]["tool_call_id"] == "x" * length) == (length == 40)


def test_strict_server_gets_names_alternating_roles_and_a_reply_after_results() -> None:
    history = (system("s1"), system("s2"), user("a"), user("b", Image("image/png", "aGk=")), *ROUND[1:], user("next"))
    sent = messages(Request(history), STRICT)
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert sent[0]["content"] == "s1\n\ns2"
    assert [p["type"] for p in sent[1]["content"]] == ["text", "text", "image_url"]
    assert sent[3]["name"] == "f"
    assert sent[4]["content"] == BRIDGE
    assert "stream_options" not in to_wire(HELLO, "m", STRICT)
    assert "name" not in messages(Request(ROUND))[2]


def test_strict_server_gets_adjacent_assistant_messages_as_one() -> None:
    sent = messages(Request((user("a"), assistant("cut"), *ROUND[1:])), STRICT)
    assert [m["role"] for m in sent] == ["user", "assistant", "tool"]
    assert sent[1]["content"] == "cut" and sent[1]["tool_calls"]
    unanswered = (user("a"), assistant("", ToolCall("c1", "f")), assistant("", ToolCall("c2", "f")))
    assert [len(m.get("tool_calls", ())) for m in messages(Request(unanswered), STRICT)] == [0, 1, 1], "no call is lost"
    both = replace(STRICT, reasoning_field="reasoning")
    thought = (replace(assistant("x"), reasoning="1"), replace(assistant("y"), reasoning="2"))
    assert messages(Request((user("a"), *thought), tools=(F,)), both)[1] == {
        "role": "assistant",
        "content": "x\n\ny",
        "reasoning": "1\n\n2",
    }


ROLES = st.lists(st.sampled_from(["user", "assistant", "system", "batch"]), max_size=12)


@given(ROLES)
def test_strict_server_never_sees_one_role_twice(roles: list[str]) -> None:
    history: list[Message] = []
    for n, role in enumerate(roles):
        if role == "batch":
            calls = (ToolCall(f"c{n}", "f"), ToolCall(f"d{n}", "f"))
            history += [assistant("", *calls), *(tool_result(c.id, "ok") for c in calls)]
        else:
            history.append(Message(role, f"text {n}"))  # type: ignore[arg-type]
    sent = [m["role"] for m in messages(Request(tuple(history)), STRICT)]
    pairs = list(zip(sent, sent[1:], strict=False))
    assert all(a != b or a == "tool" for a, b in pairs)
    assert ("tool", "user") not in pairs
    everything = json.dumps(messages(Request(tuple(history)), STRICT))
    assert all(m.content in everything for m in history)


def test_profiles_are_found_by_host() -> None:
    hosts = {
        "api.openai.com": OPENAI,
        "api.deepseek.com": DEEPSEEK,
        "api.mistral.ai": STRICT,
        "127.0.0.1": GENERIC,
        "notopenai.com": GENERIC,
        "openai.com.example": GENERIC,
    }
    assert {host: profile_for(host) for host in hosts} == hosts
