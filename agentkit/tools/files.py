"""The tools that list, read, change and create files of a workspace."""

from __future__ import annotations

import re
from os.path import commonprefix, exists

from agentkit.messages import ToolSpec
from agentkit.tools.base import Arguments, Tool, ToolError
from agentkit.tools.text import quote
from agentkit.tools.workspace import Workspace

MOST_FILES = 200
"""File names in one answer of `list_files`."""

_PATH = {"type": "string", "description": "relative to the workspace, such as tests/test_a.py"}
_LINE = {"type": "integer", "description": "counted from 1"}


def file_tools(workspace: Workspace) -> list[Tool]:
    """Return `list_files`, `read_file`, `edit_file` and `write_file` for `workspace`."""
    return [_list_files(workspace), _read_file(workspace), _edit_file(workspace), _write_file(workspace)]


def _list_files(workspace: Workspace) -> Tool:
    def run(arguments: Arguments) -> str:
        pattern = arguments.get("pattern", "**/*")
        names = workspace.files(pattern)
        if not names:
            return f"no file matches {quote(pattern)}; '*' stays within one folder, '**/*.py' looks in all of them"
        more = len(names) - MOST_FILES
        rest = [f"[… {more:,} more files; use a narrower pattern …]"] if more > 0 else []
        return "\n".join(names[:MOST_FILES] + rest)

    glob = {"type": "string", "description": "a glob; '**/*' (every file) when left out"}
    return Tool(
        ToolSpec(
            "list_files",
            f"List the files of the workspace, one a line, sorted, at most {MOST_FILES}.",
            {"type": "object", "properties": {"pattern": glob}, "required": [], "additionalProperties": False},
        ),
        run,
    )


def _read_file(workspace: Workspace) -> Tool:
    def run(arguments: Arguments) -> str:
        path = arguments["path"]
        text, note = _decode(workspace.read(path))
        lines = _lines(text)
        if not lines:
            return f"[{path} is empty]"
        first, last = _span(arguments, path, len(lines))
        rows = [f"{number}\t{line}" for number, line in enumerate(lines[first - 1 : last], first)]
        if (first, last) != (1, len(lines)):
            rows.append(f"[lines {first} to {last} of {len(lines)}]")
        return "\n".join(rows + note)

    properties = {"path": _PATH, "first_line": _LINE, "last_line": _LINE}
    return Tool(
        ToolSpec(
            "read_file",
            "Read a text file, or some of its lines. Each line comes as its number, a tab, the text.",
            {"type": "object", "properties": properties, "required": ["path"], "additionalProperties": False},
        ),
        run,
    )


def _decode(data: bytes) -> tuple[str, list[str]]:
    """Return the text for reading (no byte order mark) and a note when some bytes were no UTF-8."""
    try:
        return data.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return data.decode("utf-8-sig", errors="replace"), ["[not UTF-8: each � stands for bytes that are no text]"]


