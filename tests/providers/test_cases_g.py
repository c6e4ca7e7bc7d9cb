"""Public failures of group G: streams as real servers and proxies send them."""

from __future__ import annotations

import json

import httpx
import pytest

from agentkit.messages import Request, ToolCall, Usage, assistant, tool_result, user
from agentkit.providers.base import ProviderError, TextDelta, complete
from agentkit.providers.openai_wire import to_wire
from agentkit.providers.profiles import GENERIC

from .servers import CALLS, DONE, HELLO, STOP, Server, answer, call, client, delta, events, shown, sse, text

G01 = (
    b'data: {"choices":[{"index":0,"delta":{"content":"\xe4\xbd\xa0\xe5',
    b"\xa5\xbd\xf0\x9f",
    b'\x8c\x8d"},"finish_reason":null}]}\n\n',
    STOP,
    DONE,
)


def failure(*chunks: bytes, **options: object) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        answer(*chunks, **options)
    return caught.value


def test_g01_character_split_over_two_chunks() -> None:
    assert answer(*G01).message.content == "你好🌍"


def test_g01_one_byte_chunks() -> None:
    assert answer(*(bytes([b]) for b in b"".join(G01))).message.content == "你好🌍"


def test_g01_character_cut_by_the_end_is_an_error() -> None:
    error = failure(text("whole"), b'data: {"choices":[{"index":0,"delta":{"content":"\xe4\xbd')
    assert (error.kind, error.partial) == ("broken_stream", "whole")
    assert "UTF-8" in str(error)


def test_g01_bad_byte_in_the_middle_is_an_error_and_no_replacement_character() -> None:
    found = []
    with pytest.raises(ProviderError, match="UTF-8"):
        for event in client(Server(text("a"), b'data: "\xff"\n\n', STOP, DONE)).stream(HELLO):
            found.append(event)
    assert found == [TextDelta("a")]


def test_g01_emoji_as_two_escaped_halves_in_two_chunks() -> None:
    halves = (
        b'data: {"choices":[{"delta":{"content":"a\\ud83c"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\udf0db"}}]}\n\n',
    )
    found = events(*halves, STOP, DONE)
    assert [e.text for e in found[:-1]] == ["a", "🌍b"]
    assert found[-1].reply.message.content == "a🌍b"
    alone = answer(halves[0], STOP, DONE).message.content
    assert alone == "a\ufffd" and alone.encode("utf-8")


def test_g02_crlf_with_a_chunk_border_inside() -> None:
    chunks = (
        b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\r',
        b'\n\r\ndata: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]}\r\n\r\n',
        b"data: [DONE]\r\n\r\n",
    )
    found = events(*chunks)
    assert [e.text for e in found[:-1]] == ["a", "b"]
    assert found[-1].reply.message.content == "ab"


