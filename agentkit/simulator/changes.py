"""Carry out an order that changes many places: a new name, another parameter, docstrings, tests.

One edit a round, or all of one name in one file. How far the work has come is not remembered: it is read off the calls in
view, and where those are gone, the files are searched and read again. So a policy that forgets in the middle costs rounds,
and not the result.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from agentkit.simulator.answers import hits, plural, span
from agentkit.simulator.evaluate import Unsupported, evaluate, parameters
from agentkit.simulator.excerpts import Excerpt
from agentkit.simulator.knowledge import is_edit, same_file
from agentkit.simulator.questions import Question
from agentkit.simulator.work import Stuck, Work, clipped

KINDS = frozenset({"rename", "parameter", "docstrings", "write tests"})

Change = tuple[str, str]
"""What stands in a file, and what shall stand there instead."""


def rename(work: Work, question: Question) -> str:
    """Give a function, class or constant another name wherever it stands, file by file."""
    old, new = question.what, question.new
    pattern = rf"\b{old}\b"
    for path in _found(work, pattern):
        if changes := list(_renamings(text_of(work, path), old, new)):
            _edit(work, path, *changes)
        _look_again(work, path)
    if _found_again(work, pattern):
        raise Stuck(f"Some lines still hold `{old}`, and I have changed all that I can see.")
    return _report(work, f"No line holds `{old}` any more; it is called `{new}` now.")


def add_parameter(work: Work, question: Question) -> str:
    """Give every function of one name another parameter with a default."""
    name, wanted = question.what, question.new
    for path in _found(work, rf"def {name}\b"):
        if change := _widened(text_of(work, path), name, wanted):
            _edit(work, path, change)
    return _report(work, f"Every `{name}` has the parameter `{wanted}` now.")


def write_docstrings(work: Work, question: Question) -> str:
    """Write a docstring for every function of the files that has none, then look at each file once more."""
    for path in question.files:
        if change := _documented(text_of(work, path)):
            _edit(work, path, change)
        _look_again(work, path)
    return _report(work, f"Every function in {span(question.files)} has a docstring now.")


def write_tests(work: Work, question: Question) -> str:
    """Write tests for the functions whose result can be worked out from their source."""
    for path in question.files:
        target = f"tests/test_{path.rpartition('/')[2].removesuffix('.py')}_values.py"
        done = next((s for s in work.known.turn if s.call.name == "write_file" and s.path == target), None)
        if done is None:
            text = _values(path, text_of(work, path))
            work.need(("write_file", {"path": target, "text": text}))
        elif done.failed:
            raise Stuck(f"I could not write `{target}`: {clipped((done.result or '').removeprefix('error: '), 160)}")
    return _report(work, f"There are tests of values for {span(question.files)} now.")


# --- the state of the work ------------------------------------------------------------------------------------------------


def text_of(work: Work, path: str) -> Excerpt:
    """Return all of a file as it is now, edits in view included. Raises `Missing` or `Stuck`."""
    found = work.known.current(path)
    if found is None or not found.complete:
        return work.whole(path)
    return found


def _found(work: Work, pattern: str) -> list[str]:
    """Return the files with a match, as the newest search of this turn has them, edits since then or not."""
    searches = [s for s in work.known.turn if s.call.name == "grep" and s.args.get("pattern") == pattern]
    if not searches:
        work.need(("grep", {"pattern": pattern, "glob": "**/*.py"}))
    return list(dict.fromkeys(path for path, _, _ in hits(searches[-1].result or "")))


def _found_again(work: Work, pattern: str) -> bool:
    """Search once more after the last edit, and say whether there is still a match."""
    return bool(hits(work.result("grep", pattern=pattern, glob="**/*.py")))


def _edit(work: Work, path: str, *changes: Change) -> None:
    failed = [s for s in work.known.turn if s.call.name == "edit_file" and s.failed]
    if failed:
        raise Stuck(f"My change was not made: {clipped((failed[-1].result or '').removeprefix('error: '), 160)}")
    work.need(*(("edit_file", {"path": path, "old": old, "new": new}) for old, new in changes))


def _look_again(work: Work, path: str) -> None:
    """Read a file once more when the newest call of this turn that is about it changed it."""
    newest = next((s for s in reversed(work.known.turn) if s.path and same_file(s.path, path)), None)
    if newest and is_edit(newest):
        work.need(("read_file", {"path": path}))


def _report(work: Work, sentence: str) -> str:
    done = [s for s in work.known.turn if is_edit(s)]
    files = list(dict.fromkeys(s.path for s in done))
    if not done:
        return f"{sentence} I see no change of mine in my context for that."
    return f"{sentence} I made {plural(len(done), 'changes')} in {plural(len(files), 'files')}: {span(files)}."


# --- the changes -----------------------------------------------------------------------------------------------------------


def _unique(lines: Sequence[str], at: int, count: int = 1) -> tuple[int, int]:
    """Return the smallest range of whole lines around `at` that occurs once in the file."""
    text = "\n".join(lines)
    first, last = at, at + count
    while text.count("\n".join(lines[first:last])) != 1:
        first, last = max(0, first - 1), last if first else last + 1
    return first, last


def _renamings(found: Excerpt, old: str, new: str) -> Iterator[Change]:
    """Yield one change for each line with the old name; each is made on what the one before left."""
    lines = found.text().split("\n")
    name = re.compile(rf"\b{old}\b")
    for at, line in enumerate(lines):
        if name.search(line):
            first, last = _unique(lines, at)
            before = "\n".join(lines[first:last])
            lines[at] = name.sub(new, line)
            yield before, "\n".join(lines[first:last])


def _widened(found: Excerpt, name: str, wanted: str) -> Change | None:
    for line in found.lines.values():
        match = re.match(rf"(\s*(?:async )?def {name}\()(.*?)(\)(?: *->.*)?:.*)$", line)
        if match and not re.search(rf"(?<!\w){wanted.partition('=')[0]}(?!\w)", match[2]):
            return line, f"{match[1]}{match[2]}{', ' if match[2] else ''}{wanted}{match[3]}"
    return None


def functions(text: str) -> list[ast.FunctionDef]:
    """Return the functions and methods of a source, in order. Raises `Stuck` for what is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Stuck("I cannot change a file that is no valid Python.") from None
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return sorted(found, key=lambda node: node.lineno)


