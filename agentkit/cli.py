"""The command line: `agentkit run`, `lab`, `book`, `doctor`. Every error is one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agentkit import compare_cli, replay_cli, serve_cli, session_cli
from agentkit.book import ChapterFailed
from agentkit.budget import BudgetError
from agentkit.compaction import KEEP_LIST, Keep
from agentkit.connect import DIALECTS, connect
from agentkit.console import Console, to_json
from agentkit.lab import CannotStart
from agentkit.ledger import LedgerError
from agentkit.log import Log
from agentkit.providers.base import ProviderError
from agentkit.recovery.steps import RECOVERIES
from agentkit.scenarios import Run, Settings, fresh_workspace, start
from agentkit.simulator import PROFILES
from agentkit.tools import workspace_tools


class Wrong(Exception):
    """Something that the user gave is wrong; the text is the line to print."""


_ERRORS = (Wrong, BudgetError, ProviderError, CannotStart, ChapterFailed, FileNotFoundError, LedgerError, ValueError)
"""What is printed as one line."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    main = argparse.ArgumentParser(prog="agentkit", description="Context management for coding agents.")
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_run(commands.add_parser("run", help="talk to the agent in the terminal", description=_RUN))
    lab = commands.add_parser("lab", help="open the workbook in JupyterLab")
    lab.add_argument("--port", type=int, help="port on 127.0.0.1 (default: 8888, or a free one)")
    lab.add_argument("--no-browser", action="store_true", help="only print the address")
    commands.add_parser("doctor", help="say what this machine has, and what to do about what it lacks")
    book = commands.add_parser("book", help="run the chapters and refresh their stored outputs")
    book.add_argument("chapter", nargs="*", help="notebooks to refresh (default: all)")
    replay_cli.add_parsers(commands)
    compare_cli.add_parsers(commands)
    session_cli.add_parser(commands)
    serve_cli.add_parsers(commands)
    return main


_RUN = (
    "A conversation with the agent. Without --workspace it works on a copy of the course's small project, so nothing of "
    "yours is touched; without --provider on the simulator, which needs no network and no key."
)


