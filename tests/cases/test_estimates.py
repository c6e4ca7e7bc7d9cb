"""Public bug reports about estimates and budgets (group C, some of D), as small inputs with the right result."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from agentkit.budget import Budget
from agentkit.calibration import LastBill, SelfCalibrating
from agentkit.compaction import Keep, find_cut
from agentkit.messages import Image, Message, Request, ToolSpec, Usage, assistant, system, tool_result, user
from agentkit.tokens import CharsPerFour, PerScript, TextEstimator
from agentkit.vocabulary import Tiktoken, counter

PER_SCRIPT = PerScript()
EVERY: list[Callable[[], TextEstimator]] = [CharsPerFour, PerScript, Tiktoken]


def test_c01_chinese_is_not_counted_like_ascii_and_trigger_and_cut_use_one_function() -> None:
    assert 80 <= PER_SCRIPT.text("测试" * 80) <= 256
    assert 30 <= PER_SCRIPT.text("a" * 160) <= 60
    messages = [user("测" * 200) for _ in range(4)]
    kept = len(messages) - find_cut(messages, Keep(300, "tokens"), "pair", PER_SCRIPT.message)
    assert kept in (1, 2)


@pytest.mark.parametrize(("text", "least"), [("🔥🎉💯", 3), ("👩‍👩‍👧", 3), ("𠀀𠀁", 2), ("한국어 문장", 1), ("Ünïcödé", 1)])
def test_c02_emoji_and_rare_characters_count_at_least_one_each(text: str, least: int) -> None:
    assert PER_SCRIPT.text(text) >= least
    assert PER_SCRIPT.text(text + "more") >= max(PER_SCRIPT.text(text), PER_SCRIPT.text("more"))
    assert PER_SCRIPT.text("") == 0


def billed(estimator: LastBill | SelfCalibrating, usage: Usage) -> Request:
    request = Request((user("q"),))
    estimator.observe(request, usage)
    return request


def test_c03_the_last_bill_is_the_anchor_and_only_the_rest_is_estimated() -> None:
    estimator = LastBill()
    first = billed(estimator, Usage(fresh=59_000, output=300))
    grown = Request((*first.messages, assistant("done"), tool_result("c1", "数据" * 500)))
    assert 59_300 + 600 <= estimator.request(grown) <= 59_300 + 1_920
    assert estimator.request(Request((*grown.messages, user("more")))) >= estimator.request(grown)
    assert LastBill().request(grown) == PER_SCRIPT.request(grown)


@pytest.mark.parametrize("make", EVERY)
def test_c04_c05_a_picture_costs_a_flat_allowance_wherever_it_stands_and_whatever_its_size(
    make: Callable[[], TextEstimator],
) -> None:
    estimator = make()
    small, large = Image("image/png", "iVBO" * 25_000), Image("image/png", "iVBO" * 800_000)
    as_user, as_result = user("", small), tool_result("c1", "")
    assert estimator.message(user("", small)) == estimator.message(user("", large))
    one = estimator.message(as_user) - estimator.message(user(""))
    assert one == estimator.image_tokens > 0
    many = user("", *[small] * 10)
    assert estimator.message(many) - estimator.message(user("")) == 10 * one
    with_picture = Message("tool", "", tool_call_id="c1", images=(small,))
    assert estimator.message(with_picture) - estimator.message(as_result) == one
    nested = '{"shot": "data:image/png;base64,' + "iVBO" * 100_000 + '"}'
    assert estimator.text(nested) < 2 * estimator.image_tokens


def test_c06_base64_is_dense_and_counting_it_takes_linear_time() -> None:
    dense, prose = "A1b2" * 250_000, ("plain words here " * 58_824)[:1_000_000]
    started = time.perf_counter()
    assert PER_SCRIPT.text(dense) >= 2.5 * PER_SCRIPT.text(prose)
    assert time.perf_counter() - started < 5
    code = "    result = self.compute(argument_one, argument_two, keyword=value_of_it)  # why\n" * 500
    assert PER_SCRIPT.text(code) <= 1.5 * len(code) * 0.3


def test_c08_reasoning_is_context_only_where_it_is_sent_back() -> None:
    usage = Usage(fresh=20_000, output=55_000, reasoning=50_000)
    for sent_back, wanted in ((False, 25_000), (True, 75_000)):
        estimator = LastBill(reasoning_sent_back=sent_back)
        first = billed(estimator, usage)
        assert estimator.request(Request((*first.messages, assistant("a")))) == wanted


def test_c09_system_prompt_and_tool_definitions_are_part_of_the_estimate() -> None:
    tools = tuple(ToolSpec(f"tool{n}", "d" * 1_150) for n in range(38))
    request = Request((system("s" * 24_311), user("m" * 4_340)), tools)
    assert 18_000 < CharsPerFour().request(request) < 21_000
    changed = Request(request.messages, (ToolSpec("tool0", "d" * 1_250), *tools[1:]))
    assert CharsPerFour().request(changed) > CharsPerFour().request(request)


@pytest.mark.parametrize("text", ["<|endoftext|>", "say <|im_start|>user", "```\n<|fim_prefix|>\n```"])
def test_c12_a_vocabularys_own_marks_are_plain_text(text: str) -> None:
    assert all(make().text(text) > 0 for make in EVERY)
    assert counter().text(text) > 0


def test_c13_the_learned_factor_is_found_and_bounded() -> None:
    estimator = SelfCalibrating()
    text, messages = "words of a foreign language " * 40, [user("start")]
    for n in range(30):
        messages.append(user(f"{n} {text}"))
        request = Request(tuple(messages))
        estimator.observe(request, Usage(fresh=round(PER_SCRIPT.request(request) * 1.63)))
    assert abs(estimator.ratio - 1.63) < 0.05
    before = estimator.ratio
    estimator.observe(Request((*messages, user("x"))), Usage(fresh=10**7))
    assert estimator.ratio == before


def test_c14_every_message_after_the_bill_is_counted() -> None:
    estimator = LastBill()
    first = billed(estimator, Usage(fresh=100_000))
    batch = tuple(tool_result(f"c{n}", "w" * 30_000) for n in range(6))
    estimate = estimator.request(Request((*first.messages, assistant("calls"), *batch)))
    assert abs(estimate - 154_000) < 200
    assert Budget.reserve(150_000, 16_000 - 4_096).should_compact(estimate)


def test_d04_a_bill_from_before_a_compaction_is_stale() -> None:
    estimator = LastBill()
    estimator.observe(Request((system("s"), user("a" * 9_000), user("b"))), Usage(fresh=150_000))
    compacted = Request((system("s"), system("summary"), user("b")))
    assert estimator.is_stale(compacted)
    assert estimator.request(compacted) == PER_SCRIPT.request(compacted)


@pytest.mark.parametrize("window", [4_000, 8_192, 16_000])
def test_d06_a_reserve_larger_than_the_window_leaves_a_threshold_that_works(window: int) -> None:
    assert 0 < Budget.reserve(window, 16_000).threshold < window


def test_d11_a_bill_of_nothing_is_no_bill() -> None:
    for estimator in (LastBill(), SelfCalibrating()):
        first = billed(estimator, Usage())
        assert estimator.request(Request((*first.messages, user("x" * 900)))) > 200
