"""Run the tests and repair what fails, by a table of rules.

The simulated model does not understand a bug: it knows a few wrong patterns and the right ones. A rule looks at the source
of the module that a failing test imports, whatever the file is called. When no rule fits, the answer says so.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from agentkit.simulator.excerpts import Excerpt
from agentkit.simulator.knowledge import Step, is_edit
from agentkit.simulator.questions import Question
from agentkit.simulator.work import Stuck, Work, clipped


@dataclass(frozen=True)
class Rule:
    """A wrong pattern within one line, what replaces it, and the sentence that explains the change."""

    wrong: str
    right: str
    why: str


RULES: tuple[Rule, ...] = (
    Rule(
        r"\((\w+)\[(\w+)\] \+ \1\[\2 \+ 1\]\) / 2",
        r"(\1[\2 - 1] + \1[\2]) / 2",
        "the two middle values of an even list are those at half its length and one before",
    ),
    Rule(r"\bsum\((\w+)\) / \(len\(\1\) - 1\)", r"sum(\1) / len(\1)", "a mean divides by the number of values"),
    Rule(r"\bmin\((\w+)\) - max\(\1\)", r"max(\1) - min(\1)", "the largest value comes first in a difference"),
)

_FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s:]+)(?:::(\S+))?", re.MULTILINE)
_TALLY = re.compile(r"^=* ?((?:\d+ (?:passed|failed|errors?|skipped|warnings?|deselected)(?:, )?)+)", re.MULTILINE)
_IMPORT = re.compile(r"^\s*(?:from ([\w.]+) import|import ([\w.]+))", re.MULTILINE)


def tally(result: str) -> str:
    """Return the last line of a test run, such as "1 failed, 13 passed", or else its first line."""
    found = _TALLY.findall(result)
    return found[-1] if found else clipped(result.removeprefix("error: "), 160)


def failures(result: str) -> list[tuple[str, str]]:
    """Return (test file, test name) of everything that failed."""
    return list(dict.fromkeys(_FAILED.findall(result)))


def passed(result: str) -> bool:
    """Say whether a run ended well: something passed and nothing failed."""
    return "passed" in tally(result) and not re.search(r"failed|error", tally(result))


def tests(work: Work, question: Question) -> str:
    """Run the tests and report; if asked to, repair what fails and run them again."""
    result = work.result("run_tests")
    if passed(result):
        return f"{_changes(work)}The tests pass: {tally(result)}."
    failed = failures(result)
    report = f"The tests: {tally(result)}" + (f" ({', '.join(f'`{n or f}`' for f, n in failed[:5])})." if failed else ".")
    if not question.fix:
        return report
    if not failed:
        return f"{report} I see no failing test to start from."
    return _repair(work, failed, report)


def _edits(work: Work) -> list[Step]:
    return [s for s in work.known.turn if s.call.name == "edit_file"]


def _changes(work: Work) -> str:
    """Return what was changed in this turn, as one sentence with a blank behind it."""
    done = [s for s in _edits(work) if is_edit(s)]
    whys = [f"`{s.path}` ({rule.why})" for s in done if (rule := _rule_of(s))]
    return f"I changed {', '.join(dict.fromkeys(whys))}. " if whys else ""


def _rule_of(step: Step) -> Rule | None:
    old, new = str(step.args.get("old")), str(step.args.get("new"))
    return next((r for r in RULES if re.search(r.wrong, old) and re.sub(r.wrong, r.right, old) == new), None)


def _repair(work: Work, failed: list[tuple[str, str]], report: str) -> str:
    """Read each failing test and the modules it imports, and make the first change that a rule proposes."""
    refused = [s for s in _edits(work) if s.failed]
    if refused:
        return f"{report} My change was not made: {clipped((refused[-1].result or '').removeprefix('error: '), 160)}"
    for module in _modules(work, [file for file, _ in failed]):
        for old, new in _proposals(module):
            args = {"path": module.path, "old": old, "new": new}
            if not any(s.args == args for s in _edits(work)):
                work.need(("edit_file", args))
    seen = ", ".join(dict.fromkeys(f"`{file}`" for file, _ in failed))
    return f"{_changes(work)}{report} I have read {seen} and what it imports, and none of my {len(RULES)} repair rules fits."


def _modules(work: Work, test_files: list[str]) -> Iterator[Excerpt]:
    for file in dict.fromkeys(test_files):
        for name in _imported(work.whole(file).text()):
            try:
                yield work.whole(f"{name.replace('.', '/')}.py")
            except Stuck:
                continue  # a module of the library, or one that is not here


_LIBRARY = frozenset(sys.stdlib_module_names) | {"pytest"}
"""Modules that a test imports and that are no part of the project: reading them would only bring an error."""


def _imported(text: str) -> list[str]:
    names = [a or b for a, b in _IMPORT.findall(text)]
    return [n for n in dict.fromkeys(names) if n.partition(".")[0] not in _LIBRARY]


def _proposals(module: Excerpt) -> Iterator[tuple[str, str]]:
    """Yield (old line, new line) for every line that a rule changes; the old line must be the only one of its kind."""
    lines = list(module.lines.values())
    for rule in RULES:
        for line in lines:
            if re.search(rule.wrong, line) and module.text().count(line) == 1:
                yield line, re.sub(rule.wrong, rule.right, line)
