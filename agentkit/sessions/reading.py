"""Read a session, one JSON object on a line: what is odd is counted and the rest read, what is broken is one clear error."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentkit.messages import Message, Role, ToolCall, ToolSpec, Usage
from agentkit.sessions.form import Item, RecordedCut, Session, SessionError

MOST_BYTES = 64 * 1024 * 1024
"""The longest line that is read. The largest real session at hand has 1.8 MB; a longer line is no session, or not one."""

MOST_TOKENS = 100_000_000
"""No single request has more; a larger counter is a mistake of the log."""

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}


def load(path: str | Path, *, most_bytes: int = MOST_BYTES) -> Session:
    """Read the session in the file `path`. Raises `SessionError` with file and line when it cannot be read.

    The file is read up to `most_bytes` and no further, whatever its size.
    """
    try:
        with Path(path).open("rb") as file:
            number, line = _first_line(file, str(path), most_bytes)
            more = any(not rest.isspace() for rest in iter(lambda: file.readline(most_bytes), b""))
    except OSError as error:
        raise SessionError(f"{path}: {error.strerror or 'cannot be read'}") from None
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SessionError(f"{path}:{number}: not UTF-8 at byte {error.start + 1}; save the file as UTF-8") from None
    return loads(text, where=f"{path}:{number}", name=Path(path).stem, more=more)


def _first_line(file: Any, path: str, most_bytes: int) -> tuple[int, bytes]:
    number = 0
    while line := file.readline(most_bytes + 1):
        number += 1
        if len(line) > most_bytes:
            size = f"{most_bytes / 1024 / 1024:,.0f} MB" if most_bytes >= 1 << 20 else f"{most_bytes:,} bytes"
            raise SessionError(f"{path}:{number}: the line is longer than {size}; a session is one line, give a shorter one")
        if not line.isspace():
            return number, line
    raise SessionError(f"{path}: the file is empty; a session is one JSON object on one line")


def loads(text: str, *, where: str = "session", name: str = "session", more: bool = False) -> Session:
    """Read a session from its line of JSON. `where` is named in errors. Raises `SessionError`."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise SessionError(f"{where}: broken JSON at column {error.colno}: {error.msg}; is the line cut off?") from None
    except RecursionError:
        raise SessionError(f"{where}: the JSON is nested too deeply") from None
    if not isinstance(data, dict) or not isinstance(data.get("messages"), list):
        raise SessionError(f"{where}: not a session: expected an object with a list `messages`")
    reader = _Reader()
    if more:
        reader.odd("further lines in the file were not read: one file is one session")
    return reader.session(data, name)


