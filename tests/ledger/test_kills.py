"""Killed at any point, without warning: the ledger opens, holds what was reported as stored, and the run goes on."""

from __future__ import annotations

import multiprocessing as mp
import os
import random
import sys
import time
from collections.abc import Iterator
from multiprocessing.context import BaseContext
from pathlib import Path
from unittest import mock

import pytest

from agentkit.ledger import Ledger
from agentkit.log import project
from agentkit.messages import Request, user
from agentkit.policies import SummariseMiddle
from agentkit.protocol import DIALECTS, violations
from agentkit.scenarios import start

from .kill_worker import SETTINGS, digest, run_for_ever

IN_THE_SUITE, ALL = 10, 50
"""Kills in the ordinary suite, and in all: `pytest -m bench tests/bench/test_bench_kills.py`."""

STATEMENTS = 400
"""So many run in about four rounds of the questions; the first 30 make the tables."""

Killed = dict[int, str]
"""What a killed run had reported: for each entry its number and what it said."""


def processes() -> BaseContext:
    """Return how to start a run: forked from a warm process where the system can, else from nothing."""
    if sys.platform == "win32":
        return mp.get_context("spawn")
    from multiprocessing import forkserver  # not on Windows

    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["ledger.kill_warm"])
    # Before Python 3.12 the server does not take over `sys.path`, and a module that it cannot load it leaves out silently.
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)):
        forkserver.ensure_running()
    return context


def kill_once(context: BaseContext, path: Path, point: random.Random) -> Killed:
    """Start a run on the ledger `path` and kill it: every second one from inside, at a random SQL statement."""
    ours, theirs = mp.Pipe(duplex=False)
    inside = point.random() < 0.5
    statement = point.randrange(STATEMENTS) if inside else None
    process = context.Process(target=run_for_ever, args=(str(path), theirs, statement))  # type: ignore[attr-defined]
    process.start()
    theirs.close()
    killed: Killed = {}
    wanted = point.randrange(60)
    try:
        for report in _reports(ours):
            seq, said = report.split()
            killed[int(seq)] = said
            if not inside and len(killed) > wanted:
                time.sleep(point.random() / 1000)  # somewhere in the next entries
                process.kill()
    finally:
        process.kill()
        process.join(30)
    return killed


def _reports(pipe: mp.connection.Connection) -> Iterator[str]:
    """Yield what arrives until the process is gone; what it sent before it died is still read."""
    while True:
        try:
            if not pipe.poll(60):
                raise AssertionError("the run neither went on nor ended")
            yield pipe.recv_bytes().decode()
        except (EOFError, OSError):
            return


def check(path: Path, killed: Killed) -> int:
    """Check the ledger after a kill, and return how many compactions it holds."""
    with Ledger(path) as ledger:
        there = {entry.seq: digest(entry) for entry in ledger}
        assert killed.items() <= there.items(), "an entry that was reported as stored is missing"
        assert list(there) == list(range(len(there)))
        assert ledger.file.rows("PRAGMA integrity_check") == [("ok",)]
        agent = start(SETTINGS, log=ledger.at(len(ledger) - 1) if len(ledger) else None).agent
        agent.log.append(user("Where were we?"))
        request = agent.request()
        assert [violations(Request(request.messages, request.tools), d) for d in DIALECTS] == [()] * 3
        assert isinstance(agent.policy, SummariseMiddle) and (project(ledger).compaction is None) == (
            not ledger.compactions()
        )
        return sum(entry.kind == "compaction" for entry in ledger)


def kill_many(folder: Path, count: int, seed: int = 8) -> tuple[int, int]:
    """Kill `count` runs, ten on each ledger, and return the number of compactions and of entries that were checked."""
    context, point = processes(), random.Random(seed)
    compactions: dict[Path, int] = {}
    entries = 0
    for n in range(count):
        path = folder / f"killed-{n // 10}.db"
        killed = kill_once(context, path, point)
        compactions[path] = check(path, killed)
        entries += len(killed)
    return sum(compactions.values()), entries


def test_nothing_that_was_stored_is_lost(tmp_path: Path) -> None:
    compactions, entries = kill_many(tmp_path, IN_THE_SUITE)
    assert compactions > 1 and entries > 50, "a test of kills in a run with compactions"


def test_a_lost_entry_would_be_found(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Ledger(path, messages=[user("1")]) as ledger:
        (entry,) = ledger
    check(path, {0: digest(entry)})
    for lie in ({0: "other"}, {0: digest(entry), 1: "never stored"}):
        with pytest.raises(AssertionError, match="is missing"):
            check(path, lie)
