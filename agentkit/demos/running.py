"""Run a plan on the simulator: what a policy forgets changes what the agent does next.

The same plan gives the same run, so each is made once and remembered.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agentkit.agent import Agent
from agentkit.budget import Budget, BudgetError
from agentkit.compaction import Compactor, Keep
from agentkit.connect import simulated
from agentkit.demos.plans import OWN, SCENARIOS, Plan, read_own
from agentkit.events import Billed, Compacted, CompactionLog, Event, TurnEnded
from agentkit.figures.rows import Row, strip_rows
from agentkit.messages import Usage
from agentkit.policies.registry import make_policy
from agentkit.providers.base import ProviderError
from agentkit.scenarios import course_workspace
from agentkit.simulator.recall import GONE, UNKNOWN
from agentkit.tools import Tool, Toolbox, workspace_tools


@dataclass(frozen=True)
class Turn:
    """One question: its place among all, the requests sent for it, and how it ended ("" while nothing did)."""

    number: int
    question: str
    requests: int = 0
    answer: str = ""
    ended: str = ""

    @property
    def outcome(self) -> str:
        """Say in words whether the question was answered."""
        if self.ended != "answered":
            return f"not answered ({self.ended})"
        gone = self.answer.startswith((GONE, UNKNOWN))
        return "answered: it is no longer in the context" if gone else "answered"


@dataclass(frozen=True)
class SummaryCall:
    """One summary call: the request that it came before, its bill, and whether its answer was refused."""

    before: int
    usage: Usage
    refused: bool


@dataclass(frozen=True)
class Demo:
    """A finished run. `problem` is the line that says why it ended early, or never started."""

    plan: Plan
    events: tuple[Event, ...] = ()
    questions: tuple[str, ...] = ()
    problem: str = ""

    @functools.cached_property
    def bills(self) -> tuple[Billed, ...]:
        """Return estimate and bill of every request, in order."""
        return tuple(e for e in self.events if isinstance(e, Billed))

    @functools.cached_property
    def compactions(self) -> tuple[Compacted, ...]:
        """Return every compaction, in order."""
        return tuple(e for e in self.events if isinstance(e, Compacted))

    @functools.cached_property
    def rows(self) -> tuple[Row, ...]:
        """Return the rows of the run's strip."""
        return tuple(strip_rows(self.bills, self.compactions))

    @functools.cached_property
    def summary_calls(self) -> tuple[SummaryCall, ...]:
        """Return every summary call, in order."""
        found, request = [], 1
        for event in self.events:
            if isinstance(event, Billed):
                request = event.number + 1
            elif isinstance(event, CompactionLog) and event.outcome and event.outcome.usage:
                found.append(SummaryCall(request, event.outcome.usage, event.outcome.status == "failed"))
        return tuple(found)

    @functools.cached_property
    def turns(self) -> tuple[Turn, ...]:
        """Return every question with what came of it, also those that were never asked."""
        ended = [e for e in self.events if isinstance(e, TurnEnded)]
        turns, sent = [], 0
        for number, question in enumerate(self.questions, 1):
            end = ended[number - 1] if number <= len(ended) else None
            rest = len(self.bills) - sent if number == len(ended) + 1 else 0
            requests, answer = (end.rounds, end.text) if end else (rest, "")
            turns.append(Turn(number, question, requests, answer, end.reason if end else "the run had ended"))
            sent += requests
        return tuple(turns)


def play(plan: Plan) -> Demo:
    """Return the run of `plan`. Never raises: a budget that cannot work or a file that is not there is its `problem`."""
    return _play(plan.same_run()) if plan.scenario != OWN else _play_file(plan.same_run())


@functools.lru_cache(maxsize=1_024)
def _play(plan: Plan) -> Demo:
    return _run(plan, SCENARIOS[plan.scenario].questions, _copy_of_the_course)


def _play_file(plan: Plan) -> Demo:
    """Play a file of one's own. It may have changed since the last time, so its bytes count and not its name."""
    try:
        data, name = read_own(plan.file)
    except ValueError as error:
        return Demo(plan, problem=str(error))
    return _play_bytes(replace(plan, file=name), data)


@functools.lru_cache(maxsize=64)
def _play_bytes(plan: Plan, data: bytes) -> Demo:
    def fill(folder: Path) -> None:
        folder.mkdir()
        (folder / plan.file).write_bytes(data)

    questions = tuple(q.format(file=plan.file) for q in SCENARIOS[OWN].questions)
    return _run(plan, questions, fill)


# ---------------------------------------------------------------------------------------------------------------- running


def _run(plan: Plan, questions: Sequence[str], fill: Callable[[Path], None]) -> Demo:
    events: list[Event] = []
    problem = ""
    with _folder(fill) as folder:
        try:
            agent = _agent(plan, folder, events.append)
            for question in questions:
                agent.run(question)
        except BudgetError as error:
            problem = str(error)
        except ProviderError as error:
            problem = f"the provider refused: {error}"
    return Demo(plan, tuple(e for e in events if isinstance(e, KEPT)), tuple(questions), problem)


KEPT = (Billed, Compacted, CompactionLog, TurnEnded)
"""The events that the lab shows; the others are many."""


def _agent(plan: Plan, folder: Path, listener: Callable[[Event], None]) -> Agent:
    provider = simulated(plan.rules)
    compactor = Compactor(provider, Keep(plan.keep or 1, "messages"))
    budget = Budget.ratio(plan.budget, plan.threshold)
    tools = _with_memory(workspace_tools(folder), folder)
    return Agent(provider, tools=tools, policy=make_policy(plan.policy, compactor), budget=budget, on_event=listener)


def _copy_of_the_course(folder: Path) -> None:
    shutil.copytree(course_workspace(), folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))


@contextmanager
def _folder(fill: Callable[[Path], None]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="agentkit-", ignore_cleanup_errors=True) as name:
        folder = Path(name) / "workspace"
        fill(folder)
        yield folder


# --------------------------------------------------------------------------------------------------------------- slow tools

_SLOW = ("grep", "run_tests")
"""Tools that start a process. The same files give the same answer, so the process runs once for all runs of the lab."""

_known: dict[tuple[str, str, str], str] = {}


def _with_memory(box: Toolbox, folder: Path) -> Toolbox:
    return Toolbox([_remembering(tool, folder) if tool.spec.name in _SLOW else tool for tool in box.tools], limit=box.limit)


def _remembering(tool: Tool, folder: Path) -> Tool:
    def run(arguments: dict[str, object]) -> str:
        key = (tool.spec.name, json.dumps(arguments, sort_keys=True), _fingerprint(folder))
        if key not in _known:
            _known[key] = tool.run(arguments)
        return _known[key]

    return Tool(tool.spec, run)


def _fingerprint(folder: Path) -> str:
    """Return a hash of all names and bytes below `folder`."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()
