"""`settle`: any history becomes acceptable, a well-formed one is left alone, and the same bytes come out every time."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import PICTURE, TOOLS, any_id, any_text, conversations, histories

from agentkit.messages import Message, Opaque, Request, ToolCall, assistant, system, tool_result, user
from agentkit.protocol import DIALECTS, ID_PATTERN, violations
from agentkit.settle import INTERRUPTED, NO_OUTPUT, NO_TEXT, settle, wire_id

many = settings(max_examples=100)


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id, "f")


def refused(messages: tuple[Message, ...]) -> list[str]:
    request = Request(messages, TOOLS)
    return [f"{d}: {v.text}" for d in DIALECTS for v in violations(request, d)]


@many
@given(histories())
def test_every_api_takes_a_settled_history(history: list[Message]) -> None:
    assert refused(settle([*history, user("go on")])) == []


@many
@given(histories())
def test_also_when_the_question_is_added_afterwards(history: list[Message]) -> None:
    assert refused((*settle(history), user("go on"))) == []


@many
@given(histories())
def test_settling_twice_changes_nothing(history: list[Message]) -> None:
    once = settle(history)
    assert settle(once) == once


@many
@given(histories())
def test_the_same_history_gives_the_same_messages(history: list[Message]) -> None:
    before = list(history)
    copy = [replace(m) for m in history]
    assert settle(history) == settle(copy)
    assert history == before


@many
@given(conversations())
def test_a_well_formed_history_is_left_alone(conversation: list[Message]) -> None:
    running = conversation if conversation[-1].role != "assistant" else conversation[:-1]
    settled = settle(running)
    assert list(settled) == running
    assert all(a is b for a, b in zip(settled, running, strict=True))


@many
@given(histories(), any_text(), st.booleans())
def test_what_was_sent_stays_the_prefix_of_what_is_sent_next(history: list[Message], text: str, asks: bool) -> None:
    """Otherwise nothing would ever be read from a cache. (A result may still join its call, that is what it is for.)"""
    settled = settle(history)
    longer = settle([*history, user(text) if asks else assistant(text, call("c1"))])
    assert longer[: len(settled)] == settled


@many
@given(histories())
def test_what_people_and_models_said_is_kept_in_order(history: list[Message]) -> None:
    def said(messages: tuple[Message, ...] | list[Message], role: str) -> list[str]:
        return [m.content for m in messages if m.role == role and m.content.strip()]

    settled = settle(history)
    # An empty message gets a text; that is the only one that is new. A system note becomes a user message.
    assert [t for t in said(settled, "assistant") if t != NO_TEXT] == [t for t in said(history, "assistant") if t != NO_TEXT]
    assert set(said(history, "user")) <= set(said(settled, "user"))
    assert all(any(text in m.content for m in settled) for text in said(history, "system"))


@many
@given(histories())
def test_calls_keep_their_name_and_arguments(history: list[Message]) -> None:
    def calls(messages: tuple[Message, ...] | list[Message]) -> list[tuple[str, str]]:
        return [(c.name, c.arguments) for m in messages if m.role == "assistant" for c in m.tool_calls]

    assert calls(settle(history)) == calls(history)


@many
@given(conversations(), st.randoms(use_true_random=False), st.integers(0, 8))
def test_deleting_any_messages_never_breaks_the_pairing(
    conversation: list[Message], chance: random.Random, times: int
) -> None:
    for _ in range(min(times, len(conversation))):
        conversation.pop(chance.randrange(len(conversation)))
    assert refused(settle([*conversation, user("go on")])) == []


# ---------------------------------------------------------------------------------------------------------- one by one


def test_a_result_moves_behind_its_call_and_before_what_came_between() -> None:
    settled = settle([user("q"), assistant("", call("a")), user("wait"), tool_result("a", "1"), assistant("ok")])
    assert [m.content for m in settled] == ["q", "", "1", "wait", "ok"]


def test_a_result_that_comes_after_the_next_answer_is_dropped() -> None:
    """Its place is taken: the API saw "interrupted" there, and a changed message would cost the whole prefix."""
    settled = settle([user("q"), assistant("", call("a")), assistant("moving on"), tool_result("a", "late"), user("r")])
    assert [m.content for m in settled] == ["q", "", INTERRUPTED, "moving on", "r"]
    assert settled[2].is_error


def test_a_second_result_is_dropped() -> None:
    settled = settle([user("q"), assistant("", call("a")), tool_result("a", "1"), tool_result("a", "2")])
    assert [m.content for m in settled] == ["q", "", "1"]


def test_a_system_note_in_the_middle_becomes_a_labelled_user_message() -> None:
    settled = settle([system("rules"), system(""), user("q"), system("note"), user("r")])
    roles = [(m.role, m.content) for m in settled]
    assert roles == [
        ("system", "rules"),
        ("system", NO_TEXT),
        ("user", "q"),
        ("user", "[system note] note"),
        ("user", "r"),
    ]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (user(" "), NO_TEXT),
        (assistant(""), NO_TEXT),
        (replace(assistant(), opaque=(Opaque("somebody", 1),)), NO_TEXT),
        (replace(assistant(), reasoning="hm"), NO_TEXT),
        (user("", PICTURE), ""),
        (assistant(" x "), " x "),
    ],
)
def test_only_a_message_that_says_nothing_gets_a_text(message: Message, text: str) -> None:
    assert settle([message]) == (replace(message, content=text),)


def test_a_result_that_is_a_picture_needs_no_text() -> None:
    picture = replace(tool_result("a", ""), images=(PICTURE,))
    assert settle([assistant("", call("a")), picture])[1] is picture


def test_reasoning_and_opaque_data_are_never_touched() -> None:
    thinking = replace(assistant("", call("b b")), reasoning="r-1", opaque=(Opaque("somebody", {"x": 1}),))
    settled = settle([user("q"), thinking, tool_result("b b", "")])
    assert (settled[1].reasoning, settled[1].opaque) == (thinking.reasoning, thinking.opaque)
    assert settled[2].content == NO_OUTPUT


def test_calls_on_a_role_that_cannot_call_are_taken_off() -> None:
    assert settle([replace(user("q"), tool_calls=(call("a"),))]) == (user("q"),)


@pytest.mark.parametrize("call_id", ["call_0", "z" * 64, "two words"])
def test_a_server_that_uses_one_id_for_ever_costs_no_quadratic_time(call_id: str) -> None:
    rounds = [m for n in range(5_000) for m in (assistant("", call(call_id)), tool_result(call_id, str(n)))]
    start = time.perf_counter()
    settled = settle([user("q"), *rounds])
    assert time.perf_counter() - start < 2
    ids = [c.id for m in settled for c in m.tool_calls]
    assert len(set(ids)) == 5_000
    assert all(ID_PATTERN.fullmatch(i) for i in ids)
    assert [m.tool_call_id for m in settled if m.role == "tool"] == ids
    assert [m.content for m in settled if m.role == "tool"] == [str(n) for n in range(5_000)]


@many
@given(any_id())
def test_a_stand_in_depends_on_the_id_alone_and_fits(call_id: str) -> None:
    short = wire_id(call_id, "[A-Za-z0-9]{9}")
    assert len(short) == 9 and short.isalnum() and short.isascii()
    assert wire_id(call_id, "[A-Za-z0-9]{9}") == short
    assert ID_PATTERN.fullmatch(wire_id(call_id))
    if ID_PATTERN.fullmatch(call_id):
        assert wire_id(call_id) == call_id