def _add_run(run: argparse.ArgumentParser) -> None:
    plain = Settings(budget=24_000, keep=8)
    add = run.add_argument
    add("--budget", type=int, default=plain.budget, metavar="N", help=f"token budget (default {plain.budget:,})")
    add("--threshold", type=float, default=plain.threshold, metavar="R", help="compact at this share of it (default 0.6)")
    add("--keep", type=int, default=plain.keep, metavar="K", help=f"how much stays word for word (default {plain.keep})")
    add("--unit", choices=["messages", "turns", "tokens"], default="messages", help="what --keep counts (default messages)")
    add("--boundary", choices=["user", "pair"], default="user", help="where the tail may start (default user)")
    add("--placement", choices=["system", "user"], default="system", help="where the summary stands (default system)")
    add("--keep-list", action="append", metavar="ITEM", help="an item of the summary's list, may be repeated")
    add("--no-compaction", action="store_true", help="keep everything, whatever the budget")
    add("--recovery", choices=list(RECOVERIES), default="once", help="what to do when a request fails (default once)")
    add("--provider", default="simulator", metavar="simulator|anthropic|URL", help="who answers; a URL is any server's")
    add("--dialect", choices=DIALECTS, help="what that server speaks (default: openai, at Anthropic's address anthropic)")
    add("--model", metavar="M", help="the model's name at that server")
    add("--profile", choices=sorted(PROFILES), default="deepseek", help="whose rules the simulator plays")
    add("--workspace", type=Path, metavar="DIR", help="the folder that the agent may read and change")
    add("--script", metavar="FILE|-", help="questions, one a line, instead of the keyboard")
    add("--json", action="store_true", help="print every event as a line of JSON")
    session_cli.add_run_options(run)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, 1 for an error, 130 for Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal with another code page must not end a conversation at the first arrow.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    options = parser().parse_args(argv)
    try:
        return (_COMMANDS.get(options.command) or options.handler)(options)
    except _ERRORS as error:
        print(f"agentkit: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    questions = _questions(options.script)
    log = session_cli.open_log(options, _warn)
    try:
        return _converse(_start(options, log), options, questions)
    finally:
        session_cli.close(log, options, _warn)


def _warn(text: str) -> None:
    print(text, file=sys.stderr)


def _converse(run: Run, options: argparse.Namespace, questions: Iterable[str]) -> int:
    console = Console(lambda text: (sys.stdout.write(text), sys.stdout.flush()))
    run.agent.listeners.append(session_cli.billing(run.agent.log))
    if options.json:
        run.agent.listeners.append(lambda event: print(to_json(event), flush=True))
    else:
        run.agent.listeners.append(console.show)
        if options.session:
            run.agent.log.listeners.append(lambda event: console.line(session_cli.replaced(event)))
        _introduce(run, options, console)
    for question in questions:
        if not options.json and options.script:
            console.line(f"\nyou> {question}")
        if not _turn(run, question, console) and options.script:
            return 1
    return 0


def _start(options: argparse.Namespace, log: Log | None) -> Run:
    if options.keep_list and not all(item.strip() for item in options.keep_list):
        raise Wrong('--keep-list: an item is empty; give a name and what it means, like "open tasks: what is still to do"')
    keep_list = tuple(options.keep_list) if options.keep_list else KEEP_LIST
    settings = Settings(
        options.budget,
        options.threshold,
        Keep(options.keep, options.unit).amount,
        options.unit,
        options.boundary,
        keep_list,
        options.placement,
        not options.no_compaction,
    )
    if options.workspace is not None and not options.workspace.is_dir():
        raise Wrong(f"--workspace {options.workspace}: not a folder")
    folder = options.workspace or fresh_workspace()
    provider = connect(options.provider, options.model, options.profile, options.dialect)
    run = start(settings, provider=provider, tools=workspace_tools(folder), log=log)
    run.agent.use_recovery(options.recovery)
    return run


def _introduce(run: Run, options: argparse.Namespace, console: Console) -> None:
    budget = run.agent.budget
    keeps = "never" if options.no_compaction else f"from {budget.threshold:,}; keeps {Keep(options.keep, options.unit)}"
    console.line(f"context budget: {budget.limit:,} tokens (compaction {keeps})")
    counting = getattr(getattr(run.agent.provider, "simulator", None), "counter", None)
    if counting is not None and counting.name == "estimate":
        console.line("note: no vocabulary here, so the simulator's own counts are estimates (agentkit doctor says why)")
    if not options.script:
        console.line("Ask something; exit or Ctrl-D ends the conversation.")
    where = options.workspace or "a copy of the course's workspace"
    console.line(f"provider: {run.agent.provider.name}, model {run.agent.provider.model}; workspace: {where}")
    if options.session:
        console.line(f"session {options.fork or options.name!r} in {options.session}: {session_cli.where(run.agent.log)}")


def _turn(run: Run, question: str, console: Console) -> bool:
    """Run one turn. An error or Ctrl-C ends the turn, not the conversation: what was said is still in the log."""
    try:
        run.agent.run(question)
        return True
    except ProviderError as error:
        print(f"agentkit: {error}", file=sys.stderr)
        return False
    except KeyboardInterrupt:
        console.line("[interrupted; the conversation goes on from here]")
        return True


def _questions(script: str | None) -> Iterable[str]:
    if script is None:
        return _typed()
    if script == "-":
        return [line.strip() for line in sys.stdin if line.strip()]
    try:
        text = Path(script).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Wrong(f"--script {script}: {getattr(error, 'strerror', None) or 'not a UTF-8 text file'}") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _typed() -> Iterator[str]:
    while True:
        try:
            question = input("\nyou> ").strip()
        except EOFError:
            return
        except KeyboardInterrupt:
            print("\n[to leave: exit, or Ctrl-D]")
            continue
        if question in ("exit", "quit"):
            return
        if question:
            yield question


def _lab(options: argparse.Namespace) -> int:
    from agentkit import lab

    return lab.run(options.port, not options.no_browser)


def _book(options: argparse.Namespace) -> int:
    from agentkit import book

    for path in book.chapters(options.chapter):
        print(f"{path.name}: {'refreshed' if book.refresh(path) else 'unchanged'}", flush=True)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from agentkit import environment

    environment.show()
    return 0 if all(ready for ready, _ in environment.report()) else 1


_COMMANDS = {"run": _run, "lab": _lab, "book": _book, "doctor": _doctor}
