"""The client: keys, proxies, errors, limits, and every deviation of a server that speaks nearly the same dialect."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.messages import Request, ToolCall, Usage, user
from agentkit.providers.base import Done, Provider, ProviderError, ReasoningDelta, TextDelta, complete
from agentkit.providers.openai import OpenAI
from agentkit.providers.profiles import DEEPSEEK, GENERIC, OPENAI, STRICT

from .servers import CALLS, DONE, HELLO, STOP, Server, answer, call, client, delta, events, shown, sse, text

KEY = "TEST-KEY-0001"
OK = (text("fine"), STOP, DONE)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AGENTKIT_API_KEY", "OPENAI_API_KEY", "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def failure(act: Callable[[], object]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        act()
    assert "\n" not in str(caught.value)
    return caught.value


def refusal(status: int, body: object = b"", agent: Callable[..., OpenAI] = client, **headers: str) -> ProviderError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    server = Server(raw, status=status, headers={name.replace("_", "-"): value for name, value in headers.items()})
    return failure(lambda: complete(agent(server), HELLO))


# --- the request -----------------------------------------------------------------------------------------------------


def test_request_goes_to_the_right_address_with_the_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(*OK)
    agent = client(server)
    monkeypatch.setenv("OPENAI_API_KEY", "second")
    complete(agent, HELLO)
    monkeypatch.setenv("AGENTKIT_API_KEY", " first\n")
    complete(agent, HELLO)
    complete(client(server, api_key="third"), HELLO)
    assert [r.headers["authorization"] for r in server.requests] == ["Bearer second", "Bearer first", "Bearer third"]
    assert {str(r.url) for r in server.requests} == {"https://api.openai.com/v1/chat/completions"}
    assert server.body["messages"] == [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize(
    ("base_url", "sent_to"),
    [
        ("https://api.deepseek.com", "https://api.deepseek.com/chat/completions"),
        ("http://localhost:8080/v1/", "http://localhost:8080/v1/chat/completions"),
        ("http://h.example/v1/chat/completions", "http://h.example/v1/chat/completions"),
        ("https://h.example/openai?version=2", "https://h.example/openai/chat/completions?version=2"),
    ],
)
def test_base_url_forms(base_url: str, sent_to: str) -> None:
    server = Server(*OK)
    complete(client(server, base_url=base_url), HELLO)
    assert str(server.requests[0].url) == sent_to


@pytest.mark.parametrize("base_url", ["", "localhost:8080", "ftp://h.example", "http://", "http://h.example:port", "/v1"])
def test_base_url_that_is_no_address_says_so(base_url: str) -> None:
    error = failure(lambda: OpenAI("m", base_url))
    assert error.kind == "configuration" and "base_url" in str(error)


def test_profile_and_name_follow_the_host() -> None:
    names = {
        "https://api.openai.com/v1": OPENAI,
        "https://api.deepseek.com": DEEPSEEK,
        "https://api.mistral.ai/v1": STRICT,
        "http://127.0.0.1:1/v1": GENERIC,
    }
    for url, profile in names.items():
        agent: Provider = OpenAI("m", url)
        assert (agent.name, agent.model) == (profile.name, "m")
    assert OpenAI("m", "http://127.0.0.1:1/v1", profile=DEEPSEEK).profile == DEEPSEEK


# --- keys ------------------------------------------------------------------------------------------------------------


def test_missing_key_names_the_variable_before_anything_is_sent() -> None:
    error = failure(lambda: complete(OpenAI("m"), HELLO))
    assert error.kind == "authentication" and error.status is None
    assert "AGENTKIT_API_KEY" in str(error) and "OPENAI_API_KEY" in str(error)


def test_an_empty_key_means_that_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTKIT_API_KEY", KEY)
    server = Server(*OK)
    complete(client(server, base_url="http://lab.example/v1", api_key=""), HELLO)
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "0.0.0.0", "lab.localhost"])
def test_this_machine_needs_no_key_and_never_gets_openais(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = Server(*OK)
    complete(client(server, base_url=f"http://{host}:8080/v1"), HELLO)
    assert "authorization" not in server.requests[0].headers
    monkeypatch.setenv("AGENTKIT_API_KEY", "mine")
    complete(client(server, base_url=f"http://{host}:8080/v1"), HELLO)
    assert server.requests[1].headers["authorization"] == "Bearer mine"


@pytest.mark.parametrize("key", ["TEST KEY-0001", "TEST-KÉY-0001", "TEST\nKEY-0001"])
def test_key_that_cannot_be_sent_is_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTKIT_API_KEY", key)
    error = failure(lambda: answer(*OK))
    assert error.kind == "configuration" and "AGENTKIT_API_KEY" in str(error)
    assert "0001" not in str(error)


def test_h21_key_is_never_shown() -> None:
    agent = OpenAI("m", "https://name:secret@h.example/v1?token=hidden", api_key=KEY)
    for seen in (repr(agent), str(vars(agent)), agent.name, agent.model):
        assert KEY not in seen
    assert repr(agent) == "OpenAI(model='m', server='https://h.example/v1')"


@pytest.mark.parametrize("echo", [KEY, f'"{KEY}".', "TEST****0001", "(TEST-KEY...0001)", "TEST-KEY-****", KEY[3:], KEY[:9]])
def test_h21_an_echoed_key_is_hidden_in_every_error(echo: str) -> None:
    def keyed(server: httpx.BaseTransport) -> OpenAI:
        return client(server, api_key=KEY)

    body = {"error": {"message": f"Incorrect key: {echo} given", "code": f"bad {echo}"}}
    for error in (
        refusal(401, body, keyed),
        refusal(500, f"<html><p>{echo}</p></html>".encode(), keyed),
        failure(lambda: complete(keyed(Server(text(echo), sse(body))), HELLO)),
        failure(lambda: complete(keyed(Server(fault=httpx.LocalProtocolError(f"Illegal header {echo}"))), HELLO)),
    ):
        seen = f"{error} {error.code} {error.partial}"
        assert not any(KEY[i : i + 6] in seen for i in range(len(KEY) - 5))
        assert "0001" not in seen and "[key]" in str(error)


def test_a_short_key_is_hidden_as_a_whole() -> None:
    error = refusal(401, {"error": "key lab-42 is unknown to lab"}, lambda s: client(s, api_key="lab-42"))
    assert "key [key] is unknown to lab" in str(error)


def test_a_placeholder_key_does_not_eat_words() -> None:
    error = refusal(404, {"error": "model none-of-these in ollama not found"}, lambda s: client(s, api_key="EMPTY"))
    assert "model none-of-these in ollama not found" in str(error)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "kind", "code", "says"),
    [
        (400, {"error": {"message": "no such field", "type": "invalid_request_error", "code": None}}, "bad_request",
         "invalid_request_error", "no such field"),
        (401, {"error": {"message": "bad key", "code": "invalid_api_key"}}, "authentication", "invalid_api_key",
         "AGENTKIT_API_KEY"),
        (402, {"error": {"message": "Insufficient Balance"}}, "authentication", None, "account"),
        (403, b"<html><b>Forbidden</b></html>", "authentication", None, "Forbidden"),
        (404, {"error": {"message": "no model", "code": "model_not_found"}}, "not_found", "model_not_found", "'m'"),
        (404, b"", "not_found", None, "base_url"),
        (408, b"", "timeout", None, "try again"),
        (413, b"", "overflow", None, "shorten"),
        (422, {"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs"}]}, "bad_request", None, "Extra inputs"),
        (429, {"error": {"message": "slow"}}, "rate_limit", None, "wait"),
        (429, {"error": {"message": "empty", "code": "insufficient_quota"}}, "authentication", "insufficient_quota",
         "account"),
        (500, {"error": "boom"}, "server", None, "boom"),
        (503, b"", "overloaded", None, "503"),
        (529, b"", "overloaded", None, "529"),
        (418, b"", "bad_request", None, "418"),
        (307, b"", "configuration", None, "base_url"),
        (400, {"object": "error", "message": "vllm says no", "type": "BadRequestError", "code": 400}, "bad_request",
         "BadRequestError", "vllm says no"),
        (400, {"message": {"detail": "mistral says no"}}, "bad_request", None, "mistral says no"),
        (400, [{"error": {"code": 400, "message": "gemini says no", "status": "INVALID_ARGUMENT"}}], "bad_request",
         "INVALID_ARGUMENT", "gemini says no"),
        (502, {"error": {"message": "Provider returned error", "code": 502,
                         "metadata": {"raw": '{"error":{"message":"real cause","type":"overloaded_error"}}'}}},
         "overloaded", "overloaded_error", "real cause"),
    ],
)  # fmt: skip
def test_errors_by_status(status: int, body: object, kind: str, code: str | None, says: str) -> None:
    error = refusal(status, body)
    assert (error.kind, error.status, error.code) == (kind, status, code)
    assert says in str(error) and "api.openai.com" in str(error)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"error": {"message": "m", "code": "context_length_exceeded"}}, "overflow"),
        ({"error": {"message": "This model's maximum context length is 10 tokens.", "code": "invalid_request_error"}},
         "overflow"),
        ({"error": {"code": 400, "message": "request exceeds the available context size",
                    "type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 8}}, "overflow"),
        ({"error": {"message": "too many tokens, please wait; the maximum context length is 10"}}, "rate_limit"),
        ({"error": {"message": "rate limit: prompt is too long for this minute"}}, "rate_limit"),
        ({"error": {"message": "max_tokens exceeds what this model can write"}}, "bad_request"),
        ({"error": {"message": "the name of the tool is too long"}}, "bad_request"),
    ],
)  # fmt: skip
def test_overflow_is_told_from_throttling(body: object, kind: str) -> None:
    assert refusal(400, body).kind == kind


def test_error_text_is_one_short_line() -> None:
    error = refusal(500, {"error": {"message": "line one\r\n\x1b[31mline two\x00 " + "x" * 5000}})
    assert "line one" in str(error) and "line two" in str(error)
    assert len(str(error)) < 500 and str(error).isprintable()


def test_a_huge_error_page_is_not_read_to_its_end() -> None:
    read = []

    def endless() -> Iterator[bytes]:
        while True:
            read.append(1)
            yield b"x" * 10_000

    class Endless(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            return httpx.Response(500, content=endless())

    assert failure(lambda: complete(client(Endless()), HELLO)).kind == "server"
    assert len(read) < 10


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "1.5"}, 1.5),
        ({"retry_after_ms": "250", "retry_after": "7"}, 0.25),
        ({"retry_after": "-3"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "inf"}, None),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert refusal(429, b"", **headers).retry_after == seconds


def test_retry_after_as_a_date_in_the_future() -> None:
    from email.utils import formatdate

    wait = refusal(429, b"", retry_after=formatdate(time.time() + 100, usegmt=True)).retry_after
    assert wait is not None and 90 < wait <= 100


def test_retry_after_inside_the_body() -> None:
    body = {"error": {"message": "m", "code": 429, "metadata": {"raw": "upstream is busy", "retry_after_seconds": 12}}}
    assert refusal(429, body).retry_after == 12
    error = failure(lambda: answer(sse(body)))
    assert (error.kind, error.retry_after) == ("rate_limit", 12) and "upstream is busy" in str(error)


def test_web_page_instead_of_an_answer_points_at_base_url() -> None:
    error = failure(lambda: answer(b"<!doctype html><p>Log in", headers={"content-type": "text/html; charset=utf-8"}))
    assert error.kind == "configuration" and "base_url" in str(error)


# --- the network -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind", "says"),
    [
        (httpx.ConnectError("[Errno 111] Connection refused"), "unreachable", "network"),
        (httpx.ConnectTimeout("timed out"), "timeout", "api.openai.com"),
        (httpx.ReadTimeout("timed out"), "timeout", "api.openai.com"),
        (httpx.ProxyError("403 Forbidden"), "unreachable", "proxy"),
        (httpx.WriteError("broken pipe"), "broken_stream", "api.openai.com"),
    ],
)
def test_faults_before_the_answer(fault: Exception, kind: str, says: str) -> None:
    def broken(request: httpx.Request) -> httpx.Response:
        raise fault

    error = failure(lambda: complete(client(httpx.MockTransport(broken)), HELLO))
    assert error.kind == kind and says in str(error)


def test_server_that_is_not_running() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = failure(lambda: complete(OpenAI("m", f"http://127.0.0.1:{port}/v1"), HELLO))
    assert error.kind == "unreachable"
    assert f"127.0.0.1:{port}" in str(error) and "start the server" in str(error)


@contextmanager
def loopback(write: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            write(self)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def test_pieces_are_shown_as_they_come_over_a_real_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")  # no proxy stands before this machine
    seen = threading.Event()

    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(text("one"))
        handler.wfile.flush()
        handler.wfile.write(b"".join(OK) if seen.wait(10) else sse({"error": "the first piece was held back"}))

    with loopback(write) as url:
        stream = OpenAI("m", url).stream(HELLO)
        assert next(stream) == TextDelta("one")
        seen.set()
        assert next(stream) == TextDelta("fine")
        assert isinstance(next(stream), Done)


def test_keep_alives_do_not_re_arm_the_timer_for_ever() -> None:
    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(text("begun"))
        try:
            while True:
                handler.wfile.write(b": keep-alive\n\n")
                handler.wfile.flush()
                time.sleep(0.02)
        except OSError:
            pass  # the client has hung up

    with loopback(write) as url:
        error = failure(lambda: complete(OpenAI("m", url, max_silence=0.2), HELLO))
        assert (error.kind, error.partial) == ("timeout", "begun") and "max_silence" in str(error)
        error = failure(lambda: complete(OpenAI("m", url, deadline=0.2), HELLO))
        assert (error.kind, error.partial) == ("timeout", "begun") and "deadline" in str(error)


def test_a_silent_server_is_given_up_in_time() -> None:
    release = threading.Event()
    with loopback(lambda handler: release.wait(10) and None) as url:
        for limits in (
            {"timeout": 0.1},
            {"max_silence": 0.1},
            {"deadline": 0.1},
            {"timeout": httpx.Timeout(None, read=0.1)},
        ):
            assert failure(lambda limits=limits: complete(OpenAI("m", url, **limits), HELLO)).kind == "timeout"
        release.set()


def test_given_transport_stays_open_for_the_next_call() -> None:
    closed = []

    class Closing(Server):
        def close(self) -> None:
            closed.append(1)

    agent = client(Closing(*OK))
    assert [complete(agent, HELLO).message.content for _ in range(2)] == ["fine", "fine"]
    assert not closed


def test_answer_that_is_not_read_to_its_end_is_closed() -> None:
    closed = []

    class Body(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield from OK

        def close(self) -> None:
            closed.append(1)

    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=Body()))
    stream = client(transport).stream(HELLO)
    next(stream)
    assert not closed
    stream.close()
    assert closed


# --- notebooks -------------------------------------------------------------------------------------------------------


def test_h11_one_provider_in_two_event_loops_and_in_threads() -> None:
    agent = client(Server(*OK))

    async def cell() -> str:
        return complete(agent, HELLO).message.content

    assert [asyncio.run(cell()), asyncio.run(cell())] == ["fine", "fine"]
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(complete(agent, HELLO).message.content)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == ["fine"] * 4


@pytest.mark.parametrize("name", ["ALL_PROXY", "all_proxy", "HTTPS_PROXY"])
@pytest.mark.parametrize("value", ["socks5://user:pw@127.0.0.1:9", "gopher://127.0.0.1:9"])
def test_h12_broken_proxy_variable_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if value.startswith("socks5"):
        monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # a good one, not to be blamed
    monkeypatch.setenv(name, value)
    assert complete(client(Server(*OK)), HELLO).message.content == "fine"
    agent = OpenAI("m", api_key=KEY)
    error = failure(lambda: complete(agent, HELLO))
    assert error.kind == "configuration"
    assert f"variable {name} cannot".lower() in str(error).lower()  # Windows knows capitals only
    assert "pw@" not in str(error), "a proxy's address can hold a password"


def test_h12_broken_certificate_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull + "/missing.pem")
    error = failure(lambda: complete(OpenAI("m", api_key=KEY), HELLO))
    assert error.kind == "configuration" and "SSL_CERT_FILE" in str(error)


def test_h12_package_loads_under_a_broken_proxy_and_without_httpx() -> None:
    code = "import sys, agentkit, agentkit.providers.base; sys.exit('httpx' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "ALL_PROXY": "socks5://127.0.0.1:9"},
        timeout=60,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    assert run.returncode == 0, run.stderr


# --- deviations of servers -------------------------------------------------------------------------------------------


def test_a13_empty_and_repeated_ids_become_distinct() -> None:
    wanted = [("", '{"n":1}'), ("", '{"n":2}'), ("k", "{}"), ("k", "{}")]
    streamed = [call(index=n, id=i, name="f", arguments=a) for n, (i, a) in enumerate(wanted)]
    no_index = [call(id=i, name="f", arguments=a) for i, a in wanted]
    at_once = delta(tool_calls=[{"id": i, "function": {"name": "f", "arguments": a}} for i, a in wanted])
    for chunks in (streamed, no_index, [at_once]):
        calls = answer(*chunks, CALLS, DONE).message.tool_calls
        assert [c.id for c in calls] == ["call_0", "call_1", "k", "k-2"]
        assert [c.arguments for c in calls] == [a for _, a in wanted]


def test_a13_made_up_ids_do_not_collide_with_real_ones() -> None:
    pieces = [call(index=n, id=i, name="f", arguments="{}") for n, i in enumerate(["", "call_0", "k", "k", "k-2"])]
    ids = [c.id for c in answer(*pieces, CALLS, DONE).message.tool_calls]
    assert ids == ["call_0-2", "call_0", "k", "k-3", "k-2"]


def test_deepseek_stream() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_cache_hit_tokens": 64,
        "prompt_cache_miss_tokens": 36,
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    found = events(
        b": keep-alive\n\n",
        delta(role="assistant", content=None, reasoning_content="think"),
        delta(content=None, reasoning_content="ing"),
        delta(content="answer", reasoning_content=None),
        sse({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}], "usage": usage}),
        DONE,
    )
    assert (shown(found, ReasoningDelta), shown(found, TextDelta)) == ("thinking", "answer")
    reply = found[-1].reply
    assert (reply.message.reasoning, reply.message.content) == ("thinking", "answer")
    assert reply.usage == Usage(fresh=36, cache_read=64, output=20, reasoning=15)


def test_deepseek_blank_lines_before_a_document() -> None:
    body = json.dumps({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}).encode()
    assert answer(b"\n", b"\n\n", body, headers={"content-type": "application/json"}).message.content == "x"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "refused"),
        ("model_context_window_exceeded", "overflow"),
        ("insufficient_system_resource", "other"),
        ("tool_calls", "stop"),
    ],
)
def test_finish_reasons(reason: str, finish: str) -> None:
    end = sse({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    assert answer(text("x"), end, DONE).finish == finish


def test_finish_reason_of_calls() -> None:
    one = call(index=0, id="c1", name="f", arguments="{}")
    for end in (STOP, CALLS, b"", CALLS.replace(b"tool_calls", b"function_call")):
        assert answer(one, end, DONE).finish == "tool_calls"
    cut = answer(one, CALLS.replace(b"tool_calls", b"length"), DONE)
    assert cut.finish == "length" and cut.message.tool_calls


def test_a_call_cut_off_before_its_name_is_left_out() -> None:
    cut = CALLS.replace(b"tool_calls", b"length")
    reply = answer(call(index=0, id="c1", name="f", arguments="{}"), call(index=1, id="c2"), cut, DONE)
    assert (reply.finish, [c.id for c in reply.message.tool_calls]) == ("length", ["c1"])


def test_finish_reason_as_an_empty_text_is_none() -> None:
    chunk = sse({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": ""}]})
    assert failure(lambda: answer(chunk)).kind == "broken_stream"


def test_refusal_in_words() -> None:
    reply = answer(delta(refusal="I can't"), delta(refusal=" do that"), STOP, DONE)
    assert (reply.message.content, reply.finish) == ("I can't do that", "refused")


def test_ollama_role_on_every_chunk_and_a_whole_call_in_one() -> None:
    reply = answer(
        delta(role="assistant", reasoning="hm", content=""),
        delta(role="assistant", content="a"),
        delta(role="assistant", content="", tool_calls=[{"id": "x", "function": {"name": "f", "arguments": '{"a":1}'}}]),
        delta(role="assistant", tool_calls=[{"id": "y", "index": 0, "function": {"name": "g", "arguments": {"b": "ü"}}}]),
        STOP,
        DONE,
    )
    assert (reply.message.reasoning, reply.message.content, reply.finish) == ("hm", "a", "tool_calls")
    assert reply.message.tool_calls == (ToolCall("x", "f", '{"a":1}'), ToolCall("y", "g", '{"b": "ü"}'))


def test_ollama_every_call_says_index_0() -> None:
    pieces = [call(index=0, id=i, name="f", arguments=a) for i, a in (("x", "{}"), ("y", '{"n":1}'))]
    assert [c.id for c in answer(*pieces, CALLS, DONE).message.tool_calls] == ["x", "y"]
    nameless = [call(index=0, id="", name="f", arguments=a) for a in ('{"n":1}', '{"n":2}')]
    assert [c.arguments for c in answer(*nameless, CALLS, DONE).message.tool_calls] == ['{"n":1}', '{"n":2}']


def test_calls_without_arguments_are_told_apart_by_id_or_name() -> None:
    by_id = [call(index=0, id=i, name=n, arguments=a) for i, n, a in (("x", "f", ""), ("y", "g", "{}"))]
    by_name = [call(name=n, arguments=a) for n, a in (("f", ""), ("g", "{}"))]
    for pieces in (by_id, by_name):
        calls = answer(*pieces, CALLS, DONE).message.tool_calls
        assert [(c.name, c.arguments) for c in calls] == [("f", ""), ("g", "{}")]


def test_first_piece_without_an_id() -> None:
    late = answer(call(index=0, name="f", arguments='{"a"'), call(index=0, id="c1", arguments=":1}"), CALLS, DONE)
    assert late.message.tool_calls == (ToolCall("c1", "f", '{"a":1}'),)
    no_index = answer(call(name="f", arguments='{"a"'), call(id="c1", arguments=":1}"), CALLS, DONE)
    assert no_index.message.tool_calls == (ToolCall("c1", "f", '{"a":1}'),)
    never = answer(call(index=0, name="f", arguments="{}"), CALLS, DONE)
    assert never.message.tool_calls[0].id == "call_0"


def test_calls_whose_pieces_are_mixed() -> None:
    order = [(0, "c1", "f", ""), (1, "c2", "g", ""), (1, "", "", '{"b":'), (0, "", "", '{"a":1}'), (1, "", "", "2}")]
    pieces = []
    for index, call_id, name, arguments in order:
        known = {k: v for k, v in (("id", call_id), ("name", name)) if v}
        pieces.append(call(index=index, arguments=arguments, **known))
    reply = answer(*pieces, CALLS, DONE)
    assert reply.message.tool_calls == (ToolCall("c1", "f", '{"a":1}'), ToolCall("c2", "g", '{"b":2}'))


def test_name_in_pieces_repeated_or_with_a_new_id_each_time() -> None:
    pieces = answer(call(index=0, id="c", name="read_"), call(index=0, name="file", arguments="{}"), CALLS, DONE)
    assert pieces.message.tool_calls == (ToolCall("c", "read_file", "{}"),)
    repeated = [call(index=0, id="c", name="f", arguments=a) for a in ('{"a":', "1", "}")]
    assert answer(*repeated, CALLS, DONE).message.tool_calls == (ToolCall("c", "f", '{"a":1}'),)
    renamed = [call(index=0, id="c", name="f"), call(index=0, id="d", arguments="{}")]
    assert answer(*renamed, CALLS, DONE).message.tool_calls == (ToolCall("c", "f", "{}"),)


def test_arguments_that_are_not_json_survive() -> None:
    reply = answer(call(index=0, id="c", name="f", arguments='{"a": oops'), CALLS, DONE)
    assert reply.message.tool_calls[0].arguments == '{"a": oops'


def test_old_form_of_a_call() -> None:
    reply = answer(delta(function_call={"name": "f", "arguments": '{"a"'}), delta(function_call={"arguments": ":1}"}), DONE)
    assert reply.message.tool_calls == (ToolCall("call_0", "f", '{"a":1}'),)


def test_llama_cpp_pings_timings_and_progress() -> None:
    reply = answer(
        b": ping\n\n",
        sse({"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}],
             "prompt_progress": {"total": 9, "processed": 3}}),
        text("x"),
        sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "timings": {"cache_n": 2}}),
        sse({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1,
                                      "prompt_tokens_details": {"cached_tokens": 2}}}),
        DONE,
    )  # fmt: skip
    assert reply.message.content == "x"
    assert reply.usage == Usage(fresh=7, cache_read=2, output=1)


def test_vllm_error_in_a_stream_without_an_error_key() -> None:
    error = failure(
        lambda: answer(text("x"), sse({"object": "error", "message": "no", "type": "BadRequestError", "code": 400}))
    )
    assert (error.kind, error.partial) == ("bad_request", "x")


def test_lm_studio_overflow_in_a_200_stream() -> None:
    body = {"error": {"message": "the number of tokens to keep is greater than the context length"}}
    error = failure(lambda: answer(b"event: error\n" + sse(body)))
    assert (error.kind, error.status) == ("overflow", 200)


def test_moonshot_usage_inside_the_choice() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 4}
    end = sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}]})
    assert answer(text("x"), end, DONE).usage == Usage(fresh=5, cache_read=4, output=2)


def test_openrouter_error_in_the_choice_and_comments() -> None:
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "upstream"}}]}
    error = failure(lambda: answer(b": OPENROUTER PROCESSING\n\n", text("x"), sse(end)))
    assert (error.kind, error.partial) == ("server", "x") and "upstream" in str(error)
    bare = {"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}
    assert failure(lambda: answer(text("x"), sse(bare), DONE)).kind == "server"


def test_two_reasoning_fields_count_once() -> None:
    reply = answer(delta(reasoning_content="a", reasoning="a"), delta(reasoning_content="", reasoning_text="b"), STOP)
    assert reply.message.reasoning == "ab"


def test_content_as_a_list_of_parts() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "x"}]
    reply = answer(delta(content=parts), STOP, DONE)
    assert (reply.message.reasoning, reply.message.content) == ("hm", "x")


def test_content_missing_null_or_of_a_strange_kind() -> None:
    odd = [delta(role="assistant"), delta(content=None), delta(content=5), sse([]), sse(3), sse({"choices": [7, {}]})]
    assert answer(*odd, text("x"), STOP, DONE).message.content == "x"


def test_only_the_first_choice_counts() -> None:
    second = sse({"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]})
    reply = answer(text("x"), second, STOP, DONE)
    assert (reply.message.content, reply.finish) == ("x", "stop")


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", ""])
def test_document_instead_of_a_stream(kind: str) -> None:
    message = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [{"id": "", "type": "function", "function": {"name": "f", "arguments": ""}}] * 2,
    }
    usage = {"prompt_tokens": 5, "completion_tokens": 3}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": usage})
    found = events(body[:20].encode(), body[20:].encode(), headers={"content-type": kind})
    reply = found[-1].reply
    assert [(c.id, c.name) for c in reply.message.tool_calls] == [("call_0", "f"), ("call_1", "f")]
    assert (reply.message.reasoning, reply.usage) == ("hm", Usage(fresh=5, output=3))
    assert shown(found, ReasoningDelta) == "hm"


def test_document_that_is_an_error_or_no_answer() -> None:
    assert failure(lambda: answer(b'{"error":{"message":"m","code":"context_length_exceeded"}}')).kind == "overflow"
    assert failure(lambda: answer(b"{}")).kind == "broken_stream"
    assert failure(lambda: answer(b'{"choices":[{"message":{"conte')).kind == "broken_stream"


def test_wrong_or_missing_content_type_and_byte_order_mark() -> None:
    for headers in ({"content-type": "text/plain; charset=latin-1"}, {"x": "y"}):
        assert answer(text("ü"), STOP, DONE, headers=headers).message.content == "ü"
    assert answer(b"\xef\xbb\xbf" + text("a"), STOP, DONE).message.content == "a"


def test_line_separators_inside_the_text_end_no_line() -> None:
    assert answer(text("a\u2028b\x85c\x0bd"), STOP, DONE).message.content == "a\u2028b\x85c\x0bd"


# --- any split of a stream -------------------------------------------------------------------------------------------

STREAM = b"".join(
    [
        b": hi\n\n",
        delta(role="assistant", reasoning_content="想一想 "),
        b"id: 7\nevent: message\nretry: 5\n" + text("你好🌍 a\r\nb"),
        b'data: {"choices":[{"index":0,\ndata: "delta":{"content":"\\ud83c\\udf0d"}}]}\n\n',
        call(index=0, id="c1", name="f", arguments='{"a":'),
        call(index=0, arguments='"é"}'),
        CALLS,
        sse({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}),
        DONE,
    ]
)
WHOLE = answer(STREAM)


@given(
    cuts=st.lists(st.integers(0, len(STREAM)), max_size=40).map(sorted),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_any_split_gives_the_same_reply(cuts: list[int], end: bytes) -> None:
    stream = STREAM.replace(b"\n", end)
    edges = [0, *cuts, len(stream)]
    assert answer(*(stream[a:b] for a, b in zip(edges, edges[1:], strict=False))) == WHOLE


@given(st.integers(0, len(STREAM) - 1))
def test_a_stream_cut_anywhere_is_an_error_or_the_whole_answer(cut: int) -> None:
    try:
        reply = answer(STREAM[:cut])
    except ProviderError as error:
        assert error.kind == "broken_stream"
        assert WHOLE.message.content.startswith(error.partial)
    else:
        assert reply.message == WHOLE.message


def test_the_whole_answer_is_what_was_meant() -> None:
    assert WHOLE.message.content == "你好🌍 a\r\nb🌍"
    assert WHOLE.message.reasoning == "想一想 "
    assert WHOLE.message.tool_calls == (ToolCall("c1", "f", '{"a":"é"}'),)
    assert WHOLE.usage == Usage(fresh=9, output=4)
    assert events(STREAM)[-1] == Done(WHOLE)


def test_request_is_read_once_and_may_be_sent_again() -> None:
    server = Server(*OK)
    request = Request((user("again"),))
    agent = client(server)
    assert complete(agent, request) == complete(agent, request)
    assert server.requests[0].content == server.requests[1].content
