"""The estimators: what is counted, what a longer text may never do, and that a megabyte takes no time."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import PICTURE, TOOLS, any_text, histories

from agentkit.messages import Image, Message, Request, ToolCall, ToolSpec, Usage, assistant, system, tool_result, user
from agentkit.tokens import IMAGE_TOKENS, CharsPerFour, PerScript, TextEstimator, relative_error

ESTIMATORS = [CharsPerFour(), PerScript()]
both = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.name)

PIECES = [
    "0a" * 50,
    "0aF" * 30,
    "QUJD" * 25,
    "Zm9v1" * 20,
    "a" * 79,
    "1" * 79,
    "z",
    " ",
    "/",
    "测试",
    "🔥",
    "Z9",
    "\n",
    "f" * 85,
]
pieces = st.lists(st.sampled_from(PIECES), max_size=5).map("".join) | any_text()


@both
@settings(max_examples=300)
@given(one=pieces, two=pieces)
def test_more_text_never_needs_fewer_tokens(estimator: TextEstimator, one: str, two: str) -> None:
    assert estimator.text(one + two) >= max(estimator.text(one), estimator.text(two))


@both
def test_no_text_needs_no_tokens(estimator: TextEstimator) -> None:
    assert estimator.text("") == 0


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a" * 10, 3),
        ("测" * 10, 6),
        ("한국어", 2),
        ("🔥" * 10, 10),
        ("𠀀𠀁", 2),
        ("测a🔥", 2),
        ("a" * 79 + " " + "b" * 79, 48),
        ("0a" * 50, 60),
        ("xY3" * 40, 96),
        ("x" * 200, 60),
        ("some-long-name-" * 8, 36),
        ("\ud800", 1),
    ],
)
def test_each_script_has_its_weight(text: str, tokens: int) -> None:
    assert PerScript().text(text) == tokens


def test_characters_by_four_are_rounded_up() -> None:
    assert [CharsPerFour().text("a" * n) for n in (1, 4, 5, 8)] == [1, 1, 2, 2]


@both
def test_a_picture_inside_a_text_counts_as_a_picture(estimator: TextEstimator) -> None:
    address = f"data:image/png;base64,{'iVBORw0KGgo' * 5_000}=="
    assert estimator.text(f'{{"shot": "{address}"}}') == estimator.text('{"shot": ""}') + IMAGE_TOKENS
    assert estimator.text(f"{address}\n{address}") == 2 * IMAGE_TOKENS + 1


@both
@settings(max_examples=100)
@given(history=histories())
def test_a_request_is_the_sum_of_its_parts(estimator: TextEstimator, history: list[Message]) -> None:
    request = Request(tuple(history), TOOLS)
    assert estimator.request(request) == estimator.tools(TOOLS) + sum(estimator.message(m) for m in history)
    assert estimator.messages(history) == estimator.request(replace(request, tools=()))


@both
def test_everything_that_is_sent_is_counted(estimator: TextEstimator) -> None:
    bare = assistant("")
    count = estimator.message
    assert count(replace(bare, content="x" * 40)) > count(bare)
    assert count(replace(bare, reasoning="x" * 40)) > count(bare)
    assert count(replace(bare, images=(PICTURE,))) == count(bare) + IMAGE_TOKENS
    with_call = count(assistant("", ToolCall("c", "f", "{}")))
    assert with_call > count(bare)
    assert count(assistant("", ToolCall("c", "f", '{"path": "a/long/path.py"}'))) > with_call
    assert count(assistant("", ToolCall("c", "a_long_tool_name", "{}"))) > with_call


def test_structure_costs_tokens_too() -> None:
    estimator = PerScript()
    assert estimator.message(user("")) == estimator.per_message
    assert estimator.message(assistant("", ToolCall("c", "", ""))) == estimator.per_message + estimator.per_call
    assert estimator.tools([ToolSpec("", "")]) == estimator.per_tool + estimator.text(ToolSpec("", "").canonical())


def test_reasoning_is_counted_only_where_it_is_sent_back() -> None:
    thinking = replace(assistant("ok"), reasoning="x" * 400)
    assert PerScript(count_reasoning=False).message(thinking) == PerScript().message(assistant("ok"))
    assert PerScript().message(thinking) == PerScript().message(assistant("ok")) + 120


def test_the_allowance_for_pictures_can_be_changed() -> None:
    estimator = CharsPerFour(image_tokens=85)
    assert estimator.message(user("", PICTURE)) == 85
    assert estimator.text("data:image/png;base64,AAAA") == 85


def test_nothing_is_learnt_from_a_bill() -> None:
    estimator, request = PerScript(), Request((user("hello"),))
    before = estimator.request(request)
    estimator.observe(request, Usage(fresh=10_000))
    assert estimator.request(request) == before


def test_the_error_is_a_share_of_the_actual_count() -> None:
    assert (relative_error(80, 100), relative_error(150, 100), relative_error(5, 0)) == (-0.2, 0.5, 0.0)


TEXTS = [
    "A1b2" * 250_000,
    "a" * 1_000_000,
    "0a" * 500_000,
    "测" * 300_000,
    "data:image/" * 90_000,
    "data:image/" + "a" * 999_000,
]


@both
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:12])
def test_a_megabyte_takes_no_time(estimator: TextEstimator, text: str) -> None:
    start = time.perf_counter()
    assert estimator.text(text) > 0
    assert time.perf_counter() - start < 2


@both
def test_a_picture_is_billed_by_no_byte(estimator: TextEstimator) -> None:
    sizes = [user("", Image("image/png", "A" * size)) for size in (1, 1_000_000)]
    sizes += [replace(tool_result("c", ""), images=m.images) for m in sizes]
    assert len({estimator.message(m) for m in sizes}) == 1


@both
def test_tools_and_system_prompt_are_part_of_the_request(estimator: TextEstimator) -> None:
    question = Request((user("q"),))
    assert estimator.request(replace(question, tools=TOOLS)) == estimator.request(question) + estimator.tools(TOOLS)
    longer = replace(question, messages=(system("rules " * 10), user("q")))
    assert estimator.request(longer) > estimator.request(question)
