"""Scenarios x policies, played by a pool of processes; and the rows as a table of text."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from agentkit.closed_loop.cells import MODEL, SCENARIOS, Row, provider_for, run_cell
from agentkit.policies.registry import POLICIES
from agentkit.pricing import prices
from agentkit.progress import bar
from agentkit.scenarios.library import scenario as find_scenario

Task = TypeVar("Task")
Result = TypeVar("Result")


def compare_live(
    scenarios: Sequence[str] = SCENARIOS,
    policies: Sequence[str] = tuple(POLICIES),
    model: str = MODEL,
    *,
    window: int = 0,
    processes: int | None = None,
    progress: bool = False,
) -> list[Row]:
    """Return one row for each scenario and policy, in the order given. Closed loop, and the same rows every time.

    `window` is the server's in tokens (0: the profile's own). `processes` is how many work at the same time (None: one for
    each processor). Raises `ValueError` for a name that does not exist, `UnknownModel` for a model without prices.
    """
    for name in scenarios:
        find_scenario(name)
    for name in policies:
        if name not in POLICIES:
            raise ValueError(f"unknown policy {name!r}; there are {', '.join(POLICIES)}")
    provider_for(prices(model))
    cells = [(scenario, policy, model, window) for scenario in scenarios for policy in policies]
    return spread(_run, cells, processes=processes, progress="live" if progress else "")


def _run(cell: tuple[str, str, str, int]) -> Row:
    return run_cell(*cell)


def spread(
    work: Callable[[Task], Result], tasks: Sequence[Task], *, processes: int | None = None, progress: str = ""
) -> list[Result]:
    """Return `work` of each task in order, done by several processes; `progress` names a bar (empty: none)."""
    count = min(processes or os.cpu_count() or 1, len(tasks))
    with bar(bool(progress), len(tasks), progress, "runs") as advance:

        def counted(result: Result) -> Result:
            advance(1)
            return result

        if count <= 1:
            return [counted(work(task)) for task in tasks]
        from concurrent.futures import ProcessPoolExecutor  # here: it loads all of multiprocessing

        with ProcessPoolExecutor(count) as pool:
            # The last tasks are the longest: they begin first, so that no process is left alone with one at the end.
            futures = [pool.submit(work, task) for task in reversed(tasks)]
            return [counted(future.result()) for future in futures][::-1]


COLUMNS: Mapping[str, Callable[[Row], str | int]] = {
    "policy": lambda row: row.policy,
    "done": lambda row: f"{row.done} of {row.asked}",
    "rounds": lambda row: row.rounds,
    "read again": lambda row: row.read_again,
    "calls for summaries": lambda row: row.extra,
    "prompt": lambda row: row.prompt,
    "cache read": lambda row: row.read,
    "cache write": lambda row: row.written,
    "fresh": lambda row: row.fresh,
    "output": lambda row: row.output,
    "largest": lambda row: row.largest,
    "USD": lambda row: f"{row.usd:.4f}",
    "not done": lambda row: _not_done(row),
}
"""The columns of the table, with what stands in them: whole numbers are tokens or counts."""


def _not_done(row: Row) -> str:
    turns = ", ".join(map(str, row.failed))
    return f"turn {turns}" + (f": {row.problem}" if row.problem else "") if turns else ""


def as_table(rows: Sequence[Row]) -> str:
    """Return the rows of each scenario as a table of text, first those that did all of their work, the cheapest first."""
    names = dict.fromkeys(row.scenario for row in rows)
    return "\n\n".join(_one(name, [row for row in rows if row.scenario == name]) for name in names)


def ranked(rows: Sequence[Row]) -> list[Row]:
    """Return the rows, those with the fewest turns not done first, then the cheapest."""
    return sorted(rows, key=lambda row: (row.unanswered, row.usd, row.policy))


def _one(scenario: str, rows: Sequence[Row]) -> str:
    cells = [list(COLUMNS), *([_shown(show(row)) for show in COLUMNS.values()] for row in ranked(rows))]
    widths = [max(len(line[i]) for line in cells) for i in range(len(COLUMNS))]
    left = (0, len(COLUMNS) - 1)
    lines = []
    for line in cells:
        padded = (
            cell.ljust(w) if i in left else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        lines.append("  ".join(padded))
    return "\n".join([scenario, *(line.rstrip() for line in lines)])


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
