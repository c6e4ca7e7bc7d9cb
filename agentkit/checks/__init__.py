"""Checks for the exercises: `checks.NAME(your_function)`, `checks.hint("NAME")`, `checks.solution("NAME")`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

from agentkit.checks.base import Case, Exercise, source

__all__ = ["Case", "Exercise", "exercises", "hint", "solution"]

_shown: dict[str, int] = {}


def exercises() -> dict[str, Exercise]:
    """Return every exercise of the book by its name."""
    found: dict[str, Exercise] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("chapter_"):
            loaded = importlib.import_module(f"{__name__}.{module.name}")
            found |= {e.name: e for e in loaded.EXERCISES}
    return found


def _exercise(name: str) -> Exercise:
    known = exercises()
    if name not in known:
        raise ValueError(f"no exercise {name!r}; there are {', '.join(sorted(known))}")
    return known[name]


def hint(name: str) -> None:
    """Print the next hint; each call goes one step further. Raises `ValueError` for an unknown exercise."""
    hints = _exercise(name).hints
    step = min(_shown.get(name, 0), len(hints) - 1)
    _shown[name] = step + 1
    print(f"hint {step + 1} of {len(hints)}: {hints[step]}")


def solution(name: str) -> None:
    """Print the source of the solution. Raises `ValueError` for an unknown exercise."""
    print(source(_exercise(name).solution))


def __getattr__(name: str) -> Callable[[Callable[..., Any]], None]:
    if name.startswith("_") or name not in exercises():
        raise AttributeError(f"no exercise {name!r} in agentkit.checks")

    def check(function: Callable[..., Any]) -> None:
        print(_exercise(name).check(function))

    return check
