"""The OpenAI chat API seen from the server: read a request, write an answer, an error, a stream. DeepSeek speaks it too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from agentkit.messages import Image, Message, Request, ToolCall, ToolSpec, Usage
from agentkit.simulator.profiles import Profile

_DATA_URI = re.compile(r"data:([\w./+-]+);base64,(.*)", re.DOTALL)


class Refused(Exception):
    """The request is refused: HTTP status, message, and the API's own type, code and parameter."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.type, self.code, self.param, self.retry_after = status, type, code, param, retry_after

    def body(self) -> dict[str, Any]:
        """Return the error in the API's shape."""
        return {"error": {"message": str(self), "type": self.type, "param": self.param, "code": self.code}}


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
    yield from (chunk({"reasoning_content": piece}) for piece in _pieces(message.reasoning))
    yield from (chunk({"content": piece}) for piece in _pieces(message.content))
    for i, call in enumerate(message.tool_calls):
        first = _wire_call(call)
        yield chunk({"tool_calls": [{"index": i, **first, "function": {"name": call.name, "arguments": ""}}]})
        for piece in _pieces(call.arguments):
            yield chunk({"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
    yield chunk({}, finish)
    if usage:
        yield head | {"choices": [], "usage": usage}


def _pieces(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


def sse(value: dict[str, Any] | str) -> bytes:
    """Return one server-sent event."""
    data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"data: {data}\n\n".encode()
