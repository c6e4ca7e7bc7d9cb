"""The reader carries out orders that change many places, and picks the work up again where its context was taken away."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from agentkit.messages import Message, Request, ToolCall, assistant, system, tool_result, user
from agentkit.simulator.excerpts import excerpt
from agentkit.simulator.knowledge import Knowledge
from agentkit.simulator.reader import read
from agentkit.tools import Toolbox, workspace_tools

PROMPT = system("You are a coding agent.")

A = """\
from b import fmt

LOW = 40


def first(x: int) -> int:
    return x * 2 if x < LOW else fmt(x)


def second(x: int) -> int:
    \"\"\"Return one more.\"\"\"
    return x + 1


def third(names: list[str]) -> list[str]:
    return [fmt(name) for name in names]
"""
B = "def fmt(x):\n    return x\n\n\ndef other(x):\n    return fmt(x)\n"


@pytest.fixture(name="folder")
def two_modules(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text(A, encoding="utf-8")
    (tmp_path / "b.py").write_text(B, encoding="utf-8")
    return tmp_path


def run(folder: Path, question: str, *, rounds: int = 60) -> list[Message]:
    """Ask the reader and run its calls until it answers, or for so many rounds."""
    tools: Toolbox = workspace_tools(folder)
    messages: list[Message] = [PROMPT, user(question)]
    for _ in range(rounds):
        reply = read(Request(tuple(messages), tools.specs))
        messages.append(reply)
        if not reply.tool_calls:
            break
        messages += [tools.run(call) for call in reply.tool_calls]
    return messages


def text(folder: Path, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


def test_renames_a_name_everywhere_and_looks_at_what_it_did(folder: Path) -> None:
    messages = run(folder, "Rename the function fmt to show in every file.")
    assert text(folder, "a.py") == A.replace("fmt", "show") and text(folder, "b.py") == B.replace("fmt", "show")
    calls = [(c.name, c.parsed().get("path", "")) for m in messages for c in m.tool_calls]
    assert calls == [
        ("grep", ""),
        ("read_file", "a.py"),
        *[("edit_file", "a.py")] * 3,
        ("read_file", "a.py"),
        ("read_file", "b.py"),
        *[("edit_file", "b.py")] * 2,
        ("read_file", "b.py"),
        ("grep", ""),
    ]
    assert messages[-1].content.startswith("No line holds `fmt` any more; it is called `show` now.")
    assert messages[-1].content.endswith("I made 5 changes in 2 files: `a.py`, `b.py`.")


@pytest.mark.parametrize("rounds", range(1, 9))
def test_a_rename_whose_context_was_taken_away_is_finished(folder: Path, rounds: int) -> None:
    """Whatever was done before, the files say what is still to do."""
    run(folder, "Rename the function fmt to show in every file.", rounds=rounds)
    messages = run(folder, "Rename the function fmt to show in every file.")
    assert "fmt" not in text(folder, "a.py") + text(folder, "b.py")
    ast.parse(text(folder, "a.py"))
    assert messages[-1].content.startswith("No line holds `fmt` any more")


def test_a_name_that_is_part_of_another_stays(folder: Path) -> None:
    (folder / "c.py").write_text("fmt_all = 1\nreformat = fmt_all\n", encoding="utf-8")
    run(folder, "Rename fmt to show.")
    assert text(folder, "c.py") == "fmt_all = 1\nreformat = fmt_all\n"


def test_equal_lines_are_told_apart_by_what_stands_around_them(folder: Path) -> None:
    (folder / "b.py").write_text("a = 1\nfmt = 2\nb = 1\nfmt = 2\nfmt = 2\n", encoding="utf-8")
    run(folder, "Rename fmt to show.")
    assert text(folder, "b.py") == "a = 1\nshow = 2\nb = 1\nshow = 2\nshow = 2\n"


def test_writes_the_missing_docstrings_and_no_others(folder: Path) -> None:
    messages = run(folder, "Write the missing docstrings in a.py.")
    functions = [f for f in ast.parse(text(folder, "a.py")).body if isinstance(f, ast.FunctionDef)]
    said = [ast.get_docstring(f) for f in functions]
    assert said == ["Return the first, given `x`.", "Return one more.", "Return the third, given `names`."]
    assert text(folder, "b.py") == B and "2 changes in 1 file" in messages[-1].content


def test_adds_a_parameter_to_every_function_of_that_name(folder: Path) -> None:
    (folder / "b.py").write_text("def first():\n    return 1\n\n\ndef firsts(x):\n    return x\n", encoding="utf-8")
    run(folder, "Add the parameter limit=20 to every function first.")
    assert "def first(x: int, limit=20) -> int:" in text(folder, "a.py")
    assert text(folder, "b.py") == "def first(limit=20):\n    return 1\n\n\ndef firsts(x):\n    return x\n"


def test_writes_tests_that_hold(folder: Path) -> None:
    messages = run(folder, "Write tests for a.py.")
    written = text(folder, "tests/test_a_values.py")
    assert "assert second(7) == 8" in written and "third" not in written
    # From 40 on `first` calls another function, which cannot be worked out.
    rows = [row.strip() for row in written.split("\n") if "assert first(" in row]
    assert rows == ["assert first(0) == 0", "assert first(7) == 14"]
    assert "tests of values for `a.py`" in messages[-1].content
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
    assert "2 passed" in workspace_tools(folder).run(ToolCall("c", "run_tests")).content


def test_an_existing_file_of_tests_is_not_written_over(folder: Path) -> None:
    (folder / "tests").mkdir()
    (folder / "tests" / "test_a_values.py").write_text("kept = 1\n", encoding="utf-8")
    assert "is already there" in run(folder, "Write tests for a.py.")[-1].content
    assert text(folder, "tests/test_a_values.py") == "kept = 1\n"


def test_constants_are_read_from_the_file(folder: Path) -> None:
    assert run(folder, "Which constants does a.py define?")[-1].content == "`a.py` defines `LOW = 40`."
    assert run(folder, "Which constants does b.py define?")[-1].content == "`b.py` has no constants."


def test_what_is_not_there_is_said(folder: Path) -> None:
    assert "I see no change of mine" in run(folder, "Rename nothing_here to show.")[-1].content
    (folder / "a.py").write_text("def broken(:\n", encoding="utf-8")
    assert "no valid Python" in run(folder, "Write the missing docstrings in a.py.")[-1].content


def test_without_tools_it_says_which_one_is_missing() -> None:
    said = read(Request((PROMPT, user("Rename fmt to show.")))).content
    assert said == "For that I would have to call `grep`, and this request offers no such tool."


def test_a_file_is_known_as_it_is_after_the_edits_in_view() -> None:
    found = excerpt("a.py", "1\tone\n2\ttwo\n3\tone")
    assert found is not None
    changed = found.changed("two\none", "two\nmore\nend")
    assert changed is not None and changed.text() == "one\ntwo\nmore\nend" and changed.complete
    assert found.changed("one", "x") is None, "it stands there twice, so which one was meant is not known"
    part = excerpt("a.py", "1\tone\n[lines 1 to 1 of 3]")
    assert part is not None and part.changed("one", "x") is None


def test_an_edit_of_what_was_never_read_makes_nothing_known() -> None:
    call = ToolCall("c1", "edit_file", '{"path": "a.py", "old": "x", "new": "y"}')
    known = Knowledge([PROMPT, user("?"), assistant("", call), tool_result("c1", "edited a.py at line 1")])
    assert known.current("a.py") is None
