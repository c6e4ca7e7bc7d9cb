"""The live half of `agentkit compare`: the scenarios run by the agent on the simulator under every policy."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from agentkit.closed_loop.cells import CLOSED_LOOP, MODEL, SCENARIOS
from agentkit.closed_loop.live import as_table, compare_live
from agentkit.policies.registry import POLICIES
from agentkit.pricing import prices
from agentkit.scenarios.library import SCENARIOS as ALL

NOTES = (
    CLOSED_LOOP,
    "done: turns whose work was done, judged by the files and by what was said; read again: unchanged files",
    "tokens are sums over all requests, summary calls included; no time passes, so no cache entry grows old",
)
"""How to read the tables."""


def add_live_options(command: argparse.ArgumentParser) -> None:
    """Add `--live` and what belongs to it to `agentkit compare`."""
    about = f"run these scenarios with the agent instead of replaying files (none named: {', '.join(SCENARIOS)})"
    command.add_argument("--live", nargs="*", metavar="SCENARIO", help=about)
    command.add_argument("--window", type=int, default=0, metavar="N", help="with --live: the simulated server's window")


def run_live(options: argparse.Namespace) -> int:
    """Run `agentkit compare --live`. Raises `ValueError` with one line for a scenario or a policy that does not exist."""
    _check(options)
    model = options.prices or MODEL
    rows = compare_live(
        options.live or SCENARIOS,
        options.policy or tuple(POLICIES),
        model,
        window=options.window,
        processes=options.processes,
        progress=not options.no_progress and sys.stderr.isatty(),
    )
    if options.json:
        for row in rows:
            print(json.dumps(asdict(row) | {"answered": row.answered}, ensure_ascii=False))
    else:
        print("\n".join([as_table(rows), "", *(f"  {line}" for line in (*NOTES, prices(model).label()))]))
    return 0


def _check(options: Any) -> None:
    if options.file:
        raise ValueError("--live runs scenarios and reads no session; leave the files out, or leave --live out")
    if options.window < 0:
        raise ValueError(f"--window is a number of tokens, 1 or more, not {options.window}")
    if options.processes is not None and options.processes < 1:
        raise ValueError(f"--processes is 1 or more, not {options.processes}")
    if unknown := [name for name in options.live if name not in ALL]:
        raise ValueError(f"unknown scenario {unknown[0]!r}; there are {', '.join(ALL)}")
