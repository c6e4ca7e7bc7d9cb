"""Several processes on one ledger: who comes second waits or is told, and nothing is lost or mixed up."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agentkit.ledger import Ledger, LedgerError, LedgerFile
from agentkit.messages import user

WRITER = Path(__file__).with_name("writer.py")
ROOT = WRITER.parents[2]


def write_together(path: Path, sessions: list[str], count: int) -> list[int]:
    """Run one writer for each of `sessions` at the same time, and return how often each was overtaken."""
    commands = [[sys.executable, str(WRITER), str(path), s, f"w{n}", str(count)] for n, s in enumerate(sessions)]
    running = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        for command in commands
    ]
    overtaken = []
    for process in running:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        overtaken.append(int(out))
    return overtaken


def said(ledger: Ledger, name: str) -> list[str]:
    return [m.content for m in ledger.messages() if m.content.startswith(name)]


def test_two_processes_make_one_file_at_once_and_write_to_it(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    write_together(path, ["one", "two"], 100)
    with Ledger(path, "one", read_only=True) as one:
        two = Ledger(one.file, "two")
        assert said(one, "w0") == [f"w0 {n}" for n in range(100)] and said(two, "w1") == [f"w1 {n}" for n in range(100)]
        assert one.file.rows("PRAGMA integrity_check") == [("ok",)]


def test_the_second_of_two_that_hold_the_same_session_is_told(tmp_path: Path) -> None:
    with Ledger(tmp_path / "s.db", messages=[user("1")]) as first, Ledger(tmp_path / "s.db") as second:
        first.append(user("2"))
        with pytest.raises(LedgerError, match="another process has gone on with session 'main'") as caught:
            second.append(user("mine"))
        assert caught.value.kind == "conflict" and len(second) == 1
        assert second.refresh() == 1 and second.append(user("mine")).seq == 2
        with pytest.raises(LedgerError, match="another process"):
            first.rewind(0)
        assert first.fork(1, "apart").append(user("first's own")).seq == 2


def test_a_writer_waits_for_the_other_ones_transaction(tmp_path: Path) -> None:
    with Ledger(tmp_path / "s.db", wait=20) as ledger:
        other = sqlite3.connect(tmp_path / "s.db", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.2, other.execute, ["ROLLBACK"]).start()
        assert ledger.append(user("1")).seq == 0
        other.close()


def test_a_writer_that_waited_too_long_says_so_and_nothing_has_changed(tmp_path: Path) -> None:
    with Ledger(tmp_path / "s.db", wait=0.05) as ledger:
        other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another process is writing") as caught:
            ledger.append(user("1"))
        assert caught.value.kind == "locked" and len(ledger) == 0
        with pytest.raises(LedgerError, match="another process is writing"):
            LedgerFile(tmp_path / "s.db", wait=0.05)
        with Ledger(tmp_path / "s.db", read_only=True) as reader:
            assert len(reader) == 0, "readers do not wait"
        other.execute("ROLLBACK")
        other.close()
        assert ledger.append(user("1")).seq == 0
