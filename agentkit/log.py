"""The log: every message is appended and never changed; what the model sees is a view of it.

Four kinds of entry: `message`, `compaction`, `rewind`, `note`. Each entry knows its parent, so a rewind makes a branch
and loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentkit.messages import Message, Usage

Kind = Literal["message", "compaction", "rewind", "note"]
Placement = Literal["system", "user"]
Cause = Literal["compaction", "rewind"]


@dataclass(frozen=True)
class Compaction:
    """The record that a compaction leaves in the log.

    `first_kept` is the id of the first message that stays word for word (an id, not a position: positions move).
    `messages` is how many were replaced, `tokens_before` and `tokens_after` are estimates of the whole view.
    `status` is `done` for a record that counts; a `failed` one is kept for the reader and ignored by the view. `clip`: of
    tool results older than the record the model sees the first `clip` characters (0: all); the log keeps them whole.
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
    clip: int = 0


@dataclass(frozen=True)
class Entry:
    """One line of the log. `parent` is the `seq` of the entry before it on the same branch (None: the first)."""

    seq: int
    kind: Kind
    parent: int | None
    message: Message | None = None
    compaction: Compaction | None = None
    text: str = ""


@dataclass(frozen=True)
class HistoryReplaced:
    """What the model sees was replaced, not only continued. The log itself lost nothing.

    `seq` is the entry that did it; `before` and `after` are how many messages the model saw before and sees now.
    """

    seq: int
    cause: Cause
    before: int
    after: int


class Log:
    """An append-only log in memory, with branches. `listeners` hear of every compaction and every rewind."""

    def __init__(self, messages: tuple[Message, ...] | list[Message] = ()) -> None:
        self._entries: list[Entry] = []
        self._ids: set[str] = set()
        self._head: int | None = None
        self.listeners: list[Callable[[HistoryReplaced], None]] = []
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
        return self._add("message", self._head, message=message)

    def compact(self, compaction: Compaction) -> Entry:
        """Append a compaction record. Raises `ValueError` when `first_kept` is no message of this branch."""
        if compaction.first_kept not in {m.id for m in self.messages() if m.role != "system"}:
            raise ValueError(f"first_kept {compaction.first_kept!r} is not a message of this branch (or a system message)")
        if compaction.status != "done":
            return self._add("compaction", self._head, compaction=compaction)
        return self._replace("compaction", self._head, compaction=compaction)

    def note(self, text: str) -> Entry:
        """Append a note for the reader; the model never sees it."""
        return self._add("note", self._head, text=text)

    def rewind(self, seq: int) -> Entry:
        """Go back to entry `seq`: what follows continues from there, the other branch stays in the log."""
        self._must_hold(seq)
        return self._replace("rewind", seq, text=f"back to {seq}")

    def at(self, seq: int) -> Log:
        """Return the log as it was when entry `seq` was its newest: a log in memory, apart from this one."""
        self._must_hold(seq)
        past = Log()
        for entry in self._entries[: seq + 1]:
            past._keep(entry)
        return past

    def fork(self, seq: int) -> Log:
        """Return a log that goes on from entry `seq`; this one does not change."""
        return self.at(seq)

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

    def _must_hold(self, seq: int) -> None:
        if not 0 <= seq < len(self._entries):
            raise ValueError(f"no entry {seq} in a log of {len(self._entries)}")

    def _add(
        self,
        kind: Kind,
        parent: int | None,
        *,
        message: Message | None = None,
        compaction: Compaction | None = None,
        text: str = "",
    ) -> Entry:
        entry = Entry(len(self._entries), kind, parent, message, compaction, text)
        self._keep(entry)
        return entry

    def _keep(self, entry: Entry) -> None:
        """Take `entry` in. Nothing of this log has changed before: a store that fails leaves everything as it was."""
        self._entries.append(entry)
        self._head = entry.seq
        if entry.message is not None:
            self._ids.add(entry.message.id)

    def _replace(self, cause: Cause, parent: int | None, *, compaction: Compaction | None = None, text: str = "") -> Entry:
        """Add an entry that changes what the model sees, and tell the listeners."""
        before = project(self).size if self.listeners else 0
        entry = self._add(cause, parent, compaction=compaction, text=text)
        for listener in tuple(self.listeners):
            listener(HistoryReplaced(entry.seq, cause, before, project(self).size))
        return entry


@dataclass(frozen=True)
class Projection:
    """The branch as the newest compaction leaves it: system messages, the summary in force, the tail."""

    head: tuple[Message, ...]
    compaction: Compaction | None
    tail: tuple[Message, ...]

    @property
    def size(self) -> int:
        """Return the number of messages, the summary counted as one."""
        return len(self.head) + (self.compaction is not None) + len(self.tail)


def project(log: Log) -> Projection:
    """Split the branch into head, newest compaction and tail. Only the newest compaction counts; failed ones never do.

    The question of a running turn stays in the tail, also when the cut lies behind it.
    """
    branch = log.branch()
    messages = shown_messages(branch)
    size = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    head, body = messages[:size], messages[size:]
    at = next((i for i in range(len(branch) - 1, -1, -1) if _counts(branch[i])), None)
    newest = branch[at].compaction if at is not None else None
    if newest is None:
        return Projection(head, None, body)
    start = next(i for i, m in enumerate(body) if m.id == newest.first_kept)
    known = sum(e.message is not None for e in branch[:at]) - size
    return Projection(head, newest, with_question(body, start, known))


def _counts(entry: Entry) -> bool:
    return entry.compaction is not None and entry.compaction.status == "done"


def with_question(messages: Sequence[Message], cut: int, known: int | None = None) -> tuple[Message, ...]:
    """Return `messages` from `cut` on, led by the question of the running turn when that stands before the cut.

    `known` is how many messages there were when the cut was made (None: all).
    """
    tail = tuple(messages[cut:])
    if any(m.role == "user" for m in messages[cut:known]):
        return tail
    question = next((m for m in reversed(messages[:cut]) if m.role == "user"), None)
    return tail if question is None else (question, *tail)


def shown_messages(branch: Sequence[Entry]) -> tuple[Message, ...]:
    """Return the messages of a branch, the tool results before a record with `clip` shortened to it."""
    shown: list[Message] = []
    most = 0
    for entry in reversed(branch):
        if entry.message is not None:
            shown.append(_shortened(entry.message, most) if most and entry.message.role == "tool" else entry.message)
        elif entry.compaction is not None and _counts(entry) and entry.compaction.clip:
            most = min(most or entry.compaction.clip, entry.compaction.clip)
    return tuple(reversed(shown))


def _shortened(message: Message, most: int) -> Message:
    if len(message.content) <= most:
        return message
    left_out = len(message.content) - most
    return replace(message, content=f"{message.content[:most]}\n… ({left_out:,} characters left out to save context) …")
