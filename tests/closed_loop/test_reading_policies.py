"""The simulated model takes what a policy puts into the request for what it is, and uses the tools that come with it."""

from __future__ import annotations

from agentkit.compaction.prompts import KEEP_LIST, summary_prompt
from agentkit.messages import Message, Request, ToolCall, ToolSpec, assistant, system, tool_result, user
from agentkit.policies import aider, autogpt_summary, codex, goose_as_told, memgpt, notes_file
from agentkit.policies.receipt import OPENING, RECALL, SAID
from agentkit.simulator import fetching, framing
from agentkit.simulator.knowledge import Knowledge
from agentkit.simulator.reader import read

QUESTION = "What is the most that a member may hire?"
NOTHING = "I find no answer to that"
SUMMARY = "goal: list the files\nfacts: user's note “the export waits”"


def ask(*messages: Message, tools: tuple[str, ...] = ()) -> Message:
    return read(Request((system("be brief"), *messages), tuple(ToolSpec(name, "") for name in tools)))


def test_every_frame_that_a_policy_writes_is_known() -> None:
    """Taken from the policies themselves: a frame that is worded anew there must be worded anew here."""
    frames = [
        user(f"{codex.PREFIX}\n\n{SUMMARY}"),
        system(autogpt_summary.REMINDER + SUMMARY),
        assistant(goose_as_told.PREFIX + SUMMARY),
    ]
    for frame in frames:
        known = Knowledge([frame, user(QUESTION)])
        assert known.summary == SUMMARY and known.task == QUESTION and known.notes == ["the export waits"]
    cleared = Knowledge([user(notes_file.CLEARED.format(lines="3 lines")), user(QUESTION)])
    assert cleared.has_summary and not cleared.summary and cleared.task == QUESTION
    for notice in (memgpt.PRESSURE, aider.PREFIX + "a.py:\n⋮\n│def f():"):
        assert Knowledge([user(QUESTION), user(notice)]).task == QUESTION
    assert fetching._RECEIPT == OPENING and f"{fetching.SAID}:" == SAID


def test_neighbours_that_an_api_has_merged_are_parted_again() -> None:
    merged = user(f"first\n\nsecond\n\n{codex.PREFIX}\n\n{SUMMARY}\n\n{QUESTION}")
    known = Knowledge([merged])
    assert [text for _, text in known.asked] == ["first", "second", QUESTION] and known.summary == SUMMARY
    long = user("one paragraph\n\nand another")
    assert framing.separate([long]) == (long,)


def test_a_summary_call_behind_the_prefix_reads_the_conversation_above() -> None:
    prompt = user(summary_prompt("(the conversation above)", KEEP_LIST))
    talk = (user("Remember that the export waits."), assistant("Noted."), user("List the files."))
    text = ask(*talk, prompt, tools=("list_files",)).content
    assert "facts: user's note “the export waits.”" in text and "open tasks: list the files" in text
    assert ask(*talk[:2], user(f"List the files.\n\n{prompt.content}"), tools=("list_files",)).content == text


def test_what_is_to_be_remembered_is_saved_where_there_is_a_tool() -> None:
    told = user("Remember that the export waits.")
    assert not ask(told).tool_calls and ask(told).content == "Noted."
    for tool in ("remember", "add_note"):
        answer = ask(told, tools=(tool,))
        (call,) = answer.tool_calls
        assert (call.name, call.parsed()) == (tool, {"text": "the export waits."})
        assert ask(told, answer, tool_result(call.id, "saved"), tools=(tool,)).content == "Noted."
    assert (
        "the export waits"
        in ask(system("Saved facts:\n- the export waits"), user("What did I ask you to remember?")).content
    )


RECEIPT = (
    f"{OPENING} 4 messages, 90 tokens, left out; recall(id) gives one back.]\n{SAID} m1 “A member may hire at the most …”"
)


def summarised(text: str) -> Message:
    return system(f"[Summary of the earlier conversation. Its wording is gone.]\n\n{text}")


def test_what_a_receipt_names_is_called_back_and_told() -> None:
    view = (summarised(f"goal: list the files\n\n{RECEIPT}"), user(QUESTION))
    (call,) = ask(*view, tools=(RECALL,)).tool_calls
    assert (call.name, call.parsed()) == (RECALL, {"id": "m1"})
    back = tool_result(call.id, "[user m1]\nA member may hire at the most 7 bicycles.")
    assert "7 bicycles" in ask(*view, assistant("", call), back, tools=(RECALL,)).content
    assert "7 bicycles" not in ask(*view).content and not ask(*view).tool_calls
    other = (view[0], user("Who paints the fence?"))
    assert not ask(*other, tools=(RECALL,)).tool_calls and NOTHING in ask(*other, tools=(RECALL,)).content


def test_the_first_question_is_called_back_word_for_word() -> None:
    view = (summarised(RECEIPT), user("What was the very first question I asked you?"))
    (call,) = ask(*view, tools=(RECALL,)).tool_calls
    back = tool_result(call.id, "[user m1]\nA member may hire at the most 7 bicycles.")
    assert "“A member may hire at the most 7 bicycles.”" in ask(*view, assistant("", call), back, tools=(RECALL,)).content


def test_a_search_and_the_notes_are_asked_once() -> None:
    view = (summarised("goal: list the files"), user(QUESTION))
    (call,) = ask(*view, tools=("search_conversation",)).tool_calls
    assert call.name == "search_conversation" and "member" in call.parsed()["query"]
    found = tool_result(call.id, "1 found, page 1 of 1\n\n[user] A member may hire 7 bicycles at the most.")
    assert "7 bicycles" in ask(*view, assistant("", call), found, tools=("search_conversation",)).content
    nothing = tool_result(call.id, "no earlier message has these words")
    assert NOTHING in ask(*view, assistant("", call), nothing, tools=("search_conversation",)).content
    notes = (user(notes_file.CLEARED.format(lines="1 line")), user(QUESTION))
    assert ask(*notes, tools=("read_notes",)).tool_calls[0].name == "read_notes"
    assert not ask(user(QUESTION), tools=("read_notes", "search_conversation")).tool_calls


def test_that_there_was_a_question_is_no_answer_to_it() -> None:
    view = summarised("goal: a question about member, hire, most")
    assert NOTHING in ask(view, user(QUESTION)).content


def test_the_newest_call_of_this_turn_counts() -> None:
    call = ToolCall("c", RECALL, '{"id": "m1"}')
    before = (user("old"), assistant("", call), tool_result("c", "[user m1]\nold words"), assistant("done"))
    assert fetching.fetched(_work(*before, user(QUESTION))) == []


def _work(*messages: Message) -> fetching.Work:
    return fetching.Work(Knowledge(messages), frozenset({RECALL}))
