"""The OpenAI chat API seen from the server: read a request, write an answer, an error, a stream. DeepSeek speaks it too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentkit.caching import Segment
from agentkit.messages import FinishReason, Image, Message, Request, ToolCall, ToolSpec, Usage
from agentkit.protocol import violations
from agentkit.simulator.api import Json, Refused, Said, pieces, sse, thinking_aloud
from agentkit.simulator.counter import Counter
from agentkit.simulator.profiles import Profile
from agentkit.simulator.summariser import is_summary_call

_DATA_URI = re.compile(r"data:([\w./+-]+);base64,(.*)", re.DOTALL)
_FINISH: dict[str, str] = {"refused": "content_filter", "overflow": "model_context_window_exceeded", "other": "stop"}
"""Where the API has another name for it."""


class ChatApi:
    """Chat Completions, by the rules of `profile`: OpenAI's, or DeepSeek's."""

    endpoint = "/chat/completions"

    def __init__(self, profile: Profile, counter: Counter) -> None:
        self._profile, self._counter = profile, counter
        self._is_deepseek = profile.dialect == "deepseek"

    def admit(self, headers: Mapping[str, str], size: int) -> None:
        """Take any headers and any size."""

    def read(self, body: Json) -> Request:
        """Turn a body into records. Raises `Refused` for a body of the wrong shape."""
        return read_request(body)

    def check(self, body: Json, request: Request) -> None:
        """Judge model, protocol and, at DeepSeek, the thinking that has to come back. Raises `Refused`."""
        if body.get("model") != self._profile.model:
            text = f"The model '{body.get('model')}' does not exist. This server has '{self._profile.model}'."
            raise Refused(404, text, code="model_not_found")
        for found in violations(request, self._profile.dialect):
            code, param = ("invalid_request_error", None) if self._is_deepseek else (None, f"messages.[{found.index}].role")
            raise Refused(400, found.text, code=code, param=param)
        if self._is_deepseek and request.tools and request.thinking:
            for message in body["messages"]:
                if message["role"] == "assistant" and message.get("reasoning_content") is None:
                    text = "The `reasoning_content` in the thinking mode must be passed back to the API."
                    raise Refused(400, text, code="invalid_request_error")

    def prompt(self, body: Json, request: Request) -> list[Segment]:
        """Return the tools, then one segment a message."""
        return self._counter.segments(request.messages, body.get("tools") or [])

    def room(self, prompt: int, request: Request) -> tuple[int, FinishReason]:
        """Return the room for the answer: prompt and requested output must fit into the window together."""
        window, asked = self._profile.window, request.max_output or 0
        if prompt + asked <= window:
            return min(request.max_output or self._profile.max_output, self._profile.max_output), "length"
        opening = f"This model's maximum context length is {window} tokens. However, "
        if self._is_deepseek:
            text = f"you requested {prompt + asked} tokens ({prompt} in the messages, {asked} in the completion)."
            raise Refused(400, f"{opening}{text} Please reduce the length of either one.", code="invalid_request_error")
        text = f"your messages resulted in {prompt + asked} tokens. Please reduce the length of the messages."
        raise Refused(400, opening + text, code="context_length_exceeded", param="messages")

    def thought(self, body: Json, request: Request, message: Message) -> str:
        """Return DeepSeek's thinking, which is on unless it is switched off; a summary is written without."""
        thinks = self._is_deepseek and request.thinking and not is_summary_call(request)
        return thinking_aloud(message) if thinks else ""

    def answer(self, body: Json, said: Said) -> Json:
        """Return the whole answer in one piece."""
        finish = _FINISH.get(said.finish, said.finish)
        return write_answer(said.number, self._profile.model, said.message, finish, self._usage(said))

    def events(self, body: Json, said: Said) -> Iterator[bytes]:
        """Yield the answer as chunks; a bill comes last, and only if it was asked for."""
        wanted = (body.get("stream_options") or {}).get("include_usage")
        usage, finish = self._usage(said) if wanted else None, _FINISH.get(said.finish, said.finish)
        return (sse(c) for c in write_chunks(said.number, self._profile.model, said.message, finish, usage))

    def end(self) -> Iterator[bytes]:
        """Yield the end marker."""
        yield sse("[DONE]")

    def refusal(self, refused: Refused) -> tuple[int, Json]:
        """Return status and body of an error."""
        error = {"message": str(refused), "type": refused.type, "param": refused.param, "code": refused.code}
        return refused.status, {"error": error}

    def broken_off(self, refused: Refused) -> bytes:
        """Return an error in the middle of a stream."""
        return sse({"error": {"message": str(refused), "type": refused.type, "code": refused.code}})

    def models(self) -> Json:
        """Return the list of models."""
        return {"object": "list", "data": [{"id": self._profile.model, "object": "model"}]}

    def _usage(self, said: Said) -> Json | None:
        return usage_fields(said.shown, self._profile) if said.shown else None


