"""Public failures, group A: messages that an API refuses. The protocol, `settle` and the compactor against them.

What only shows on the wire or in a stream (A09, A10, A11, A14, and A13 as it arrives) is tested with the providers.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest
from fakes import DOWN, Scripted
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import PICTURE, TOOLS, conversations

from agentkit.compaction import Compactor, Keep
from agentkit.compaction.compactor import assemble
from agentkit.log import Compaction, Log, project
from agentkit.messages import Message, Request, ToolCall, assistant, system, tool_result, user
from agentkit.policies import SummariseMiddle
from agentkit.protocol import DIALECTS, batches, violations
from agentkit.settle import INTERRUPTED, NO_OUTPUT, NO_TEXT, settle


def call(call_id: str, name: str = "f", arguments: str = "{}") -> ToolCall:
    return ToolCall(call_id, name, arguments)


def refused(messages: tuple[Message, ...] | list[Message]) -> list[str]:
    request = Request(tuple(messages), TOOLS)
    return [f"{d}: {v.text}" for d in DIALECTS for v in violations(request, d)]


def roles(messages: tuple[Message, ...]) -> list[str]:
    return [m.tool_call_id or m.role for m in messages]


INTERRUPTED_TURN = [
    user("run both"),
    assistant("", call("c1", "sh", '{"cmd":"ls"}'), call("c2", "sh", '{"cmd":"sleep 9"}')),
    tool_result("c1", "a.py"),
    user("stop, do X"),
]


def test_a01_an_interrupted_call_gets_a_result_in_its_place() -> None:
    assert refused(INTERRUPTED_TURN) != []
    settled = settle(INTERRUPTED_TURN)
    assert roles(settled) == ["user", "assistant", "c1", "c2", "user"]
    assert settled[2] is INTERRUPTED_TURN[2]
    assert (settled[3].content, settled[3].is_error) == (INTERRUPTED, True)
    assert "interrupted" in settled[3].content
    assert settled[4].content == "stop, do X"
    assert refused(settled) == []
    assert settle(settled) == settled


def test_a01_the_same_history_can_be_compacted() -> None:
    log = Log([replace(INTERRUPTED_TURN[0], content="run both " * 60), *INTERRUPTED_TURN[1:]])
    policy = SummariseMiddle(Compactor(Scripted(), keep=Keep(1)))
    outcome = policy.compactor.compact(project(log))
    assert outcome.status == "done" and outcome.compaction
    log.compact(outcome.compaction)
    assert refused(policy.view(log)) == []
    assert policy.view(log)[-1].content == "stop, do X"


def test_a02_a_result_without_a_call_is_not_sent() -> None:
    settled = settle([user("hi"), tool_result("x9", "stale output"), user("continue")])
    assert settled == (user("hi"), user("continue"))
    assert refused(settled) == []


@settings(max_examples=200)
@given(conversations(), st.randoms(use_true_random=False), st.integers(1, 10))
def test_a02_random_deletions_leave_no_unmatched_id(messages: list[Message], chance: random.Random, times: int) -> None:
    for _ in range(min(times, len(messages) - 1)):
        messages.pop(chance.randrange(len(messages)))
    settled = settle([*messages, user("continue")])
    called = [c.id for m in settled for c in m.tool_calls]
    answered = [m.tool_call_id for m in settled if m.role == "tool"]
    assert called == answered
    assert refused(settled) == []


@pytest.mark.parametrize("arrival", list(itertools.permutations(["c1", "c2", "c3"])))
def test_a03_parallel_results_are_all_kept_and_stand_in_the_order_of_the_calls(arrival: tuple[str, ...]) -> None:
    log = Log([user("q"), assistant("", call("c1"), call("c2", "g"), call("c3", "h"))])
    for call_id in arrival:
        log.append(tool_result(call_id, f"result of {call_id}"))
    assert sum(m.role == "tool" for m in log.messages()) == 3
    settled = settle(log.messages())
    assert roles(settled) == ["user", "assistant", "c1", "c2", "c3"]
    assert [m.content for m in settled[2:]] == ["result of c1", "result of c2", "result of c3"]
    assert refused(settled) == []


def test_a04_every_call_of_a_reply_is_answered_though_only_one_was_allowed() -> None:
    reply = assistant("", call("b0", "sh", '{"c":"make"}'), call("b1", "sh", '{"c":"make test"}'))
    settled = settle([user("q"), reply, tool_result("b0", "built")])
    assert roles(settled) == ["user", "assistant", "b0", "b1"]
    assert settled[2].content == "built"
    assert settled[3].is_error and "not finished" in settled[3].content
    assert refused(settled) == []


def test_a05_a_note_before_the_result_moves_behind_it() -> None:
    settled = settle([user("q"), assistant("", call("c1")), user("note"), user("and another"), tool_result("c1", "42")])
    assert [m.content for m in settled] == ["q", "", "42", "note", "and another"]
    assert refused(settled) == []


def test_a06_extra_content_of_a_tool_stands_behind_the_whole_batch() -> None:
    history = [
        user("q"),
        assistant("", call("c1", "shot"), call("c2", "ls")),
        tool_result("c1", "ok"),
        user("[picture]", PICTURE),
        tool_result("c2", "a.py"),
    ]
    settled = settle(history)
    assert roles(settled) == ["user", "assistant", "c1", "c2", "user"]
    assert settled[4] is history[3]
    assert refused(settled) == []


@pytest.mark.parametrize("text", ["", "  \n", ""])
def test_a07_an_empty_text_beside_a_call_keeps_the_call(text: str) -> None:
    log = Log([user("q"), assistant(text, call("c1")), tool_result("c1", "ok")])
    settled = settle(log.messages())
    assert settled[1].tool_calls == (call("c1"),)
    assert refused(settled) == []


@pytest.mark.parametrize("text", ["", "  \n"])
def test_a07_a_reply_with_nothing_in_it_gets_a_visible_text_and_the_log_keeps_the_original(text: str) -> None:
    log = Log([user("q"), assistant(text), user("well?")])
    assert refused(log.messages()) != []
    settled = settle(log.messages())
    assert settled[1].content == NO_TEXT
    assert refused(settled) == []
    assert log.messages()[1].content == text


def test_a08_a_silent_command_gets_a_marker_always_the_same() -> None:
    history = [user("q"), assistant("", call("c1"), call("c2")), tool_result("c1", ""), tool_result("c2", "\n\n")]
    assert any("non-empty" in text for text in refused(history))
    settled = settle(history)
    assert roles(settled) == ["user", "assistant", "c1", "c2"]
    assert [m.content for m in settled[2:]] == [NO_OUTPUT, NO_OUTPUT]
    assert settle([*history, user("next")])[: len(settled)] == settled
    assert refused(settled) == []


FOUR = assistant("", call("", arguments='{"n":1}'), call("", arguments='{"n":2}'), call("k", "g"), call("k", "g"))


def test_a13_four_calls_with_empty_and_equal_ids_get_four_ids() -> None:
    results = [tool_result("", "one"), tool_result("", "two"), tool_result("k", "three"), tool_result("k", "four")]
    settled = settle([user("q"), FOUR, *results])
    ids = [c.id for c in settled[1].tool_calls]
    assert len(set(ids)) == 4 and all(ids)
    assert [c.arguments for c in settled[1].tool_calls] == [c.arguments for c in FOUR.tool_calls]
    # By position: the first result with an id belongs to the first call with it.
    assert [(m.tool_call_id, m.content) for m in settled[2:]] == list(zip(ids, ["one", "two", "three", "four"], strict=True))
    assert refused(settled) == []


def test_a13_the_same_reply_always_gets_the_same_ids() -> None:
    one, two = settle([user("q"), FOUR]), settle([user("q"), FOUR, tool_result("k", "x"), user("more")])
    assert one[1] == two[1]


def test_a16_what_is_executed_is_what_is_stored_and_sent() -> None:
    """A broken argument text is refused at its one reading, and travels on unchanged."""
    broken = call("c1", "read_file", '{"path":"x')
    with pytest.raises(ValueError):
        broken.parsed()
    log = Log([user("q"), assistant("", broken), tool_result("c1", "the arguments are no JSON", is_error=True)])
    assert log.messages()[1].tool_calls == settle(log.messages())[1].tool_calls == (broken,)
    assert refused(settle(log.messages())) == []


@pytest.mark.parametrize("arguments", ['{"path":"x', "[1]", "null", "NaN", "{" * 3_000, "[" * 100_000])
def test_a16_no_broken_argument_text_is_repaired_or_crashes(arguments: str) -> None:
    with pytest.raises(ValueError):
        call("c1", arguments=arguments).parsed()


def test_a17_a_system_note_between_two_questions_is_kept_in_order_without_fillers() -> None:
    settled = settle([system("A"), system("B"), user("one"), system("C"), user("two")])
    assert [m.role for m in settled] == ["system", "system", "user", "user", "user"]
    assert [m.content.rpartition("] ")[2] for m in settled] == ["A", "B", "one", "C", "two"]
    assert refused(settled) == []


def test_a17_with_strict_alternation_it_is_one_user_turn() -> None:
    wire = pytest.importorskip("agentkit.providers.openai_wire")
    profiles = pytest.importorskip("agentkit.providers.profiles")
    settled = settle([system("A"), system("B"), user("one"), system("C"), user("two")])
    first, second = wire.wire_messages(Request(settled), profiles.STRICT)
    assert (first["role"], second["role"]) == ("system", "user")
    assert first["content"].split() == ["A", "B"]
    assert [text for text in ("one", "C", "two") if second["content"].count(text) == 1] == ["one", "C", "two"]


def test_a18_the_summary_joins_the_user_message_that_follows() -> None:
    log = Log([system("sys"), user("goal"), assistant("fine"), user("next"), assistant("ok"), user("more")])
    log.compact(Compaction("SUM", "m3", placement="user"))
    messages = assemble(project(log))
    assert [m.role for m in messages] == ["system", "user", "assistant", "user"]
    assert messages[1].content.index("SUM") < messages[1].content.index("next")
    text = "\n".join(m.content for m in messages)
    assert (text.count("SUM"), text.count("next"), text.count("goal")) == (1, 1, 0)


def test_a18_before_an_assistant_message_the_summary_is_a_user_turn_of_its_own() -> None:
    log = Log([system("sys"), user("goal"), assistant("ok"), user("more")])
    log.compact(Compaction("SUM", "m2", placement="user"))
    messages = assemble(project(log))
    assert [m.role for m in messages] == ["system", "user", "assistant", "user"]
    assert "SUM" in messages[1].content and messages[2].content == "ok"


def test_a18_as_a_system_message_it_never_meets_a_user() -> None:
    log = Log([system("sys"), user("goal"), assistant("ok"), user("more")])
    log.compact(Compaction("SUM", "m3"))
    assert [m.role for m in assemble(project(log))] == ["system", "system", "user"]


def test_a19_a_failed_summary_call_leaves_no_turn_behind() -> None:
    provider = Scripted(DOWN)
    log = Log([user("go"), assistant("gone"), user("go on"), assistant("", call("c1")), tool_result("c1", "x")])
    compactor = Compactor(provider, keep=Keep(1, "messages"), boundary="pair")
    entries = tuple(log)
    assert compactor.compact(project(log)).status == "failed"
    assert len(provider.requests) == 1
    assert tuple(log) == entries
    log.append(user("next question"))
    assert [m.role for m in SummariseMiddle(compactor).view(log)][-4:] == ["user", "assistant", "tool", "user"]
    assert refused(SummariseMiddle(compactor).view(log)) == []
    assert not any(b.unanswered for b in batches(log.messages()))
