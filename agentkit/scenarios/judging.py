"""Judge an answer by the truth: by the files as they are now, and by what was said, never by what the agent claims.

A check takes the workspace and the answer and says whether the task was done. It runs right after the turn.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from agentkit.messages import ToolCall
from agentkit.scenarios.memory import with_memory
from agentkit.tools import workspace_tools

Check = Callable[[Path, str], bool]


def says(*texts: str) -> Check:
    """Check that the answer holds each of `texts`, letter by letter; backticks and commas in numbers do not count."""
    return lambda folder, answer: all(_plain(text) in _plain(answer) for text in texts)


def _plain(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", "", text.replace("`", ""))


def counted(path: str, noun: str) -> Check:
    """Check that the answer has the number of lines, methods or functions that `path` has now."""

    def check(folder: Path, answer: str) -> bool:
        text = _read(folder, path)
        functions, methods = list(_top(text)), list(_methods(text))
        numbers = {"lines": text.count("\n"), "functions": len(functions), "methods": len(methods)}
        return re.search(rf"(?<!\d){numbers[noun]} {noun[:-1]}", _plain(answer)) is not None

    return check


def returned(path: str, name: str, *numbers: int) -> Check:
    """Check that the answer has the result that Python gives for the function or method `name` of `path`."""

    def check(folder: Path, answer: str) -> bool:
        text = _read(folder, path)
        node = next(f for f in (*_top(text), *_methods(text)) if f.name == name)
        scope: dict[str, object] = dict(_constants(text))
        exec(compile(ast.Module([ast.parse("from __future__ import annotations").body[0], node], []), path, "exec"), scope)
        given = [_Anything(), *numbers] if node.args.args[0].arg == "self" else list(numbers)
        return f"returns {scope[name](*given)}" in answer  # type: ignore[operator]

    return check


class _Anything:
    """Stands for an object whose counters a method adds to."""

    def __getattr__(self, name: str) -> int:
        return 0


def constants_of(path: str) -> Check:
    """Check that the answer names every constant of `path` with its value."""
    return lambda folder, answer: all(
        f"{name} = {value}" in answer for name, value in _written_constants(_read(folder, path))
    )


def renamed(old: str, new: str) -> Check:
    """Check that no Python file holds the name `old` and at least two hold `new`."""

    def check(folder: Path, answer: str) -> bool:
        texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
        holding = sum(re.search(rf"\b{new}\b", text) is not None for text in texts)
        return holding > 1 and not any(re.search(rf"\b{old}\b", text) for text in texts)

    return check


def documented(*paths: str) -> Check:
    """Check that every function and method of `paths`, dunder methods apart, has a docstring."""

    def check(folder: Path, answer: str) -> bool:
        found = [f for path in paths for f in (*_top(_read(folder, path)), *_methods(_read(folder, path)))]
        return bool(found) and all(f.name.startswith("__") or ast.get_docstring(f) for f in found)

    return check


def has_parameter(function: str, parameter: str, default: object) -> Check:
    """Check that every function called `function` has a parameter with this default, and that there are two or more."""

    def check(folder: Path, answer: str) -> bool:
        texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.py")]
        found = [f for text in texts for f in _top(text) if f.name == function]
        return len(found) > 1 and all(_defaults(f).get(parameter) == default for f in found)

    return check


def _defaults(function: ast.FunctionDef) -> dict[str, object]:
    given = function.args.defaults
    names = [a.arg for a in function.args.args[len(function.args.args) - len(given) :]]
    return {name: getattr(value, "value", None) for name, value in zip(names, given, strict=True)}


def tests_pass(file: str = "") -> Check:
    """Check that the tests of the workspace pass: all of them, or those of one file."""
    arguments = json.dumps({"target": file} if file else {})

    def check(folder: Path, answer: str) -> bool:
        tools = with_memory(workspace_tools(folder), folder)
        result = tools.run(ToolCall("check", "run_tests", arguments)).content
        return " passed" in result and not re.search(r"\d+ (failed|error)", result)

    return check


def both(*checks: Check) -> Check:
    """Check everything that `checks` check."""
    return lambda folder, answer: all(check(folder, answer) for check in checks)


# --- reading the workspace ------------------------------------------------------------------------------------------------


def _read(folder: Path, path: str) -> str:
    return (folder / path).read_text(encoding="utf-8")


def _top(text: str) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))


def _methods(text: str) -> Iterator[ast.FunctionDef]:
    classes = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
    return (node for cls in classes for node in cls.body if isinstance(node, ast.FunctionDef))


def _constants(text: str) -> Iterator[tuple[str, object]]:
    for name, value in _assigned(text):
        yield name, ast.literal_eval(value)


def _written_constants(text: str) -> Iterator[tuple[str, str]]:
    for name, value in _assigned(text):
        yield name, ast.get_source_segment(text, value) or ""


def _assigned(text: str) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant):
            yield node.targets[0].id, node.value
