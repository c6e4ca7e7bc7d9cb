"""The simulator: a strict provider with no key. It checks, counts, reads and answers, as the real API would.

Four parts, each on its own: the API (`openai_api.py`, `anthropic_api.py`, the rules of `protocol.py`), the counter
(`counter.py`), the reader (`reader.py`: a program, not a language model) and the faults (`faults.py`).
"""

from __future__ import annotations

import hmac
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentkit.messages import FinishReason, Message, Reply, Request, Usage, assistant
from agentkit.simulator import failing
from agentkit.simulator.anthropic_api import MessagesApi
from agentkit.simulator.api import Api, Refused, Said
from agentkit.simulator.counter import Counter, size
from agentkit.simulator.faults import Fault, FaultPlan
from agentkit.simulator.openai_api import ChatApi
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
    `reader` is the model: any function from request to message, or to a whole reply where it also decides why it stopped.
    Safe to use from several threads, one request at a time.
    """

    def __init__(
        self,
        profile_name: str = "openai",
        *,
        window: int | None = None,
        faults: Iterable[Fault] = (),
        key: str | None = None,
        reader: Callable[[Request], Message | Reply] = read,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        chosen = profile(profile_name)
        self.profile: Profile = replace(chosen, window=window or chosen.window)
        self.calls: list[tuple[Request, Usage]] = []
        self.counter = Counter(chosen.vocabulary, chosen.cache())
        self._faults, self._key, self._reader, self._clock = FaultPlan(faults), key, reader, clock
        self._lock = threading.Lock()

    @property
    def counter(self) -> Counter:
        """Return what counts the tokens and keeps the cache. It may be set: a provider whose vocabulary is another."""
        return self._counter

    @counter.setter
    def counter(self, counter: Counter) -> None:
        """Count with another one from here on, prompts and answers alike."""
        self._counter = counter
        self._api: Api = (MessagesApi if self.profile.dialect == "anthropic" else ChatApi)(self.profile, counter)

    def handle(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Answer one HTTP request. Never raises: what is wrong with the request becomes an error body."""
        with self._lock:
            try:
                return self._route(method, path.partition("?")[0], {k.lower(): v for k, v in headers.items()}, body)
            except Refused as refused:
                extra = {} if refused.retry_after is None else {"retry-after": f"{refused.retry_after:g}"}
                status, error = self._api.refusal(refused)
                return _json(status, error, extra)

    def _route(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self._check_key(headers)
        if method == "GET" and path.endswith("/models"):
            return _json(200, self._api.models())
        counts = path.endswith(f"{self._api.endpoint}/count_tokens") and isinstance(self._api, MessagesApi)
        if method != "POST" or not (counts or path.endswith(self._api.endpoint)):
            raise Refused(404, f"Unknown request URL: {method} {path}.", code="unknown_url")
        self._api.admit(headers, len(body))
        try:
            parsed = json.loads(body)
        except (ValueError, RecursionError):
            raise Refused(400, "We could not parse the JSON body of your request.") from None
        if not isinstance(parsed, dict):
            raise Refused(400, "The JSON body of your request is not an object.")
        return self._count(parsed) if counts else self._chat(parsed)

    def _check_key(self, headers: Mapping[str, str]) -> None:
        sent = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        if self._key is not None and not hmac.compare_digest(sent.encode("utf-8"), self._key.encode("utf-8")):
            # The real API echoes part of the key; this one never does.
            raise Refused(401, "Incorrect API key provided.", code="invalid_api_key")

    def _count(self, body: dict[str, Any]) -> Answer:
        body = {"max_tokens": 1, **body}
        request = self._api.read(body)
        self._api.check(body, request)
        return _json(200, {"input_tokens": size(self._api.prompt(body, request))})

    def _chat(self, body: dict[str, Any]) -> Answer:
        request = self._api.read(body)
        fault = self._faults.take(is_summary=is_summary_call(request))
        failing.refuse(fault)
        self._api.check(body, request)
        prompt = self._api.prompt(body, request)
        if refused := failing.overflow(fault, self._api, self.profile, self.counter, size(prompt), request):
            return self._refuse(refused, in_stream=fault is not None and fault.kind == "overflow_in_stream")
        room = self._api.room(size(prompt), request)
        message, finish = self._answer(body, request, *room, fault)
        thought = len(self.counter.message(assistant(message.reasoning)).tokens) if message.reasoning else 0
        output = self.counter.message(message)
        result = self.counter.observe(prompt, output, self._clock())
        usage = Usage(result.fresh, result.read, result.written, len(output.tokens), thought)
        self.calls.append((request, usage))
        if fault and fault.kind == "slow_first_byte":
            time.sleep(fault.seconds)
        return self._send(body, Said(len(self.calls), message, finish, failing.shown(fault, usage), result, request), fault)

    def _answer(
        self, body: dict[str, Any], request: Request, room: int, full: FinishReason, fault: Fault | None
    ) -> tuple[Message, FinishReason]:
        """Return message and reason to finish; `full` is the reason when `room` tokens are not enough."""
        said = failing.faulty_summary(fault, request) or self._reader(failing.read(fault, request))
        message, finish = (said.message, said.finish) if isinstance(said, Reply) else (said, None)
        if thought := self._api.thought(body, request, message):
            message = replace(message, reasoning=thought)
        words = message.content.split(" ")
        if message.content and len(self.counter.message(message).tokens) > room:
            fits = " ".join(words[: max(1, room * 3 // 4)]) if room else ""
            return replace(message, content=fits, tool_calls=()), full
        return failing.stopped(fault, message, finish or ("tool_calls" if message.tool_calls else "stop"))

    def _refuse(self, refused: Refused, *, in_stream: bool) -> Answer:
        """Return an overflow as the API says it: with its status, or in a stream that has begun with 200."""
        if not in_stream:
            raise refused
        return Answer(200, {"content-type": "text/event-stream"}, iter([self._api.broken_off(refused)]))

    def _send(self, body: dict[str, Any], said: Said, fault: Fault | None) -> Answer:
        if not body.get("stream"):
            return _json(200, self._api.answer(body, said))
        events = list(self._api.events(body, said))
        chunks = failing.stream(fault, events, self._api)
        return Answer(200, {"content-type": "text/event-stream"}, chunks)


def _json(status: int, value: dict[str, Any], headers: dict[str, str] | None = None) -> Answer:
    data = json.dumps(value, ensure_ascii=False).encode("utf-8")
    return Answer(status, {"content-type": "application/json", **(headers or {})}, iter([data]))
