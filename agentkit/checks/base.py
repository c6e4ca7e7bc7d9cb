"""How an exercise is checked: cases with wanted values, hints in steps, and a solution that cannot drift."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One call of the student's function and the value that it should return. `note` says what the case is about."""

    args: tuple[Any, ...]
    want: Any
    note: str = ""
    tolerance: float = 0.0

    def holds(self, got: Any) -> bool:
        """Say whether `got` is what was wanted."""
        if self.tolerance:
            try:
                return abs(float(got) - float(self.want)) <= self.tolerance
            except (TypeError, ValueError):
                return False
        return type(got) in (type(self.want), *_INTERCHANGEABLE.get(type(self.want), ())) and got == self.want


# Tuples and lists, whole floats and ints may stand for each other; True must not pass for 1.
_INTERCHANGEABLE: dict[type, tuple[type, ...]] = {list: (tuple,), tuple: (list,), int: (float,), float: (int,)}


@dataclass(frozen=True)
class Exercise:
    """An exercise: its cases, its hints from gentle to plain, its solution.

    For an exercise that builds a part of the package the solution is the package's own function. `wrong` are typical
    mistakes, each with its name; the tests prove that the cases catch every one.
    """

    name: str
    cases: Sequence[Case]
    hints: Sequence[str]
    solution: Callable[..., Any]
    wrong: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def check(self, function: Callable[..., Any]) -> str:
        """Run the cases in order and return one line: to do, the first failing case, or all right."""
        total = len(self.cases)
        for number, case in enumerate(self.cases, 1):
            try:
                got = function(*case.args)
            except NotImplementedError:
                return f"○ to do: {self.name}"
            except Exception as error:
                return f"✗ case {number} of {total}{_about(case)}: raised {type(error).__name__}: {error}"
            if not case.holds(got):
                return f"✗ case {number} of {total}{_about(case)}: got {_short(got)}, wanted {_short(case.want)}"
        return f"✓ {total}/{total}"


def _about(case: Case) -> str:
    return f" ({case.note})" if case.note else ""


def _short(value: Any) -> str:
    return textwrap.shorten(repr(value), 120, placeholder=" …")


def source(function: Callable[..., Any]) -> str:
    """Return the source of a solution, as it stands in the package."""
    return textwrap.dedent(inspect.getsource(function))