@pytest.mark.parametrize("end", [b"\r", b"\r\n", b"\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_g02_every_line_end_at_every_chunk_size(end: bytes, size: int) -> None:
    stream = b"".join([text("a"), text("b"), STOP, DONE]).replace(b"\n", end)
    assert answer(*(stream[i : i + size] for i in range(0, len(stream), size))).message.content == "ab"


def test_g03_comments() -> None:
    chunks = (
        b": waiting\n\n",
        b":\n\n",
        text("x"),
        b": ping\n" + text("y"),
        b":no space\n\n",
        STOP,
        DONE,
    )
    assert answer(*chunks).message.content == "xy"


def test_g03_comment_between_two_data_lines() -> None:
    chunk = b'data: {"choices":[{"index":0,\n: ping\ndata: "delta":{"content":"z"}}]}\n\n'
    assert answer(chunk, STOP, DONE).message.content == "z"


def test_g05_no_space_after_the_colon() -> None:
    chunks = (
        b'data:{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n',
        b'data:  {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]}\n\n',
    )
    for done in (b"data:[DONE]\n\n", b"data: [DONE]\n\n", b"data:  [DONE] \n\n"):
        reply = answer(*chunks, done)
        assert (reply.message.content, reply.finish) == ("ab", "stop")


def test_g06_one_event_over_several_data_lines() -> None:
    found = []
    stream = (
        b'event: message\ndata: {"choices":[{"index":0,\ndata: "delta":{"content":"q"},\ndata: "finish_reason":null}]}\n\n',
        b'event: error\ndata: {"error":\ndata: {"message":"m"}}\n\n',
    )
    with pytest.raises(ProviderError, match=r"error: m\b") as caught:
        for event in client(Server(*stream)).stream(HELLO):
            found.append(event)
    assert found == [TextDelta("q")]
    assert caught.value.partial == "q"


USAGE = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}


@pytest.mark.parametrize(
    "last",
    [
        {"choices": [], "usage": USAGE},
        {"choices": [{"index": 0, "delta": {}}], "usage": USAGE},
        {"usage": USAGE},
        {"choices": None, "usage": USAGE},
    ],
)
def test_g07_usage_chunk_without_choices(last: dict[str, object]) -> None:
    first = sse({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": None}], "usage": None})
    reply = answer(first, STOP, sse(last), DONE)
    assert (reply.message.content, reply.finish) == ("hi", "stop")
    assert reply.usage == Usage(fresh=7, output=1)


def test_g07_usage_that_never_comes_is_none_and_not_zero() -> None:
    assert answer(text("hi"), STOP, DONE).usage is None
    assert answer(text("hi"), STOP, sse({"choices": [], "usage": {}}), DONE).usage is None
    zero = sse({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}})
    assert answer(text("hi"), STOP, zero, DONE).usage == Usage()


def test_g09_end_of_stream_without_the_sentinel() -> None:
    reply = answer(text("ok"), STOP)
    assert (reply.message.content, reply.finish) == ("ok", "stop")


def test_g09_last_blank_line_missing() -> None:
    assert answer(text("ok"), STOP.rstrip(b"\n")).message.content == "ok"
    assert answer(text("ok"), DONE.rstrip(b"\n")).message.content == "ok"


@pytest.mark.parametrize("fault", [httpx.RemoteProtocolError("peer closed"), httpx.ReadTimeout("slow")])
def test_g09_break_after_the_finish_reason_takes_nothing_away(fault: Exception) -> None:
    assert answer(text("ok"), STOP, fault=fault).message.content == "ok"
    assert answer(text("ok"), STOP, b'data: {"choices":[],"us').message.content == "ok"


def test_g10_end_of_stream_without_any_end() -> None:
    server = Server(text("partial"), call(index=0, id="c1", name="f", arguments="{}"))
    found = []
    with pytest.raises(ProviderError) as caught:
        for event in client(server).stream(HELLO):
            found.append(event)
    assert (caught.value.kind, caught.value.partial) == ("broken_stream", "partial")
    assert found == [TextDelta("partial")], "no call of a broken answer may get out"


def test_g10_retry_starts_from_nothing() -> None:
    server = Server(text("partial"))
    agent = client(server)
    for _ in range(2):
        with pytest.raises(ProviderError) as caught:
            complete(agent, HELLO)
        assert caught.value.partial == "partial"


def test_g10_empty_body_and_bare_sentinel_are_no_answer() -> None:
    assert failure().kind == "broken_stream"
    assert failure(DONE).kind == "broken_stream"
    assert failure(b": ping\n\n").kind == "broken_stream"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "busy"}, "overloaded"),
        ({"type": "invalid_request_error", "message": "bad field"}, "bad_request"),
        ({"message": "slow down", "code": 429}, "rate_limit"),
        ({"message": "boom", "code": "server_error"}, "server"),
    ],
)
def test_g11_error_event_after_text(error: dict[str, object], kind: str) -> None:
    found = failure(text("Part"), b'event: ping\ndata: {"type":"ping"}\n\n', sse({"error": error}))
    assert (found.kind, found.partial, found.status) == (kind, "Part", 200)
    assert str(error["message"]) in str(found)


def test_g11_error_counts_even_after_a_finish_reason() -> None:
    assert failure(text("Part"), STOP, sse({"error": {"message": "m"}})).partial == "Part"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (httpx.RemoteProtocolError("peer closed connection"), "broken_stream"),
        (httpx.ReadError("connection reset"), "broken_stream"),
        (httpx.DecodingError("bad gzip"), "broken_stream"),
        (httpx.StreamClosed(), "broken_stream"),
        (httpx.ReadTimeout("timed out"), "timeout"),
    ],
)
def test_g12_connection_breaks_while_reading(fault: Exception, kind: str) -> None:
    error = failure(text("one "), text("two"), fault=fault)
    assert (error.kind, error.partial) == (kind, "one two")
    assert "\n" not in str(error) and "api.openai.com" in str(error)
    assert error.__suppress_context__, "the reader sees one error, not httpx's as well"


