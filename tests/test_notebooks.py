"""Every chapter keeps the rules of the book, and every rule finds its bad example.

nbval (see pyproject.toml) runs the chapters and compares what they print; here stands what it does not look at.
"""

from __future__ import annotations

import ast
import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import notebook_rules as rules
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from agentkit.book import clean

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
ENOUGH = 5
"""With fewer notebooks something has gone wrong with finding them, and all tests below would pass on nothing."""

WITHOUT_ANATOMY: dict[str, tuple[str, ...]] = {"00_start_here": rules.ANATOMY[:2], "lab": ()}
"""Notebooks that are no chapters in the sense of the anatomy, and the sections that they start with."""


def wanted(path: Path) -> tuple[str, ...]:
    """Return the sections that a notebook must have."""
    return WITHOUT_ANATOMY.get(path.stem, rules.ANATOMY)


# ----------------------------------------------------------------------------------------------------- the real chapters


def test_there_are_chapters_to_check() -> None:
    assert len(CHAPTERS) >= ENOUGH, [path.name for path in CHAPTERS]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_keeps_the_rules(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert rules.problems(notebook, wanted(path)) == []


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_is_stored_as_agentkit_book_writes_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert path.read_bytes() == (nbformat.writes(notebook, version=4) + "\n").encode("utf-8")


def test_every_notebook_is_a_chapter_or_named_as_none() -> None:
    """A chapter cannot slip out of the anatomy by its name."""
    others = {path.stem for path in CHAPTERS if not re.fullmatch(r"\d\d_[a-z0-9_]+", path.stem)}
    assert others <= WITHOUT_ANATOMY.keys()
    assert (ROOT / "chapters" / "00_start_here.ipynb") in CHAPTERS


# ------------------------------------------------------------------------------------------------- a notebook that is right

PICTURE = '<figure><img alt="two requests, 1,200 and 1,500 tokens" src="data:image/svg+xml;base64,AAAA"></figure>'


def shows(text: str, html: str = "") -> Any:
    data = {"text/plain": text} | ({"text/html": html} if html else {})
    return new_output("execute_result", data=data, execution_count=1)


def prints(text: str, name: str = "stdout") -> Any:
    return new_output("stream", name=name, text=text)


def code(source: str, *outputs: Any, tag: str = "") -> Any:
    cell = new_code_cell(source, outputs=list(outputs))
    cell.metadata = {"tags": [tag]} if tag else {}
    return cell


def good() -> Any:
    """Return a notebook that keeps every rule; each bad example breaks it in one place."""
    cells: list[Any] = [new_markdown_cell("# The cut\n\nWhere a summary may start.")]
    for title in rules.ANATOMY:
        cells.append(new_markdown_cell(f"## {title}"))
        cells += [copy.deepcopy(cell) for cell in CONTENT.get(title, ())]
    notebook = new_notebook(cells=cells)
    clean(notebook)
    return notebook


FAILS = new_output("error", ename="ValueError", evalue="no cut", traceback=["ValueError: no cut"])
CONTENT = {
    "Where we are": [code("history = [1, 2]")],
    "See it fail": [code("raise ValueError('no cut')", FAILS, tag="raises-exception")],
    "Build it": [
        new_markdown_cell("### Naive\n\n![a strip of two blocks](strip.png)\n\n```text\n9,999\n```"),
        code("for n in history:\n    print(f'{n}')  # why", prints("1\n2\n")),
    ],
    "Look inside": [
        code("panels.cut_player()", tag="widget"),
        new_markdown_cell("The same without a kernel:"),
        code("figures.cut()", shows("1,200\n1,500", PICTURE)),
        new_markdown_cell("The second request has 1,500 tokens. Set the budget to 7,500. What if it were 99 %?"),
    ],
    "What it costs": [
        code("print(f'saved {saved:.1%}, share', 0.25)", prints("saved 34.5 %, share 0.25\n")),
        new_markdown_cell("Of every 4 tokens 1.5k stay (34.5 %, or 25 % of it), as chapter 03 and HTTP 400 said in 2026."),
    ],
    "Exercises": [
        new_markdown_cell("### One"),
        code("def cut(messages):\n    raise NotImplementedError"),
        code("checks.cut(cut)", prints("○ to do: cut\n")),
        new_markdown_cell("### Two"),
        code("total = sum(history)\ntotal += 1\ntotal", shows("4")),
    ],
}


def test_a_good_notebook_passes() -> None:
    assert rules.problems(good()) == []


# ------------------------------------------------------------------------------------------------------ a bad example each


def find(notebook: Any, text: str) -> Any:
    """Return the cell of the good notebook that holds `text`."""
    return next(cell for cell in notebook.cells if text in cell.source)


def edit(old: str, new: str) -> Callable[[Any], None]:
    """Return a change: `old` in a source becomes `new`."""

    def change(notebook: Any) -> None:
        cell = find(notebook, old)
        cell.source = cell.source.replace(old, new)

    return change


def attribute(text: str, **values: Any) -> Callable[[Any], None]:
    """Return a change of the attributes of the cell that holds `text`."""
    return lambda notebook: find(notebook, text).update(nbformat.from_dict(values))


def output(*outputs: Any) -> Callable[[Any], None]:
    """Return a change: these outputs where the figure was."""
    return attribute("figures.cut()", outputs=list(outputs))


def tag(text: str, *names: str) -> Callable[[Any], None]:
    """Return a change: these tags for the cell that holds `text`."""
    return attribute(text, metadata={"tags": list(names)})


def drop(text: str) -> Callable[[Any], None]:
    return lambda notebook: notebook.cells.remove(find(notebook, text))


def says(text: str) -> Callable[[Any], None]:
    """Return a change: `text` in the section on costs."""
    return edit("Of every 4 tokens", text)


def swap(first: str, second: str) -> Callable[[Any], None]:
    def change(notebook: Any) -> None:
        a, b = find(notebook, first), find(notebook, second)
        a.source, b.source = b.source, a.source

    return change


def in_all_code(source: str) -> Callable[[Any], None]:
    def change(notebook: Any) -> None:
        for _, cell in rules.code_cells(notebook):
            cell.source = source

    return change


WIDGET_VIEW = {"model_id": "b1946ac92492", "version_major": 2, "version_minor": 0}
WIDGET = new_output("display_data", data={"text/plain": "IntSlider(value=5)", f"{rules.WIDGET_VIEW}+json": WIDGET_VIEW})
PNG = new_output("display_data", data={"text/plain": "<Figure size 640x480 with 1 Axes>", "image/png": "iVBORw0KGgo="})

BAD: dict[str, dict[str, Callable[[Any], None]]] = {
    "counts_in_order": {
        "out of order": attribute("history =", execution_count=7),
        "missing": attribute("history =", execution_count=None),
        "twice": attribute("for n", execution_count=1),
        "a widget with a count": attribute("panels.", execution_count=4),
        "a widget with output": attribute("panels.", outputs=[WIDGET]),
    },
    "errors_are_tagged": {"no tag": tag("raise ValueError"), "no error": tag("history =", "raises-exception")},
    "tags_are_known": {"code": tag("history =", "skip"), "prose": tag("without a kernel", "hide-input")},
    "no_marker_comments": {"comment": edit("history =", "# NBVAL_IGNORE_OUTPUT\nhistory =")},
    "no_stderr": {"warning": attribute("history =", outputs=[prints("DeprecationWarning: old\n", "stderr")])},
    "metadata_is_clean": {
        "notebook": lambda nb: nb.metadata.update(widgets={}),
        "kernel": lambda nb: nb.metadata.kernelspec.update(name="conda-env"),
        "cell": attribute("history =", metadata={"execution": {"iopub.execute_input": "2026"}}),
        "id": attribute("history =", id="1f2e3d4c"),
        "traceback": attribute("raise ValueError", outputs=[FAILS | {"traceback": ["File x.py:3", "ValueError: no cut"]}]),
    },
    "panels_have_a_picture": {
        "no cell": drop("figures.cut()"),
        "no output": attribute("figures.cut()", outputs=[]),
        "only print": output(prints("1,200 1,500")),
        "a second panel first": tag("figures.cut()", "widget"),
        "a stored widget": attribute("history =", outputs=[WIDGET]),
    },
    "no_semicolons": {
        "last line": edit("history = [1, 2]", "history = [1, 2];"),
        "before a comment": edit("history = [1, 2]", "history = [1, 2];  # quiet\nhistory"),
        "in a magic": edit("history = [1, 2]", "$x = 3;"),
    },
    "plain_python": {
        "magic": edit("history =", "%matplotlib inline\nhistory ="),
        "cell magic": edit("history =", "%%time\nhistory ="),
        "shell": edit("history =", "!pip install x\nhistory ="),
        "pip": edit("history =", "%pip install x\nhistory ="),
        "await": edit("history =", "await agent.run()\nhistory ="),
        "async": edit("history =", "async def f(): pass\nhistory ="),
        "interact": edit("history =", "widgets.interact(f, x=3)\nhistory ="),
        "import": edit("history =", "from ipywidgets import interactive as i\nhistory ="),
        "Output": edit("history =", "out = widgets.Output()\nhistory ="),
        "clear_output": edit("history =", "clear_output(wait=True)\nhistory ="),
        "display_id": edit("history =", "display(1, display_id=True)\nhistory ="),
    },
    "code_is_short": {
        "one long": edit("history =", "x = 1\n" * 25 + "history ="),
        "the median": in_all_code("x = 1\n" * 6),
        "nine in ten": lambda nb: [c.update(source="x = 1\n" * 16) for _, c in rules.code_cells(nb)[:2]],
    },
    "exercises_stand_alone": {
        "another exercise": edit("total = sum(history)", "total = cut(history)"),
        "inside a function": edit("total = sum(history)", "def f():\n    return cut\ntotal = 1"),
        "added to": edit("total = sum(history)\n", "history += [3]\ntotal = 0\n"),
        "in a loop": edit("total = sum(history)\n", "total = 0\nfor n in [1]:\n    history += [n]\n"),
        "made from itself": edit("total = sum(history)", "total = 3\nhistory = history[1:]"),
    },
    "no_empty_cells": {
        "empty": attribute("history =", source=" \n"),
        "raw": attribute("without a kernel", cell_type="raw"),
    },
    "prose_is_short": {"long": edit("without a kernel", "word " * 121)},
    "headings_in_steps": {
        "no title": edit("# The cut", "The cut"),
        "not first": swap("# The cut", "history ="),
        "two titles": edit("### Naive", "# Naive"),
        "HTML": edit("### Naive", "<h1>Naive</h1>"),
        "skipped": edit("### Naive", "#### Naive"),
    },
    "anatomy": {
        "missing": edit("## Predict", "Predict"),
        "one too many": edit("### Naive", "## Naive"),
        "out of order": swap("## Predict", "## See it fail"),
        "twice": edit("### Naive", "## Predict"),
    },
    "pictures_have_text": {
        "markdown": edit("![a strip of two blocks]", "![]"),
        "reference": edit("![a strip of two blocks](strip.png)", "![ ][strip]"),
        "HTML": edit("without a kernel", '<img src="strip.png">'),
        "empty": edit("without a kernel", '<img alt="" src="strip.png">'),
        "output": output(shows("1,200 1,500", '<img src="data:,">')),
        "svg": output(shows("1,200 1,500", "<svg></svg>")),
        "png": output(shows("1,200 1,500", "text"), PNG),
    },
    "nothing_private": {
        "path in code": edit("history =", "p = '/home/ada/x'\nhistory ="),
        "path in prose": edit("without a kernel", "in /Users/ada"),
        "path in output": output(shows("1,200 1,500 /tmp/agentkit-1")),
        "path on Windows": output(prints("C:\\ada 1,200 1,500")),
        "package folder": output(prints("lib/site-packages/x 1,200 1,500")),
        "source file": output(prints('1,200 1,500 File "/srv/book/agentkit/log.py", line 3')),
        "address": output(shows("<Message at 0x7f2a> 1,200 1,500")),
        "long address": output(shows("0x7f2a33dd10 1,200 1,500")),
        "key": edit("history =", "key = 'sk-abc'\nhistory ="),
        "header": output(prints("Authorization: Bearer abc 1,200 1,500")),
        "fake key": output(prints("TEST-KEY-0001 1,200 1,500")),
        "in an error": attribute("raise ValueError", outputs=[FAILS | {"evalue": "cannot open /root/x"}]),
    },
    "numbers_are_shown": {
        "integer": says("Of 17 tokens"),
        "thousands": says("Of 1,501 tokens"),
        "percent": says("Saves 20 %. Of"),
        "a digit with percent": says("Saves 4 %. Of"),
        "decimal": says("It is 1.7 times. Of"),
        "unit": says("Of 12k tokens"),
        "not a year": says("Of 2026 tokens"),
        "not a status": says("In a 400-token message of"),
        "in a list": says("Two things:\n\n- 17 tokens\n- of"),
        "after a question": says("Is it so? It is 17. Of"),
        "after an instruction": says("Set it to 7,500: it saves 31 %. Of"),
        "in a heading's section": edit("without a kernel", "with 1,234 tokens"),
        "only in an output that is not compared": tag("print(f'saved", "nbval-ignore-output"),
    },
}


@pytest.mark.parametrize(("rule", "example"), [(rule, example) for rule in BAD for example in BAD[rule]])
def test_a_bad_example_is_found(rule: str, example: str) -> None:
    notebook = good()
    BAD[rule][example](notebook)
    assert notebook != good(), "the example is no different from the good notebook"
    assert rules.RULES[rule](notebook) != []
    assert rules.problems(notebook) != []


def test_every_rule_has_a_bad_example() -> None:
    assert BAD.keys() == rules.RULES.keys()


@pytest.mark.parametrize(
    "text",
    [
        "see `o200k_base`, UTF-8, chars/4, GPT-4, #1234, [it](x.html#12), 01_the_loop.ipynb",
        "In chapters 03, 05 and 10, on 2026-11-30, with Python 3.12, in 15 minutes, a 400 or status 529",
        "1. one\n\n10. ten\n\n| 77 | 78 |\n|---|---|\n| 79 | 80 |\n",
        "Why 77? Set it to 88. **Try 99 %.**",
        "between 1,200 and 1,500 (34.50 %), 1\u202f500, 1.2k",
        'a comment <!-- 77 --> and <span style="width:77%">a tag</span>',
        "~~~\n77\n~~~",
    ],
)
def test_what_is_no_measurement_is_left_alone(text: str) -> None:
    notebook = good()
    says(text + "\n\nOf every 4 tokens")(notebook)
    assert rules.numbers_are_shown(notebook) == []


@pytest.mark.parametrize("source", ["text = 'a;'\ntext", 'style = """\nwidth: 3;\n"""', "x = 1  # a; b;", "a = 1; b = 2"])
def test_a_semicolon_elsewhere_is_left_alone(source: str) -> None:
    notebook = good()
    edit("history = [1, 2]", source)(notebook)
    assert rules.no_semicolons(notebook) == []


PUBLIC = ["a disk-based task-list", "colour 0x2E80", "see https://example.org/home/x", "~/notes.txt", "tests/test_log.py"]


@pytest.mark.parametrize("text", PUBLIC)
def test_what_is_not_private_is_left_alone(text: str) -> None:
    notebook = good()
    edit("without a kernel", text)(notebook)
    assert rules.nothing_private(notebook) == []


def test_fences_tags_and_addresses_are_no_words() -> None:
    assert (
        rules.words("one two\n\n```python\nthree four\n```\n<b title='five'>six</b> [seven](http://eight) — http://nine")
        == 4
    )


def test_a_notebook_may_need_only_the_start_of_the_anatomy() -> None:
    notebook = good()
    edit("## Predict", "## Play it")(notebook)
    assert rules.anatomy(notebook) != [] and rules.anatomy(notebook, rules.ANATOMY[:2]) == []
    swap("## Where we are", "## What you will be able to do")(notebook)
    assert rules.anatomy(notebook, rules.ANATOMY[:2]) != []


def test_a_notebook_without_the_anatomy_has_all_its_numbers_checked() -> None:
    notebook = good()
    edit("## Predict", "## Play it\n\nIt has 8,765 tokens.")(notebook)
    assert any("8,765" in problem for problem in rules.problems(notebook, rules.ANATOMY[:2]))


# ---------------------------------------------------------------------------------- known public failures (cases H05 … H17)

CLOCK = "import time\nprint(time.time_ns())"
WARN = "import warnings\nwarnings.warn('newer text', DeprecationWarning, stacklevel=1)"
SLIDER = "import ipywidgets\nipywidgets.IntSlider(value=5, max=10)"
SLIDER_TEXT = "IntSlider(value=5, max=10)"


def stored(*cells: Any) -> Any:
    notebook = new_notebook(cells=list(cells))
    clean(notebook)
    return notebook


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run cells under nbval, strict as in pyproject.toml, in one kernel, and return what became of each."""
    folder = tmp_path_factory.mktemp("nbval")
    old_id = nbformat.from_dict(WIDGET | {"data": WIDGET["data"] | {"text/plain": SLIDER_TEXT}})
    cells = {
        "widget_id": code(SLIDER, old_id),
        "warning": code(WARN, prints("DeprecationWarning: old\n", "stderr")),
        "semicolon": code("3;"),
        "clock": code(CLOCK, prints("1764486000000000000\n")),
        "same_text": code("print(5)", prints("5\n")),
    }
    nbformat.write(stored(*cells.values()), folder / "cells.ipynb")
    options = ["--nbval", "--nbval-current-env", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=", "-rA", "-q"]
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", str(folder), str(folder)]
    done = subprocess.run(command, capture_output=True, cwd=folder, timeout=120, encoding="utf-8", errors="replace")
    found = sorted((int(n), word) for word, n in re.findall(r"(?m)^(PASSED|FAILED) .*::Cell (\d+)", done.stdout))
    assert len(found) == len(cells), done.stdout + done.stderr
    return dict(zip(cells, (word for _, word in found), strict=True))


def test_h05_a_random_widget_id_is_not_compared_and_not_stored(verdicts: dict[str, str]) -> None:
    assert verdicts["widget_id"] == "PASSED"
    notebook = good()
    attribute("history =", outputs=[WIDGET])(notebook)
    assert any("tag the cell widget" in problem for problem in rules.problems(notebook))


def test_h06_a_warning_cannot_be_stored_so_a_changed_one_cannot_fail(verdicts: dict[str, str]) -> None:
    assert verdicts["warning"] == "FAILED", "nbval now leaves stderr alone; this rule may go"
    notebook = good()
    attribute("history =", outputs=[prints("DeprecationWarning: old\n", "stderr")])(notebook)
    assert any("stderr" in problem for problem in rules.problems(notebook))


def test_h07_a_hiding_semicolon_is_found(verdicts: dict[str, str]) -> None:
    assert verdicts["semicolon"] == "FAILED", "nbval now respects the semicolon; this rule may go"
    notebook = good()
    edit("history = [1, 2]", "ax.set_title('x');")(notebook)
    assert any("';'" in problem for problem in rules.problems(notebook))


def test_h08_times_and_addresses_in_outputs_are_found(verdicts: dict[str, str]) -> None:
    assert verdicts["clock"] == "FAILED" and verdicts["same_text"] == "PASSED"
    notebook = good()
    attribute("history =", outputs=[shows("<Message at 0x7f2a>"), PNG])(notebook)
    found = rules.problems(notebook)
    assert any("0x7f2a" in problem for problem in found) and any("image/png" in problem for problem in found)


def test_h15_prose_that_contradicts_its_output_is_found() -> None:
    notebook = good()
    says("saves 20 % (6.0 instead of 5.0 tokens). Of")(notebook)
    attribute("print(f'saved", source="print(5)\nprint(5)", outputs=[prints("5\n5")])(notebook)
    found = " ".join(rules.numbers_are_shown(notebook))
    assert "20 %" in found and "6.0" in found and "5.0" not in found


def test_h16_exercises_that_lean_on_each_other_are_found() -> None:
    notebook = good()
    edit("total = sum(history)", "total = cut(history)")(notebook)
    assert any("made in another exercise" in problem for problem in rules.problems(notebook))


def test_h17_an_out_of_order_run_is_found() -> None:
    notebook = stored(*(code(f"x = {n}") for n in range(6)))
    for (_, cell), count in zip(rules.code_cells(notebook), [1, 2, 7, 3, None, 98], strict=True):
        cell.execution_count = count
    assert len(rules.counts_in_order(notebook)) == 4


# ---------------------------------------------------------------------------- H16 on the real chapters: exercises run twice

RUN_TWICE = """
import json, os, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
def run(cells):
    for number, source, may_fail in cells:
        result = shell.run_cell(source, store_history=True)
        if not result.success and not may_fail:
            sys.exit(f"cell {number}: {result.error_before_exec or result.error_in_exec!r}")
everything, exercises = json.loads(sys.stdin.read())
run(everything)
run(exercises)
"""


def runnable(notebook: Any) -> tuple[list[Any], list[Any]]:
    """Return the imports of the whole chapter as one cell, and the cells of the exercises: number, source, may it fail."""
    titles = rules.section_of(notebook)
    cells = [(i, cell.source, "raises-exception" in rules.tags(cell)) for i, cell in rules.code_cells(notebook)]
    nodes = [node for _, source, _ in cells for node in ast.parse(source).body]
    imports = [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    exercises = [cell for cell in cells if titles[cell[0]] == "Exercises"]
    return [(-1, "\n".join(imports), False), *exercises], exercises


def run_twice(notebook: Any, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a notebook's exercises in one Python without a kernel and without the rest of the chapter, twice."""
    return subprocess.run(
        [sys.executable, "-c", RUN_TWICE],
        input=json.dumps(runnable(notebook)),
        cwd=folder,
        capture_output=True,
        timeout=120,
        encoding="utf-8",
        errors="replace",
    )


WITH_EXERCISES = [path for path in CHAPTERS if wanted(path) == rules.ANATOMY]


@pytest.mark.parametrize("path", WITH_EXERCISES, ids=lambda path: path.stem)
def test_h16_exercise_cells_can_be_run_twice(path: Path) -> None:
    """What a student repeats is an exercise, and often after skipping what came before it. The rest runs under nbval."""
    notebook = nbformat.read(path, as_version=4)
    assert runnable(notebook)[1], "no code in the exercises"
    done = run_twice(notebook, path.parent)
    assert done.returncode == 0, done.stderr[-2000:]


def test_h16_a_cell_that_works_only_once_is_found(tmp_path: Path) -> None:
    once = stored(
        new_markdown_cell("## Exercises"),
        code("history = globals().get('history', [1])"),
        code("history.pop()"),
        code("1 / 0", tag="raises-exception"),
    )
    done = run_twice(once, tmp_path)
    assert done.returncode != 0 and "pop from empty list" in done.stderr
    edit("history.pop()", "history[0]")(once)
    assert run_twice(once, tmp_path).returncode == 0
