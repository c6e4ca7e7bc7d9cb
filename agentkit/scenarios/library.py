"""The scenarios: what the agent is asked, on which files, and how it is judged whether the work was done.

Every one runs on the simulator, closed loop: what a policy forgets changes what the agent does, and may cost it the answer.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentkit.scenarios.course import FOUR_QUESTIONS, course_workspace
from agentkit.scenarios.judging import (
    Check,
    both,
    constants_of,
    counted,
    documented,
    has_parameter,
    renamed,
    returned,
    says,
    tests_pass,
)
from agentkit.scenarios.project import MODULES, make_project


@dataclass(frozen=True)
class Task:
    """One turn: what the user says, and the check that is made after the agent's answer; by itself any answer will do."""

    question: str
    check: Check = lambda folder, answer: bool(answer)


@dataclass(frozen=True)
class Scenario:
    """A conversation on a workspace of its own.

    `keep` (messages), `threshold` (a share) and `budget` (tokens) are settings with which it shows something; `max_rounds`
    is the most requests of one turn.
    """

    name: str
    about: str
    tasks: tuple[Task, ...]
    workspace: Callable[[Path], None]
    keep: int = 4
    threshold: float = 0.6
    budget: int = 4_000
    max_rounds: int = 25

    @property
    def questions(self) -> tuple[str, ...]:
        """Return what the user says, turn by turn."""
        return tuple(task.question for task in self.tasks)


def course_copy(folder: Path) -> None:
    """Copy the course workspace to `folder`, which is made."""
    shutil.copytree(course_workspace(), folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))


_COUNT_METHODS = Task(FOUR_QUESTIONS[0], counted("big_service.py", "methods"))
_COMPUTE = Task(FOUR_QUESTIONS[1], returned("big_service.py", "compute7", 3))

SHORT_CHAT = Scenario(
    "short chat",
    "Nothing is read, so the budget is never reached: both policies do the same.",
    (
        Task("Remember that we keep prices in whole cents.", says("Noted")),
        Task("List the files.", says("big_service.py", "stats.py", "tests/test_stats.py")),
        Task("What did I ask you to remember?", says("prices in whole cents")),
        Task(FOUR_QUESTIONS[3], says("we keep prices in whole cents")),
    ),
    course_copy,
)

BIG_FILE = Scenario(
    "big file",
    "One file fills the budget; the last question asks for what a summary does not keep.",
    (
        _COUNT_METHODS,
        _COMPUTE,
        Task(FOUR_QUESTIONS[2], counted("big_service.py", "lines")),
        Task(FOUR_QUESTIONS[3], says(FOUR_QUESTIONS[0])),
    ),
    course_copy,
)

FIX_THE_BUG = Scenario(
    "fix the bug",
    "A test fails; the agent reads it and what it imports, changes one line and runs the tests again.",
    (
        Task("Run the tests and fix what fails.", both(tests_pass(), says("The tests pass"))),
        Task("Run the tests again.", says("The tests pass")),
        Task("How many functions does stats.py have?", counted("stats.py", "functions")),
    ),
    course_copy,
    keep=6,
)

LOOP_OF_TESTS = Scenario(
    "loop of tests",
    "Many rounds, each with a tool result that soon is out of date.",
    (
        *FIX_THE_BUG.tasks[:2],
        Task("Read stats.py and say how many functions it has.", counted("stats.py", "functions")),
        Task("Run the tests again.", says("The tests pass")),
        Task("Read tests/test_stats.py and say how many functions it has.", counted("tests/test_stats.py", "functions")),
        Task("Run the tests once more.", says("The tests pass")),
        Task("Which files have you read?", says("stats.py", "tests/test_stats.py")),
    ),
    course_copy,
    keep=6,
)

