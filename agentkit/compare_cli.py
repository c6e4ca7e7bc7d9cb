"""`agentkit compare`: every policy on recorded sessions, as a table and as a picture."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentkit.budget import Budget
from agentkit.live_cli import add_live_options, run_live
from agentkit.policies.registry import POLICIES
from agentkit.pricing import prices
from agentkit.replay.caches import CACHES
from agentkit.replay.frontier import Score, Settings, as_table, compare_policies, frontier
from agentkit.replay.run import OPEN_LOOP
from agentkit.replay.summaries import STAND_IN
from agentkit.replay_cli import own_prices, read_session

BUDGET = 200_000
"""Tokens: a usual window. The policies may use 80 % of it unless they have a rule of their own."""

_ABOUT = "Replay recorded sessions under every policy. " + OPEN_LOOP[0].upper() + OPEN_LOOP[1:] + "."
NOTES = (
    OPEN_LOOP,
    "optimum: the cheapest schedule of compactions for these sessions, known only afterwards, with tails as cost-aware keeps"
    " them; a policy that keeps less can cost less than it",
    "recall: of what later tool calls mention and had been seen, how much was still in view; * = no other policy is cheaper"
    " at equal or better recall",
    f"summaries are stand-ins of {STAND_IN:,} tokens that say nothing; the tools that a policy offers are not counted",
)
"""How to read the table."""


def add_parsers(commands: Any) -> None:
    """Add `compare` to the parser's commands."""
    command = commands.add_parser("compare", help="replay recorded sessions under every policy", description=_ABOUT)
    add = command.add_argument
    add("file", nargs="*", type=Path, metavar="FILE", help="a session: one JSON object on one line")
    add("--prices", metavar="MODEL", help="whose example prices and cache rule (default: each session's own model)")
    add("--cache", choices=[c for c in CACHES if c not in ("blocks", "tree")], help="another cache model than theirs")
    add("--budget", type=int, default=BUDGET, metavar="N", help=f"the window in tokens (default {BUDGET:,})")
    add("--policy", action="append", metavar="NAME", help="only this policy; may be repeated")
    add("--json", action="store_true", help="print one line of JSON a policy")
    add("--png", type=Path, metavar="OUT", help="write the picture to this file: cost over recall, the frontier drawn")
    add("--processes", type=int, metavar="N", help="how many work at the same time (default: one for each processor)")
    add("--no-progress", action="store_true", help="show no progress bar")
    add_live_options(command)
    command.set_defaults(handler=run_compare)


def run_compare(options: argparse.Namespace) -> int:
    """Run `agentkit compare`. Raises `ValueError` with one line for what cannot be read or does not exist."""
    if options.live is not None:
        return run_live(options)
    if not options.file:
        raise ValueError("name at least one session, or run scenarios with --live")
    if options.processes is not None and options.processes < 1:
        raise ValueError(f"--processes is 1 or more, not {options.processes}")
    found = prices(options.prices) if options.prices else None
    sessions = [read_session(path) for path in options.file]
    budget = Budget.share(options.budget)
    pairs = [(session, Settings(found or own_prices(session), budget, options.cache)) for session in sessions]
    show = not options.no_progress and sys.stderr.isatty()
    chosen = options.policy or tuple(POLICIES)
    scores = compare_policies(pairs, chosen, processes=options.processes, progress=show)
    labels = sorted({settings.prices.label() for _, settings in pairs})
    if options.json:
        for line in as_json(scores):
            print(json.dumps(line, ensure_ascii=False))
    else:
        print(_lines(scores, len(sessions), sum(s.calls for s in sessions), labels))
    if options.png:
        _write_picture(options.png, scores, labels, len(sessions))
    return 0


def as_json(scores: list[Score]) -> list[dict[str, Any]]:
    """Return the scores as data for JSON, with what is worked out from them."""
    best = {score.policy for score in frontier(scores)}
    more = (
        {"ratio": s.ratio, "recall": s.recall, "read_share": s.read_share, "on_frontier": s.policy in best} for s in scores
    )
    return [asdict(score) | extra for score, extra in zip(scores, more, strict=True)]


def _lines(scores: list[Score], sessions: int, calls: int, labels: list[str]) -> str:
    shown = labels if len(labels) <= 3 else [*labels[:3], f"and {len(labels) - 3} other price lists"]
    head = f"{sessions} session{'s' if sessions > 1 else ''}, {calls:,} calls, {len(scores)} policies"
    return "\n".join([head, as_table(scores), *(f"  {line}" for line in (*NOTES, *shown))])


def _write_picture(path: Path, scores: list[Score], labels: list[str], sessions: int) -> None:
    from agentkit.figures.frontier import frontier_chart

    title = f"{sessions} session{'s' if sessions > 1 else ''}"
    picture = frontier_chart(scores, "; ".join(labels), title=title).png
    try:
        path.write_bytes(picture)
    except OSError as error:
        raise ValueError(f"--png {path}: {error.strerror}") from None