def read_request(body: dict[str, Any]) -> Request:
    """Turn a request body into records. Raises `Refused` for a body of the wrong shape."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise Refused(400, "Missing required parameter: 'messages'.", param="messages", code="missing_required_parameter")
    tools = tuple(_tool(t) for t in body.get("tools") or [])
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    thinking = (body.get("thinking") or {}).get("type") != "disabled"
    return Request(tuple(_message(i, m) for i, m in enumerate(messages)), tools, limit, thinking)


def _tool(tool: Any) -> ToolSpec:
    try:
        function = tool["function"]
        return ToolSpec(function["name"], function.get("description", ""), function.get("parameters", {}))
    except (TypeError, KeyError):
        raise Refused(400, "Invalid 'tools': each needs a 'function' with a 'name'.", param="tools") from None


def _message(i: int, message: Any) -> Message:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("system", "developer", "user", "assistant", "tool"):
        raise Refused(
            400, f"Invalid value: {role!r}. Supported values are: 'system', 'user', …", param=f"messages[{i}].role"
        )
    text, images = _content(message.get("content"))
    calls = tuple(
        ToolCall(c.get("id", ""), c["function"]["name"], c["function"].get("arguments", ""))
        for c in message.get("tool_calls") or []
    )
    return Message(
        "system" if role == "developer" else role,
        text,
        tool_calls=calls,
        tool_call_id=message.get("tool_call_id", ""),
        reasoning=message.get("reasoning_content") or "",
        images=images,
    )


def _content(content: Any) -> tuple[str, tuple[Image, ...]]:
    if not isinstance(content, list):
        return content or "", ()
    text = "".join(p.get("text", "") for p in content if p.get("type") == "text")
    urls = [p["image_url"]["url"] for p in content if p.get("type") == "image_url"]
    found = [_DATA_URI.fullmatch(url) for url in urls]
    return text, tuple(Image(m[1], m[2]) for m in found if m)


def usage_fields(usage: Usage, profile: Profile) -> dict[str, Any]:
    """Return the bill in the names of the profile's API. `prompt_tokens` includes what was read from the cache."""
    fields: dict[str, Any] = {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
    }
    if profile.name == "deepseek":
        fields |= {"prompt_cache_hit_tokens": usage.cache_read, "prompt_cache_miss_tokens": usage.prompt - usage.cache_read}
    else:
        fields["prompt_tokens_details"] = {"cached_tokens": usage.cache_read}
    return fields | {"completion_tokens_details": {"reasoning_tokens": usage.reasoning}}


def write_answer(number: int, model: str, message: Message, finish: str, usage: dict[str, Any] | None) -> dict[str, Any]:
    """Return a whole answer (not streamed)."""
    wire: dict[str, Any] = {"role": "assistant", "content": message.content or None}
    if message.reasoning:
        wire["reasoning_content"] = message.reasoning
    if message.tool_calls:
        wire["tool_calls"] = [_wire_call(c) for c in message.tool_calls]
    choice = {"index": 0, "message": wire, "finish_reason": finish, "logprobs": None}
    head = {"id": _id(number), "object": "chat.completion", "created": 0, "model": model}
    return head | {"choices": [choice]} | ({"usage": usage} if usage else {})


def _id(number: int) -> str:
    return f"chatcmpl-{number:04d}"


def _wire_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def write_chunks(
    number: int, model: str, message: Message, finish: str, usage: dict[str, Any] | None
) -> Iterator[dict[str, Any]]:
    """Yield the same answer as stream chunks; the usage comes last, in a chunk with no choices."""
    head = {"id": _id(number), "object": "chat.completion.chunk", "created": 0, "model": model}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"reasoning_content": piece}) for piece in pieces(message.reasoning))
    yield from (chunk({"content": piece}) for piece in pieces(message.content))
    for i, call in enumerate(message.tool_calls):
        first = _wire_call(call)
        yield chunk({"tool_calls": [{"index": i, **first, "function": {"name": call.name, "arguments": ""}}]})
        for piece in pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
    yield chunk({}, finish)
    if usage:
        yield head | {"choices": [], "usage": usage}
