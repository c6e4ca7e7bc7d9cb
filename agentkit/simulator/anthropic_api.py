"""Anthropic's Messages API seen from the server: its rules, its limits, its answers and its stream."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from agentkit.caching import Segment
from agentkit.caching.anthropic import check_marks
from agentkit.messages import FinishReason, Message, Request
from agentkit.protocol import violations
from agentkit.simulator.anthropic_read import Turn, read_body, segments, system_blocks, turns_of
from agentkit.simulator.api import Json, Refused, Said, pieces, sse, thinking_aloud
from agentkit.simulator.counter import Counter
from agentkit.simulator.profiles import Profile
from agentkit.simulator.summariser import is_summary_call

MOST_BYTES = 32 * 1024 * 1024
_STOP: dict[FinishReason, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "overflow": "model_context_window_exceeded",
    "refused": "refusal",
    "other": "pause_turn",
}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


class MessagesApi:
    """The Messages API by the rules of `profile`.

    A thinking block is signed over everything that it stands behind, so it is known again when something there changed: this
    is what newer Claude models check (Anthropic's page on preserved thinking, 2026-11).
    """

    endpoint = "/messages"

    def __init__(self, profile: Profile, counter: Counter) -> None:
        self._profile, self._counter = profile, counter
        self._paused: set[str] = set()

    def admit(self, headers: Mapping[str, str], size: int) -> None:
        """Ask for the header with the version, and refuse a body of more than 32 MB. Raises `Refused`."""
        if not headers.get("anthropic-version"):
            raise Refused(400, "anthropic-version: header is required")
        if size > MOST_BYTES:
            raise Refused(413, "Request exceeds the maximum size")

    def read(self, body: Json) -> Request:
        """Turn a body into records. Raises `Refused` for a body of the wrong shape."""
        return read_body(body)[0]

    def check(self, body: Json, request: Request) -> None:
        """Judge model, limits, protocol, marks and thinking. Raises `Refused`, in the API's words."""
        if body.get("model") != self._profile.model:
            raise Refused(404, f"model: {body.get('model')} (this server has {self._profile.model})")
        asked, most = body.get("max_tokens"), self._profile.max_output
        if not isinstance(asked, int) or asked < 1:
            raise Refused(400, "max_tokens: Field required" if asked is None else "max_tokens: Input should be at least 1")
        if asked > most:
            text = f"max_tokens: {asked} > {most}, which is the maximum allowed number of output tokens for"
            raise Refused(400, f"{text} {self._profile.model}")
        turns = turns_of(body)
        self._check_protocol(body, request, turns)
        marks = [(part.kind, part.mark) for part in segments(body, self._counter) if part.mark]
        try:
            check_marks(marks)
        except ValueError as fault:
            raise Refused(400, str(fault)) from None
        self._check_thinking(body, turns)

    def prompt(self, body: Json, request: Request) -> list[Segment]:
        """Return the prompt block by block, with its marks."""
        return segments(body, self._counter)

    def room(self, prompt: int, request: Request) -> tuple[int, FinishReason]:
        """Return the room for the answer. Only the prompt has to fit; the answer ends where the window ends."""
        if prompt > self._profile.window:
            raise Refused(400, f"prompt is too long: {prompt} tokens > {self._profile.window} maximum")
        left, asked = self._profile.window - prompt, request.max_output or self._profile.max_output
        return (asked, "length") if asked <= left else (left, "overflow")

    def thought(self, body: Json, request: Request, message: Message) -> str:
        """Return the thinking, where the request asked for it; a summary is written without."""
        return thinking_aloud(message) if request.thinking and not is_summary_call(request) else ""

    def answer(self, body: Json, said: Said) -> Json:
        """Return the whole answer in one piece."""
        blocks = self._blocks(body, said)
        return {**self._head(said), "content": blocks, "stop_reason": _STOP[said.finish], **_bill(said)}

    def events(self, body: Json, said: Said) -> Iterator[bytes]:
        """Yield the events of the answer."""
        start = {**_bill(said, output=1)} if said.shown else {}
        yield _event("message_start", message={**self._head(said), "content": [], "stop_reason": None, **start})
        yield _event("ping")
        for i, block in enumerate(self._blocks(body, said)):
            empty, deltas = _opened(block)
            yield _event("content_block_start", index=i, content_block=empty)
            for delta in deltas:
                yield _event("content_block_delta", index=i, delta=delta)
            yield _event("content_block_stop", index=i)
        last = {"usage": {"output_tokens": said.shown.output}} if said.shown else {}
        yield _event("message_delta", delta={"stop_reason": _STOP[said.finish], "stop_sequence": None}, **last)
        yield _event("message_stop")

    def end(self) -> Iterator[bytes]:
        """Yield nothing: the last event is the end."""
        return iter(())

    def refusal(self, refused: Refused) -> tuple[int, Json]:
        """Return status and body of an error. Overload has a status of its own here."""
        status = 529 if refused.status == 503 else refused.status
        error = {"type": _TYPES.get(status, "api_error"), "message": str(refused)}
        return status, {"type": "error", "error": error, "request_id": "req_simulated"}

    def broken_off(self, refused: Refused) -> bytes:
        """Return an error in the middle of a stream."""
        return sse(self.refusal(refused)[1], "error")

    def models(self) -> Json:
        """Return the list of models."""
        model = {
            "type": "model",
            "id": self._profile.model,
            "display_name": "Simulated",
            "created_at": "2026-11-01T00:00:00Z",
        }
        return {"data": [model], "has_more": False, "first_id": model["id"], "last_id": model["id"]}

    def _check_protocol(self, body: Json, request: Request, turns: list[Turn]) -> None:
        places = read_body(body)[1]
        for found in violations(request, "anthropic"):
            if found.rule == "no prefill" and _digest([s.block for s in turns[-1].spots]) in self._paused:
                continue
            # The rules count our messages; the API counts its own, in which a round's results are one.
            place = places[found.index] if found.index < len(places) else 0
            raise Refused(400, found.text.replace(f"messages.{found.index}:", f"messages.{place}:", 1))

    def _check_thinking(self, body: Json, turns: list[Turn]) -> None:
        for i, turn in enumerate(turns):
            for spot in turn.spots:
                if spot.block["type"] == "thinking" and spot.block.get("signature") != _signature(
                    body, turns[:i], spot.block
                ):
                    raise Refused(400, f"{spot.place}: Invalid `signature` in `thinking` block: {_BOUND}")
        manual = (body.get("thinking") or {}).get("type") == "enabled"
        if manual and len(turns) > 1 and turns[-1].spots[0].block["type"] == "tool_result":
            first = turns[-2].spots[0]
            if first.block["type"] not in ("thinking", "redacted_thinking"):
                text = f"Expected `thinking` or `redacted_thinking`, but found `{first.block['type']}`."
                raise Refused(400, f"{first.place}.type: {text} When `thinking` is enabled, {_STARTS}")

    def _head(self, said: Said) -> Json:
        head = {"id": f"msg_{said.number:04d}", "type": "message", "role": "assistant", "model": self._profile.model}
        return {**head, "stop_sequence": None}

    def _blocks(self, body: Json, said: Said) -> list[Json]:
        message, blocks = said.message, []
        if message.reasoning:
            block = {"type": "thinking", "thinking": message.reasoning}
            blocks.append({**block, "signature": _signature(body, turns_of(body), block)})
        if message.content:
            blocks.append({"type": "text", "text": message.content})
        for call in message.tool_calls:
            blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": call.parsed()})
        if said.finish == "other":
            self._paused.add(_digest(blocks))
        return blocks


_BOUND = "the block is bound to a different conversation"
_STARTS = "a final `assistant` message must start with a thinking block"


def _event(name: str, **fields: Any) -> bytes:
    return sse({"type": name, **fields}, name)


def _opened(block: Json) -> tuple[Json, list[Json]]:
    """Return a block as it starts, and the deltas that fill it."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    if block["type"] == "thinking":
        thought = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        return {**block, "thinking": "", "signature": ""}, [
            *thought,
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    text = json.dumps(block["input"], ensure_ascii=False) if block["input"] else ""
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(text)]


def _bill(said: Said, output: int | None = None) -> Json:
    """Return the bill. The three input counts stand beside one another; their sum is the prompt."""
    usage = said.shown
    if usage is None:
        return {}
    hour = said.cache.written_1h
    return {
        "usage": {
            "input_tokens": usage.fresh,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": usage.cache_write - hour,
                "ephemeral_1h_input_tokens": hour,
            },
            "output_tokens": usage.output if output is None else output,
            "output_tokens_details": {"thinking_tokens": usage.reasoning if output is None else 0},
            "service_tier": "standard",
        }
    }


def _signature(body: Json, turns: list[Turn], block: Json) -> str:
    behind = [body.get("tools"), system_blocks(body), [[spot.role, spot.block] for turn in turns for spot in turn.spots]]
    return "sim" + _digest([_unmarked(behind), block["thinking"]])


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [_unmarked(v) for v in value] if isinstance(value, list) else value


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(_unmarked(value)).encode("ascii")).hexdigest()[:32]
