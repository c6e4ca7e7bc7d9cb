"""What is killed: a run with compactions that reports every entry once it is stored."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from agentkit.ledger import Ledger
from agentkit.log import Entry, Log
from agentkit.scenarios import FOUR_QUESTIONS, Settings, ask, start

SETTINGS = Settings(budget=4_000, keep=4)
QUESTIONS = FOUR_QUESTIONS


def digest(entry: Entry) -> str:
    """Return a short name for what an entry says."""
    return hashlib.sha256(repr(entry).encode("utf-8", "backslashreplace")).hexdigest()[:16]


class Reporting(Ledger):
    """A ledger that says of every entry that it is stored, after it is."""

    def __init__(self, path: Path, pipe: Connection, **options: Any) -> None:
        self.pipe: Connection | None = None
        super().__init__(path, **options)
        self.pipe = pipe

    def _keep(self, entry: Entry) -> None:
        super()._keep(entry)
        if self.pipe is not None:
            self.pipe.send_bytes(f"{entry.seq} {digest(entry)}".encode())


def run_for_ever(path: str, pipe: Connection, statement: int | None) -> None:
    """Ask the four questions again and again; kill this process before SQL statement number `statement`, if one is given."""
    if statement is not None:
        _die_at(statement)
    ledger = Reporting(Path(path), pipe)
    while True:
        ask(start(SETTINGS, log=ledger), QUESTIONS)


def _die_at(statement: int) -> None:
    """Count the statements of every connection from here on, those that make the tables too."""
    connect, left = sqlite3.connect, [statement]

    def count(sql: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            # On Windows SIGTERM is TerminateProcess: nothing of this process runs after it.
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

    def counting(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(count)
        return connection

    sqlite3.connect = counting  # type: ignore[assignment]


def warm_up() -> None:
    """Do once what every run does: the processes that are forked from here need not do it again."""
    ask(start(SETTINGS, log=Log()), QUESTIONS)
