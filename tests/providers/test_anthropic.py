"""The client of the Messages API against a server that says exactly what a test tells it to."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.messages import Request, ToolCall, ToolSpec, Usage, assistant, system, tool_result, user
from agentkit.providers.anthropic import Anthropic
from agentkit.providers.anthropic_models import ROOM_TO_THINK, binds_thinking
from agentkit.providers.base import Done, ProviderError, ReasoningDelta, TextDelta, complete

from .messages_api import STOP, answer, block, call, client, deltas, sent, sse, start, stop, text
from .servers import HELLO, Server

KEY = "TEST-KEY-0123456789"
TOOLS = (ToolSpec("f", "Do f."), ToolSpec("a", "Do a.", {"type": "object", "properties": {"p": {"type": "string"}}}))


def thinking(index: int, thought: str, signature: str) -> list[dict[str, Any]]:
    pieces = [{"type": "thinking_delta", "thinking": thought}] if thought else []
    return block(index, "thinking", *pieces, {"type": "signature_delta", "signature": signature}, thinking="", signature="")


# ----------------------------------------------------------------------------------------------------------------- answers


def test_text_in_pieces_is_streamed_and_joined() -> None:
    found = deltas(start(input_tokens=3), {"type": "ping"}, *text(0, "one ", "two"), stop("end_turn", output_tokens=2), STOP)
    assert found[:-1] == [TextDelta("one "), TextDelta("two")]
    assert isinstance(found[-1], Done)
    assert (found[-1].reply.message.content, found[-1].reply.finish) == ("one two", "stop")
    assert found[-1].reply.usage == Usage(3, output=2)


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_any_chunks_and_line_ends(size: int, end: str) -> None:
    events = [start(), *text(0, "你好", "🌍"), *call(1, "c1", "f", '{"a":', '"é"}'), stop("tool_use"), STOP]
    stream = b"".join(sse(*events)).replace(b"\n", end.encode())
    chunks = [stream[i : i + size] for i in range(0, len(stream), size)]
    reply = complete(client(Server(*chunks)), HELLO)
    assert reply.message.content == "你好🌍"
    assert reply.message.tool_calls == (ToolCall("c1", "f", '{"a":"é"}'),)
    assert reply.finish == "tool_calls"


def test_several_text_blocks_are_paragraphs_in_the_stream_as_well() -> None:
    found = deltas(start(), *text(0, "one"), *call(1, "c1", "f"), *text(2, "two"), stop("tool_use"), STOP)
    shown = "".join(e.text for e in found if isinstance(e, TextDelta))
    assert shown == found[-1].reply.message.content == "one\n\ntwo"  # type: ignore[union-attr]


def test_an_answer_that_is_not_streamed() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "one", "citations": None},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"p": 1}},
    ]
    body = {
        "type": "message",
        "content": content,
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "output_tokens": 2},
    }
    server = Server(json.dumps(body).encode(), headers={"content-type": "application/json"})
    reply = complete(client(server, streamed=False), HELLO)
    assert "stream" not in server.body
    assert (reply.message.content, reply.message.reasoning, reply.finish) == ("one", "hm", "tool_calls")
    assert reply.message.tool_calls == (ToolCall("c1", "f", '{"p": 1}'),)
    assert reply.usage == Usage(5, output=2)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "overflow"),
        ("refusal", "refused"),
        ("something_new", "other"),
    ],
)
def test_every_reason_to_stop(reason: str, finish: str) -> None:
    assert answer(start(), *text(0, "hm"), stop(reason), STOP).finish == finish


def test_an_answer_that_pauses_is_sent_back_unchanged_and_goes_on() -> None:
    odd = block(0, "server_tool_use", id="s1", name="web_search", input={"q": "x"})
    first = [start(input_tokens=10), *odd, *text(1, "Looking."), stop("pause_turn", output_tokens=4), STOP]
    second = [start(input_tokens=20), *text(0, "Found."), stop("end_turn", output_tokens=3), STOP]
    server = InTurn(sse(*first), sse(*second))
    reply = complete(client(server), HELLO)
    assert reply.message.content == "Looking.\n\nFound."
    assert reply.finish == "stop"
    assert reply.usage == Usage(30, output=7)
    back = server.bodies[1]["messages"][-1]
    assert back["role"] == "assistant"
    assert [b["type"] for b in back["content"]] == ["server_tool_use", "text"]
    again = sent([user("q"), reply.message, user("and?")])["messages"][1]["content"]
    assert [b["type"] for b in again] == ["server_tool_use", "text", "text"]


def test_an_answer_that_only_ever_pauses_ends() -> None:
    events = [start(), *text(0, "wait"), stop("pause_turn"), STOP]
    server = InTurn(sse(*events))
    assert complete(client(server), HELLO).finish == "other"
    assert len(server.bodies) < 20


class InTurn(Server):
    """Gives one answer after the other, the last one for ever."""

    def __init__(self, *answers: list[bytes]) -> None:
        super().__init__()
        self.answers = list(answers)
        self.bodies: list[Any] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.chunks = self.answers[min(len(self.bodies), len(self.answers) - 1)]  # type: ignore[assignment]
        response = super().handle_request(request)
        self.bodies.append(self.body)
        return response


def test_unknown_events_and_blocks_do_no_harm() -> None:
    odd = [{"type": "mood", "value": 3}, {"type": "content_block_stop", "index": 9}]
    reply = answer(start(), *odd, *block(0, "hologram", data="x"), *text(1, "fine"), stop("end_turn"), STOP)
    assert reply.message.content == "fine"
    assert reply.message.opaque[0].data["blocks"][0] == {"type": "hologram", "data": "x"}


def test_a_call_that_is_cut_off_keeps_its_half_arguments() -> None:
    reply = answer(start(), *call(0, "c1", "f", '{"path": "a'), stop("max_tokens"), STOP)
    assert reply.finish == "length"
    assert reply.message.tool_calls == (ToolCall("c1", "f", '{"path": "a'),)


# ------------------------------------------------------------------------------------------------------------------- usage


@pytest.mark.parametrize(
    ("fields", "right"),
    [
        ({}, None),
        ({"input_tokens": None, "output_tokens": None}, None),
        ({"input_tokens": 0, "output_tokens": 0}, Usage()),
        (
            {"input_tokens": 3, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5, "output_tokens": 2},
            Usage(3, 40, 5, 2),
        ),
        (
            {"input_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 6}},
            Usage(1, 0, 10),
        ),
        (
            {"input_tokens": 1, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 7}},
            Usage(1, output=9, reasoning=7),
        ),
    ],
)
def test_the_three_input_counts_stand_beside_one_another(fields: dict[str, Any], right: Usage | None) -> None:
    assert answer(start(**fields), *text(0, "x"), stop("end_turn"), STOP).usage == right


# ------------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("status", "kind_of_error", "message", "kind"),
    [
        (400, "invalid_request_error", "prompt is too long: 205123 tokens > 200000 maximum", "overflow"),
        (400, "invalid_request_error", "messages.1: text content blocks must be non-empty", "bad_request"),
        (401, "authentication_error", "invalid x-api-key", "authentication"),
        (402, "billing_error", "no credit", "authentication"),
        (403, "permission_error", "not allowed", "authentication"),
        (404, "not_found_error", "model: x", "not_found"),
        (429, "rate_limit_error", "slow down", "rate_limit"),
        (500, "api_error", "oops", "server"),
        (504, "timeout_error", "too slow", "timeout"),
        (529, "overloaded_error", "busy", "overloaded"),
    ],
)
def test_errors_become_kinds(status: int, kind_of_error: str, message: str, kind: str) -> None:
    body = {"type": "error", "error": {"type": kind_of_error, "message": message}, "request_id": "req_1"}
    server = Server(json.dumps(body).encode(), status=status, headers={"retry-after": "7"})
    with pytest.raises(ProviderError) as caught:
        complete(client(server), HELLO)
    error = caught.value
    assert (error.kind, error.status, error.code, error.retry_after) == (kind, status, kind_of_error, 7.0)
    assert message in str(error) and "\n" not in str(error)


def test_a_stream_without_its_end_is_no_answer_and_with_its_reason_it_is() -> None:
    events = sse(start(), *text(0, "half"))
    with pytest.raises(ProviderError) as caught:
        complete(client(Server(*events)), HELLO)
    assert (caught.value.kind, caught.value.partial) == ("broken_stream", "half")
    cut = Server(*events, *sse(stop("end_turn")), fault=httpx.ReadError("reset"))
    assert complete(client(cut), HELLO).message.content == "half"


def test_a_call_without_a_name_and_an_empty_body_are_reported() -> None:
    with pytest.raises(ProviderError, match="without a name"):
        answer(start(), *call(0, "c1", "", "{}"), stop("tool_use"), STOP)
    with pytest.raises(ProviderError, match="no answer"):
        answer()


# -------------------------------------------------------------------------------------------------------------- key, limits


def test_the_key_comes_from_its_own_variable_and_goes_only_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "OTHER-KEY-0123456789")
    monkeypatch.delenv("AGENTKIT_API_KEY", raising=False)
    home = Server(*sse(start(), *text(0, "x"), stop("end_turn"), STOP))
    complete(Anthropic("m", transport=home), HELLO)
    headers = home.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in headers
    for url in ("https://elsewhere.example/anthropic", "http://127.0.0.1:8080", "https://anthropic.com.evil.example"):
        away = Server(*sse(start(), *text(0, "x"), stop("end_turn"), STOP))
        complete(Anthropic("m", url, transport=away), HELLO)
        assert "x-api-key" not in away.requests[0].headers


def test_no_key_is_one_line_that_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AGENTKIT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(ProviderError, match="ANTHROPIC_API_KEY") as caught:
        complete(Anthropic("m"), HELLO)
    assert caught.value.kind == "authentication" and "\n" not in str(caught.value)


def test_the_key_shows_nowhere() -> None:
    error = {"type": "error", "error": {"type": "authentication_error", "message": f"bad key {KEY} or {KEY[:7]}***"}}
    provider = Anthropic("m", api_key=KEY, transport=Server(json.dumps(error).encode(), status=401))
    with pytest.raises(ProviderError) as caught:
        complete(provider, HELLO)
    everywhere = f"{caught.value} {vars(caught.value)} {provider!r} {vars(provider)}"
    assert KEY not in everywhere and KEY[:7] not in everywhere
    assert "ANTHROPIC_API_KEY" in str(caught.value)


@pytest.mark.parametrize(
    "url", ["https://x.example", "https://x.example/v1", "https://x.example/v1/messages", "https://x.example/"]
)
def test_the_address_may_end_as_people_write_it(url: str) -> None:
    server = Server(*sse(start(), *text(0, "x"), stop("end_turn"), STOP))
    complete(Anthropic("m", url, transport=server), HELLO)
    assert str(server.requests[0].url) == "https://x.example/v1/messages"


def test_unknown_marks_are_refused_with_the_names_there_are() -> None:
    with pytest.raises(ProviderError, match="recommended"):
        Anthropic("m", marks="everywhere")


def test_pings_are_keep_alives_and_no_data() -> None:
    from agentkit.providers.sse import Patience, payloads

    clock = iter(range(0, 10_000, 9))
    with pytest.raises(ProviderError, match="keep-alives"):
        list(payloads(iter(sse({"type": "ping"}) * 4), Patience(20, 1000, lambda: float(next(clock)))))


# ----------------------------------------------------------------------------------------------------------- count, thinking


def test_count_tokens_asks_its_own_address() -> None:
    server = Server(b'{"input_tokens": 42}', headers={"content-type": "application/json"})
    assert client(server).count_tokens(Request((system("s"), user("q")), TOOLS)) == 42
    assert str(server.requests[0].url).endswith("/v1/messages/count_tokens")
    assert not {"max_tokens", "stream"} & server.body.keys()
    with pytest.raises(ProviderError, match="no count"):
        client(Server(b"{}")).count_tokens(HELLO)


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("claude-haiku-4-5", {"thinking": {"type": "disabled"}, "max_tokens": 100}),
        ("claude-sonnet-5", {"thinking": {"type": "disabled"}, "max_tokens": 100}),
        ("claude-sonnet-5-5", {"thinking": {"type": "between_tools"}, "max_tokens": 100}),
        ("claude-opus-5-5", {"output_config": {"effort": "low"}, "max_tokens": 100 + ROOM_TO_THINK}),
        ("claude-fable-5-1", {"output_config": {"effort": "low"}, "max_tokens": 100 + ROOM_TO_THINK}),
    ],
)
def test_thinking_is_switched_off_as_each_model_takes_it(model: str, fields: dict[str, Any]) -> None:
    server = Server(*sse(start(), *text(0, "x"), stop("end_turn"), STOP))
    complete(Anthropic(model, transport=server, api_key=""), Request((user("q"),), max_output=100, thinking=False))
    assert {k: server.body[k] for k in ("thinking", "max_tokens", "output_config") if k in server.body} == fields


@pytest.mark.parametrize(
    ("model", "binds"),
    [
        ("claude-3-5-haiku", False),
        ("claude-opus-4-8", False),
        ("claude-haiku-4-5-20251001", False),
        ("claude-opus-5", True),
        ("claude-opus-5-5", True),
        ("claude-fable-5-1", True),
        ("whatever", True),
    ],
)
def test_which_models_take_thinking_back_whatever_stands_before_it(model: str, binds: bool) -> None:
    assert binds_thinking(model) is binds


def reply_with_thinking(question: str = "q", signature: str = "sigA") -> Any:
    events = [start(), *thinking(0, "plan", signature), *call(1, "c1", "f"), stop("tool_use"), STOP]
    return complete(client(Server(*sse(*events))), Request((user(question),), TOOLS)).message


def test_thinking_goes_back_only_behind_what_it_stood_behind() -> None:
    message = reply_with_thinking()
    same = sent([user("q"), message, tool_result("c1", "ok")], TOOLS)["messages"][1]["content"]
    assert [b["type"] for b in same] == ["thinking", "tool_use"]
    for changed in ([user("summary of q")], [system("s"), user("q")], [user("earlier"), assistant("yes"), user("q")]):
        other = sent([*changed, message, tool_result("c1", "ok")], TOOLS)["messages"]
        assert [b["type"] for b in other[-2]["content"]] == ["tool_use"]
    assert "thinking" not in json.dumps(sent([user("q"), message, tool_result("c1", "ok")], TOOLS[:1])["messages"])


def test_an_older_model_gets_its_thinking_back_whatever_stands_before_it() -> None:
    message = reply_with_thinking()
    server = Server(*sse(start(), *text(0, "x"), stop("end_turn"), STOP))
    changed = Request((user("something else"), message, tool_result("c1", "ok")), TOOLS)
    complete(Anthropic("claude-opus-4-8", transport=server, api_key=""), changed)
    assert server.body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "plan", "signature": "sigA"}


def test_thinking_that_is_omitted_has_only_a_signature() -> None:
    found = deltas(start(), *thinking(0, "", "sigB"), *text(1, "hi"), stop("end_turn"), STOP)
    message = found[-1].reply.message  # type: ignore[union-attr]
    assert not any(isinstance(e, ReasoningDelta) for e in found) and message.reasoning == ""
    back = sent([user("hello"), message, user("more")])["messages"][1]["content"]
    assert back[0] == {"type": "thinking", "thinking": "", "signature": "sigB"}


_KINDS = st.sampled_from(["text", "thinking", "tool_use"])


@settings(max_examples=60)
@given(st.lists(st.tuples(_KINDS, st.text(st.characters(exclude_categories=("Cs",)), max_size=8)), max_size=6))
def test_whatever_comes_goes_back_as_it_came(parts: list[tuple[str, str]]) -> None:
    """Text that is empty is left out; all else keeps order, ids and every character."""
    events: list[dict[str, Any]] = [start()]
    for i, (kind, piece) in enumerate(parts):
        if kind == "text":
            events += text(i, piece)
        elif kind == "thinking":
            events += thinking(i, piece, f"sig{i}")
        else:
            events += call(i, f"c{i}", "f", json.dumps({"p": piece}))
    message = answer(*events, stop("tool_use"), STOP).message
    back = sent([user("hello"), message, *(tool_result(c.id, "ok") for c in message.tool_calls), user("go")])
    turns = [m for m in back["messages"] if m["role"] == "assistant"]
    right: list[dict[str, Any]] = []
    for i, (kind, piece) in enumerate(parts):
        if kind == "text" and piece.strip():
            right.append({"type": "text", "text": piece})
        elif kind == "thinking":
            right.append({"type": "thinking", "thinking": piece, "signature": f"sig{i}"})
        elif kind == "tool_use":
            right.append({"type": "tool_use", "id": f"c{i}", "name": "f", "input": {"p": piece}})
    came = [{k: v for k, v in b.items() if k != "cache_control"} for b in (turns[0]["content"] if turns else [])]
    assert came == (right or [{"type": "text", "text": message.content}])
