"""The ledger: the log, kept in an SQLite file. Whoever takes a `Log` takes a `Ledger`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from agentkit.ledger import rows
from agentkit.ledger.errors import LedgerError
from agentkit.ledger.files import LedgerFile, Synchronous
from agentkit.log import Entry, Log
from agentkit.messages import Message, Usage

MAIN = "main"


class Ledger(Log):
    """A session in a file. Every entry is stored before it counts: what `append` has returned survives the process.

    All of it is also held in memory, so reading costs what it costs in a `Log`. `file` is a path or an open `LedgerFile`;
    a file or a session that does not exist is made. A write that fails raises `LedgerError`, and nothing has changed, here
    or in the file. With `on_trouble` it is reported there instead, once, and the run goes on in memory; every later write
    tries to store what is missing first. `clock` gives seconds since 1970, for the reader: the order is that of `seq`.
    """

    def __init__(
        self,
        file: str | Path | LedgerFile,
        session: str = MAIN,
        messages: Sequence[Message] = (),
        *,
        read_only: bool = False,
        wait: float = 5.0,
        synchronous: Synchronous = "FULL",
        on_trouble: Callable[[LedgerError], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        is_open = isinstance(file, LedgerFile)
        self.file = file if is_open else LedgerFile(file, read_only=read_only, wait=wait, synchronous=synchronous)
        self.session, self.on_trouble, self._clock = session, on_trouble, clock
        self._unsaved: list[Entry] = []
        try:
            self._number = self._find(session) or self._make(session)
            self._lines = self._lineage()
            self.refresh()
            for message in messages:
                self.append(message)
        except BaseException:
            if not is_open:
                self.file.close()
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def unsaved(self) -> tuple[Entry, ...]:
        """Return the entries that are in memory only, because a write failed."""
        return tuple(self._unsaved)

    @property
    def sessions(self) -> tuple[str, ...]:
        """Return the names of all sessions in the file, oldest first."""
        return tuple(name for (name,) in self.file.rows("SELECT name FROM sessions ORDER BY number"))

    def refresh(self) -> int:
        """Take in what other processes have stored in this session since, and return how many entries that is."""
        before = len(self)
        for number, stop in self._lines:
            found = self.file.rows(
                "SELECT seq, kind, parent, body FROM entries WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq",
                number, len(self), stop,
            )  # fmt: skip
            for row in found:
                super()._keep(rows.entry(*row))
        return len(self) - before

    def fork(self, seq: int, session: str = "") -> Ledger:
        """Return a new session in the same file that goes on from entry `seq`; no entry is copied.

        Without a name it gets one (`main-2` …). Raises `ValueError` for a name that is taken.
        """
        self._must_hold(seq)
        if self._unsaved and seq >= self._unsaved[0].seq:
            raise LedgerError(f"{self.file.path}: entry {seq} is in memory only and cannot be forked from")
        name = session or self._free_name()
        if self._find(name):
            raise ValueError(f"there is a session {name!r} already; give another name")
        self._make(name, (self._number, seq))
        return Ledger(self.file, name, on_trouble=self.on_trouble, clock=self._clock)

    def bill(self, usage: Usage) -> None:
        """Store what the newest assistant message was billed for. A second bill for it raises `LedgerError`."""
        said = (e.seq for e in reversed(self._entries) if e.message and e.message.role == "assistant")
        if self._unsaved or (seq := next(said, None)) is None:
            return
        counts = (usage.fresh, usage.cache_read, usage.cache_write, usage.output, usage.reasoning)
        try:
            with self.file.transaction() as db:
                db.execute("INSERT INTO bills VALUES (?, ?, ?, ?, ?, ?, ?)", (self._number, seq, *counts))
        except LedgerError as error:
            if self.on_trouble is None:
                raise
            self.on_trouble(error)

    def bills(self) -> dict[int, Usage]:
        """Return the stored bills by the `seq` of the message."""
        sql = "SELECT seq, fresh, cache_read, cache_write, output, reasoning FROM bills WHERE session = ? AND seq <= ?"
        found = [row for number, stop in self._lines for row in self.file.rows(sql, number, stop)]
        return {seq: Usage(*counts) for seq, *counts in found}

    def times(self) -> dict[int, float]:
        """Return when each entry was stored, in seconds since 1970, by its `seq`."""
        sql = "SELECT seq, at FROM entries WHERE session = ? AND seq <= ?"
        return dict(row for number, stop in self._lines for row in self.file.rows(sql, number, stop))

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    # ------------------------------------------------------------------------------------------------------------ writing

    def _keep(self, entry: Entry) -> None:
        with self.file.lock:
            try:
                self._store([*self._unsaved, entry])
                self._unsaved = []
            except LedgerError as error:
                if self.on_trouble is None:
                    raise
                if not self._unsaved:
                    self.on_trouble(error)
                self._unsaved.append(entry)
            except BaseException:
                # Ctrl-C is raised when the commit has returned: then the entry is in the file, and belongs in memory too.
                if self._is_stored(entry):
                    self._unsaved = []
                    super()._keep(entry)
                raise
            super()._keep(entry)

    def _store(self, entries: Sequence[Entry]) -> None:
        with self.file.transaction() as db:
            if (last := self._last_stored()) != (known := entries[0].seq - 1):
                raise LedgerError(
                    f"{self.file.path}: another process has gone on with session {self.session!r} (up to entry {last}, "
                    f"here it ends with {known}); open it again, or go on in a fork",
                    "conflict",
                )
            for entry in entries:
                message_id = entry.message.id if entry.message else None
                row = (self._number, entry.seq, entry.kind, entry.parent, message_id, rows.body(entry), self._clock())
                db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def _last_stored(self) -> int:
        """Return the `seq` of the newest entry in the file, -1 when there is none."""
        ((last,),) = self.file.rows("SELECT max(seq) FROM entries WHERE session = ?", self._number)
        shared = self._lines[-2][1] if len(self._lines) > 1 else -1
        return shared if last is None else last

    def _is_stored(self, entry: Entry) -> bool:
        with suppress(LedgerError, ValueError):
            sql = "SELECT body FROM entries WHERE session = ? AND seq = ?"
            return self.file.rows(sql, self._number, entry.seq) == [(rows.body(entry),)]
        return False

    # ----------------------------------------------------------------------------------------------------------- sessions

    def _find(self, name: str) -> int:
        found = self.file.rows("SELECT number FROM sessions WHERE name = ?", name)
        if not found and self.file.read_only:
            there = ", ".join(map(repr, self.sessions)) or "none"
            raise LedgerError(f"{self.file.path}: there is no session {name!r}; there are: {there}", "missing")
        return found[0][0] if found else 0

    def _make(self, name: str, origin: tuple[int | None, int | None] = (None, None)) -> int:
        with self.file.transaction() as db:
            if origin == (None, None) and (made := self._find(name)):
                return made  # by another process, a moment ago
            number = db.execute("SELECT coalesce(max(number), 0) + 1 FROM sessions").fetchone()[0]
            db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", (number, name, *origin, self._clock()))
        return number

    def _free_name(self) -> str:
        taken, number = self.sessions, 2
        while f"{self.session}-{number}" in taken:
            number += 1
        return f"{self.session}-{number}"

    def _lineage(self) -> list[tuple[int, int]]:
        """Return the sessions whose entries make this one, oldest first, each with the last `seq` that counts."""
        found: list[tuple[int, int]] = []
        number, stop = self._number, 2**62
        while number:
            found.insert(0, (number, stop))
            ((number, at),) = self.file.rows("SELECT forked_from, forked_at FROM sessions WHERE number = ?", number)
            stop = min(stop, at) if number else stop
        return found
