"""Every rule has a request that breaks it and nothing else, and one that almost does and is fine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from strategies import PICTURE, TOOLS, conversations, histories

from agentkit import protocol
from agentkit.messages import Message, Opaque, Request, ToolCall, assistant, system, tool_result, user
from agentkit.protocol import DIALECTS, RULES, Dialect, batches, says_nothing, violations


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id, "read_file")


def ask(*messages: Message) -> Request:
    return Request(messages, TOOLS)


A, B = call("a"), call("b")
LONG = "x" * 64

BAD: dict[str, tuple[Request, int]] = {
    "at least one message": (ask(system("only rules")), 0),
    "every call answered": (ask(user("q"), assistant("", A, B), tool_result("a", "1"), user("stop")), 1),
    "no orphan result": (ask(user("q"), tool_result("x9", "stale"), user("go on")), 1),
    "one result each": (ask(user("q"), assistant("", A), tool_result("a", "1"), tool_result("a", "2")), 3),
    "unique ids": (ask(user("q"), assistant("", A), tool_result("a", "1"), assistant("", A), tool_result("a", "2")), 3),
    "ids not empty": (ask(user("q"), assistant("", call("")), tool_result("", "1")), 1),
    "id alphabet": (ask(user("q"), assistant("", call("a b")), tool_result("a b", "1")), 1),
    "no empty text": (ask(user("q"), assistant("a"), user(" \n")), 2),
    "assistant says something": (ask(user("q"), assistant(" "), user("well?")), 1),
    "system comes first": (ask(user("q"), system("note"), user("r")), 1),
    "no prefill": (ask(user("q"), assistant("The answer is")), 1),
    "tools defined": (replace(ask(user("q"), assistant("", A), tool_result("a", "1")), tools=()), 1),
}
"""Rule → (the smallest request that breaks it, where)."""

GOOD: dict[str, Request] = {
    "at least one message": ask(system("rules"), user("q")),
    "every call answered": ask(user("q"), assistant("", A, B), tool_result("b", "2"), tool_result("a", "1"), user("stop")),
    "no orphan result": ask(user("q"), assistant("", call("x9")), tool_result("x9", "fresh"), user("go on")),
    "one result each": ask(user("q"), assistant("", A, B), tool_result("a", "1"), tool_result("b", "1")),
    "unique ids": ask(user("q"), assistant("", A), tool_result("a", "1"), assistant("", B), tool_result("b", "2")),
    "ids not empty": ask(user("q"), assistant("", call("0")), tool_result("0", "1")),
    "id alphabet": ask(user("q"), assistant("", call(LONG)), tool_result(LONG, "1")),
    "no empty text": ask(user("q"), assistant("", A), tool_result("a", "1"), user("", PICTURE)),
    "assistant says something": ask(user("q"), assistant("", A), tool_result("a", "1"), user("well?")),
    "system comes first": ask(system("one"), system("two"), user("q")),
    "no prefill": ask(user("q"), assistant("The answer is"), user("go on")),
    "tools defined": replace(ask(user("q"), assistant("no calls"), user("r")), tools=()),
}
"""Rule → a request close to the bad one that every API takes."""

HELD = [(rule.name, dialect) for rule in RULES for dialect in DIALECTS if dialect in rule.answers]


def broken(request: Request, dialect: Dialect) -> set[str]:
    return {v.rule for v in violations(request, dialect)}


def test_no_rule_is_untested() -> None:
    names = [rule.name for rule in RULES]
    assert sorted(BAD) == sorted(GOOD) == sorted(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("name", "dialect"), HELD)
def test_the_bad_example_breaks_exactly_its_rule(name: str, dialect: Dialect) -> None:
    request, index = BAD[name]
    assert [(v.index, v.rule, v.dialect) for v in violations(request, dialect)] == [(index, name, dialect)]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", GOOD)
def test_the_good_example_breaks_none(name: str, dialect: Dialect) -> None:
    assert violations(GOOD[name], dialect) == ()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_without_its_rule_the_bad_example_would_pass(rule: protocol.Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "RULES", tuple(r for r in RULES if r is not rule))
    assert all(not violations(BAD[rule.name][0], dialect) for dialect in rule.answers)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_an_api_without_the_rule_does_not_complain_of_it(rule: protocol.Rule) -> None:
    for dialect in set(DIALECTS) - set(rule.answers):
        assert rule.name not in broken(BAD[rule.name][0], dialect)


@pytest.mark.parametrize(("name", "dialect"), HELD)
def test_the_sentence_is_filled_in(name: str, dialect: Dialect) -> None:
    (found,) = violations(BAD[name][0], dialect)
    assert "{" not in found.text
    assert "\n" not in found.text
    if dialect == "anthropic" and name != "at least one message":
        assert f"messages.{found.index}:" in found.text


def test_the_sentence_names_the_ids() -> None:
    (found,) = violations(BAD["every call answered"][0], "openai")
    assert found.text.endswith("did not have response messages: b")


def test_braces_in_an_id_do_no_harm() -> None:
    request = ask(user("q"), tool_result("{detail}{i}{0}", "x"), user("r"))
    assert violations(request, "anthropic")[0].text.endswith("{detail}{i}{0}")


def test_violations_come_in_the_order_of_the_messages() -> None:
    request = ask(assistant(" "), tool_result("x", ""), user(" "), assistant("pre"))
    indices = [v.index for v in violations(request, "anthropic")]
    assert indices == sorted(indices)
    assert set(indices) == {0, 1, 2, 3}


def test_an_unknown_dialect_is_named() -> None:
    with pytest.raises(ValueError, match="unknown dialect 'gemini'; there are openai, deepseek, anthropic"):
        violations(ask(user("q")), "gemini")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("message", "nothing"),
    [
        (assistant(" \n"), True),
        (assistant("x"), False),
        (assistant("", A), False),
        (Message("assistant", opaque=(Opaque("somebody", 1),)), True),
        (Message("assistant", images=(PICTURE,)), True),
        (Message("assistant", reasoning="hm"), True),
        (user("", PICTURE), False),
        (user(""), True),
        (tool_result("a", "\n"), True),
        (system(""), True),
    ],
)
def test_who_says_nothing(message: Message, nothing: bool) -> None:
    assert says_nothing(message) is nothing


def test_a_batch_is_a_call_with_its_results() -> None:
    messages = [
        user("q"),
        assistant("", A, B),
        tool_result("b", "2"),
        user("stop"),
        tool_result("a", "late"),
        assistant("", A),
    ]
    first, second = batches(messages)
    assert (first.start, first.stop, first.calls, first.results, first.unanswered) == (1, 3, ("a", "b"), ("b",), ("a",))
    assert (second.start, second.stop, second.results, second.unanswered) == (5, 6, (), ("a",))


@settings(max_examples=200)
@given(histories())
def test_batches_lie_one_behind_the_other(history: list[Message]) -> None:
    found = list(batches(history))
    assert [b.start for b in found] == [i for i, m in enumerate(history) if m.tool_calls]
    for batch in found:
        assert all(m.role == "tool" for m in history[batch.start + 1 : batch.stop])
        assert batch.stop == len(history) or history[batch.stop].role != "tool"


@settings(max_examples=200)
@given(conversations())
def test_a_well_formed_history_breaks_no_rule(conversation: list[Message]) -> None:
    request = Request((*conversation, user("go on")), TOOLS)
    assert all(not violations(request, dialect) for dialect in DIALECTS)
