"""What the summariser is shown: plain text of everything, clipped with a note, and the prompt around it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import PICTURE, any_text, histories

from agentkit.compaction.prompts import KEEP_LIST, ONLY_OPEN_TASKS, summary_prompt
from agentkit.compaction.transcript import CLIP, clip, flatten
from agentkit.messages import Message, ToolCall, assistant, tool_result, user


@settings(max_examples=100)
@given(any_text().map(lambda t: t * 20), st.integers(1, 50))
def test_a_clipped_text_keeps_its_start_and_its_end(text: str, limit: int) -> None:
    clipped = clip(text, limit)
    if len(text) <= limit:
        assert clipped == text
        return
    head = limit * 3 // 4
    note = f"\n… ({len(text) - limit:,} characters left out) …\n"
    assert clipped == text[:head] + note + text[-(limit - head) :]


def test_the_middle_is_left_out_and_counted() -> None:
    assert (
        clip("a" * 3_000 + "b" * 96_000 + "c" * 1_000) == "a" * 3_000 + "\n… (96,000 characters left out) …\n" + "c" * 1_000
    )


def test_one_paragraph_a_message() -> None:
    messages = [
        user("Read a.py", PICTURE),
        assistant("", ToolCall("c1", "read_file", '{"path": "a.py"}'), ToolCall("c2", "sh", "")),
        tool_result("c1", "1: import os\n2: x = 1"),
        assistant("Done."),
    ]
    assert flatten(messages) == (
        "[user] Read a.py <picture image/png>\n"
        '[assistant] <call read_file({"path": "a.py"})> <call sh()>\n'
        "[tool] 1: import os\n2: x = 1\n"
        "[assistant] Done."
    )


@settings(max_examples=100)
@given(histories())
def test_nothing_short_is_missing(history: list[Message]) -> None:
    text = flatten(history)
    for message in history:
        assert message.content in text
        assert f"[{message.role}]" in text
        assert all(c.name in text and clip(c.arguments) in text for c in message.tool_calls)


@settings(max_examples=100)
@given(histories())
def test_a_picture_is_named_and_never_copied(history: list[Message]) -> None:
    pictures = sum(len(m.images) for m in history)
    assert flatten(history).count("<picture image/png>") == pictures
    assert PICTURE.data not in flatten(history)


def test_content_and_arguments_are_clipped() -> None:
    long = "x" * (CLIP + 1)
    shown = flatten([user(long), assistant("", ToolCall("c", "write_file", long))])
    assert shown.count("(1 characters left out)") == 2
    assert len(flatten([user(long)], limit=10)) < 70


def test_the_thinking_and_the_ids_are_not_shown() -> None:
    shown = flatten([replace(assistant("ok", ToolCall("call_77", "f")), reasoning="secret plan")])
    assert "secret plan" not in shown and "call_77" not in shown


@pytest.mark.parametrize("item", KEEP_LIST)
def test_every_item_of_the_list_is_asked_for_by_name(item: str) -> None:
    assert f"\n- {item}\n" in summary_prompt("t")
    assert f"\n- {item}\n" not in summary_prompt("t", [i for i in KEEP_LIST if i != item])
    assert item.partition(": ")[0] and item.partition(": ")[2]


def test_done_in_progress_and_next_are_separate_items() -> None:
    names = [item.partition(":")[0] for item in KEEP_LIST]
    assert names == ["goal", "decisions", "facts", "done", "in progress", "open tasks"]
    assert (KEEP_LIST[-1],) == ONLY_OPEN_TASKS


def test_the_earlier_summary_is_folded_in_once_and_only_if_there_is_one() -> None:
    folded = summary_prompt("T", previous="db is sqlite")
    assert folded.count("db is sqlite") == 1
    assert folded.index("db is sqlite") < folded.index("<history>\nT\n</history>")
    assert "earlier" not in summary_prompt("T").replace("<history>", "")
