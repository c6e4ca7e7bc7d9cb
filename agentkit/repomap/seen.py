"""The files that a conversation has shown: what its calls read and wrote. Where there is no workspace, that is the repo."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agentkit.messages import Message, ToolCall

_NUMBERED = re.compile(r"^ *\d+(?:\t|→|[|:] ?)", re.MULTILINE)
_READS = re.compile(r"read|view|open|cat|show", re.IGNORECASE)
_WRITES = re.compile(r"write|create", re.IGNORECASE)
_KEYS = ("path", "file_path", "file", "filename", "filePath")


def named(call: ToolCall) -> tuple[str, str]:
    """Return the path that a call names and the content that it writes; empty where there is none."""
    try:
        arguments = call.parsed()
    except ValueError:
        return "", ""
    path = next((arguments[k] for k in _KEYS if isinstance(arguments.get(k), str)), "")
    content = next((arguments[k] for k in ("content", "text", "file_text") if isinstance(arguments.get(k), str)), "")
    return path.removeprefix("./"), content


def files_seen(messages: Sequence[Message]) -> dict[str, str]:
    """Return the newest text of every file that was read as a whole or written, as far as the messages show it."""
    files: dict[str, str] = {}
    calls: dict[str, ToolCall] = {}
    for message in messages:
        for call in message.tool_calls:
            calls[call.id] = call
            path, content = named(call)
            if path and content and _WRITES.search(call.name):
                files[path] = content
        call_read = calls.get(message.tool_call_id) if message.role == "tool" and not message.is_error else None
        if call_read and _READS.search(call_read.name) and (path := named(call_read)[0]):
            files[path] = _NUMBERED.sub("", message.content)
    return files


def paths_named(messages: Sequence[Message]) -> Iterator[str]:
    """Yield every path that a call in `messages` names."""
    for message in messages:
        for call in message.tool_calls:
            if path := named(call)[0]:
                yield path
