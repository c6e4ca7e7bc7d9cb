"""The whole history for the user, beside what the model sees of it; and where one can go back to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agentkit.log import Entry, Log, project
from agentkit.messages import Message

Place = Literal[
    "word for word", "shortened", "in the summary", "other branch", "in force", "superseded", "failed", "no message"
]


@dataclass(frozen=True)
class Line:
    """One entry, and what it is to the model now.

    A message is seen `word for word` or `shortened`, only `in the summary`, or not at all (`other branch`). A compaction is
    `in force`, `superseded` by a newer one, `failed`, or on an `other branch`. The rest is `no message`.
    """

    entry: Entry
    place: Place

    @property
    def words(self) -> str:
        """Return what a reader reads: who said it, or what was done."""
        entry = self.entry
        if entry.message is not None:
            return f"{entry.message.role}: {_said(entry.message)}"
        if entry.compaction is not None:
            made = entry.compaction
            return f"compaction: keeps from {made.first_kept}; {' '.join(made.summary.split())}"
        return f"{entry.kind}: {entry.text}"


def _said(message: Message) -> str:
    calls = " ".join(f"<{call.name} {call.arguments}>" for call in message.tool_calls)
    return " ".join(f"{message.content} {calls}".split())


def history(log: Log) -> tuple[Line, ...]:
    """Return every entry of the log, of all branches, oldest first."""
    branch = {entry.seq for entry in log.branch()}
    view = project(log)
    seen = {message.id: message for message in view.head + view.tail}
    newest = max((e.seq for e in log if e.seq in branch and e.compaction and e.compaction.status == "done"), default=-1)
    return tuple(Line(e, _place(e, seen, newest) if e.seq in branch else _aside(e)) for e in log)


def _place(entry: Entry, seen: Mapping[str, Message], newest: int) -> Place:
    if entry.message is not None:
        if entry.message.id not in seen:
            return "in the summary"
        return "word for word" if seen[entry.message.id] == entry.message else "shortened"
    if entry.compaction is None:
        return "no message"
    if entry.compaction.status == "failed":
        return "failed"
    return "in force" if entry.seq == newest else "superseded"


def _aside(entry: Entry) -> Place:
    return "other branch" if entry.message or entry.compaction else "no message"


@dataclass(frozen=True)
class Turn:
    """A user message of this branch: where it stands (`seq`), and the entry before it (None: it is the first).

    `log.rewind(turn.before)` takes the question back; a compaction from before it stays in force.
    """

    message: Message
    seq: int
    before: int | None


def turns(log: Log) -> tuple[Turn, ...]:
    """Return the turns of the branch, oldest first. A summary is none: it is no message of the log."""
    return tuple(Turn(e.message, e.seq, e.parent) for e in log.branch() if e.message and e.message.role == "user")


def entry_of(log: Log, name: str) -> int:
    """Return the `seq` that `name` means: a number of an entry, or the id of a message. Raises `ValueError`."""
    if name.isascii() and name.isdigit() and int(name) < len(log):
        return int(name)
    found = [e.seq for e in log if e.message and e.message.id == name]
    if not found:
        raise ValueError(f"no entry and no message {name!r} among the {len(log)} entries")
    return found[0]
