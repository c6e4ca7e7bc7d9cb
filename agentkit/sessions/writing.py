"""Write a session in the neutral form: one JSON object on one line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentkit.messages import ToolSpec, Usage
from agentkit.sessions.form import Item, Session


def save(session: Session, path: str | Path) -> None:
    """Write `session` to the file `path`, replacing what is there."""
    Path(path).write_text(dumps(session) + "\n", encoding="utf-8")


def dumps(session: Session) -> str:
    """Return `session` as one line of JSON. Times are rounded to milliseconds."""
    data: dict[str, Any] = {name: getattr(session, name) for name in ("id", "title", "format", "model", "notes")}
    data["messages"] = [_message(item) for item in session.items]
    if session.tools:
        data["tools"] = [_tool(spec) for spec in session.tools]
    data["usage"] = [_usage(usage) if usage else None for usage in session.usage]
    # A lone half of a surrogate pair cannot be written as UTF-8; as an escape it survives.
    text = json.dumps(data, ensure_ascii=False)
    return text if _is_utf8(text) else json.dumps(data)


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _message(item: Item) -> dict[str, Any]:
    message = item.message
    row: dict[str, Any] = {"role": message.role, "content": message.content}
    calls = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in message.tool_calls]
    optional = {
        "reasoning": message.reasoning,
        "tool_calls": calls,
        "tool_call_id": message.tool_call_id,
        "is_error": message.is_error,
        "kind": item.kind,
        "model": item.model,
    }
    row |= {name: value for name, value in optional.items() if value}
    if item.cut:
        cut = {"kept_from": item.cut.kept_from, "tokens_before": item.cut.tokens_before}
        row["compaction"] = cut | ({"usage": _usage(item.cut.usage)} if item.cut.usage else {})
    if item.at is not None:
        row["ts"] = datetime.fromtimestamp(item.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return row


def _usage(usage: Usage) -> dict[str, int]:
    row = {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
    }
    return row | ({"reasoning_tokens": usage.reasoning} if usage.reasoning else {})


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
