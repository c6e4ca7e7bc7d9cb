"""The summariser writes what the list asks for, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from conversation import PROMPT, ask, box, calls, reading, remembering, summarised
from hypothesis import given
from hypothesis import strategies as st

from agentkit.compaction import KEEP_LIST, flatten, summary_prompt
from agentkit.compaction.prompts import ONLY_OPEN_TASKS
from agentkit.messages import Message, Request, ToolCall, ToolSpec, assistant, tool_result, user
from agentkit.simulator.reader import read
from agentkit.simulator.summariser import LONGEST, MOST_LINES, is_summary_call, messages_of
from agentkit.tokens import PerScript
from agentkit.tools import Toolbox

BIG = "Read the big file and say how many methods it has."
FIRST = "What was the very first question I asked you?"
FAILED = "FAILED tests/test_a.py::test_f - assert 1 == 2\n1 failed, 3 passed"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Toolbox:
    return box(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def six(tools: Toolbox) -> list[Message]:
    """The six messages that the course's conversation compacts: question, two calls with results, answer."""
    messages = ask(tools, [PROMPT], BIG)[1:]
    assert len(messages) == 6
    return messages


def turn(question: str, answer: str) -> list[Message]:
    return [user(question), assistant(answer)]


def ran_tests(result: str, call_id: str = "t1") -> list[Message]:
    return [assistant("", ToolCall(call_id, "run_tests", "{}")), tool_result(call_id, result)]


def names(summary: str) -> set[str]:
    return {line.partition(":")[0] for line in summary.split("\n")}


# --- the whole list --------------------------------------------------------------------------------------------------------


def test_the_summary_of_the_course_conversation(six: list[Message]) -> None:
    summary = summarised(six)
    assert summary.split("\n") == [
        "goal: count the methods of big_service.py",
        "facts: big_service.py (285 lines)",
        "facts: classes of big_service.py: BigService and perhaps others",
        "facts: methods of big_service.py: compute1 … compute40 (40 methods)",
        "done: listed the files",
        "done: read big_service.py",
        "done: counted the methods of big_service.py: 40",
    ]
    estimator = PerScript()
    assert 60 <= estimator.text(summary) <= 200
    assert estimator.text(summary) < estimator.messages(six) / 10
    assert BIG not in summary


def test_a_summary_serves_a_second_agent(tools: Toolbox, six: list[Message]) -> None:
    """End to end: what the list kept is known without a call, what it left out has to be fetched."""
    kept = remembering(summarised(six))
    assert calls(ask(tools, kept, "How many methods has it?")) == []
    assert calls(ask(tools, kept, "What does compute7 return for 3?")) == ["read_file big_service.py"]
    assert "counting the methods of big_service.py" in ask(tools, kept, FIRST)[-1].content
    bare = remembering(summarised(six, ONLY_OPEN_TASKS))
    assert calls(ask(tools, bare, "How many methods has the big file?")) == [
        "list_files **/*big*",
        "read_file big_service.py",
    ]
    assert ask(tools, bare, "How many methods has it?")[-1].content == "Which file? Nothing in my context names one."
    assert ask(tools, bare, FIRST)[-1].content.endswith("not your wording.")


# --- item by item ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left_out", KEEP_LIST)
def test_an_item_that_is_not_on_the_list_is_not_in_the_summary(six: list[Message], left_out: str) -> None:
    history = [*six, *turn("We decided to use pytest.", "Noted."), user("how many lines has a.py?")]
    item = left_out.partition(":")[0]
    assert item in names(summarised(history))
    shorter = summarised(history, [i for i in KEEP_LIST if i != left_out])
    assert names(shorter) == names(summarised(history)) - {item}


def test_without_file_names_on_the_list_no_file_is_named(six: list[Message]) -> None:
    items = ["goal: what the user wants", "facts: functions, line numbers, results", "done: what was carried out"]
    summary = summarised([*six, user("how many lines has a.py?")], items)
    assert ".py" not in summary
    assert "goal: count the methods of a file" in summary and "facts: a file (285 lines)" in summary


def test_a_part_of_an_item_can_be_left_out(six: list[Message]) -> None:
    assert summarised(six, ["facts: file names"]) == "facts: big_service.py"
    assert "compute" not in summarised(six, ["facts: file names, line numbers"])
    assert "BigService" not in summarised(six, ["facts: file names, methods"])
    assert "compute1 … compute40 (40 methods)" in summarised(six, ["facts"])


def test_nothing_to_keep_is_said(six: list[Message]) -> None:
    assert summarised(six, ONLY_OPEN_TASKS) == "open tasks: (nothing to keep)"
    assert summarised([], KEEP_LIST) == "goal: (nothing to keep)"
    assert summarised(six, []) == "summary: (nothing to keep)"


