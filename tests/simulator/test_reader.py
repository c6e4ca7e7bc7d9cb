"""The reader knows what is in the request and nothing else."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import conversation as talk
import pytest
from conversation import PROMPT, ask, box, calls, reading, remembering
from hypothesis import given
from hypothesis import strategies as st

from agentkit.messages import Message, Request, ToolCall, ToolSpec, assistant, system, tool_result, user
from agentkit.scenarios import course_workspace
from agentkit.simulator import recall
from agentkit.simulator.evaluate import Unsupported, evaluate
from agentkit.simulator.excerpts import excerpt
from agentkit.simulator.questions import understand
from agentkit.simulator.reader import read
from agentkit.simulator.topics import topic
from agentkit.simulator.work import MOST_CALLS
from agentkit.tools import Toolbox, workspace_tools

BIG = "Read the big file and say how many methods it has."
FIRST = "What was the very first question I asked you?"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Toolbox:
    return box(tmp_path_factory.mktemp("project"))


@pytest.fixture
def course(tmp_path: Path) -> Toolbox:
    folder = tmp_path / "workspace"
    shutil.copytree(course_workspace(), folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return workspace_tools(folder)


def answer(tools: Toolbox, messages: list[Message], question: str) -> str:
    return ask(tools, messages, question)[-1].content


def without_tools(*messages: Message) -> str:
    reply = read(Request(messages))
    assert not reply.tool_calls
    return reply.content


# --- the four questions ------------------------------------------------------------------------------------------------


def test_counts_the_methods_of_a_file_that_it_has_to_find(tools: Toolbox) -> None:
    messages = ask(tools, [PROMPT], BIG)
    assert calls(messages) == ["list_files **/*big*", "read_file big_service.py"]
    assert messages[-1].content == "`big_service.py` has 40 methods: `compute1` … `compute40`."


def test_works_out_a_method_from_the_text_in_view(tools: Toolbox) -> None:
    messages = ask(tools, ask(tools, [PROMPT], BIG), "What does compute7 return for 3?")
    assert len(calls(messages)) == 2
    assert messages[-1].content == "`compute7(3)`: base = 21, shifted = 84, so it returns 91."


def test_says_how_many_lines_it_is(tools: Toolbox) -> None:
    messages = ask(tools, [PROMPT], BIG)
    assert answer(tools, messages, "How many lines is it?") == "`big_service.py` has 285 lines."
    assert answer(tools, messages, "How many lines has the big file?") == "`big_service.py` has 285 lines."
    assert answer(tools, messages, "config.json 有几行?") == "`config.json` has 4 lines."


def test_quotes_the_first_question_while_it_is_in_view(tools: Toolbox) -> None:
    messages = ask(tools, ask(tools, [PROMPT], BIG), "How many lines is it?")
    assert f"“{BIG}”" in answer(tools, messages, FIRST)


# --- forgetting ----------------------------------------------------------------------------------------------------------


def test_says_that_the_wording_is_gone_when_a_summary_took_its_place(tools: Toolbox) -> None:
    for placement in ("system", "user"):
        head = remembering("goal: count the methods of big_service.py", placement)
        text = answer(tools, head, FIRST)
        assert text.startswith("That is no longer in my context")
        assert text.endswith("It was about counting the methods of big_service.py.")
        assert BIG not in text


def test_quotes_the_wording_when_the_summary_kept_it(tools: Toolbox) -> None:
    text = answer(tools, remembering(f"wording: “{BIG}”\nwording: “How long is it?”"), FIRST)
    assert f"“{BIG}”" in text and "How long" not in text


def test_reads_a_file_again_whose_text_was_dropped(tools: Toolbox) -> None:
    summary = "facts: methods of big_service.py: compute1 … compute40 (40 methods)"
    messages = ask(tools, remembering(summary), "What does compute12 return for 4?")
    assert calls(messages) == ["read_file big_service.py"]
    assert messages[-1].content == "`compute12(4)`: base = 48, shifted = 96, so it returns 108."


def test_has_to_search_when_the_summary_names_no_file(tools: Toolbox) -> None:
    messages = ask(tools, remembering("open tasks: (nothing to keep)"), "What does compute12 return for 4?")
    assert calls(messages) == [r"grep def compute12\b", "read_file big_service.py"]
    assert "108" in messages[-1].content


def test_takes_a_fact_from_the_summary_and_says_so(tools: Toolbox) -> None:
    head = remembering("facts: big_service.py (285 lines)\nfacts: compute7(3) = 91")
    for question, fact in (("How many lines is the big file?", "285 lines"), ("What does compute7 return for 3?", "91")):
        messages = ask(tools, head, question)
        assert calls(messages) == []
        assert fact in messages[-1].content and "so says the summary" in messages[-1].content
    assert "summary" not in answer(tools, head, "What does compute7 return for 4?")


def test_a_folded_result_is_not_in_view(tools: Toolbox) -> None:
    messages = ask(tools, [PROMPT], BIG)
    folded = [replace(m, content="[output left out]") if m.role == "tool" else m for m in messages]
    asked = ask(tools, folded, "What does compute7 return for 3?")
    assert calls(asked)[2:] == ["read_file big_service.py"]
    assert "91" in asked[-1].content


def test_an_edit_makes_the_text_in_view_worthless(tools: Toolbox) -> None:
    edit = assistant("", ToolCall("e1", "edit_file", '{"path": "a.py", "old": "x", "new": "y"}'))
    messages = [
        PROMPT,
        user("go"),
        *reading("a.py", "x = 1"),
        edit,
        tool_result("e1", "edited a.py at line 1"),
        assistant("ok"),
    ]
    reply = read(Request((*messages, user("how many lines has a.py?")), tools.specs))
    assert [c.name for c in reply.tool_calls] == ["read_file"]
    kept = [m if m.tool_call_id != "e1" else replace(m, content="error: refused") for m in messages]
    assert read(Request((*kept, user("how many lines has a.py?")), tools.specs)).content == "`a.py` has 1 line."


def test_names_the_files_it_has_read_and_no_others(tools: Toolbox) -> None:
    question = "Which files have you read?"
    assert answer(tools, [PROMPT], question) == "Nothing in my context names a file that I have read."
    assert answer(tools, ask(tools, [PROMPT], "read config.json"), question) == "I have read `config.json`."
    summary = "facts: stats.py (40 lines)\ndone: read big_service.py"
    told = answer(tools, remembering(summary), question)
    assert told == "The summary says that I have read `big_service.py`. The summary names `stats.py`."


def test_goes_on_with_the_task_of_the_summary_when_the_question_was_summarised(tools: Toolbox) -> None:
    messages = ask(tools, [PROMPT], BIG)
    listing, rest = messages[:4], messages[4:]
    summary = talk.summarised(listing[1:])
    assert "in progress: count the methods of the big file" in summary
    reply = read(Request((*remembering(summary), *rest[:2]), tools.specs))
    assert reply.content == "`big_service.py` has 40 methods: `compute1` … `compute40`."


def test_without_a_summary_it_takes_the_oldest_message_in_view_for_the_first(tools: Toolbox) -> None:
    """A window that slides says nothing about what left it: the answer is wrong, and the model cannot know."""
    messages = ask(tools, ask(tools, [PROMPT], BIG), "How many lines is it?")
    slid = [PROMPT, *messages[-2:]]
    assert "“How many lines is it?”" in answer(tools, slid, FIRST)


# --- the other kinds of question -----------------------------------------------------------------------------------------


def test_runs_the_tests_and_repairs_what_fails(course: Toolbox) -> None:
    messages = ask(course, [PROMPT], "Run the tests and fix what fails.")
    assert [c.split()[0] for c in calls(messages)] == ["run_tests", "read_file", "read_file", "edit_file", "run_tests"]
    assert "The tests pass: 14 passed." in messages[-1].content
    assert "`stats.py`" in messages[-1].content


def test_only_reports_when_not_asked_to_repair(course: Toolbox) -> None:
    messages = ask(course, [PROMPT], "Run the tests.")
    assert calls(messages) == ["run_tests"]
    assert "1 failed, 13 passed (`test_median_of_an_even_number_of_prices`)" in messages[-1].content


def test_says_so_when_no_rule_fits(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def total(a, b):\n    return a - b\n", encoding="utf-8")
    (tmp_path / "test_shop.py").write_text(
        "from shop import total\n\n\ndef test_total():\n    assert total(1, 2) == 3\n", "utf-8"
    )
    messages = ask(workspace_tools(tmp_path), [PROMPT], "Run the tests and fix the bug.")
    assert "edit_file" not in " ".join(calls(messages))
    assert "none of my 3 repair rules fits" in messages[-1].content
    assert "read_file shop.py" in calls(messages)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("(v[h] + v[h + 1]) / 2", "(v[h - 1] + v[h]) / 2"),
        ("sum(v) / (len(v) - 1)", "sum(v) / len(v)"),
        ("min(v) - max(v)", "max(v) - min(v)"),
    ],
)
def test_a_repair_rule_is_not_tied_to_a_file(tmp_path: Path, wrong: str, right: str) -> None:
    body = "def f(v):\n    v = sorted(v)\n    h = len(v) // 2\n    return {}\n"
    (tmp_path / "odd_name.py").write_text(body.format(wrong), encoding="utf-8")
    scope: dict[str, object] = {}
    exec(body.format(right), scope)
    expected = scope["f"]([1, 2, 4, 8])  # type: ignore[operator]
    test = f"from odd_name import f\n\n\ndef test_f():\n    assert f([1, 2, 4, 8]) == {expected}\n"
    (tmp_path / "test_it.py").write_text(test, encoding="utf-8")
    text = answer(workspace_tools(tmp_path), [PROMPT], "Fix the bug.")
    assert right in (tmp_path / "odd_name.py").read_text(encoding="utf-8")
    assert text.endswith("The tests pass: 1 passed.")


def test_finds_a_text_by_searching(tools: Toolbox) -> None:
    messages = ask(tools, [PROMPT], "Where is the error in build.log?")
    assert calls(messages) == ["grep (?i)error build.log"]
    assert "line 3: ERROR zone has no rate" in messages[-1].content
    assert "1 match of “compute12(” in `big_service.py`" in answer(tools, [PROMPT], "find `compute12(` in big_service.py")
    assert answer(tools, [PROMPT], "search for unicorn in build.log") == "No line in `build.log` holds “unicorn”."
    assert "`big_service.py` line" in answer(tools, [PROMPT], "where is compute9 defined?")


def test_finds_a_text_in_view_without_a_call(tools: Toolbox) -> None:
    messages = ask(tools, ask(tools, [PROMPT], "read build.log"), "Where is the error in build.log?")
    assert calls(messages) == ["read_file build.log"]
    assert "line 3: ERROR zone has no rate" in messages[-1].content


def test_reads_several_files_one_by_one_or_at_once(tools: Toolbox) -> None:
    one_by_one = ask(tools, [PROMPT], "read config.json, build.log and big_service.py")
    assert [len(m.tool_calls) for m in one_by_one if m.tool_calls] == [1, 1, 1]
    at_once = ask(tools, [PROMPT], "read config.json, build.log and big_service.py at once")
    assert [len(m.tool_calls) for m in at_once if m.tool_calls] == [3]
    assert one_by_one[-1].content == at_once[-1].content
    assert "`build.log`: 4 lines, 55 characters." in at_once[-1].content


def test_lists_the_files(tools: Toolbox) -> None:
    assert answer(tools, [PROMPT], "list the files") == "There are 3 files: `big_service.py`, `build.log`, `config.json`."


def test_says_that_a_file_is_not_there(tools: Toolbox) -> None:
    text = answer(tools, [PROMPT], "how many lines has nothing.py?")
    assert text.startswith("I could not read `nothing.py`: no file")


def test_finds_a_file_in_another_folder(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "inner.py").write_text("a = 1\nb = 2\n", encoding="utf-8")
    assert answer(workspace_tools(tmp_path), [PROMPT], "how many lines has inner.py?") == "`deep/inner.py` has 2 lines."


def test_reads_on_where_the_tool_left_lines_out(tmp_path: Path) -> None:
    text = "".join(f"def step{n}():\n    return {n}\n" for n in range(1, 61))
    (tmp_path / "steps.py").write_text(text, encoding="utf-8")
    messages = ask(workspace_tools(tmp_path, limit=1_000), [PROMPT], "How many functions has steps.py?")
    assert messages[-1].content == "`steps.py` has 60 functions: `step1` … `step60`."
    assert len(calls(messages)) > 1
    lines = ask(workspace_tools(tmp_path, limit=1_000), [PROMPT], "How many lines has steps.py?")
    assert (lines[-1].content, len(calls(lines))) == ("`steps.py` has 120 lines.", 1)


def test_remembers_what_it_was_told_and_quotes_it(tools: Toolbox) -> None:
    messages = ask(tools, [PROMPT], "Remember: the deploy password is in vault 7")
    assert messages[-1].content == "Noted."
    assert "“the deploy password is in vault 7”" in answer(tools, messages, "Where is the deploy password?")
    assert "vault 7" in answer(tools, messages, "What did I ask you to remember?")
    assert answer(tools, messages, "When does the train leave?") == recall.UNKNOWN


def test_never_quotes_the_question_itself(tools: Toolbox) -> None:
    messages = ask(tools, [PROMPT], "Who painted the blue kitchen door?")
    again = answer(tools, messages, "Who painted the blue kitchen door?")
    assert again == messages[-1].content == recall.UNKNOWN


def test_looks_into_a_file_that_the_question_names(tools: Toolbox) -> None:
    messages = ask(tools, [PROMPT], "What is the retry_limit in config.json?")
    assert calls(messages) == ["read_file config.json"]
    assert '“"retry_limit": 4”' in messages[-1].content.replace("“  ", "“")


@pytest.mark.parametrize("text", ["hello", "Thanks!", "make me a sandwich", "We always use tabs.", "你好"])
def test_small_talk_needs_no_tool(tools: Toolbox, text: str) -> None:
    messages = ask(tools, [PROMPT], text)
    assert calls(messages) == [] and 5 < len(messages[-1].content) < 250


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Read BigService.java fully and tell me how many methods it has.", "count"),
        ("How many methods has big_service.py?", "count"),
        ("big_service.py有多少个方法?", "count"),
        ("What does compute7 return for input 3?", "returns"),
        ("what is compute7(3)", "returns"),
        ("compute7 输入 3 返回什么?", "returns"),
        ("What was the first thing I asked?", "first question"),
        ("我问的第一个问题是什么?", "first question"),
        ("which files did you read?", "files read"),
        ("please run all the tests", "tests"),
        ("Fix the bug", "tests"),
        ("where is the error in build.log", "find"),
        ("how many lines contain WARN in build.log", "find"),
        ("what files are there?", "list"),
        ("open config.json", "read"),
        ("read it again", "read"),
        ("keep in mind that it is Tuesday", "remember"),
        ("We use pytest.", "decision"),
        ("Rename the function fmt to format_cents in every file.", "rename"),
        ("please rename `Old` into `New`", "rename"),
        ("Add a parameter limit=20 to every function summary.", "parameter"),
        ("Write the missing docstrings in a.py and b.py.", "docstrings"),
        ("Write tests for depot/a.py.", "write tests"),
        ("Which constants does depot/a.py define?", "constants"),
        ("What colour is the sky?", "other"),
        ("", "other"),
    ],
)
def test_understands_questions_in_several_wordings(text: str, kind: str) -> None:
    assert understand(text).kind == kind


@pytest.mark.parametrize(
    "text",
    [
        "how many lines and methods has a.py?",
        "what does f return for 2.5?",
        "run the tests",
        "run the tests and fix the bug",
        "find 'zone' in a.log",
        "list the files",
        "read a.py and b.py at once",
        "rename fmt to format_cents",
        "add the parameter limit=20 to the function summary",
        "write docstrings in a.py, b.py",
        "write tests for a.py",
        "list the constants of a.py",
    ],
)
def test_a_topic_can_be_understood_again(text: str) -> None:
    question = understand(text)
    again = understand(topic(question))
    assert replace(again, what=question.what) == question
    assert again.what == question.what


# --- purity, bounds and bad input ------------------------------------------------------------------------------------------


def test_the_same_request_has_the_same_answer(tools: Toolbox) -> None:
    messages = tuple(ask(tools, [PROMPT], BIG))
    for n in range(2, len(messages) + 1):
        request = Request(messages[:n], tools.specs)
        assert read(request) == read(request)
    renamed = tuple(replace(m, id=f"x{i}") for i, m in enumerate(messages))
    assert read(Request(renamed[:2], tools.specs)) == read(Request(messages[:2], tools.specs))


def test_call_ids_are_unique_and_depend_on_the_messages(tools: Toolbox) -> None:
    messages = ask(tools, [PROMPT], "read config.json, build.log and big_service.py at once")
    messages = ask(tools, messages, "read config.json, build.log and big_service.py at once")
    ids = [c.id for m in messages for c in m.tool_calls]
    assert len(set(ids)) == len(ids) == 6
    assert all(len(i) == 13 and i.startswith("call_") and int(i[5:], 16) >= 0 for i in ids)
    other = read(Request((system("Another prompt."), user("read config.json")), tools.specs))
    assert other.tool_calls[0].id != read(Request((PROMPT, user("read config.json")), tools.specs)).tool_calls[0].id


@pytest.mark.parametrize(
    "text", [BIG, "how many lines has a.py", "what does f return for 3", "run the tests", "find x in a.py", "list the files"]
)
def test_without_tools_nothing_is_called(text: str) -> None:
    assert "offers no such tool" in without_tools(PROMPT, user(text))


def test_a_tool_that_is_not_offered_is_not_called(tools: Toolbox) -> None:
    specs = tuple(s for s in tools.specs if s.name != "edit_file")
    failing = "FAILED test_a.py::test_f - assert\n1 failed"
    run = [assistant("", ToolCall("r1", "run_tests", "{}")), tool_result("r1", failing)]
    module = "def f(v):\n    return min(v) - max(v)"
    read_both = reading("test_a.py", "from a import f", "r2") + reading("a.py", module, "r3")
    messages = (PROMPT, user("fix the bug"), *run, *read_both)
    assert read(Request(messages, tools.specs)).tool_calls[0].name == "edit_file"
    assert "`edit_file`" in read(Request(messages, specs)).content


def test_gives_up_when_a_result_does_not_help(tools: Toolbox) -> None:
    messages: list[Message] = [PROMPT, user("how many lines has a.py?")]
    for text in ("[folded]", "[folded]"):
        reply = read(Request(tuple(messages), tools.specs))
        if not reply.tool_calls:
            break
        messages += [reply, tool_result(reply.tool_calls[0].id, text)]
    assert len(calls(messages)) == 1
    assert "not in my context" in read(Request(tuple(messages), tools.specs)).content


def test_gives_up_after_a_bounded_number_of_calls(tools: Toolbox) -> None:
    """A file of which every call shows one more line: without a bound the turn would last as long as the file."""
    messages: list[Message] = [PROMPT, user("how many methods has a.py?")]
    for n in range(1, 200):
        reply = read(Request(tuple(messages), tools.specs))
        if not reply.tool_calls:
            break
        messages += [reply, tool_result(reply.tool_calls[0].id, f"{n}\tx = {n}\n[lines {n} to {n} of 900]")]
    assert len(calls(messages)) == MOST_CALLS
    assert read(Request(tuple(messages), tools.specs)).content.startswith("I stop here")


TEXT = st.text(max_size=60) | st.sampled_from(
    [BIG, FIRST, "run the tests and fix", "read a.py", "1\tx\n… (3 left out) …", "\ud800"]
)
CALLS = st.builds(
    ToolCall,
    st.sampled_from(["a", "b"]),
    st.sampled_from(["read_file", "grep", "run_tests", "edit_file"]),
    st.sampled_from(['{"path": "a.py"}', "{", '{"path": 3}', "[]", '{"pattern": "x"}']) | TEXT,
)
MESSAGES = st.lists(
    st.builds(
        lambda role, text, made, call_id: Message(
            role,
            text,
            tool_calls=tuple(made) if role == "assistant" else (),
            tool_call_id=call_id if role == "tool" else "",
        ),
        st.sampled_from(["system", "user", "assistant", "tool"]),
        TEXT,
        st.lists(CALLS, max_size=2),
        st.sampled_from(["a", "b"]),
    ),
    max_size=8,
)
SPECS = tuple(ToolSpec(name, "") for name in ("read_file", "list_files", "grep", "edit_file", "run_tests"))


@given(MESSAGES, st.sampled_from([(), SPECS]))
def test_any_request_has_an_answer(messages: list[Message], specs: tuple[ToolSpec, ...]) -> None:
    request = Request(tuple(messages), specs)
    reply = read(request)
    assert reply == read(request)
    assert bool(reply.content) != bool(reply.tool_calls)
    assert specs or not reply.tool_calls
    reply.content.encode("utf-8")


@given(TEXT, st.lists(TEXT, min_size=MOST_CALLS + 2, max_size=MOST_CALLS + 2))
def test_any_turn_ends(question: str, results: list[str]) -> None:
    messages: list[Message] = [user(question)]
    rounds = 0
    for result in results:
        reply = read(Request(tuple(messages), SPECS))
        if not reply.tool_calls:
            break
        rounds += 1
        messages += [reply, *(tool_result(c.id, result) for c in reply.tool_calls)]
    assert rounds <= MOST_CALLS < len(results) and not reply.tool_calls and reply.content


# --- excerpts and the small interpreter ------------------------------------------------------------------------------------


def test_an_excerpt_knows_what_it_does_not_show() -> None:
    gap = excerpt("a.py", "1\tone\n2\ttw\n… (99 characters left out) …\nix\n7\tseven")
    assert gap and (gap.total, gap.complete, sorted(gap.lines), sorted(gap.cut)) == (7, False, [1, 2, 7], [2])
    assert gap.first_gap == (2, 6)
    part = excerpt("a.py", "3\tthree\n4\tfour\n[lines 3 to 4 of 40]")
    assert part and (part.total, part.complete) == (40, False)
    open_end = excerpt("a.py", "1\tone\n2\ttwo\n(the rest was dropped)")
    assert open_end and open_end.total is None
    assert excerpt("a.py", "error: no file") is None


def test_two_excerpts_make_a_whole() -> None:
    first, second = excerpt("a", "1\tx\n2\ty\n[lines 1 to 2 of 3]"), excerpt("a", "3\tz\n[lines 3 to 3 of 3]")
    assert first and second and not first.complete
    assert second.over(first).complete and second.over(first).text() == "x\ny\nz"


def test_a_function_that_is_shown_in_part_has_no_source() -> None:
    whole = excerpt("a.py", "1\tdef f(x):\n2\t    return x\n3\ty = 1")
    assert whole and whole.source("f") == "def f(x):\n    return x"
    cut = excerpt("a.py", "1\tdef f(x):\n2\t    x = 1\n… (9 characters left out) …\n3\ty = 1")
    assert cut and cut.source("f") is None
    assert whole.source("g") is None


@given(st.integers(-999, 999), st.integers(-999, 999))
def test_the_interpreter_agrees_with_python(x: int, y: int) -> None:
    source = (
        "def f(self, x: int, y=0):\n    '''Doc.'''\n    self.n += 1\n    a: int = (x ^ y) * 3 - ~x\n    a += y % 7\n"
        "    if a > 0 and not x == y or -3 <= y < 0:\n        return (a << 2) // 5\n"
        "    elif y:\n        b = a / y if y else 0\n        return b\n    return a | 1\n"
    )
    scope: dict[str, object] = {}
    exec(source, scope)

    class Counts:
        n = 0

    assert evaluate(source, [x, y]).value == scope["f"](Counts(), x, y)  # type: ignore[operator]


@pytest.mark.parametrize(
    "body",
    [
        "return open('x')",
        "while x: pass",
        "return self.n",
        "return x ** 99999",
        "return x << 10**9",
        "return x / 0",
        "import os",
    ],
)
def test_the_interpreter_refuses_what_it_does_not_know(body: str) -> None:
    with pytest.raises(Unsupported):
        evaluate(f"def f(self, x):\n    {body}\n", [2])


def test_the_interpreter_says_what_it_misses() -> None:
    with pytest.raises(Unsupported, match="takes 1 value \\(x\\), not 2"):
        evaluate("def f(x):\n    return x\n", [1, 2])
    with pytest.raises(Unsupported, match="a call"):
        evaluate("def f(x):\n    return g(x)\n", [1])