def _lines(text: str) -> list[str]:
    """Cut at line feeds only, as `wc -l` and git count. `splitlines` also cuts at form feeds and U+2028."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _span(arguments: Arguments, path: str, total: int) -> tuple[int, int]:
    """Return the first and last line to show, counted from 1. Raises `ToolError` when there is no such line."""
    first, last = arguments.get("first_line", 1), arguments.get("last_line", total)
    if first > total:
        raise ToolError(f"{quote(path)} has {total} lines; there is no line {first}")
    if first < 1 or last < first:
        raise ToolError(f"lines {first} to {last} make no range; count from 1, the first not after the last")
    return first, min(last, total)


def _edit_file(workspace: Workspace) -> Tool:
    def run(arguments: Arguments) -> str:
        path, old = arguments["path"], arguments["old"].replace("\r\n", "\n")
        new = _writable(arguments["new"], "new").replace("\r\n", "\n")
        raw = _strict(workspace.read(path), path)
        text = raw.replace("\r\n", "\n")
        at = _only_place(text, old, path)
        if new == old:
            raise ToolError("old and new are the same; nothing was changed")
        workspace.write(path, _splice(raw, at, old, new).encode("utf-8"))
        return f"edited {path} at line {_line_at(text, at)}"

    old = {"type": "string", "description": "the exact text to replace, without line numbers; it must occur once"}
    properties = {"path": _PATH, "old": old, "new": {"type": "string", "description": "the text to put there"}}
    return Tool(
        ToolSpec(
            "edit_file",
            "Replace one piece of text in a file. Everything else, line ends included, stays byte for byte.",
            {
                "type": "object",
                "properties": properties,
                "required": ["path", "old", "new"],
                "additionalProperties": False,
            },
        ),
        run,
    )


def _strict(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        reason = f"{quote(path)} is not UTF-8 (byte {error.start}); an edit would damage it, so nothing was changed"
        raise ToolError(reason) from error


def _only_place(text: str, old: str, path: str) -> int:
    """Return where `old` stands in `text`. Raises `ToolError` unless that is one place."""
    if not old:
        raise ToolError("old is empty; give the text to replace, or make a new file with write_file")
    places = _places(text, old)
    if not places:
        advice = "leave out the line numbers" if re.match(r"\d+\t", old) else "read the file again and copy it exactly"
        raise ToolError(f"the old text does not occur in {quote(path)}; {advice}")
    if len(places) > 1:
        lines = ", ".join(str(_line_at(text, place)) for place in places)
        raise ToolError(f"the old text occurs more than once in {quote(path)} (lines {lines}); add the text around it")
    return places[0]


def _places(text: str, old: str, most: int = 5) -> list[int]:
    """Return the first `most` places of `old`; they may overlap: 'aa' stands twice in 'aaa'."""
    places: list[int] = []
    at = text.find(old)
    while at >= 0 and len(places) < most:
        places.append(at)
        at = text.find(old, at + 1)
    return places


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _splice(raw: str, at: int, old: str, new: str) -> str:
    """Replace `old` by `new` at `at`, a place in the text with plain line feeds, in `raw`, which may have CRLF.

    What both begin and end with is not touched, so even a file with mixed line ends keeps those of its other lines.
    """
    before = len(commonprefix([old, new]))
    old, new = old[before:], new[before:]
    after = len(commonprefix([old[::-1], new[::-1]]))
    start = _in_raw(raw, at + before)
    stop = _in_raw(raw, at + before + len(old) - after)
    end = _line_end(raw[start:stop]) or _line_end(raw) or "\n"
    return raw[:start] + new[: len(new) - after].replace("\n", end) + raw[stop:]


def _in_raw(raw: str, place: int) -> int:
    """Return the place in `raw` that is `place` when each CRLF counts as one character."""
    for passed, end in enumerate(re.finditer("\r\n", raw)):
        if end.start() - passed >= place:
            return place + passed
    return place + raw.count("\r\n")


def _line_end(text: str) -> str:
    """Return the line end that `text` has most of; an empty string when it has none."""
    pairs = text.count("\r\n")
    single = text.count("\n") - pairs
    if not pairs and not single:
        return ""
    return "\r\n" if pairs > single else "\n"


def _writable(text: str, name: str) -> str:
    """Return `text`. Raises `ToolError` when it is no valid Unicode, which no file could hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(f"parameter {name} holds half a surrogate pair at {error.start}; send whole characters") from error
    return text


def _write_file(workspace: Workspace) -> Tool:
    def run(arguments: Arguments) -> str:
        path, text = arguments["path"], _writable(arguments["text"], "text")
        if exists(workspace.inside(path)):
            raise ToolError(f"{quote(path)} is already there; change it with edit_file, or choose another name")
        workspace.write(path, text.encode("utf-8"))
        return f"wrote {path} ({len(text):,} characters)"

    properties = {"path": _PATH, "text": {"type": "string", "description": "the whole content"}}
    return Tool(
        ToolSpec(
            "write_file",
            "Create a new text file, with its folders. An existing file is never overwritten.",
            {"type": "object", "properties": properties, "required": ["path", "text"], "additionalProperties": False},
        ),
        run,
    )
