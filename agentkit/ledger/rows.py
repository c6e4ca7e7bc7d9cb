"""An entry of the log as text, and back: JSON, exact to the last character."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from agentkit.log import Compaction, Entry
from agentkit.messages import Image, Message, Opaque, ToolCall, Usage


def body(entry: Entry) -> str:
    """Return what `entry` says as one JSON object.

    Half a surrogate pair becomes an escape: a log keeps what arrived, and SQLite takes only whole characters. A NUL becomes
    one too, or SQLite's own functions would stop there. Raises `ValueError` for provider data that is no JSON.
    """
    if entry.message is not None:
        data: dict[str, Any] = {"message": _without_empty(asdict(entry.message))}
    elif entry.compaction is not None:
        data = {"compaction": asdict(entry.compaction)}
    else:
        data = {"text": entry.text}
    try:
        return _text(data)
    except TypeError as error:
        raise ValueError(f"entry {entry.seq} cannot be stored: {error}") from None


def _text(data: dict[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(data)
    return text


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    always = ("role", "content", "id")
    return {name: value for name, value in fields.items() if value or name in always}


def entry(seq: int, kind: str, parent: int | None, text: str) -> Entry:
    """Return the entry that was stored as `text`."""
    data = json.loads(text)
    message = _message(data["message"]) if "message" in data else None
    compaction = _compaction(data["compaction"]) if "compaction" in data else None
    return Entry(seq, kind, parent, message, compaction, data.get("text", ""))  # type: ignore[arg-type]


def _message(data: dict[str, Any]) -> Message:
    made: dict[str, Any] = dict(data)
    for name, kind in (("tool_calls", ToolCall), ("opaque", Opaque), ("images", Image)):
        made[name] = tuple(kind(**row) for row in data.get(name, ()))
    return Message(**made)


def _compaction(data: dict[str, Any]) -> Compaction:
    usage = data.get("usage")
    return Compaction(**{**data, "usage": Usage(**usage) if usage else None})