def test_wording_is_kept_only_when_asked_for(six: list[Message]) -> None:
    item = "the user's messages, word for word"
    assert summarised(six, [item]) == f"{item}: “{BIG}”"
    assert BIG not in summarised(six, KEEP_LIST)
    assert f"“{BIG}”" in read(Request((*remembering(summarised(six, [item])), user(FIRST)))).content


def test_decisions_are_sentences_that_lay_something_down() -> None:
    history = turn("It rains. We use pytest instead of unittest. Must we hurry?", "Noted. I never touch config.json.")
    summary = summarised(history, ["decisions: what was decided"])
    assert summary.split("\n") == [
        "decisions: We use pytest instead of unittest.",
        "decisions: I never touch config.json.".replace("config.json", "a file"),
    ]


def test_what_the_user_wants_remembered_is_kept_literally() -> None:
    history = turn("Remember: the key of notes.txt is under the mat", "Noted.")
    for item in ("remember: what I said", "facts: results"):
        summary = summarised(history, [item])
        assert summary == f"{item.partition(':')[0]}: user's note “the key of notes.txt is under the mat”"
        asked = Request((*remembering(summary), user("What did I ask you to remember?")))
        assert "under the mat" in read(asked).content
    assert "mat" not in summarised(history, ["goal: what the user wants"])


def test_results_are_short(tools: Toolbox, six: list[Message]) -> None:
    more = ask(tools, [PROMPT, *six], "What does compute7 return for 3?")
    more = ask(tools, more, "Where is the error in build.log?")
    summary = summarised(more[1:], ["facts: results"])
    assert summary.split("\n") == [
        "facts: compute7(3) = 91",
        "facts: 1 match of “error” in a file: line 3: ERROR zone has no rate",
    ]


def test_error_lines_are_kept_when_asked_for() -> None:
    history = [user("read build.log"), *reading("build.log", "INFO a\nERROR zone is gone\nINFO b"), assistant("Done.")]
    assert summarised(history, ["facts: file names, error messages"]) == (
        "facts: build.log\nfacts: build.log:2: ERROR zone is gone"
    )
    assert "zone" not in summarised(history, ["facts: file names"])


def test_the_error_of_an_older_test_run_is_not_kept() -> None:
    history = [
        user("fix the bug"),
        *ran_tests(f"E   KeyError: 'x'\n{FAILED}"),
        *ran_tests("4 passed", "t2"),
        assistant("Fixed."),
    ]
    assert summarised(history, ["facts: errors", "done", "open tasks"]) == "done: tests run: 4 passed"


# --- what is done and what is open -----------------------------------------------------------------------------------------


def test_a_question_without_an_answer_is_in_progress_and_open(six: list[Message]) -> None:
    summary = summarised(six[:3], ["in progress", "open tasks", "done"])
    assert summary.split("\n") == [
        "in progress: count the methods of the big file",
        "open tasks: count the methods of the big file",
        "done: listed the files",
    ]


def test_failing_tests_are_open_until_they_pass() -> None:
    failing = [user("run the tests"), *ran_tests(FAILED), assistant("One fails.")]
    summary = summarised(failing, ["done", "open tasks"])
    assert summary == "done: tests run: 1 failed, 3 passed\nopen tasks: fix the failing tests (1 failed, 3 passed)"
    edit = ToolCall("e1", "edit_file", json.dumps({"path": "a.py", "old": "1", "new": "2"}))
    fixed = [user("fix it"), assistant("", edit), tool_result("e1", "edited a.py at line 1"), *ran_tests("4 passed", "t2")]
    later = summarised([*fixed, assistant("Fixed.")], ["done: actions and files", "open tasks"], summary)
    assert later == "done: edited a.py\ndone: tests run: 4 passed"


def test_an_edited_file_loses_the_count_of_its_lines() -> None:
    edit = ToolCall("e1", "edit_file", '{"path": "a.py", "old": "1", "new": "2"}')
    history = [user("go"), *reading("a.py", "x = 1\ny = 2"), assistant("", edit), tool_result("e1", "edited a.py at line 1")]
    assert "a.py (2 lines)" in summarised(history[:3], ["facts"])
    assert "2 lines" not in summarised(history, ["facts"])
    assert "2 lines" not in summarised(history[3:], ["facts"], "facts: a.py (2 lines)")


# --- folding in an earlier summary ----------------------------------------------------------


def test_the_earlier_summary_is_folded_in_under_the_same_items(six: list[Message]) -> None:
    earlier = "goal: read config.json\nfacts: config.json (4 lines)\nopen tasks: ask about the rate\nmood: good"
    summary = summarised(six, KEEP_LIST, earlier)
    assert summary.startswith("goal: read config.json\ngoal: count the methods of big_service.py\n")
    assert "facts: config.json (4 lines)" in summary
    assert "open tasks: ask about the rate" in summary
    assert "mood" not in summary and "earlier" not in summary