def _documented(found: Excerpt) -> Change | None:
    """Return the change that gives the first function without a docstring one; dunder methods need none."""
    lines = found.text().split("\n")
    for node in functions(found.text()):
        start, body = node.lineno - 1, node.body[0].lineno - 1
        if node.name.startswith("__") or ast.get_docstring(node) is not None or body <= start:
            continue
        first, last = _unique(lines, start, body - start)
        before = lines[first:last]
        written = f'{" " * (node.col_offset + 4)}"""{_sentence(node)}"""'
        return "\n".join(before), "\n".join([*before[: body - first], written, *before[body - first :]])
    return None


_VERBS = frozenset(("parse", "split", "group", "count", "list", "close", "enter", "strike", "check", "read", "write"))


def _sentence(node: ast.FunctionDef) -> str:
    """Say what a function does, as far as its name and its parameters tell."""
    verb, *rest = node.name.strip("_").split("_")
    names = [f"`{a.arg}`" for a in node.args.args if a.arg not in ("self", "cls")]
    given = " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
    if verb in _VERBS and not rest:
        return f"{verb.capitalize()} {given or 'it'}."
    about = f"{verb.capitalize()} the {' '.join(rest)}" if verb in _VERBS else f"Return the {' '.join([verb, *rest])}"
    return f"{about}{', given ' if given else ''}{given}."


_INPUTS = (0, 7, 120, 2_500, 60_000)
"""What the functions are worked out for."""


def _values(path: str, found: Excerpt) -> str:
    """Return a module of tests: for every function whose source can be worked out, some inputs and their results."""
    cases = list(_cases(found))
    if not cases:
        raise Stuck(f"`{path}` has no function that I can work out, so I can write no test.")
    names = sorted({name for name, _ in cases})
    module = path.removesuffix(".py").replace("/", ".")
    tests = [f"def test_values_of_{name}():\n{''.join(f'    {row}{chr(10)}' for row in rows)}" for name, rows in cases]
    head = f'"""Values that were worked out from the source of `{path}`."""\n\nfrom {module} import {", ".join(names)}\n'
    return "\n\n".join([head, *tests])


def _cases(found: Excerpt) -> Iterator[tuple[str, list[str]]]:
    known = _constants(found)
    for node in functions(found.text()):
        whole_numbers = all(isinstance(a.annotation, ast.Name) and a.annotation.id == "int" for a in node.args.args)
        source = found.source(node.name) if whole_numbers and node.col_offset == 0 else None
        rows = list(_rows(node.name, source, known)) if source else []
        if rows:
            yield node.name, rows


def _rows(name: str, source: str, known: dict[str, int]) -> Iterator[str]:
    try:
        count = len(parameters(source))
        for i in range(len(_INPUTS) if count else 0):
            numbers = [_INPUTS[(i + 2 * k) % len(_INPUTS)] for k in range(count)]
            value = evaluate(source, numbers, known).value
            if value is not None:
                yield f"assert {name}({', '.join(str(n) for n in numbers)}) == {value}"
    except Unsupported:
        return


def _constants(found: Excerpt) -> dict[str, int]:
    rows = (re.fullmatch(r"([A-Z][A-Z0-9_]*) = (\d[\d_]*)", line.rstrip()) for line in found.lines.values())
    return {m[1]: int(m[2].replace("_", "")) for m in rows if m}