def test_g13_error_body_of_a_streamed_request() -> None:
    body = json.dumps({"error": {"code": "context_length_exceeded", "message": "m"}}).encode()
    error = failure(body[:9], body[9:], status=400, headers={"content-type": "application/json"})
    assert (error.status, error.code, error.kind) == (400, "context_length_exceeded", "overflow")
    assert ": m;" in str(error)


def test_g13_error_body_that_breaks_off_still_has_its_status() -> None:
    error = failure(b'{"error": {"mess', status=503, fault=httpx.ReadError("reset"))
    assert (error.status, error.kind) == (503, "overloaded")


def test_g14_tool_call_deltas_without_index() -> None:
    reply = answer(
        call(id="c1", name="f", arguments='{"a":'),
        call(arguments="1}"),
        call(id="c2", name="g", arguments="{}"),
        CALLS,
        DONE,
    )
    assert reply.message.tool_calls == (ToolCall("c1", "f", '{"a":1}'), ToolCall("c2", "g", "{}"))
    assert reply.finish == "tool_calls"


def test_g16_arguments_before_the_name() -> None:
    reply = answer(call(index=0, id="c1", arguments='{"a"'), call(index=0, name="f", arguments=":1}"), CALLS, DONE)
    assert reply.message.tool_calls == (ToolCall("c1", "f", '{"a":1}'),)


def test_g16_call_that_never_gets_a_name_is_reported() -> None:
    error = failure(text("hm"), call(index=0, id="c1", arguments="{}"), CALLS, DONE)
    assert (error.kind, error.partial) == ("broken_stream", "hm")
    assert "without a name" in str(error)


@pytest.mark.parametrize("arguments", ["", None, "  "])
def test_g17_call_without_arguments(arguments: str | None) -> None:
    reply = answer(call(index=0, id="c1", name="now", arguments=arguments), CALLS, DONE)
    (found,) = reply.message.tool_calls
    assert found.parsed() == {}
    request = Request((user("time?"), assistant("", found), tool_result("c1", "noon")))
    sent = to_wire(request, "m", GENERIC)["messages"][1]["tool_calls"][0]
    assert sent["function"] == {"name": "now", "arguments": "{}"}


def test_g17_no_argument_field_at_all() -> None:
    (found,) = answer(call(index=0, id="c1", name="now"), CALLS, DONE).message.tool_calls
    assert found.parsed() == {}


def test_g18_running_totals_are_not_added_up() -> None:
    totals = [sse({"choices": [], "usage": {"prompt_tokens": 25, "completion_tokens": n}}) for n in (1, 7, 15)]
    assert answer(text("x"), *totals, STOP, DONE).usage == Usage(fresh=25, output=15)


@pytest.mark.parametrize(
    ("first", "then", "right"),
    [(25, {"prompt_tokens": None}, 25), (25, {}, 25), (0, {"prompt_tokens": 31}, 31), (25, {"prompt_tokens": 31}, 31)],
)
def test_g19_null_does_not_overwrite_a_known_count(first: int, then: dict[str, object], right: int) -> None:
    reply = answer(
        text("x"),
        sse({"choices": [], "usage": {"prompt_tokens": first, "prompt_tokens_details": {"cached_tokens": 9}}}),
        sse({"choices": [], "usage": {**then, "completion_tokens": 15, "prompt_tokens_details": None}}),
        STOP,
        DONE,
    )
    assert reply.usage is not None
    assert reply.usage.fresh == max(0, right - 9)
    assert (reply.usage.cache_read, reply.usage.output) == (9, 15)


def test_text_deltas_add_up_to_the_reply() -> None:
    found = events(delta(role="assistant", content=""), text("a"), text("b"), STOP, DONE)
    assert shown(found, TextDelta) == found[-1].reply.message.content == "ab"
    assert len([e for e in found if not isinstance(e, TextDelta)]) == 1
