"""The toolbox answers every call, its answers are bounded valid text, and nothing leaves the workspace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentkit.messages import Message, ToolCall, ToolSpec
from agentkit.tools import EMPTY, Tool, Toolbox, ToolError, clean, clip, signature, workspace_tools
from agentkit.tools.testrun import steady

SECRET = "the-outer-secret"
# Times depend on the machine; the folder of a fixture is shared by all examples, which these tests allow for.
calm = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs symbolic links and named pipes")


def call(box: Toolbox, name: str, /, **arguments: object) -> Message:
    return box.run(ToolCall("c1", name, json.dumps(arguments)))


def ok(box: Toolbox, name: str, /, **arguments: object) -> str:
    message = call(box, name, **arguments)
    assert not message.is_error, message.content
    return message.content


def error(box: Toolbox, name: str, /, **arguments: object) -> str:
    message = call(box, name, **arguments)
    assert message.is_error, message.content
    assert "\n" not in message.content and message.content.startswith("error: ")
    return message.content


def one_tool(run, name: str = "t", **properties: dict) -> Toolbox:
    schema = {"type": "object", "properties": properties, "required": sorted(properties)}
    return Toolbox([Tool(ToolSpec(name, "a test tool", schema), run)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small project, with a neighbour that it must never reach."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET, encoding="utf-8")
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "main.py").write_text("def main():\n    return 1\n", encoding="utf-8")
    (project / "notes.txt").write_text("alpha\nbeta\ngamma\n", encoding="utf-8")
    if os.name == "posix":
        (project / "link_folder").symlink_to(outside)
        (project / "link_file").symlink_to(outside / "secret.txt")
        (project / "src" / "up").symlink_to("../..")
        (project / "loop").symlink_to("loop")
        (project / "inner").symlink_to("notes.txt")
    return project


@pytest.fixture
def box(folder: Path) -> Toolbox:
    return workspace_tools(folder)


# --- the toolbox -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["", "\n\n", " \t "])
def test_a08_a_silent_tool_gets_the_same_marker_every_time(output: str) -> None:
    box = one_tool(lambda _: output)
    first, second = box.run(ToolCall("c1", "t")), box.run(ToolCall("c2", "t"))
    assert (first.content, first.tool_call_id) == (EMPTY, "c1")
    assert (second.content, second.tool_call_id) == ("(no output)", "c2")


def test_d29_an_error_is_clipped_too() -> None:
    def run(_: dict) -> str:
        raise ToolError("disk full " + "x" * 733_000)

    message = one_tool(run).run(ToolCall("c1", "t"))
    assert message.is_error and len(message.content) <= 16_000
    assert message.content.startswith("error: disk full x") and "of 733,017 characters" in message.content


def test_f15_raw_bytes_and_half_surrogate_pairs_become_valid_text() -> None:
    raw = b"caf\x97 ok".decode("utf-8", "surrogateescape")
    for output, wanted in [(raw, "caf\ufffd ok"), ("a\0b", "a\ufffdb"), ("\ud83d\ude00 \ud83d", "😀 \ufffd")]:
        message = one_tool(lambda _, output=output: output).run(ToolCall("c1", "t"))
        assert message.content == wanted and message.content.encode("utf-8")


def test_f15_an_error_text_is_cleaned_too() -> None:
    def run(_: dict) -> str:
        raise RuntimeError("bad \udc97")

    assert one_tool(run).run(ToolCall("c1", "t")).content == "error: t failed: RuntimeError: bad \ufffd"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "parameter 'n' is missing"),
        ("{}", "parameter 'n' is missing"),
        ('{"n": 1', "not one JSON object"),
        ("[1]", "not one JSON object (expected a JSON object, got list)"),
        ("[" * 100_000, "not one JSON object"),
        ('{"n": "1"}', "parameter 'n' must be of type integer, not '1'"),
        ('{"n": true}', "parameter 'n' must be of type integer, not True"),
        ('{"n": null}', "parameter 'n' must be of type integer, not None"),
        ('{"n": 1, "m": 2}', "parameter 'm' is unknown"),
    ],
)
def test_bad_arguments_are_answered_in_one_line(text: str, wanted: str) -> None:
    message = one_tool(lambda a: str(a), n={"type": "integer"}).run(ToolCall("c7", "t", text))
    assert message.is_error and message.tool_call_id == "c7" and message.role == "tool"
    assert wanted in message.content and "call it as t(n)" in message.content and "\n" not in message.content


@given(st.text(), st.text())
@calm
def test_no_call_ever_raises(name: str, arguments: str) -> None:
    message = one_tool(lambda a: "fine", n={"type": "number"}).run(ToolCall("c1", name, arguments))
    assert message.content.strip() and message.content.encode("utf-8")
    assert message.is_error != (message.content == "fine")


def test_an_unknown_tool_is_answered_with_the_names(box: Toolbox) -> None:
    text = error(box, "read_fiel")
    assert "did you mean read_file?" in text
    assert "edit_file, grep, list_files, read_file, run_tests, write_file" in text


@pytest.mark.parametrize("failure", [RuntimeError("two\nlines"), SystemExit(3), MemoryError()])
def test_a_failing_tool_is_an_answer(failure: BaseException) -> None:
    def run(_: dict) -> str:
        raise failure

    assert type(failure).__name__ in error(one_tool(run), "t")


def test_ctrl_c_passes_through() -> None:
    def run(_: dict) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        one_tool(run).run(ToolCall("c1", "t"))


def test_a_tool_that_returns_no_text_is_at_fault() -> None:
    assert "returned dict, not text" in error(one_tool(lambda _: {}), "t")


def test_null_leaves_an_optional_parameter_out(box: Toolbox) -> None:
    assert ok(box, "read_file", path="notes.txt", first_line=None) == "1\talpha\n2\tbeta\n3\tgamma"


def test_e02_e03_specs_have_the_same_bytes_in_any_order() -> None:
    query, count = {"type": "string"}, {"type": "integer"}
    a = {"type": "object", "properties": {"q": query, "n": count}, "required": ["q", "n"]}
    b = {"required": ["q", "n"], "properties": {"n": count, "q": query}, "type": "object"}

    def sent(*tools: Tool) -> str:
        return json.dumps([[s.name, s.description, s.parameters] for s in Toolbox(tools).specs])

    other = Tool(ToolSpec("z", "another", {}), str)
    assert sent(Tool(ToolSpec("t", "d", a), str), other) == sent(other, Tool(ToolSpec("t", "d", b), str))
    assert '"required": ["q", "n"]' in sent(Tool(ToolSpec("t", "d", a), str))


def test_specs_cannot_be_changed_from_outside() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    box = Toolbox([Tool(ToolSpec("t", "d", schema), str)])
    before = box.specs[0].canonical()
    schema["properties"]["late"] = {"type": "string"}
    box.specs[0].parameters["required"] = ["q"]
    assert box.specs[0].canonical() == before


def test_two_tools_of_one_name_are_refused() -> None:
    tool = Tool(ToolSpec("t", "d"), str)
    with pytest.raises(ValueError, match="two tools are called t"):
        Toolbox([tool, tool])


def test_the_signature_marks_what_may_be_left_out(box: Toolbox) -> None:
    assert [signature(spec) for spec in box.specs] == [
        "edit_file(new, old, path)",
        "grep(pattern, glob?)",
        "list_files(pattern?)",
        "read_file(path, first_line?, last_line?)",
        "run_tests(target?)",
        "write_file(path, text)",
    ]


def test_the_tools_need_nothing_but_the_standard_library() -> None:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-S", "-c", "import agentkit.tools"]
    done = subprocess.run(command, cwd=root, capture_output=True, timeout=30, encoding="utf-8", errors="replace")
    assert done.returncode == 0, done.stderr


# --- clean and clip --------------------------------------------------------------------------------------------------


@given(st.text(st.characters() | st.sampled_from("\0\ud83d\ude00\udc97")))
@calm
def test_clean_text_is_valid_and_valid_text_is_unchanged(text: str) -> None:
    assert clean(text).encode("utf-8").decode("utf-8") == clean(text) == clean(clean(text))
    if "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text):
        assert clean(text) == text


LINES = st.lists(st.text(st.sampled_from("ab\n界😀\ud83d\ude00\0"), max_size=40), max_size=60)


@given(LINES.map("\n".join), st.integers(200, 400))
@calm
def test_a_clipped_text_keeps_both_ends_and_counts_the_rest(text: str, limit: int) -> None:
    whole, short = clean(text), clip(text, limit)
    assert len(short) <= limit and short == clean(short)
    if len(whole) <= limit:
        assert short == whole
        return
    head, _, rest = short.partition("[… ")
    counts, _, tail = rest.partition(" …]\n")
    head = head if whole.startswith(head) else head.removesuffix("\n")
    assert whole.startswith(head) and whole.endswith(tail)
    assert min(len(head), len(tail)) >= (limit - 110) // 2 * 4 // 5
    missing = len(whole) - len(head) - len(tail)
    assert counts.startswith(f"{missing:,} of {len(whole):,} characters")


def test_the_marker_counts_lines() -> None:
    text = "".join(f"{n:04}\n" for n in range(100))
    short = clip(text, 300)
    shown = [line for line in short.split("\n") if line.isdigit()]
    assert f"[… {(100 - len(shown)) * 5} of 500 characters, {100 - len(shown)} of 100 lines, left out" in short
    assert shown[0] == "0000" and shown[-1] == "0099" and all(len(line) == 4 for line in shown)


def test_c11_one_long_line_is_clipped_by_characters() -> None:
    text = ("x = '界😀';" * 50_000)[:347_149]
    short = clip(text)
    assert len(short) <= 16_000 and "of 347,149 characters left out" in short
    assert short.startswith(text[:7_900]) and short.endswith(text[-7_900:])
    assert "\ufffd" not in short


def test_a_limit_without_room_for_the_marker_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 200"):
        clip("x", 199)
    with pytest.raises(ValueError, match="at least 200"):
        Toolbox(limit=10)


# --- read_file and list_files ----------------------------------------------------------------------------------------


def test_c10_line_numbers_cost_little_and_the_sent_text_is_what_counts(box: Toolbox, folder: Path) -> None:
    for name, line in [("short.txt", "1"), ("wide.txt", "x" * 80)]:
        (folder / name).write_bytes(f"{line}\n".encode() * 150)
    wide, short = ok(box, "read_file", path="wide.txt"), ok(box, "read_file", path="short.txt")
    assert len(wide) < 1.2 * 81 * 150
    assert len(short) >= 2 * 2 * 150


def test_a_part_of_a_file_says_of_how_many_lines(box: Toolbox) -> None:
    assert ok(box, "read_file", path="notes.txt", first_line=2) == "2\tbeta\n3\tgamma\n[lines 2 to 3 of 3]"
    assert ok(box, "read_file", path="notes.txt", last_line=1) == "1\talpha\n[lines 1 to 1 of 3]"
    assert ok(box, "read_file", path="notes.txt", last_line=99) == "1\talpha\n2\tbeta\n3\tgamma"


@pytest.mark.parametrize(
    ("span", "wanted"),
    [
        ({"first_line": 4}, "'notes.txt' has 3 lines; there is no line 4"),
        ({"first_line": 0}, "lines 0 to 3 make no range"),
        ({"first_line": 3, "last_line": 2}, "lines 3 to 2 make no range"),
    ],
)
def test_lines_that_are_not_there(box: Toolbox, span: dict, wanted: str) -> None:
    assert wanted in error(box, "read_file", path="notes.txt", **span)


def test_lines_are_counted_as_wc_does(box: Toolbox, folder: Path) -> None:
    (folder / "odd.txt").write_bytes("a\x0cb\u2028c\r\nlast".encode())
    assert ok(box, "read_file", path="odd.txt") == "1\ta\x0cb\u2028c\n2\tlast"


def test_a_byte_order_mark_is_not_shown(box: Toolbox, folder: Path) -> None:
    (folder / "bom.txt").write_bytes(b"\xef\xbb\xbfa\n")
    assert ok(box, "read_file", path="bom.txt") == "1\ta"


def test_an_empty_file_says_so(box: Toolbox, folder: Path) -> None:
    (folder / "empty.txt").touch()
    assert ok(box, "read_file", path="empty.txt") == "[empty.txt is empty]"


def test_a_file_that_is_not_utf8_is_read_with_a_note_and_never_edited(box: Toolbox, folder: Path) -> None:
    (folder / "old.txt").write_bytes(b"caf\xe9\n")
    assert ok(box, "read_file", path="old.txt").startswith("1\tcaf\ufffd\n[not UTF-8")
    assert "is not UTF-8 (byte 3)" in error(box, "edit_file", path="old.txt", old="caf", new="tea")
    assert (folder / "old.txt").read_bytes() == b"caf\xe9\n"


def test_a_missing_file_lists_near_names(box: Toolbox, folder: Path) -> None:
    assert "did you mean src/main.py?" in error(box, "read_file", path="main.py")
    for n in range(6):
        (folder / f"note{n}.txt").touch()
    text = error(box, "read_file", path="note.txt")
    assert "no file 'note.txt'" in text and text.count(".txt") == 1 + 3


def test_a_folder_is_no_file(box: Toolbox) -> None:
    assert "'src' is a folder; list it with list_files('src/*')" in error(box, "read_file", path="src")
    assert "is a folder" in error(box, "edit_file", path="src", old="a", new="b")


@posix_only
@pytest.mark.parametrize("tool", ["read_file", "edit_file"])
def test_a_pipe_is_refused_and_never_waited_for(box: Toolbox, folder: Path, tool: str) -> None:
    os.mkfifo(folder / "pipe")
    extra = {"old": "a", "new": "b"} if tool == "edit_file" else {}
    assert "device, pipe or socket" in error(box, tool, path="pipe", **extra)
    assert "pipe" not in ok(box, "list_files") and "no line matches" in ok(box, "grep", pattern="zzz")


def test_a_huge_file_is_not_opened(box: Toolbox, folder: Path) -> None:
    with open(folder / "huge.bin", "wb") as file:
        file.truncate(10_000_001)
    assert "10,000,001 bytes" in error(box, "read_file", path="huge.bin")
    assert "[1 files over 10,000,000 bytes were not searched]" in ok(box, "grep", pattern="alpha")


def test_the_list_is_sorted_and_skips_what_machines_write(box: Toolbox, folder: Path) -> None:
    for name in (".git/config", "src/__pycache__/main.pyc", "b.py", "a.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    inner = ["inner"] if os.name == "posix" else []
    assert ok(box, "list_files").split("\n") == ["a.py", "b.py", *inner, "notes.txt", "src/main.py"]
    assert ok(box, "list_files", pattern="*.py") == "a.py\nb.py"
    assert ok(box, "list_files", pattern="**/*.py") == "a.py\nb.py\nsrc/main.py"
    assert ok(box, "list_files", pattern="./src/**") == "src/main.py"
    assert "no file matches '*.rs'" in ok(box, "list_files", pattern="*.rs")


def test_a_long_list_says_how_many_more(box: Toolbox, folder: Path) -> None:
    for n in range(1_207):
        (folder / "src" / f"{n:04}.txt").touch()
    rows = ok(box, "list_files", pattern="src/0*").split("\n")
    assert rows[199] == "src/0199.txt" and rows[200:] == ["[… 800 more files; use a narrower pattern …]"]


def test_a_glob_with_many_stars_is_quick(box: Toolbox, folder: Path) -> None:
    deep = folder.joinpath(*["a"] * 40)
    deep.mkdir(parents=True)
    (deep / "x").touch()
    assert "no file matches" in ok(box, "list_files", pattern="**/a/" * 20 + "y")


# --- grep ------------------------------------------------------------------------------------------------------------


def test_grep_names_file_line_and_text(box: Toolbox) -> None:
    assert ok(box, "grep", pattern="a$", glob="*.txt") == "notes.txt:1:alpha\nnotes.txt:2:beta\nnotes.txt:3:gamma"
    assert ok(box, "grep", pattern=r"(?i)DEF \w+", glob="**/*.py") == "src/main.py:1:def main():"
    assert "no line matches 'delta' in" in ok(box, "grep", pattern="delta")


@pytest.mark.parametrize("pattern", ["(", "*a", "[a", "a{99999999999999}", "(?P<n>a)(?P<n>b)", r"\1"])
def test_a_bad_pattern_is_explained(box: Toolbox, pattern: str) -> None:
    assert "is no regular expression" in error(box, "grep", pattern=pattern)


def test_an_empty_pattern_is_refused(box: Toolbox) -> None:
    assert "pattern is empty" in error(box, "grep", pattern="")


def test_a_catastrophic_pattern_ends(folder: Path) -> None:
    (folder / "trap.txt").write_text("a" * 200 + "!\n", encoding="utf-8")
    started = time.monotonic()
    text = error(workspace_tools(folder, grep_timeout=0.5), "grep", pattern="(a+)+$")
    assert "within 0.5 s" in text and time.monotonic() - started < 60


def test_of_a_long_line_the_match_is_shown(box: Toolbox, folder: Path) -> None:
    (folder / "min.js").write_text("x" * 50_000 + "needle" + "y" * 50_000, encoding="utf-8")
    row = ok(box, "grep", pattern="needle")
    assert row.startswith("min.js:1:…xxx") and "needle" in row and row.endswith("yyy…") and len(row) < 320


def test_grep_says_how_many_more_lines_match(box: Toolbox, folder: Path) -> None:
    (folder / "many.txt").write_text("hit\n" * 1_500, encoding="utf-8")
    rows = ok(box, "grep", pattern="hit").split("\n")
    assert rows[199] == "many.txt:200:hit" and rows[200].startswith("[… 1,300 more lines match")


# --- edit_file and write_file ----------------------------------------------------------------------------------------


def test_an_edit_replaces_one_place_and_says_the_line(box: Toolbox, folder: Path) -> None:
    assert ok(box, "edit_file", path="notes.txt", old="beta", new="delta\nbeta") == "edited notes.txt at line 2"
    assert (folder / "notes.txt").read_bytes() == b"alpha\ndelta\nbeta\ngamma\n"
    assert sorted(p.name for p in folder.glob("*.txt")) == ["notes.txt"] and not list(folder.glob(".write-*"))


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("omega", "x", "does not occur in 'notes.txt'; read the file again"),
        ("2\tbeta", "x", "leave out the line numbers"),
        ("a\n", "x", "more than once in 'notes.txt' (lines 1, 2, 3)"),
        ("", "x", "old is empty"),
        ("beta", "beta", "old and new are the same"),
        ("beta", "\ud800", "half a surrogate pair"),
    ],
)
def test_an_edit_that_is_not_clear_changes_nothing(box: Toolbox, folder: Path, old: str, new: str, wanted: str) -> None:
    assert wanted in error(box, "edit_file", path="notes.txt", old=old, new=new)
    assert (folder / "notes.txt").read_bytes() == b"alpha\nbeta\ngamma\n"


def test_places_that_overlap_count_twice(box: Toolbox, folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"aaa")
    assert "more than once" in error(box, "edit_file", path="a.txt", old="aa", new="b")


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "a\nX\nb", b"a\r\nX\r\nb\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "b", "b\nX", b"a\r\nb\r\nX\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb\r\n", "", b"c\r\n"),
        (b"a\r\nb\nc", "a\nb\nc", "a\nX\nc", b"a\r\nX\nc"),
        (b"a\r\nb\nc\nd", "a\nb\nc\nd", "a\nb\nc\nX", b"a\r\nb\nc\nX"),
        (b"a\nb\n", "b\n", "b\r\nX\r\n", b"a\nb\nX\n"),
        (b"\xef\xbb\xbfa\r\n", "a\n", "b\n", b"\xef\xbb\xbfb\r\n"),
        (b"a\rb\r\n", "b", "c", b"a\rc\r\n"),
    ],
)
def test_line_ends_are_kept_byte_for_byte(box: Toolbox, folder: Path, before, old, new, after) -> None:
    (folder / "f.txt").write_bytes(before)
    ok(box, "edit_file", path="f.txt", old=old, new=new)
    assert (folder / "f.txt").read_bytes() == after


@given(st.lists(st.sampled_from(["\n", "\r\n"]), min_size=1, max_size=12), st.data())
@settings(calm, max_examples=50)
def test_an_edit_touches_no_other_line(box: Toolbox, folder: Path, ends: list[str], data: st.DataObject) -> None:
    lines = [f"line {n}.{end}" for n, end in enumerate(ends)]
    at = data.draw(st.integers(0, len(lines) - 1))
    (folder / "f.txt").write_bytes("".join(lines).encode())
    ok(box, "edit_file", path="f.txt", old=f"line {at}.", new="changed")
    lines[at] = "changed" + ends[at]
    assert (folder / "f.txt").read_bytes() == "".join(lines).encode()


@posix_only
def test_an_edit_keeps_the_mode_and_a_link_inside_stays_a_link(box: Toolbox, folder: Path) -> None:
    (folder / "notes.txt").chmod(0o640)
    ok(box, "edit_file", path="inner", old="beta", new="delta")
    assert (folder / "inner").is_symlink() and "delta" in (folder / "notes.txt").read_text(encoding="utf-8")
    assert (folder / "notes.txt").stat().st_mode & 0o777 == 0o640


def test_an_edit_that_breaks_off_leaves_the_old_file(box: Toolbox, folder: Path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert "No space left" in error(box, "edit_file", path="notes.txt", old="beta", new="x")
    assert (folder / "notes.txt").read_bytes() == b"alpha\nbeta\ngamma\n" and not list(folder.glob(".write-*"))


def test_a_new_file_is_written_once(box: Toolbox, folder: Path) -> None:
    assert ok(box, "write_file", path="tests/a/b.py", text="界\r\n") == "wrote tests/a/b.py (3 characters)"
    assert (folder / "tests/a/b.py").read_bytes() == "界\r\n".encode()
    assert "already there" in error(box, "write_file", path="tests/a/b.py", text="")
    assert "a folder of that path is a file" in error(box, "write_file", path="notes.txt/b.py", text="x")
    assert "half a surrogate pair" in error(box, "write_file", path="c.py", text="\udc97")


# --- the fence -------------------------------------------------------------------------------------------------------

OUT = ["../outside/secret.txt", "src/../../outside/secret.txt", "/etc/passwd", "~/x", "~root", "C:\\x", "C:x", "\\x"]
OUT += ["..\\outside\\secret.txt", "\\\\host\\share", "a\0b", "", " ", "..", "src/..", "a\nb", "\ud800"]
LINKS = ["link_file", "link_folder/secret.txt", "src/up/outside/secret.txt", "link_folder/new.txt", "link_folder"]
WITH_PATH = {"read_file": {}, "edit_file": {"old": "the", "new": "x"}, "write_file": {"text": "x"}}


@pytest.mark.parametrize("path", OUT)
def test_a_path_to_outside_is_refused(box: Toolbox, path: str) -> None:
    for tool, extra in WITH_PATH.items():
        assert "write it relative to the workspace" in error(box, tool, path=path, **extra)
    assert "relative to the workspace" in error(box, "run_tests", target=path)
    assert "relative to the workspace" in error(box, "list_files", pattern=path)
    assert "relative to the workspace" in error(box, "grep", pattern="x", glob=path)


@posix_only
@pytest.mark.parametrize("path", LINKS)
def test_a_link_to_outside_is_refused(box: Toolbox, folder: Path, path: str) -> None:
    for tool, extra in WITH_PATH.items():
        assert "leads outside the workspace" in error(box, tool, path=path, **extra)
    assert "leads outside the workspace" in error(box, "run_tests", target=f"{path}::test_a")
    assert os.listdir(folder.parent / "outside") == ["secret.txt"]


@posix_only
def test_list_and_grep_do_not_follow_links_to_outside(box: Toolbox) -> None:
    for pattern in ("**/*", "link*", "link_folder/*", "src/up/outside/*", "**/secret.txt"):
        assert "secret" not in ok(box, "list_files", pattern=pattern).replace(repr(pattern), "")
        assert SECRET not in ok(box, "grep", pattern="outer", glob=pattern)


@posix_only
def test_a_link_to_itself_is_an_error_not_a_hang(box: Toolbox) -> None:
    assert "'loop'" in error(box, "read_file", path="loop")


PARTS = ["..", ".", "", "~", "src", "up", "outside", "secret.txt", "link_folder", "link_file", "C:", "notes.txt", "new"]
PATHS = st.builds(lambda parts, sep: sep.join(parts), st.lists(st.sampled_from(PARTS), max_size=6), st.sampled_from("/\\"))


@posix_only
@given(PATHS | st.text(max_size=8), st.sampled_from(sorted(WITH_PATH) + ["list_files"]))
@settings(calm, max_examples=300)
def test_no_path_reaches_the_neighbour(box: Toolbox, folder: Path, path: str, tool: str) -> None:
    arguments = {"pattern": path} if tool == "list_files" else {"path": path, **WITH_PATH[tool]}
    message = call(box, tool, **arguments)
    assert SECRET not in message.content and str(folder) not in message.content
    outside = folder.parent / "outside"
    assert sorted(p.name for p in folder.parent.iterdir()) == ["outside", "project"]
    assert {p.name: p.read_bytes() for p in outside.iterdir()} == {"secret.txt": SECRET.encode()}


def test_a_workspace_must_be_a_folder(folder: Path) -> None:
    for path in (folder / "notes.txt", folder / "missing"):
        with pytest.raises(ValueError, match="is not a folder"):
            workspace_tools(path)


# --- run_tests -------------------------------------------------------------------------------------------------------


def project(folder: Path, test: str) -> Toolbox:
    (folder / "test_it.py").write_text(test, encoding="utf-8")
    return workspace_tools(folder, tests_timeout=30)


def test_a_failing_test_is_an_answer_and_reads_the_same_twice(folder: Path) -> None:
    box = project(folder, "def test_a(tmp_path):\n    assert tmp_path == object()\ndef test_b():\n    pass\n")
    first, second = ok(box, "run_tests"), ok(box, "run_tests")
    assert first == second and first.endswith("1 failed, 1 passed")
    assert "object at 0x…" in first and "<temp>" in first and str(folder.parent) not in first
    assert ok(box, "run_tests", target="test_it.py::test_b").endswith("\n1 passed")
    assert not list(folder.rglob("__pycache__")) and not list(folder.rglob(".pytest_cache"))


def test_a_test_that_cannot_be_collected_is_an_answer(folder: Path) -> None:
    text = ok(project(folder, "def broken(:\n"), "run_tests")
    assert "SyntaxError" in text and "1 error" in text


def test_no_tests_at_all(box: Toolbox) -> None:
    assert ok(box, "run_tests") == "no tests ran"


def test_a_target_that_is_not_there(folder: Path) -> None:
    box = project(folder, "def test_a():\n    pass\n")
    assert "exit code 4" in error(box, "run_tests", target="test_it.py::test_z")
    assert "did you mean test_it.py?" in error(box, "run_tests", target="tst_it.py")
    assert "no file '-x'" in error(box, "run_tests", target="-x")


def test_keys_are_kept_from_the_tests(folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "k-123")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--version")
    text = ok(project(folder, "import os\ndef test_a():\n    assert 'SOME_API_KEY' not in os.environ\n"), "run_tests")
    assert text.endswith("1 passed")


@posix_only
def test_pytest_follows_no_link(folder: Path) -> None:
    box = project(folder, "def test_a():\n    pass\n")
    (folder.parent / "outside" / "test_outside.py").write_text("def test_b():\n    pass\n", encoding="utf-8")
    (folder / "test_link.py").symlink_to("../outside/test_outside.py")
    assert ok(box, "run_tests").endswith("\n1 passed")


@posix_only
def test_a_test_that_hangs_is_stopped_with_what_it_started(folder: Path) -> None:
    sleep = "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])"
    project(folder, f"import subprocess, sys\n{sleep}\nopen('pid', 'w').write(str(p.pid))\np.wait()\n")
    for seconds in (2, 4, 8, 16):  # a busy machine may need long to get there
        assert f"did not end within {seconds} s" in error(workspace_tools(folder, tests_timeout=seconds), "run_tests")
        if (folder / "pid").exists():
            break
    pid = int((folder / "pid").read_text(encoding="utf-8"))
    deadline = time.monotonic() + 20
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    """Tell whether a process is alive; one that has ended but was not yet collected by its parent (state Z) is not."""
    command = ["ps", "-o", "stat=", "-p", str(pid)]
    done = subprocess.run(command, capture_output=True, timeout=20, encoding="utf-8", errors="replace")
    return done.stdout.strip() not in ("", "Z", "Z+")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("2 passed in 0.03s", "2 passed"),
        ("=== 1 failed in 65.01s (0:01:05) ===", "=== 1 failed ==="),
        ("slept in 0.5s more", "slept in 0.5s more"),
        ("<A object at 0x7f0a12bc>", "<A object at 0x…>"),
        ("mask 0x1f", "mask 0x1f"),
    ],
)
def test_what_differs_from_run_to_run_is_taken_out(line: str, wanted: str) -> None:
    assert steady(line, {}) == wanted


def test_a_test_run_prints_the_same_in_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_long.py").write_text(
        "def test_long():\n    assert list(range(60)) == list(range(61))\n", encoding="utf-8"
    )
    call = ToolCall("c1", "run_tests", "{}")
    monkeypatch.delenv("CI", raising=False)
    at_home = workspace_tools(tmp_path).run(call).content
    for name in ("CI", "BUILD_NUMBER", "FORCE_COLOR"):
        monkeypatch.setenv(name, "1")
    assert "1 failed" in at_home
    assert workspace_tools(tmp_path).run(call).content == at_home
