"""The simulator: a strict provider with no key. It checks, counts, reads and answers, as the real API would.

Three parts, each on its own: the counter (`counter.py`, `openai_api.py`, the rules of `protocol.py`), the reader
(`reader.py`: a program, not a language model) and the faults (`faults.py`).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentkit.messages import Message, Request, ToolCall, Usage, assistant
from agentkit.protocol import violations
from agentkit.simulator import openai_api as api
from agentkit.simulator.counter import Counter, size
from agentkit.simulator.faults import Fault, FaultPlan
from agentkit.simulator.openai_api import Refused
from agentkit.simulator.profiles import Profile, profile
from agentkit.simulator.reader import read
from agentkit.simulator.summariser import is_summary_call


@dataclass(frozen=True)
class Answer:
    """What goes back over HTTP. `chunks` may raise `ConnectionResetError`: the line was cut."""

    status: int
    headers: dict[str, str]
    chunks: Iterator[bytes]


class Simulator:
    """A provider in a box. `calls` lists every answered request with its usage.

    `window` and `output_limit` in tokens replace the profile's; `key` is what a client must send (None: anything goes);
    `reader` is the model: any function from request to message. Safe to use from several threads, one request at a time.
    """

    def __init__(
        self,
        profile_name: str = "openai",
        *,
        window: int | None = None,
        faults: Iterable[Fault] = (),
        key: str | None = None,
        reader: Callable[[Request], Message] = read,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        chosen = profile(profile_name)
        self.profile: Profile = replace(chosen, window=window or chosen.window)
        self.counter = Counter(chosen.vocabulary, chosen.cache())
        self.calls: list[tuple[Request, Usage]] = []
        self._faults, self._key, self._reader, self._clock = FaultPlan(faults), key, reader, clock
        self._lock = threading.Lock()

    def handle(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Answer one HTTP request. Never raises: what is wrong with the request becomes an error body."""
        with self._lock:
            try:
                return self._route(method, path, headers, body)
            except Refused as refused:
                extra = {} if refused.retry_after is None else {"retry-after": f"{refused.retry_after:g}"}
                return _json(refused.status, refused.body(), extra)

    def _route(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self._check_key(headers)
        if method == "GET" and path.endswith("/models"):
            return _json(200, {"object": "list", "data": [{"id": self.profile.model, "object": "model"}]})
        if method != "POST" or not path.endswith("/chat/completions"):
            raise Refused(404, f"Unknown request URL: {method} {path}.", code="unknown_url")
        try:
            parsed = json.loads(body)
        except ValueError:
            raise Refused(400, "We could not parse the JSON body of your request.") from None
        return self._chat(parsed)

    def _check_key(self, headers: Mapping[str, str]) -> None:
        sent = {k.lower(): v for k, v in headers.items()}.get("authorization", "")
        if self._key is not None and sent != f"Bearer {self._key}":
            # The real API echoes part of the key; this one never does.
            raise Refused(401, "Incorrect API key provided.", code="invalid_api_key")

    def _chat(self, body: dict[str, Any]) -> Answer:
        request = api.read_request(body)
        fault = self._faults.take(is_summary=is_summary_call(request))
        self._refuse_by_fault(fault)
        self._check(body, request)
        prompt = self.counter.segments(request.messages, body.get("tools") or [])
        self._check_window(size(prompt), request.max_output)
        message, finish = self._answer(request, fault)
        thought = len(self.counter.message(assistant(message.reasoning)).tokens) if message.reasoning else 0
        usage = self.counter.bill(prompt, self.counter.message(message), self._clock(), thought)
        self.calls.append((request, usage))
        if fault and fault.kind == "slow_first_byte":
            time.sleep(fault.seconds)
        return self._send(body, message, finish, usage, fault)

    def _check(self, body: dict[str, Any], request: Request) -> None:
        if body.get("model") != self.profile.model:
            raise Refused(
                404,
                f"The model '{body.get('model')}' does not exist. This server has '{self.profile.model}'.",
                code="model_not_found",
            )
        for found in violations(request, self.profile.dialect):
            openai = self.profile.dialect == "openai"
            code, param = (None, f"messages.[{found.index}].role") if openai else ("invalid_request_error", None)
            raise Refused(400, found.text, code=code, param=param)
        if self.profile.dialect == "deepseek" and request.tools and request.thinking:
            for message in body["messages"]:
                if message["role"] == "assistant" and message.get("reasoning_content") is None:
                    text = "The `reasoning_content` in the thinking mode must be passed back to the API."
                    raise Refused(400, text, code="invalid_request_error")

    def _check_window(self, prompt: int, max_output: int | None) -> None:
        window, asked = self.profile.window, max_output or 0
        if prompt + asked <= window:
            return
        opening = f"This model's maximum context length is {window} tokens. However, "
        if self.profile.dialect == "deepseek":
            text = f"you requested {prompt + asked} tokens ({prompt} in the messages, {asked} in the completion)."
            raise Refused(400, f"{opening}{text} Please reduce the length of either one.", code="invalid_request_error")
        text = f"your messages resulted in {prompt + asked} tokens. Please reduce the length of the messages."
        raise Refused(400, opening + text, code="context_length_exceeded", param="messages")

    def _answer(self, request: Request, fault: Fault | None) -> tuple[Message, str]:
        message = _faulty_summary(request, fault) or self._reader(request)
        if self.profile.dialect == "deepseek" and request.thinking and not is_summary_call(request):
            message = replace(message, reasoning=_thought(message))
        limit = min(request.max_output or self.profile.max_output, self.profile.max_output)
        pieces = message.content.split(" ")
        if message.content and len(self.counter.message(message).tokens) > limit:
            return replace(message, content=" ".join(pieces[: max(1, limit * 3 // 4)]), tool_calls=()), "length"
        return message, "tool_calls" if message.tool_calls else "stop"

    def _refuse_by_fault(self, fault: Fault | None) -> None:
        if fault and fault.kind == "rate_limit":
            text = f"Rate limit reached. Please try again in {fault.seconds:g}s."
            raise Refused(429, text, type="tokens", code="rate_limit_exceeded", retry_after=fault.seconds)
        if fault and fault.kind == "overloaded":
            raise Refused(503, "The engine is currently overloaded, please try again later.", type="server_error")
        if fault and fault.kind == "server_error":
            raise Refused(500, "The server had an error while processing your request.", type="server_error")

    def _send(self, body: dict[str, Any], message: Message, finish: str, usage: Usage, fault: Fault | None) -> Answer:
        kind = fault.kind if fault else None
        shown = api.usage_fields(replace(usage, fresh=usage.fresh * 3) if kind == "wrong_usage" else usage, self.profile)
        number, model = len(self.calls), self.profile.model
        if not body.get("stream"):
            return _json(200, api.write_answer(number, model, message, finish, None if kind == "no_usage" else shown))
        wanted = (body.get("stream_options") or {}).get("include_usage") and kind != "no_usage"
        chunks = list(api.write_chunks(number, model, message, finish, shown if wanted else None))
        return Answer(200, {"content-type": "text/event-stream"}, _stream(chunks, kind))


def _faulty_summary(request: Request, fault: Fault | None) -> Message | None:
    if fault is None or not is_summary_call(request):
        return None
    if fault.kind == "empty_summary":
        return assistant(" \n")
    if fault.kind == "long_summary":
        return assistant(request.messages[-1].content * 5)
    if fault.kind == "tool_call_summary":
        return assistant("", ToolCall("call_summary", "read_file", "{}"))
    return None


def _thought(message: Message) -> str:
    """Return the thinking that DeepSeek's profile shows: this much is sent back with every later request."""
    if not message.tool_calls:
        return "I answer from the messages that I was sent, and from nothing else."
    names = ", ".join(c.name for c in message.tool_calls)
    return f"What I need for the answer is not in the messages that I was sent, so I call {names}."


def _stream(chunks: list[dict[str, Any]], kind: str | None) -> Iterator[bytes]:
    for i, chunk in enumerate(chunks):
        if i == max(2, len(chunks) // 2) and kind == "cut_stream":
            raise ConnectionResetError("the line was cut")
        if i == max(2, len(chunks) // 2) and kind == "error_in_stream":
            yield api.sse({"error": {"message": "The server is overloaded.", "type": "overloaded_error", "code": None}})
            return
        yield api.sse(chunk)
    yield api.sse("[DONE]")


def _json(status: int, value: dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
    data = json.dumps(value, ensure_ascii=False).encode("utf-8")
    return Answer(status, {"content-type": "application/json", **(headers or {})}, iter([data]))