BUDGET_TOO_SMALL = Scenario(
    "budget too small",
    "Little more than system prompt and tools fits: the policy compacts again and again, and files are read again.",
    (
        _COUNT_METHODS,
        _COMPUTE,
        Task("How many functions does stats.py have?", counted("stats.py", "functions")),
        Task("What does compute9 return for 2?", returned("big_service.py", "compute9", 2)),
        Task("How many lines does stats.py have?", counted("stats.py", "lines")),
        Task("What does compute11 return for 2?", returned("big_service.py", "compute11", 2)),
    ),
    course_copy,
    keep=2,
    budget=1_800,
)

# ------------------------------------------------------------------------------------------- on the project of 15 modules


def _module(name: str) -> str:
    return f"depot/{name}.py"


def _read_all(*names: str) -> Task:
    paths = [_module(name) for name in names]
    return Task(f"Read {', '.join(paths[:-1])} and {paths[-1]} at once.", says(*paths))


def _document(*names: str) -> Task:
    paths = [_module(name) for name in names]
    listed = " and ".join(filter(None, [", ".join(paths[:-1]), paths[-1]]))
    return Task(f"Write the missing docstrings in {listed}.", documented(*paths))


def _test(name: str) -> Task:
    return Task(f"Write tests for {_module(name)}.", tests_pass(f"tests/test_{name}_values.py"))


def _count(name: str, noun: str = "functions") -> Task:
    return Task(f"How many {noun} does {_module(name)} have?", counted(_module(name), noun))


NEEDLE = "06:40"
_RULE = f"Remember that the nightly export of the depot must never start before {NEEDLE}, because of the bank."
_ASK_RULE = Task("When may the nightly export start at the earliest?", says(NEEDLE))
_RUN = Task("Run the tests again.", both(tests_pass(), says("The tests pass")))
_FIX = Task("Run the tests and fix what fails.", both(tests_pass(), says("The tests pass")))

NEEDLE_SCENARIO = Scenario(
    "needle",
    "The first turn states one fact; the last asks for it, after enough work that the beginning has been compacted.",
    (
        Task(_RULE, says("Noted")),
        Task("List the files.", says(*MODULES[:3])),
        _count("tariffs"),
        Task("Which constants does depot/invoices.py define?", constants_of(_module("invoices"))),
        _count("repairs"),
        _count("shifts", "lines"),
        _count("members"),
        Task("Which constants does depot/refunds.py define?", constants_of(_module("refunds"))),
        _count("reports"),
        _ASK_RULE,
    ),
    make_project,
    keep=6,
    budget=12_000,
)

LONG_REFACTOR = Scenario(
    "long refactor",
    "15 modules are renamed in, documented and tested, in one long session with 6 test runs.",
    (
        Task(_RULE, says("Noted")),
        Task("List the files.", says(*MODULES)),
        _FIX,
        _read_all("base", "tariffs", "rentals"),
        Task("Rename the function fmt to format_cents in every file.", renamed("fmt", "format_cents")),
        _RUN,
        _document("base", "tariffs"),
        _document("deposits", "refunds"),
        Task("Which constants does depot/invoices.py define?", constants_of(_module("invoices"))),
        _document("invoices"),
        Task("Add the parameter limit=20 to every function summary.", has_parameter("summary", "limit", 20)),
        _RUN,
        _test("tariffs"),
        _test("invoices"),
        _count("repairs"),
        _document("repairs"),
        Task("Rename the function chk_pos to check_not_negative.", renamed("chk_pos", "check_not_negative")),
        _document("stock", "stations"),
        _count("suppliers", "lines"),
        _test("repairs"),
        _document("shifts"),
        _test("shifts"),
        _RUN,
        _count("reports"),
        _ASK_RULE,
    ),
    make_project,
    keep=12,
    threshold=0.8,
    budget=64_000,
    max_rounds=130,
)

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        SHORT_CHAT,
        BIG_FILE,
        FIX_THE_BUG,
        LONG_REFACTOR,
        NEEDLE_SCENARIO,
        LOOP_OF_TESTS,
        BUDGET_TOO_SMALL,
    )
}


def scenario(name: str) -> Scenario:
    """Return the scenario `name`. Raises `ValueError` that lists the names there are."""
    if name not in SCENARIOS:
        raise ValueError(f"unknown scenario {name!r}; there are {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
