"""What the simulated model knows: facts found in the text of one request, and nothing else.

A fact is in view as text that a tool returned, as a line of a summary, or as something said. What a policy dropped,
folded or replaced by a summary is not found, so the model has to call a tool again, or to admit that it does not know.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.messages import Message, ToolCall
from agentkit.simulator import framing
from agentkit.simulator.excerpts import Excerpt, excerpt
from agentkit.simulator.questions import files_in, understand

_SYSTEM_SUMMARY = "[Summary of the earlier conversation."
NOTE = "user's note “"
"""How a summary opens what the user asked to remember, so that it is known again as the user's."""


@dataclass(frozen=True)
class Step:
    """One call and its result (None: not there), `index` being the position of the call's message."""

    call: ToolCall
    args: dict[str, Any]
    result: str | None
    index: int

    @property
    def failed(self) -> bool:
        """Say whether the tool answered with an error; on the wire only the text shows it."""
        return self.result is None or self.result.startswith(("error:", "(interrupted", "(not run"))

    @property
    def path(self) -> str:
        """Return the file that the call is about, or an empty string."""
        return plain_path(self.args.get("path", ""))


def plain_path(path: object) -> str:
    """Return a path with forward slashes and without a leading `./`."""
    return str(path).replace("\\", "/").removeprefix("./")


def same_file(one: str, other: str) -> bool:
    """Say whether two names mean one file: they are equal, or one is the end of the other."""
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


