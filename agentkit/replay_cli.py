"""`agentkit replay` and `agentkit sweep`: recorded sessions under another policy, cache and price list."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from agentkit.compaction.cut import Keep
from agentkit.pricing import Prices, UnknownModel, prices
from agentkit.replay.caches import CACHES, CacheChoice, cache_for
from agentkit.replay.compare import Comparison, compare, report
from agentkit.replay.counted import Counted, count
from agentkit.replay.run import OPEN_LOOP, Replay, replay
from agentkit.replay.schedules import AsRecorded, KeepAll, Middle, Schedule
from agentkit.replay.summaries import STAND_IN
from agentkit.sessions import Session, load

POLICIES = ("as-recorded", "keep-everything", "summarise-middle")
BUDGET = 200_000
"""Tokens that a threshold of 1 or less is a share of, unless --budget says otherwise: a usual window."""

_REPLAY = (
    "Feed recorded sessions through a policy, a cache model and example prices. "
    + OPEN_LOOP[0].upper()
    + OPEN_LOOP[1:]
    + "."
)
_SWEEP = (
    "Replay a session for every keep and threshold of a grid. A range is A:B or A:B:STEP; without a step it has 21 values."
)


def add_parsers(commands: Any) -> None:
    """Add `replay` and `sweep` to the parser's commands."""
    one = commands.add_parser("replay", help="replay recorded sessions under another policy", description=_REPLAY)
    one.add_argument("file", nargs="+", type=Path, metavar="FILE", help="a session: one JSON object on one line")
    one.add_argument("--policy", choices=POLICIES, default="as-recorded", help="(default: as-recorded)")
    one.add_argument("--keep", type=int, default=8, metavar="K", help="how much stays word for word (default 8)")
    one.add_argument(
        "--threshold", type=float, default=0.8, metavar="R", help="tokens, or a share of --budget (default 0.8)"
    )
    one.add_argument("--json", action="store_true", help="print one line of JSON a session, with every row")
    one.add_argument("--rows", action="store_true", help="print every request, not only the sums")
    one.set_defaults(handler=run_replay)
    many = commands.add_parser("sweep", help="replay a session for a grid of keep and threshold", description=_SWEEP)
    many.add_argument("file", type=Path, metavar="FILE", help="a session")
    many.add_argument("--keep", default="4:24:1", metavar="A:B", help="(default 4:24)")
    many.add_argument(
        "--threshold", default="0.1:0.9", metavar="A:B", help="tokens, or shares of --budget (default 0.1:0.9)"
    )
    many.add_argument("--json", action="store_true", help="print one line of JSON a cell")
    many.add_argument("--png", type=Path, metavar="FILE", help="write the picture to this file")
    many.add_argument("--no-progress", action="store_true", help="show no progress bar")
    many.set_defaults(handler=run_sweep)
    for command in (one, many):
        _add_common(command)


