"""Make the record again: `python -m agentkit.closed_loop.record` writes recorded_live.json, byte for byte the same."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from agentkit.closed_loop.against import Replayed, replayed
from agentkit.closed_loop.cells import MODEL, SCENARIOS, Row
from agentkit.closed_loop.live import compare_live, spread
from agentkit.closed_loop.recorded import RECORDED, Recorded, as_text, load_recorded
from agentkit.closed_loop.survival import Survived, survival
from agentkit.policies.registry import POLICIES
from agentkit.scenarios.library import scenario as find_scenario
from agentkit.simulator.counter import tokenizer

SECOND = "simulated-deepseek"
"""A second price list: reading from the cache costs a fiftieth there, and storing nothing."""
NARROW = "needle"
"""The scenario that is also run with the budget as the server's window: there keep everything ends."""
LONG = SCENARIOS[-1]
SLOW = ("AutoGPT 2023-04 as told", "AutoGPT 2023-04", "AutoGPT 2023-05", "AutoGPT 2023-06")
"""They change the head of every request, so the long refactor takes minutes under each: the record leaves them out."""
PARTS = ("short", "long", "replayed", "survival")


def record_short(*, processes: int | None = None, progress: bool = False) -> list[Row]:
    """Play the short scenarios under two price lists, and one of them in a narrow window."""
    window = find_scenario(NARROW).budget
    rows: list[Row] = []
    for scenarios, model, most in ((SCENARIOS[:-1], MODEL, 0), (SCENARIOS[:-1], SECOND, 0), ((NARROW,), MODEL, window)):
        rows += compare_live(scenarios, model=model, window=most, processes=processes, progress=progress)
    return rows


def record_long(
    policies: Sequence[str] = tuple(name for name in POLICIES if name not in SLOW),
    *,
    processes: int | None = None,
    progress: bool = False,
) -> list[Row]:
    """Play the long refactor: some minutes, without the slow ones (name them with `--policy` to have them all the same)."""
    return compare_live((LONG,), policies, processes=processes, progress=progress)


def record_replayed(*, processes: int | None = None, progress: bool = False) -> list[Replayed]:
    """Replay the session of each scenario under every policy."""
    found = spread(replayed, SCENARIOS, processes=processes, progress="replayed" if progress else "")
    return [one for part in found for one in part]


def record_survival(*, processes: int | None = None, progress: bool = False) -> list[Survived]:
    """Plant, compact and ask, for every policy and every list."""
    return survival(processes=processes, progress=progress)


def versions() -> dict[str, str]:
    """Return what was run: this package, the prices, the vocabulary, the default price list."""
    return {
        "agentkit": _version("agentkit"),
        "genai-prices": _version("genai-prices"),
        "counted with": tokenizer("o200k_base")[1],
        "prices": MODEL,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "from source"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the record; with names of parts, only those anew."""
    parser = argparse.ArgumentParser(prog="python -m agentkit.closed_loop.record", description="Record the live runs again.")
    parser.add_argument("part", nargs="*", help=f"which: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--to", type=Path, default=RECORDED, metavar="FILE", help="where to write it")
    parser.add_argument("--policy", action="append", metavar="NAME", help=f"of {LONG}: only this one; may be repeated")
    parser.add_argument("--processes", type=int, metavar="N", help="how many work at the same time")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.part if name not in PARTS]:
        parser.error(f"unknown part {unknown[0]!r}; there are {', '.join(PARTS)}")
    parts = options.part or PARTS
    old = load_recorded(options.to) if options.to.exists() else Recorded({}, (), (), ())
    how: dict[str, Any] = {"processes": options.processes, "progress": True}
    short = record_short(**how) if "short" in parts else [row for row in old.rows if row.scenario != LONG]
    long = [row for row in old.rows if row.scenario == LONG]
    if "long" in parts:
        made_now = record_long(options.policy, **how) if options.policy else record_long(**how)
        known = {row.policy: row for row in (*long, *made_now)}
        long = [known[name] for name in POLICIES if name in known]
    made = Recorded(
        versions(),
        (*short, *long),
        tuple(record_replayed(**how)) if "replayed" in parts else old.replayed,
        tuple(record_survival(**how)) if "survival" in parts else old.survival,
    )
    options.to.write_text(as_text(made), encoding="utf-8", newline="\n")
    counts = f"{len(made.rows)} live rows, {len(made.replayed)} replayed, {len(made.survival)} facts looked for"
    print(f"{options.to.name}: {counts}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