class Knowledge:
    """Everything that can be known from `messages` alone."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages = framing.separate(messages)
        parts = [_split_summary(m) for m in messages]
        self.summary = "\n".join(summary for summary, _ in parts if summary).strip()
        self.has_summary = any(summary is not None for summary, _ in parts)
        self.summary_at = next((i for i, (summary, _) in enumerate(parts) if summary is not None), len(parts))
        self.asked = [(i, rest) for i, (_, rest) in enumerate(parts) if messages[i].role == "user" and _is_said(rest)]

    @property
    def turn_start(self) -> int:
        """Return the index of the newest user message (-1: a summary took its place)."""
        return self.asked[-1][0] if self.asked else -1

    @functools.cached_property
    def task(self) -> str:
        """Return what is to be done: the newest user message, or else the task that the summary names."""
        if self.asked:
            return self.asked[-1][1]
        wanted = (r"progress", r"\bopen|to.?do\b", r"\bgoal|\btask|\bwants?\b")
        found = [text for pattern in wanted for text in reversed(self.summary_lines(pattern))]
        return found[0] if found else ""

    @functools.cached_property
    def items(self) -> list[tuple[str, str]]:
        """Return the lines of the summary as (item, text); the item of a line without a colon is empty."""
        lines = (line.strip().lstrip("-* ") for line in self.summary.split("\n"))
        parts = [(line, re.match(r"([^:]{1,120}): +(.*)", line)) for line in lines if line]
        return [(m[1], m[2]) if m else ("", line) for line, m in parts]

    def summary_lines(self, pattern: str) -> list[str]:
        """Return the texts of the summary whose item matches `pattern`."""
        found = [text for item, text in self.items if re.search(pattern, item, re.IGNORECASE)]
        return [text for text in found if text != "(nothing to keep)"]

    @functools.cached_property
    def steps(self) -> list[Step]:
        """Return every call in view with its result."""
        return list(_steps(self.messages))

    @property
    def turn(self) -> list[Step]:
        """Return the calls of the turn under way."""
        return [s for s in self.steps if s.index > self.turn_start]

    @functools.cached_property
    def files(self) -> dict[str, Excerpt]:
        """Return the files whose text is in view. An edit makes what was read before it worthless."""
        files: dict[str, Excerpt] = {}
        for step in self.steps:
            if step.call.name == "read_file" and step.result and (new := excerpt(step.path, step.result)):
                old = files.get(step.path)
                files[step.path] = new.over(old) if old and "first_line" in step.args else new
            elif is_edit(step):
                files.pop(step.path, None)
        return files

    def excerpt(self, path: str) -> Excerpt | None:
        """Return the text in view of the file that `path` names."""
        return next((e for name, e in reversed(self.files.items()) if same_file(name, path)), None)

    def current(self, path: str) -> Excerpt | None:
        """Return the file as it is now: what was read of it, with every later edit in view carried out on the text."""
        found: Excerpt | None = None
        for step in self.steps:
            if not step.path or not same_file(step.path, path):
                continue
            if step.call.name == "read_file" and step.result and (new := excerpt(step.path, step.result)):
                found = new.over(found) if found and "first_line" in step.args else new
            elif is_edit(step):
                found = found.changed(str(step.args.get("old")), str(step.args.get("new"))) if found else None
        return found

    def edited(self, path: str) -> bool:
        """Say whether an edit of `path` is in view: what was said about the file earlier may be wrong by now."""
        return any(is_edit(s) and same_file(s.path, path) for s in self.steps)

    def said(self, *roles: str) -> list[str]:
        """Return the texts of the messages with these roles, oldest first, and without summaries."""
        user_texts = dict(self.asked)
        texts = ((m.role, user_texts.get(i, "") if m.role == "user" else m.content) for i, m in enumerate(self.messages))
        return [text for role, text in texts if role in roles and text]

    def last_file(self, hint: str = "") -> str:
        """Return the file last spoken of before the newest question (summary included) whose name holds `hint`."""
        for names in self._mentions():
            fitting = [n for n in names if hint in n.lower().rpartition("/")[2]]
            if fitting:
                return fitting[-1]
        return ""

    def _mentions(self) -> Iterator[list[str]]:
        """Yield the file names of each message, newest first, then those of the summary. Lists of a tool do not count."""
        read: dict[int, list[str]] = {}
        for step in self.steps:
            if step.call.name == "read_file" and step.path and not step.failed:
                read.setdefault(step.index, []).append(step.path)
        asked = dict(self.asked)
        for i, message in reversed(list(enumerate(self.messages))):
            said = asked.get(i, "") if i != self.turn_start else ""
            yield [*files_in(message.content if message.role == "assistant" else said), *read.get(i, [])]
        yield list(files_in(self.summary))

    @functools.cached_property
    def notes(self) -> list[str]:
        """Return the facts that the user asked to remember, in view or in the summary."""
        told = [understand(text) for _, text in self.asked]
        earlier = [text.removeprefix(NOTE).removesuffix("”") for _, text in self.items if text.startswith(NOTE)]
        told += [understand(text) for step in self.steps for text in framing.user_texts(step.call.name, step.result or "")]
        return earlier + framing.saved_facts(self.messages) + [q.what for q in told if q.kind == "remember"]


def is_edit(step: Step) -> bool:
    """Say whether the step changed a file."""
    return step.call.name in ("edit_file", "write_file") and not step.failed


def _is_said(text: str) -> bool:
    return bool(text.strip()) and not framing.is_notice(text)


def _split_summary(message: Message) -> tuple[str | None, str]:
    """Return (summary, the rest) of a message; None without a summary."""
    text = message.content
    if (told := framing.inserted(message)) is not None:
        return told, ""
    if message.role in ("system", "user") and _SYSTEM_SUMMARY in text:
        before, _, after = text.partition(_SYSTEM_SUMMARY)
        return after.partition("]")[2].strip(), before
    if message.role == "user" and "<summary>" in text[:400] and "</summary>" in text:
        inside, _, after = text.partition("<summary>")[2].partition("</summary>")
        return inside.strip(), after.strip()
    return None, text


def _steps(messages: Sequence[Message]) -> Iterator[Step]:
    """Pair every call with its result. A result belongs to the newest call with its id before it."""
    results: dict[tuple[int, str], str] = {}
    newest: dict[str, int] = {}
    for i, message in enumerate(messages):
        newest |= {c.id: i for c in message.tool_calls}
        if message.role == "tool" and message.tool_call_id in newest:
            results.setdefault((newest[message.tool_call_id], message.tool_call_id), message.content)
    for i, message in enumerate(messages):
        for call in message.tool_calls:
            yield Step(call, _arguments(call), results.get((i, call.id)), i)


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        return call.parsed()
    except (ValueError, RecursionError):
        return {}