@dataclass
class _Reader:
    """Turns the data of one session into records, and counts what was odd."""

    oddities: Counter[str] = field(default_factory=Counter)
    open_calls: list[str] = field(default_factory=list)
    named: int = 0

    def odd(self, what: str) -> None:
        self.oddities[what] += 1

    def session(self, data: Mapping[str, Any], name: str) -> Session:
        items: list[Item] = []
        where: dict[int, int] = {}
        for i, row in enumerate(data["messages"]):
            where[i] = len(items)  # the file counts messages that may be left out here
            if (item := self._item(row, where)) is not None:
                items.append(item)
        calls = sum(item.message.role == "assistant" for item in items)
        if not calls:
            self.odd("no model calls")
        usage = self._usages(data.get("usage"), calls)
        tools = self._tools(data.get("tools"))
        text = {key: _text(data.get(key)) for key in ("title", "format", "model", "notes")}
        warnings = tuple(sorted(self.oddities.items()))
        return Session(_text(data.get("id")) or name, tuple(items), usage, tools, warnings=warnings, **text)

    # ------------------------------------------------------------------------------------------------------------ messages

    def _item(self, row: Any, where: Mapping[int, int]) -> Item | None:
        role = _ROLES.get(str(row.get("role")).lower()) if isinstance(row, dict) else None
        if role is None:
            known = isinstance(row, dict)
            self.odd(
                f"message of unknown role {str(row.get('role'))[:30]!r} left out" if known else "message left out: no object"
            )
            return None
        calls = self._calls(row.get("tool_calls")) if role == "assistant" else ()
        message = Message(
            role,
            self._content(row.get("content")),
            tool_calls=calls,
            tool_call_id=self._answered(row) if role == "tool" else "",
            reasoning=_text(row.get("reasoning")),
            is_error=row.get("is_error") is True,
        )
        cut = self._cut(row.get("compaction"), where) if row.get("compaction") else None
        return Item(message, self._time(row.get("ts")), _text(row.get("kind")), cut, _text(row.get("model")))

    def _content(self, content: Any) -> str:
        if isinstance(content, str) or content is None:
            return content or ""
        if isinstance(content, list):
            return "\n".join(_text(b.get("text") or b.get("content")) if isinstance(b, dict) else _text(b) for b in content)
        self.odd("content that is no text was taken as JSON")
        return json.dumps(content, ensure_ascii=False)

    def _calls(self, rows: Any) -> tuple[ToolCall, ...]:
        found = []
        for row in rows if isinstance(rows, list) else ():
            if not isinstance(row, dict):
                self.odd("tool call left out: no object")
                continue
            inner = row["function"] if isinstance(row.get("function"), dict) else row
            arguments = inner.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
            found.append(ToolCall(self._id(row.get("id")), _text(inner.get("name")), text))
        self.open_calls = [call.id for call in found]
        return tuple(found)

    def _id(self, given: Any) -> str:
        if isinstance(given, str) and given:
            return given
        self.odd("tool call without an id: given one")
        self.named += 1
        return f"call-{self.named}"

    def _answered(self, row: Mapping[str, Any]) -> str:
        """Return which call a result answers; without an id it is the oldest one that still waits."""
        given = row.get("tool_call_id")
        if not (isinstance(given, str) and given):
            self.odd("tool result without an id: taken for the oldest open call")
            return self.open_calls.pop(0) if self.open_calls else ""
        if given in self.open_calls:
            self.open_calls.remove(given)
        return given

    def _cut(self, row: Any, where: Mapping[int, int]) -> RecordedCut | None:
        kept = row.get("kept_from") if isinstance(row, dict) else None
        if not _whole(kept) or kept not in where:
            self.odd("compaction without a usable `kept_from`: read as an ordinary message")
            return None
        usage = self._usage(row["usage"]) if row.get("usage") else None
        before = row.get("tokens_before")
        return RecordedCut(where[kept], before if _whole(before) else None, usage)

    def _time(self, value: Any) -> float | None:
        if value is None:
            return None
        try:
            return _seconds(value)
        except (ValueError, TypeError, OverflowError):
            self.odd("time that is no time left out")
            return None

    # --------------------------------------------------------------------------------------------------------------- usage

    def _usages(self, rows: Any, calls: int) -> tuple[Usage | None, ...]:
        if rows is None:
            return (None,) * calls
        if not isinstance(rows, list):
            self.odd("`usage` is no list: not read")
            return (None,) * calls
        if len(rows) != calls:
            self.odd(f"{len(rows)} usage entries for {calls} model calls: the first ones are used, the rest have none")
        found = [self._usage(row) if row is not None else None for row in rows[:calls]]
        return tuple(found + [None] * (calls - len(found)))

    def _usage(self, row: Any) -> Usage | None:
        names = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
        counts = [row.get(name) or 0 for name in names] if isinstance(row, dict) else [None]
        if not all(_whole(count) and 0 <= count <= MOST_TOKENS for count in counts):
            self.odd("usage with a negative or absurd counter left out")
            return None
        prompt, output, read, written, reasoning = counts
        if read + written > prompt:
            self.odd("usage with more cached than prompt tokens: cut to the prompt")
            read = min(read, prompt)
            written = min(written, prompt - read)
        return Usage(prompt - read - written, read, written, output, reasoning)

    def _tools(self, rows: Any) -> tuple[ToolSpec, ...]:
        found = []
        for row in rows if isinstance(rows, Sequence) and not isinstance(rows, str) else ():
            inner = row.get("function", row) if isinstance(row, dict) else None
            if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
                self.odd("tool left out: it has no name")
                continue
            schema = inner.get("parameters") or inner.get("input_schema") or {}
            found.append(
                ToolSpec(inner["name"], _text(inner.get("description")), schema if isinstance(schema, dict) else {})
            )
        return tuple(found)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _seconds(value: Any) -> float:
    """Return a time as seconds since 1970, from ISO text (UTC without a zone), seconds or milliseconds."""
    if isinstance(value, bool):
        raise TypeError("no time")
    if isinstance(value, int | float):
        seconds = value / 1000 if value > 1e11 else float(value)
        if not math.isfinite(seconds) or seconds < 0:
            raise ValueError("no time")
        return seconds
    moment = datetime.fromisoformat(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
