"""The log: every message is appended and never changed; what the model sees is a view of it.

Four kinds of entry: `message`, `compaction`, `rewind`, `note`. Each entry knows its parent, so a rewind makes a branch
and loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from agentkit.messages import Message, Usage

Kind = Literal["message", "compaction", "rewind", "note"]
Placement = Literal["system", "user"]


@dataclass(frozen=True)
class Compaction:
    """The record that a compaction leaves in the log.

    `first_kept` is the id of the first message that stays word for word (an id, not a position: positions move).
    `messages` is how many were replaced, `tokens_before` and `tokens_after` are estimates of the whole view.
    `status` is `done` for a record that counts; a `failed` one is kept for the reader and ignored by the view.
    """

    summary: str
    first_kept: str
    messages: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    reason: str = "threshold"
    policy: str = ""
    placement: Placement = "system"
    usage: Usage | None = None
    status: Literal["done", "failed"] = "done"


@dataclass(frozen=True)
class Entry:
    """One line of the log. `parent` is the `seq` of the entry before it on the same branch (None: the first)."""

    seq: int
    kind: Kind
    parent: int | None
    message: Message | None = None
    compaction: Compaction | None = None
    text: str = ""


class Log:
    """An append-only log in memory, with branches."""

    def __init__(self, messages: tuple[Message, ...] | list[Message] = ()) -> None:
        self._entries: list[Entry] = []
        self._ids: set[str] = set()
        self._head: int | None = None
        for message in messages:
            self.append(message)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries))

    def append(self, message: Message) -> Entry:
        """Append `message`, giving it an id (`m0`, `m1` …) when it has none. Raises `ValueError` on a used id."""
        message = message if message.id else replace(message, id=self._free_id())
        if message.id in self._ids:
            raise ValueError(f"message id {message.id!r} is already in the log; leave the id empty to get a new one")
        self._ids.add(message.id)
        return self._add("message", message=message)

    def compact(self, compaction: Compaction) -> Entry:
        """Append a compaction record. Raises `ValueError` when `first_kept` is no message of this branch."""
        if compaction.first_kept not in {m.id for m in self.messages() if m.role != "system"}:
            raise ValueError(f"first_kept {compaction.first_kept!r} is not a message of this branch (or a system message)")
        return self._add("compaction", compaction=compaction)

    def note(self, text: str) -> Entry:
        """Append a note for the reader; the model never sees it."""
        return self._add("note", text=text)

    def rewind(self, seq: int) -> Entry:
        """Go back to entry `seq`: what follows continues from there, the other branch stays in the log."""
        if not 0 <= seq < len(self._entries):
            raise ValueError(f"no entry {seq} in a log of {len(self._entries)}")
        self._head = seq
        return self._add("rewind", text=f"back to {seq}")

    def branch(self) -> tuple[Entry, ...]:
        """Return the entries from the first to the newest of the present branch."""
        path: list[Entry] = []
        seq = self._head
        while seq is not None:
            path.append(self._entries[seq])
            seq = self._entries[seq].parent
        return tuple(reversed(path))

    def messages(self) -> tuple[Message, ...]:
        """Return every message of the present branch, word for word."""
        return tuple(e.message for e in self.branch() if e.message is not None)

    def compactions(self) -> tuple[Compaction, ...]:
        """Return the compactions of the present branch that count, oldest first."""
        return tuple(e.compaction for e in self.branch() if e.compaction and e.compaction.status == "done")

    def _free_id(self) -> str:
        number = len(self._entries)
        while f"m{number}" in self._ids:
            number += 1
        return f"m{number}"

    def _add(
        self, kind: Kind, *, message: Message | None = None, compaction: Compaction | None = None, text: str = ""
    ) -> Entry:
        entry = Entry(len(self._entries), kind, self._head, message, compaction, text)
        self._entries.append(entry)
        self._head = entry.seq
        return entry


@dataclass(frozen=True)
class Projection:
    """The branch as the newest compaction leaves it: system messages, the summary in force, the tail."""

    head: tuple[Message, ...]
    compaction: Compaction | None
    tail: tuple[Message, ...]


def project(log: Log) -> Projection:
    """Split the branch into head, newest compaction and tail. Only the newest compaction counts; failed ones never do."""
    messages = log.messages()
    size = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    head, body = messages[:size], messages[size:]
    done = log.compactions()
    if not done:
        return Projection(head, None, body)
    start = next(i for i, m in enumerate(body) if m.id == done[-1].first_kept)
    return Projection(head, done[-1], body[start:])
