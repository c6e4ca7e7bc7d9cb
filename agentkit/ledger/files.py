"""The file of a ledger: how it is opened, written to in one transaction at a time, and claimed by one program."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from agentkit.ledger.errors import LedgerError, one_line
from agentkit.ledger.schema import APPLICATION_ID, STATEMENTS, VERSION

Synchronous = Literal["FULL", "NORMAL"]
MEMORY = ":memory:"


class LedgerFile:
    """One SQLite file with any number of sessions. Any number of readers, one writer at a time.

    A second writer waits up to `wait` seconds for the first one's transaction. With the write-ahead log (WAL) readers and
    the writer do not wait for each other, and a killed process loses nothing that was committed. `synchronous` is about
    power loss only: `FULL` waits for the disk at every commit, so that what was reported as stored is still there (as far as
    the disk tells the truth); with `NORMAL` power loss may take the last commits, but never damages the file. WAL needs a
    local disk, not a network share. Use it from one thread at a time.
    """

    def __init__(
        self, path: str | Path, *, read_only: bool = False, wait: float = 5.0, synchronous: Synchronous = "FULL"
    ) -> None:
        self.path, self.read_only, self.wait = str(path), read_only, wait
        self.lock = threading.RLock()
        self._claim: sqlite3.Connection | None = None
        self._check_place()
        with one_line(self.path):
            self.connection = self._connect(read_only)
        try:
            with one_line(self.path):
                self._prepare(synchronous)
        except BaseException:
            self.connection.close()
            raise

    def __repr__(self) -> str:
        return f"LedgerFile({Path(self.path).name!r})"

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run what is inside as one transaction: all of it is stored, or nothing. Raises `LedgerError`."""
        with self.lock, one_line(self.path):
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                # Ctrl-C may come at any statement, also at the first; after some errors SQLite has rolled back by itself.
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    def rows(self, sql: str, *values: object) -> list[tuple]:
        """Return the rows of a query. Raises `LedgerError`."""
        with self.lock, one_line(self.path):
            return self.connection.execute(sql, values).fetchall()

    def claim(self) -> None:
        """Keep every other program that claims this file from it, until `close` or the end of this process.

        A second file beside the first holds the lock, so that readers are not kept out; the system lets go of it when the
        process ends, however it ends. Raises `LedgerError` when another process holds it.
        """
        if self.path == MEMORY or self._claim is not None:
            return
        claim = sqlite3.connect(self._claim_path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            claim.execute("PRAGMA journal_mode=OFF")
            claim.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            claim.close()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                with one_line(self._claim_path):
                    raise
            raise LedgerError(
                f"{self.path}: in use by another process; end that one first, or work on a copy", "locked"
            ) from None
        self._claim = claim

    def close(self) -> None:
        """Close the file; what was stored stays. The last one to close folds the write-ahead log into the file."""
        with suppress(sqlite3.Error):
            self.connection.close()
        if self._claim is not None:
            self._claim.close()
            self._claim = None
            with suppress(OSError):  # another process may have it open: then it is that one's to remove
                Path(self._claim_path).unlink()

    @property
    def _claim_path(self) -> str:
        return f"{self.path}-writer"

    # ------------------------------------------------------------------------------------------------------------ opening

    def _check_place(self) -> None:
        place = Path(self.path)
        if self.path == MEMORY:
            return
        if place.is_dir():
            raise LedgerError(f"{self.path}: a folder; name a file in it", "other")
        if not place.parent.is_dir():
            raise LedgerError(f"{self.path}: there is no folder {str(place.parent)!r}; make it first", "missing")
        if self.read_only and not place.is_file():
            raise LedgerError(f"{self.path}: no such file", "missing")

    def _connect(self, read_only: bool) -> sqlite3.Connection:
        target = self.path
        if read_only:
            place = Path(self.path).resolve()
            # On a medium that nobody can write to there is no room for the WAL's index, and no need of one.
            alone = not os.access(place.parent, os.W_OK) and not Path(f"{self.path}-wal").exists()
            target = f"{place.as_uri()}?mode=ro{'&immutable=1' if alone else ''}"
        return sqlite3.connect(target, timeout=self.wait, isolation_level=None, check_same_thread=False, uri=read_only)

    def _prepare(self, synchronous: Synchronous) -> None:
        self.connection.execute(f"PRAGMA synchronous={synchronous}")
        self.connection.execute("PRAGMA foreign_keys=ON")
        is_new = self._check_form()
        if self.read_only:
            if is_new:
                raise LedgerError(f"{self.path}: empty, no session was stored in it", "empty")
            return
        self._use_wal()
        with self.transaction():
            # Asked again: another process may have made the tables in the meantime.
            if self._check_form():
                for statement in STATEMENTS:
                    self.connection.execute(statement)
            # Writes no row: only to find out now whether one may write. BEGIN alone does not say.
            self.connection.execute("INSERT INTO sessions SELECT * FROM sessions WHERE false")

    def _check_form(self) -> bool:
        """Say whether the file is still empty. Raises `LedgerError` when something else, or something newer, is in it."""
        tables = self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        owner, version = (
            self.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if tables and owner != APPLICATION_ID:
            raise LedgerError(f"{self.path}: an SQLite file, but not a ledger; name another file", "no ledger")
        if version > VERSION:
            raise LedgerError(
                f"{self.path}: written by a newer agentkit (form {version}, this one knows {VERSION}); update agentkit",
                "newer",
            )
        return not tables

    def _use_wal(self) -> None:
        """Switch to the write-ahead log, once for the file. Two processes that make the file at once must not fail."""
        deadline = time.monotonic() + self.wait
        while self.connection.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
            try:
                # Where there can be no WAL, SQLite answers with the old mode: as safe, but readers wait.
                self.connection.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