def test_folding_repeats_nothing(six: list[Message]) -> None:
    once = summarised(six)
    twice = summarised(six, KEEP_LIST, once)
    assert sorted(twice.split("\n")) == sorted(once.split("\n"))
    assert summarised(turn("hello", "Hello."), KEEP_LIST, once) == once
    assert summarised(six, KEEP_LIST, "goal: (nothing to keep)") == once


def test_a_newer_fact_replaces_the_older_one_but_a_part_does_not_replace_the_whole(six: list[Message]) -> None:
    newer = summarised([user("go"), *reading("a.py", "x\ny\nz")], ["facts"], "facts: a.py (2 lines)")
    assert newer == "facts: a.py (3 lines)"
    read_again = [user("read it again"), *six[3:5], assistant("Read.")]
    assert "compute1 … compute40 (40 methods)" in summarised(read_again, KEEP_LIST, summarised(six))


def test_an_answer_closes_what_the_earlier_summary_had_open(six: list[Message]) -> None:
    earlier = summarised(six[:3])
    assert "open tasks: count the methods of the big file" in earlier
    closed = summarised(six[3:], KEEP_LIST, earlier)
    assert "in progress" not in closed and "open tasks" not in closed
    assert "goal: count the methods of the big file" in closed
    still = summarised(six[3:5], KEEP_LIST, earlier)
    assert "open tasks: count the methods of the big file" in still


def test_a_long_conversation_has_a_short_summary() -> None:
    history: list[Message] = []
    for n in range(200):
        history += [*turn(f"We always use tool {n}. " + "very " * 100, "Noted."), user(f"read f{n}.py")]
        history += [*reading(f"f{n}.py", "x", f"c{n}"), assistant("Read.")]
    summary, once = "", ""
    for start in range(0, len(history), 50):
        summary = summarised(history[start : start + 50], KEEP_LIST, summary)
        once = once or summary
    lines = summary.split("\n")
    assert all(len(line) <= LONGEST + len("decisions: ") for line in lines)
    counts = [sum(line.startswith(f"{name}:") for line in lines) for name in names(summary)]
    assert max(counts) <= MOST_LINES + 2
    assert "goal: read f0.py" in lines and "goal: read f199.py" in lines


# --- what is a summary call, and what it reads ----------------------------------------------------------


def test_only_a_prompt_with_list_and_history_and_no_tools_is_a_summary_call() -> None:
    prompt = user(summary_prompt("[user] hi"))
    assert is_summary_call(Request((prompt,)))
    assert not is_summary_call(Request((prompt,), (ToolSpec("read_file", ""),)))
    assert not is_summary_call(Request((user("Keep:\n- goal"),)))
    assert not is_summary_call(Request((prompt, assistant("goal: x"))))
    assert not is_summary_call(Request(()))


def test_a_transcript_turns_back_into_messages(six: list[Message]) -> None:
    tricky = [*six, assistant("I call:", ToolCall("x", "grep", '{"pattern": "f(a)>"}'), ToolCall("y", "run_tests", "{}"))]
    back = messages_of(flatten([*tricky, tool_result("x", "a.py:1:f(a)>"), tool_result("y", "1 passed")], 10**6))
    assert [(m.role, m.content) for m in back[:-2]] == [(m.role, m.content) for m in tricky]
    assert [[(c.name, c.arguments) for c in m.tool_calls] for m in back[: len(tricky)]] == [
        [(c.name, c.arguments) for c in m.tool_calls] for m in tricky
    ]
    assert [m.tool_call_id for m in back[-2:]] == [c.id for c in back[-3].tool_calls]


def test_the_middle_of_a_clipped_file_is_not_made_up(six: list[Message]) -> None:
    without_answer = six[:5]
    summary = summarised(without_answer, ["facts: methods, file names, line numbers"], clip=1_000)
    assert "big_service.py (285 lines)" in summary
    assert "and perhaps others" in summary and "(40 methods)" not in summary
    assert "compute40" in summary and "compute20" not in summary


ITEMS = st.lists(
    st.sampled_from([*KEEP_LIST, "facts", "wording", "x", "remember: all", ":", "files"]) | st.text(max_size=20), max_size=6
)
TRANSCRIPT = st.lists(
    st.sampled_from(
        ["[user] how many lines has a.py?", '[assistant] <call read_file({"path": "a.py"})>', "[tool] 1\tx", "[tool]"]
    )
    | st.text(max_size=40),
    max_size=8,
).map("\n".join)


@given(TRANSCRIPT, ITEMS, st.text(max_size=60) | st.just("facts: a.py (2 lines)\nwording: “x”"))
def test_any_history_has_a_summary(transcript: str, items: Sequence[str], previous: str) -> None:
    request = Request((user(summary_prompt(transcript, items, previous)),))
    reply = read(request)
    assert reply == read(request)
    assert reply.content.strip() and not reply.tool_calls
