"""The command line's part for stored sessions: `agentkit run --session FILE.db …` and `agentkit session FILE.db`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentkit.events import Billed, Event
from agentkit.ledger import MAIN, Ledger, LedgerError, LedgerFile, Line, entry_of, history, turns
from agentkit.log import HistoryReplaced, Log, project
from agentkit.sessions import dumps, from_ledger, into_ledger, load

_WIDTH = 78


def add_run_options(run: argparse.ArgumentParser) -> None:
    """Add what `agentkit run` takes to keep its conversation in a file."""
    add = run.add_argument
    add("--session", type=Path, metavar="FILE.db", help="keep the conversation in this file, entry by entry")
    add("--name", default=MAIN, help="which session of the file (default main)")
    add("--resume", action="store_true", help="go on with a session that is there already")
    add("--rewind", metavar="ID", help="go back to this entry first (number or message id: agentkit session FILE.db)")
    add("--fork", metavar="NAME", help="go on in a new session of this name; the old one stays as it is")
    add("--or-memory", action="store_true", help="when the file cannot be written, go on without it instead of stopping")


def open_log(options: argparse.Namespace, warn: Callable[[str], None]) -> Log | None:
    """Return the log that the options ask for, or None. Raises `LedgerError` or `ValueError` with one line."""
    if options.session is None:
        for name in ("resume", "rewind", "fork", "or_memory"):
            if getattr(options, name):
                raise ValueError(f"--{name.replace('_', '-')} needs --session FILE.db: which conversation?")
        return None
    resume = options.resume or options.rewind is not None or options.fork is not None
    options.is_new = not options.session.exists()
    _check_file(options.session, resume)
    try:
        ledger = _open(options, resume, warn)
    except LedgerError as error:
        if not options.or_memory or error.kind not in ("read-only", "disk", "full"):
            raise
        warn(f"agentkit: {error}")
        warn("agentkit: going on in memory; what is said from here on is lost at the end")
        if not options.session.exists():
            return Log()
        ledger = Ledger(options.session, options.name, read_only=True, on_trouble=lambda error: None)
    try:
        return _moved(ledger, options)
    except BaseException:
        ledger.close()
        raise


def _check_file(path: Path, resume: bool) -> None:
    if resume and not path.exists():
        raise LedgerError(f"{path}: no such file; leave out --resume, --rewind and --fork to begin a session", "missing")
    if not resume and path.is_file() and _holds_something(path):
        raise LedgerError(f"{path}: is there already; add --resume to go on with it, or name another file")


def _holds_something(path: Path) -> bool:
    """Say whether there is anything in the file; a ledger whose making was killed is empty."""
    try:
        LedgerFile(path, read_only=True).close()
    except LedgerError as error:
        return error.kind != "empty"
    return True


def _open(options: argparse.Namespace, resume: bool, warn: Callable[[str], None]) -> Ledger:
    def trouble(error: LedgerError) -> None:
        warn(f"agentkit: {error} (going on in memory)")

    if resume:  # a wrong name must not make an empty session
        Ledger(options.session, options.name, read_only=True).close()
    file = LedgerFile(options.session)
    try:
        file.claim()
        return Ledger(file, options.name, on_trouble=trouble if options.or_memory else None)
    except BaseException:
        file.close()
        raise


def _moved(ledger: Ledger, options: argparse.Namespace) -> Ledger:
    """Go back, or fork, as the options say. A fork leaves the old session as it is."""
    if options.rewind is None and options.fork is None:
        return ledger
    try:
        seq = len(ledger) - 1 if options.rewind is None else entry_of(ledger, options.rewind)
    except ValueError as error:
        raise ValueError(f"--rewind: {error}; agentkit session {options.session} lists them") from None
    if options.fork is not None:
        return ledger.fork(seq, options.fork)
    ledger.rewind(seq)
    return ledger


def replaced(event: HistoryReplaced) -> str:
    """Return what happened to the model's view, as a line for the terminal."""
    return f"[history] {event.cause}: the model saw {event.before} messages and now sees {event.after}; all are kept"


def billing(log: Log | None) -> Callable[[Event], None]:
    """Return a listener that stores the bill of every request with its answer, where the log is a ledger."""

    def listen(event: Event) -> None:
        if isinstance(log, Ledger) and isinstance(event, Billed) and event.usage is not None:
            log.bill(event.usage)

    return listen


def where(log: Log) -> str:
    """Return the state of a resumed log, as a line."""
    messages, view = log.messages(), project(log)
    sees = "all of them" if view.compaction is None else f"{view.size}, the rest as a summary"
    return f"{len(log)} entries, {len(messages)} messages on this branch; the model sees {sees}"


def close(log: Log | None, options: argparse.Namespace, warn: Callable[[str], None]) -> None:
    """Close the file, and say what did not reach it. A new file to which no question was put is removed again."""
    if not isinstance(log, Ledger):
        return
    if log.unsaved:
        warn(f"agentkit: {len(log.unsaved)} entries did not reach {log.file.path} and are lost now")
    log.close()
    if options.is_new and not turns(log):
        options.session.unlink(missing_ok=True)


# ------------------------------------------------------------------------------------------------------ agentkit session


def add_parser(commands: Any) -> None:
    """Add the command `session`."""
    command = commands.add_parser("session", help="look into a stored session; export and import", description=_SESSION)
    command.add_argument("file", type=Path, metavar="FILE.db")
    command.add_argument("--name", default=MAIN, help="which session of the file (default main)")
    command.add_argument("--view", action="store_true", help="only what the model sees")
    command.add_argument("--export", type=Path, metavar="OUT.jsonl", help="write the branch as a session file")
    command.add_argument("--import", type=Path, metavar="IN.jsonl", dest="load", help="store a session file as this session")
    command.set_defaults(handler=run)


_SESSION = (
    "Every entry of a stored session with its number and its id, of all branches, and what the model sees of it. The "
    "numbers are what --rewind takes."
)


def run(options: argparse.Namespace) -> int:
    """Run `agentkit session`."""
    if options.load is not None:
        with into_ledger(load(options.load), options.file, options.name) as made:
            print(f"stored {len(made)} entries as session {options.name!r}")
        return 0
    with Ledger(options.file, options.name, read_only=True) as ledger:
        if options.export is not None:
            _export(ledger, options.export)
        else:
            print("\n".join(listing(ledger, only_view=options.view)))
    return 0


def _export(ledger: Ledger, path: Path) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(dumps(from_ledger(ledger)) + "\n")
    except OSError as error:
        raise ValueError(f"--export {path}: {error.strerror or error}") from None
    print(f"wrote the branch, {len(ledger.messages())} messages", file=sys.stderr)


def listing(ledger: Ledger, *, only_view: bool = False) -> list[str]:
    """Return the entries as lines: number, id, what the model sees of it, and its words."""
    lines = [line for line in history(ledger) if not only_view or line.place in ("word for word", "shortened", "in force")]
    names = ", ".join(ledger.sessions)
    back = ", ".join(f"{t.message.id}: --rewind {t.before}" for t in turns(ledger) if t.before is not None)
    return [
        f"session {ledger.session!r} (in this file: {names}): {where(ledger)}",
        *map(_row, lines),
        f"to ask again: {back}" if back else "no question yet",
    ]


def _row(line: Line) -> str:
    name = line.entry.message.id if line.entry.message else ""
    words = line.words if len(line.words) <= _WIDTH else line.words[: _WIDTH - 1] + "…"
    return f"{line.entry.seq:>5}  {name:<6} {line.place:<14} {words}".rstrip()
