"""The other way, for comparison: the table holds what the model sees, and a compaction writes all of it anew.

Delete and insert in one transaction, as Goose does it: a kill leaves the old rows or the new ones, never half of them.
What it cannot do is go back: which rows a compaction took away is written nowhere. `keep_hidden` keeps them as rows that the
model does not see (Goose 2026); then nothing is lost for the reader, and a rewind finds rows, but hidden ones.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from agentkit.ledger import rows
from agentkit.log import Entry
from agentkit.messages import Message

_TABLE = "CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY, position INTEGER, hidden INTEGER, body TEXT NOT NULL)"


class Replacing:
    """A conversation as one list that is overwritten. `written` counts the rows written so far."""

    def __init__(self, path: str | Path = ":memory:", *, keep_hidden: bool = False) -> None:
        self.keep_hidden, self.written = keep_hidden, 0
        self._db = sqlite3.connect(str(path), isolation_level=None)
        self._db.execute(_TABLE)

    def append(self, message: Message) -> None:
        """Add a message, which needs an id."""
        self._insert([(message, False)], self._db.execute("SELECT count(*) FROM messages").fetchone()[0])

    def replace(self, messages: Sequence[Message], hidden: Sequence[Message] = ()) -> None:
        """Write the whole list anew, all or nothing. Raises `sqlite3.IntegrityError` when two have one id."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.execute("DELETE FROM messages")
            self._insert([*((m, True) for m in hidden), *((m, False) for m in messages)], 0)
            self._db.execute("COMMIT")
        except BaseException:
            # Here and not in the caller, who may commit later: then half a list would be stored.
            self._db.execute("ROLLBACK")
            raise

    def compact(self, summary: Message, first_kept: str) -> None:
        """Put `summary` in the place of everything before the message `first_kept`."""
        seen = self.messages()
        cut = [m.id for m in seen].index(first_kept)
        gone = {m.id for m in seen[cut:]}
        hidden = [m for m in self.everything() if m.id not in gone] if self.keep_hidden else []
        self.replace([summary, *seen[cut:]], hidden)

    def rewind(self, message_id: str) -> None:
        """Take away everything after a message. Raises `ValueError` when it is not in the table any more."""
        ids = [m.id for m in self.everything()]
        if message_id not in ids:
            raise ValueError(f"message {message_id!r} is not in the table any more")
        self._db.execute("DELETE FROM messages WHERE position > ?", (ids.index(message_id),))

    def messages(self) -> tuple[Message, ...]:
        """Return what the model sees."""
        return self._read("WHERE NOT hidden")

    def everything(self) -> tuple[Message, ...]:
        """Return every row, the hidden ones too."""
        return self._read("")

    def _read(self, where: str) -> tuple[Message, ...]:
        found = self._db.execute(f"SELECT body FROM messages {where} ORDER BY position")
        entries = (rows.entry(0, "message", None, text) for (text,) in found)
        return tuple(e.message for e in entries if e.message)

    def _insert(self, messages: Iterable[tuple[Message, bool]], start: int) -> None:
        for position, (message, hidden) in enumerate(messages, start):
            text = rows.body(Entry(0, "message", None, message))
            self._db.execute("INSERT INTO messages VALUES (?, ?, ?, ?)", (message.id, position, hidden, text))
            self.written += 1
