"""Run a plan on the simulator: what a policy forgets changes what the agent does next.

The same plan gives the same run, so each is made once and remembered.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentkit.agent import Agent
from agentkit.budget import Budget, BudgetError
from agentkit.compaction import Compactor, Keep
from agentkit.connect import simulated
from agentkit.demos.plans import OWN, SCENARIOS, Plan, is_session, read_own
from agentkit.demos.replaying import parse, replayed, turns_of
from agentkit.events import Billed, Compacted, CompactionLog, Event, TurnEnded
from agentkit.figures.rows import Row, strip_rows
from agentkit.messages import Usage
from agentkit.policies.registry import make_policy
from agentkit.providers.base import ProviderError
from agentkit.replay.counted import Counted, count
from agentkit.scenarios.library import Task
from agentkit.scenarios.memory import with_memory
from agentkit.scenarios.playing import workspace
from agentkit.simulator.recall import GONE, UNKNOWN
from agentkit.tools import workspace_tools

AS_RECORDED = "as recorded"
"""How a turn of a replayed session ended: nobody was asked again."""


@dataclass(frozen=True)
class Turn:
    """One question: its place among all, the requests sent for it, and how it ended ("" while nothing did).

    `right` is the judgement of the scenario's check.
    """

    number: int
    question: str
    requests: int = 0
    answer: str = ""
    ended: str = ""
    right: bool = True

    @property
    def outcome(self) -> str:
        """Say in words whether the question was answered, judged by the truth; what was replayed stands as recorded."""
        if self.ended == AS_RECORDED:
            return AS_RECORDED
        if self.ended != "answered":
            return f"not answered ({self.ended})"
        if self.answer.startswith((GONE, UNKNOWN)):
            return "answered: it is no longer in the context"
        return "answered" if self.right else "answered, but it is not right"


@dataclass(frozen=True)
class SummaryCall:
    """One summary call: the request that it came before, its bill, and whether its answer was refused."""

    before: int
    usage: Usage
    refused: bool


@dataclass(frozen=True)
class Demo:
    """A finished run. `problem` is the line that says why it ended early, or never started.

    `right` judges the answers in their order; `recorded` are the turns of a session that was replayed.
    """

    plan: Plan
    events: tuple[Event, ...] = ()
    questions: tuple[str, ...] = ()
    problem: str = ""
    right: tuple[bool, ...] = ()
    recorded: tuple[Turn, ...] = ()

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
        if self.recorded:
            return self.recorded
        ended = [e for e in self.events if isinstance(e, TurnEnded)]
        turns, sent = [], 0
        for number, question in enumerate(self.questions, 1):
            end = ended[number - 1] if number <= len(ended) else None
            rest = len(self.bills) - sent if number == len(ended) + 1 else 0
            requests, answer = (end.rounds, end.text) if end else (rest, "")
            right = self.right[number - 1] if number <= len(self.right) else True
            turns.append(Turn(number, question, requests, answer, end.reason if end else "the run had ended", right))
            sent += requests
        return tuple(turns)


def play(plan: Plan) -> Demo:
    """Return the run of `plan`. Never raises: a budget that cannot work or a file that is not there is its `problem`."""
    return _play(plan.same_run()) if plan.scenario != OWN else _play_file(plan.same_run())


@functools.lru_cache(maxsize=1_024)
def _play(plan: Plan) -> Demo:
    return _run(plan, SCENARIOS[plan.scenario].tasks, SCENARIOS[plan.scenario].workspace)


def _play_file(plan: Plan) -> Demo:
    """Play a file of one's own. It may have changed since the last time, so its bytes count and not its name."""
    try:
        data, name = read_own(plan.file)
    except ValueError as error:
        return Demo(plan, problem=str(error))
    if is_session(plan.file):
        return _play_session(replace(plan, file=Path(plan.file.strip()).name), data)
    return _play_bytes(replace(plan, file=name), data)


@functools.lru_cache(maxsize=64)
def _play_bytes(plan: Plan, data: bytes) -> Demo:
    def fill(folder: Path) -> None:
        folder.mkdir()
        (folder / plan.file).write_bytes(data)

    tasks = tuple(replace(task, question=task.question.format(file=plan.file)) for task in SCENARIOS[OWN].tasks)
    return _run(plan, tasks, fill)


@functools.lru_cache(maxsize=64)
def _play_session(plan: Plan, data: bytes) -> Demo:
    """Replay a recorded session: open loop, so what the agent does is what it did."""
    try:
        counted = _counted(plan.file, data)
    except ValueError as error:
        return Demo(plan, problem=str(error))
    told = replayed(counted, plan)
    turns = tuple(
        Turn(number, question, requests, answer, AS_RECORDED)
        for number, (question, requests, answer) in enumerate(turns_of(counted), 1)
    )
    return Demo(plan, told, tuple(turn.question for turn in turns), recorded=turns)


@functools.lru_cache(maxsize=4)
def _counted(name: str, data: bytes) -> Counted:
    return count(parse(data, name)).prepare()


# ---------------------------------------------------------------------------------------------------------------- running


def _run(plan: Plan, tasks: Sequence[Task], fill: Callable[[Path], None]) -> Demo:
    events: list[Event] = []
    right: list[bool] = []
    problem = ""
    with workspace(fill) as folder:
        try:
            agent = _agent(plan, folder, events.append)
            for task in tasks:
                answer = agent.run(task.question).text
                right.append(task.check(folder, answer))
        except BudgetError as error:
            problem = str(error)
        except ProviderError as error:
            problem = f"the provider refused: {error}"
    kept = tuple(e for e in events if isinstance(e, KEPT))
    return Demo(plan, kept, tuple(task.question for task in tasks), problem, tuple(right))


KEPT = (Billed, Compacted, CompactionLog, TurnEnded)
"""The events that the lab shows; the others are many."""


def _agent(plan: Plan, folder: Path, listener: Callable[[Event], None]) -> Agent:
    provider = simulated(plan.rules)
    compactor = Compactor(provider, Keep(plan.keep or 1, "messages"))
    budget = Budget.ratio(plan.budget, plan.threshold)
    tools = with_memory(workspace_tools(folder), folder)
    return Agent(provider, tools=tools, policy=make_policy(plan.policy, compactor), budget=budget, on_event=listener)
