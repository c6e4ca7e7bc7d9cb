"""Every exercise: the solution passes, the stub is to do, and every typical mistake is caught."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit import checks
from agentkit.checks.base import Case, Exercise

ALL = checks.exercises()
NAMES = sorted(ALL)


def _stub(*args: Any) -> Any:
    raise NotImplementedError


def test_there_are_exercises_for_every_chapter_but_the_first() -> None:
    assert len(NAMES) >= 8


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_passes(name: str) -> None:
    exercise = ALL[name]
    total = len(exercise.cases)
    assert exercise.check(exercise.solution) == f"✓ {total}/{total}"


@pytest.mark.parametrize("name", NAMES)
def test_the_stub_is_to_do(name: str) -> None:
    assert ALL[name].check(_stub) == f"○ to do: {name}"


@pytest.mark.parametrize(("name", "mistake"), [(n, m) for n in NAMES for m in ALL[n].wrong])
def test_a_typical_mistake_is_caught(name: str, mistake: str) -> None:
    assert ALL[name].check(ALL[name].wrong[mistake]).startswith("✗ case ")


@pytest.mark.parametrize("name", NAMES)
def test_help_is_there_in_steps(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    exercise = ALL[name]
    assert len(exercise.cases) >= 3 and len(exercise.hints) >= 2 and len(exercise.wrong) >= 2
    checks.hint(name)
    checks.hint(name)
    checks.solution(name)
    printed = capsys.readouterr().out
    assert printed.count("hint ") >= 2
    assert f"def {exercise.solution.__name__}" in printed


def test_a_check_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    getattr(checks, NAMES[0])(_stub)
    assert capsys.readouterr().out == f"○ to do: {NAMES[0]}\n"


def test_an_unknown_exercise_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=NAMES[0]):
        checks.hint("nothing")
    with pytest.raises(AttributeError, match="no exercise"):
        _ = checks.nothing


EXAMPLE = Exercise(
    "double", (Case((1,), 2, "one"), Case((0.1,), 0.2, tolerance=1e-9), Case((True,), 2)), ("a", "b"), lambda x: 2 * x
)


@pytest.mark.parametrize(
    ("answer", "starts"),
    [
        (lambda x: 2 * x, "✓ 3/3"),
        (lambda x: x, "✗ case 1 of 3 (one): got 1, wanted 2"),
        (lambda x: None, "✗ case 1 of 3 (one): got None"),
        (lambda x: 1 / 0, "✗ case 1 of 3 (one): raised ZeroDivisionError"),
        (lambda x: "2", "✗ case 1 of 3 (one): got '2'"),
        (lambda x: True if x == 1 else 2 * x, "✗ case 1 of 3 (one): got True"),
    ],
)
def test_the_line_says_the_first_failing_case(answer: Any, starts: str) -> None:
    assert EXAMPLE.check(answer).startswith(starts)