def _add_common(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--prices", metavar="MODEL", help="whose example prices and cache rule (default: the session's own model)")
    add("--cache", choices=CACHES, help="another cache model than that of the prices")
    add("--life", choices=["5m", "1h"], default="5m", help="how long a marked prefix is kept (default 5m)")
    add("--budget", type=int, default=BUDGET, metavar="N", help=f"what a threshold of 1 or less is a share of ({BUDGET:,})")
    add("--unit", choices=["messages", "turns", "tokens"], default="messages", help="what --keep counts (default messages)")
    add("--boundary", choices=["user", "pair"], default="user", help="where the tail may start (default user)")
    add("--summary", type=int, default=STAND_IN, metavar="N", help=f"tokens of a stand-in summary (default {STAND_IN:,})")
    add("--call", choices=["flatten", "shared"], default="flatten", help="how the summary is asked for (default flatten)")


# ------------------------------------------------------------------------------------------------------------------- replay


def run_replay(options: argparse.Namespace) -> int:
    """Run `agentkit replay`. Raises `ValueError` with one line for what cannot be read or does not exist."""
    comparisons: list[Comparison] = []
    schedule = _schedule(options)
    found = prices(options.prices) if options.prices else None
    for path in options.file:
        session = read_session(path)
        listed = found or own_prices(session)
        counted = count(session)
        run = replay(counted, schedule, listed, _cache(options, listed))
        compared = compare(counted) if options.policy == "as-recorded" and session.billed else None
        if options.json:
            print(json.dumps(as_json(run, session, compared), ensure_ascii=False))
        else:
            print(_lines(run, counted, options.rows))
        comparisons += [compared] if compared else []
    if comparisons and not options.json:
        print("\nheld against the real bills:\n" + report(comparisons))
    return 0


def read_session(path: Path) -> Session:
    """Load a session and print what had to be left out of it."""
    session = load(path)
    if session.warnings:
        print(f"agentkit: {path}: {session.report()}", file=sys.stderr)
    return session


def own_prices(session: Session) -> Prices:
    """Return the example prices of the session's own model. Raises `UnknownModel` that names the session."""
    try:
        return prices(session.model)
    except UnknownModel as error:
        raise UnknownModel(f"{session.id}: {error}; name a model with --prices") from None


def _schedule(options: argparse.Namespace) -> Schedule:
    if options.policy == "summarise-middle":
        return replace(_middle(options), threshold=_tokens(options.threshold, options.budget), keep=_keep(options))
    return AsRecorded() if options.policy == "as-recorded" else KeepAll()


def _middle(options: argparse.Namespace) -> Middle:
    return Middle(1, boundary=options.boundary, summary=options.summary, call=options.call)


def _keep(options: argparse.Namespace) -> Keep:
    return Keep(options.keep, options.unit)


def _cache(options: argparse.Namespace, listed: Prices) -> CacheChoice:
    return cache_for(listed, options.cache, life=options.life)


def _tokens(threshold: float, budget: int) -> int:
    """Return a threshold in tokens: a number of 1 or less is a share of the budget."""
    if not 0 < threshold < 1e9:
        raise ValueError(f"a threshold is tokens, or a share above 0 and up to 1 of the budget, not {threshold:g}")
    return max(1, round(threshold * budget if threshold <= 1 else threshold))


def as_json(run: Replay, session: Session, compared: Comparison | None = None) -> dict[str, Any]:
    """Return a replay as data for JSON."""
    return {
        "session": run.session,
        "policy": run.policy,
        "cache": run.cache,
        "prices": run.prices,
        "notes": list(run.notes),
        "warnings": dict(session.warnings),
        "usd": run.usd,
        "summaries_usd": run.summaries.total,
        "sent": run.sent,
        "read_share": run.read_share,
        "recall": run.recall,
        "compactions": run.compactions,
        "real": asdict(compared) if compared else None,
        "rows": [asdict(row) for row in run.rows],
    }


def _lines(run: Replay, counted: Counted, with_rows: bool) -> str:
    bill = run.bill
    recall = "no references" if run.recall is None else f"{run.recall:.1%}"
    tokens = f"{run.sent:,} prompt tokens, {run.read_share:.1%} read from the cache"
    lines = [
        f"{run.session}: {run.policy}; {run.cache}",
        f"  requests: {len(run.requests):,}, compactions: {run.compactions}, {tokens}",
        f"  {bill.total:.4f} USD = fresh {bill.fresh:.4f} + read {bill.read:.4f} + written {bill.written:.4f} + output"
        f" {bill.output:.4f}; summary calls are {run.summaries.total:.4f} of it",
        f"  recall of references: {recall}",
        f"  {run.prices}",
        *(f"  {note}" for note in run.notes),
    ]
    if with_rows:
        lines.append("  request      sent      read   written     fresh  output        USD  cumulative")
        lines += [_row(row) for row in run.rows]
    return "\n".join(lines)


def _row(row: Any) -> str:
    name = f"{row.number}{'s' if row.kind == 'summary' else ''}"
    counts = f"{row.sent:>10,}{row.read:>10,}{row.written:>10,}{row.fresh:>10,}{row.output:>8,}"
    return f"  {name:>7}{counts}{row.usd:>11.5f}{row.cumulative:>12.4f}  {'; '.join(row.events)}".rstrip()


# -------------------------------------------------------------------------------------------------------------------- sweep


def run_sweep(options: argparse.Namespace) -> int:
    """Run `agentkit sweep`. Raises `ValueError` with one line for what cannot be read or does not exist."""
    from agentkit.figures.sweep import in_words, sweep_map
    from agentkit.sweep import Job, sweep

    keeps = [round(k) for k in numbers(options.keep, whole=True)]
    thresholds = [_tokens(t, options.budget) for t in numbers(options.threshold)]
    session = read_session(options.file)
    listed = prices(options.prices) if options.prices else own_prices(session)
    job = Job(session, listed, _middle(options), options.unit, options.cache, life=options.life)
    show = not options.no_progress and sys.stderr.isatty()
    cells = sweep(job, list(dict.fromkeys(keeps)), list(dict.fromkeys(thresholds)), progress=show)
    if options.json:
        for cell in cells:
            print(json.dumps(asdict(cell)))
    else:
        print(f"{session.id}: {len(cells)} cells. {in_words(cells, listed.label())}")
    if options.png:
        picture = sweep_map(cells, listed.label(), title=session.id).png
        try:
            options.png.write_bytes(picture)
        except OSError as error:
            raise ValueError(f"--png {options.png}: {error.strerror}") from None
    return 0


def numbers(text: str, *, whole: bool = False) -> list[float]:
    """Return the numbers of `A:B`, `A:B:STEP` or `A`; without a step 21 of them, or all whole ones if those are fewer.

    Raises `ValueError` for anything else.
    """
    try:
        start, end, *step = [float(part) for part in text.split(":")] if ":" in text else [float(text), float(text)]
    except ValueError:
        raise ValueError(f"a range is A:B or A:B:STEP, for example 4:24, not {text!r}") from None
    if len(step) > 1 or not 0 < start <= end < 1e9 or (step and not 0 < step[0] <= 1e9):
        raise ValueError(f"a range is A:B or A:B:STEP with 0 < A <= B and a step above 0, not {text!r}")
    width = step[0] if step else max((end - start) / 20, 1.0 if whole else 0.0)
    size = int((end - start) / width + 1e-9) + 1 if width else 1
    if size > 1_000:
        raise ValueError(f"the range {text!r} has {size:,} values; take a larger step (1,000 are the most)")
    return [start + i * width for i in range(size)]
