"""What goes wrong with a file, as one line that says what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Kind = Literal[
    "locked", "conflict", "full", "read-only", "disk", "damaged", "no ledger", "empty", "newer", "missing", "other"
]


class LedgerError(Exception):
    """A ledger cannot be opened, read or written. `kind` says what is wrong; the text names the file and what to do."""

    def __init__(self, text: str, kind: Kind = "other") -> None:
        super().__init__(text)
        self.kind = kind


_CODES: dict[int, tuple[Kind, str]] = {
    sqlite3.SQLITE_BUSY: ("locked", "another process is writing and did not finish in time; try again when it is done"),
    sqlite3.SQLITE_LOCKED: ("locked", "another process is writing and did not finish in time; try again when it is done"),
    sqlite3.SQLITE_FULL: ("full", "the disk is full; free some room, or go on in memory"),
    sqlite3.SQLITE_READONLY: ("read-only", "the file may only be read; change its permissions, or copy it elsewhere"),
    sqlite3.SQLITE_PERM: ("read-only", "no permission; change the file's permissions, or copy it elsewhere"),
    sqlite3.SQLITE_CANTOPEN: ("disk", "it cannot be opened; does its folder exist, and may you write there?"),
    sqlite3.SQLITE_IOERR: ("disk", "the disk reports an error; copy what can be read to another one"),
    sqlite3.SQLITE_CORRUPT: ("damaged", "the file is damaged; go back to a copy, or try the sqlite3 shell's .recover"),
    sqlite3.SQLITE_NOTADB: ("no ledger", "not a ledger (not even an SQLite file); name another file"),
}


def translated(error: sqlite3.Error, where: str) -> LedgerError:
    """Return `error` as one line about the file `where`."""
    # A primary result code is the lowest byte of an extended one (sqlite.org/rescode.html).
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    kind, advice = _CODES.get(code, ("other", str(error)))
    return LedgerError(f"{where}: {advice}", kind)


@contextmanager
def one_line(where: str) -> Iterator[None]:
    """Turn SQLite's errors about the file `where` into `LedgerError`."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, where) from error
