"""The bill: break-even and the square-root law against replay, requests before a cache, and the pictures of both."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_support import made_up

from agentkit import figures
from agentkit.break_even import (
    Pace,
    break_even,
    compaction_usd,
    replacing,
    request_usd,
    square_root_threshold,
    summary_call_usd,
)
from agentkit.caching import AnthropicCache, OpenAICache, place
from agentkit.caching.breakpoints import last_message_only, no_marks
from agentkit.compaction.cut import Keep
from agentkit.figures.bill import curve_in_words, point_in_words, usd
from agentkit.figures.marks import marked_rows
from agentkit.messages import Request, ToolCall, ToolSpec, assistant, system, tool_result, user
from agentkit.observed import Observed, blocks, observe_all, prompt_bill, read_share
from agentkit.pricing import Rates, plain
from agentkit.replay import Counted, KeepAll, Middle, count, replay
from agentkit.sessions.course import course_session
from agentkit.u_curve import PROFILES, Once, PaidBack, pace_of, paid_back, replay_at, spread, u_curve

ANTHROPIC, OPENAI, DEEPSEEK, NO_CACHE = PROFILES
SONNET = ANTHROPIC.prices.rates
POLICY = Middle(1, Keep(4, "messages"), "pair", summary=400)


@pytest.fixture(scope="module", name="counted")
def counted_session() -> Counted:
    """A session that grows by about the same with every request."""
    return count(made_up(300, words=600))


# ------------------------------------------------------------------------------------------------------------ the formulas


def test_replacing_a_cached_token_costs_twelve_and_a_half_reads() -> None:
    assert replacing(SONNET) == pytest.approx(12.5)
    assert replacing(OPENAI.prices.rates) == pytest.approx(10)
    assert replacing(DEEPSEEK.prices.rates) == pytest.approx(50)
    assert replacing(NO_CACHE.prices.rates) == 1


def test_the_m4_compaction_pays_back_after_75_further_requests() -> None:
    """Case of the M4 course: 5,030 tokens (4,864 read) become 1,894 (1,536 read), off-peak flash."""
    rates = DEEPSEEK.prices.rates
    removed, rewritten = 5_030 - 1_894, (1_894 - 1_536) - (5_030 - 4_864)
    flattened = summary_call_usd(rates, 3_400, 300)
    shared = summary_call_usd(rates, 5_030, 300, call="shared")
    # The first request after the compaction is counted too, so one more than the further requests.
    assert break_even(rates, removed, rewritten, flattened) - 1 == pytest.approx(75, abs=0.5)
    assert break_even(rates, removed, rewritten, shared) - 1 == pytest.approx(22.5, abs=1)
    assert break_even(rates, removed, rewritten, 0) == pytest.approx(3)


def test_nothing_saved_is_never_paid_back() -> None:
    assert break_even(SONNET, 0, 100, 0.1) == break_even(SONNET, -5, 100, 0.1) == math.inf
    free = Rates(1.0, 0.0, 1.0, 1.0, 5.0)
    assert break_even(free, 5_000, 0, 0.1) == square_root_threshold(free, Pace(500, 100, 100, 100)) == math.inf


RATES = st.builds(
    lambda fresh, read, write, output: Rates(fresh, fresh * read, fresh * write, fresh * write, fresh * output),
    st.floats(0.05, 20),
    st.floats(0.01, 1),
    st.floats(1, 2),
    st.floats(1, 8),
)
PACES = st.builds(
    Pace,
    st.floats(10, 5_000),
    st.floats(0, 10_000),
    st.floats(100, 5_000),
    st.floats(0, 30_000),
    st.floats(0, 500),
    st.floats(0.1, 1),
)


@given(RATES, PACES, st.sampled_from(["flatten", "shared"]), st.floats(0.3, 4))
def test_no_threshold_is_cheaper_than_that_of_the_law(rates: Rates, pace: Pace, call: str, factor: float) -> None:
    law = square_root_threshold(rates, pace, call)  # type: ignore[arg-type]
    other = pace.base + (law - pace.base) * factor
    least, usd_there = (request_usd(rates, pace, t, call) for t in (law, other))  # type: ignore[arg-type]
    assert usd_there >= least * (1 - 1e-9)
    # At the minimum, carrying the room and compacting cost the same.
    room = law - pace.base
    carrying = room / 2 * rates.read / 1_000_000
    assert compaction_usd(rates, pace, call) * pace.growth / room == pytest.approx(carrying)  # type: ignore[arg-type]


def test_four_times_the_growth_is_twice_the_room() -> None:
    slow, fast = Pace(500, 2_000, 1_000, 3_000), Pace(2_000, 2_000, 1_000, 3_000)
    rooms = [square_root_threshold(SONNET, pace) - pace.base for pace in (slow, fast)]
    assert rooms[1] == pytest.approx(2 * rooms[0])


def test_a_threshold_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves no room above the 6,000"):
        request_usd(SONNET, Pace(500, 2_000, 1_000, 3_000), 6_000)


# ---------------------------------------------------------------------------------------------------- formulas and replay


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.name)
@pytest.mark.parametrize("call", ["flatten", "shared"])
def test_break_even_by_formula_is_break_even_by_replay(counted: Counted, profile: object, call: str) -> None:
    found, formula = _paid(counted, profile, call)
    assert found.after is not None and found.after > 0
    assert found.after == pytest.approx(math.ceil(formula), abs=max(1, 0.1 * formula))


def _paid(counted: Counted, profile: object, call: str) -> tuple[PaidBack, float]:
    policy = Once(replace(POLICY, threshold=20_000, call=call))  # type: ignore[arg-type]
    once, kept = (replay(counted, s, profile.prices, profile.choice()) for s in (policy, KeepAll()))  # type: ignore[attr-defined]
    assert once.compactions == 1
    found = paid_back(once, kept)
    return found, break_even(profile.prices.rates, found.removed, found.rewritten, found.call_usd)  # type: ignore[attr-defined]


def test_without_a_compaction_there_is_nothing_to_pay_back(counted: Counted) -> None:
    kept = replay(counted, KeepAll(), SONNET_PRICES := ANTHROPIC.prices, ANTHROPIC.choice())
    assert SONNET_PRICES.model == "claude-sonnet-5"
    with pytest.raises(ValueError, match="no compaction in this replay"):
        paid_back(kept, kept)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.name)
def test_the_law_is_close_to_the_replay(counted: Counted, profile: object) -> None:
    curve = u_curve(counted, profile, POLICY, spread(6_000, 90_000, 14))  # type: ignore[arg-type]
    at_law = replay_at(counted, profile, replace(POLICY, threshold=round(curve.law)))  # type: ignore[arg-type]
    assert at_law.usd <= 1.08 * curve.best.usd
    for cell in curve.cells[1:9]:
        assert curve.law_usd(cell.threshold) == pytest.approx(cell.usd, rel=0.15)


def test_the_curve_is_made_of_replays(counted: Counted) -> None:
    thresholds = spread(8_000, 200_000, 6)
    curve = u_curve(counted, OPENAI, POLICY, thresholds)
    assert [c.threshold for c in curve.cells] == thresholds == sorted(thresholds)
    for cell in curve.cells:
        run = replay(counted, replace(POLICY, threshold=cell.threshold), OPENAI.prices, OPENAI.choice())
        assert (cell.usd, cell.compactions) == (pytest.approx(run.usd), run.compactions)
    assert curve.cells[-1].usd == pytest.approx(curve.never)
    kept = replay(counted, KeepAll(), OPENAI.prices, OPENAI.choice())
    assert curve.never == pytest.approx(kept.usd) and curve.outputs == pytest.approx(kept.bill.output)


def test_the_pace_is_that_of_the_session(counted: Counted) -> None:
    pace = pace_of(counted, POLICY)
    points = counted.points
    total = counted.sums[points[-1].end] - counted.sums[points[0].end]
    assert pace.growth * (len(points) - 1) == pytest.approx(total)
    assert pace.head == counted.head_tokens and 0 < pace.told <= 1.2 and pace.instruction > 50
    longer = pace_of(counted, replace(POLICY, keep=Keep(8, "messages")))
    assert longer.tail > pace.tail
    assert pace_of(counted, replace(POLICY, keep=Keep(5_000, "tokens"))).tail == 5_000


def test_a_session_of_one_request_has_no_pace() -> None:
    with pytest.raises(ValueError, match="one request only"):
        pace_of(count(made_up(0)), POLICY)


@given(st.integers(1_000, 9_000), st.integers(10_000, 10**6), st.integers(1, 30))
def test_thresholds_are_spread_from_low_to_high(low: int, high: int, steps: int) -> None:
    found = spread(low, high, steps)
    assert found == sorted(set(found)) and len(found) <= steps
    assert abs(found[0] - low) <= 50 and (steps == 1 or abs(found[-1] - high) <= 50)


def test_every_profile_says_example_prices_with_source_and_date() -> None:
    for profile in PROFILES:
        label = profile.prices.label()
        assert label.startswith("example prices: ") and "documentation" in label or "catalogue" in label
        assert "2026-" in label and profile.choice().label


# ------------------------------------------------------------------------------------------------- requests before a cache

SPEC = ToolSpec("read_file", "Read a file.", {"type": "object"})
START = (system("You are a coding agent. " * 250), user("Read twelve files."))
CALLS = [ToolCall(f"c{n}", "read_file", f'{{"path": "f{n}.py"}}') for n in range(12)]
TURN = (*START, assistant("I read them.", *CALLS), *(tool_result(call.id, "x = 1\n" * 10) for call in CALLS))
PROMPTS = [blocks(Request(messages, (SPEC,))) for messages in (START, TURN)]


def test_a_request_becomes_blocks_in_the_order_of_the_cache() -> None:
    kinds = [segment.kind for segment in PROMPTS[1]]
    assert kinds == ["tools", "system", "user", *["assistant"] * 13, *["user"] * 12]
    assert PROMPTS[1][:3] == PROMPTS[0]
    late = blocks(Request((*START, system("A note.")), (SPEC,)))
    assert [segment.kind for segment in late] == ["tools", "system", "user", "system"]


def test_one_mark_on_the_last_message_loses_a_long_turn() -> None:
    alone = observe_all(PROMPTS, AnthropicCache(), last_message_only)
    both = observe_all(PROMPTS, AnthropicCache(), place)
    assert alone[1].result.read == 0 and alone[1].result.cause == "out of reach"
    assert both[1].result.read == alone[0].result.written > 1_000
    assert read_share(both) > read_share(alone) == 0


def test_the_bill_is_that_of_all_prompts() -> None:
    prices = plain("mine", fresh=1, read=0.1, write=1.25, output=5)
    seen = observe_all(PROMPTS, AnthropicCache(), place)
    results = [observed.result for observed in seen]
    bill = prompt_bill(seen, prices)
    assert bill.read == pytest.approx(sum(r.read for r in results) * 0.1 / 1e6)
    assert bill.written == pytest.approx(sum(r.written for r in results) * 1.25 / 1e6)
    assert bill.output == 0 and prompt_bill([], prices).total == 0 and read_share([]) == 0
    assert observe_all(PROMPTS, OpenAICache())[1].result.read % 128 == 0


# ------------------------------------------------------------------------------------------------------------ the pictures


def _drawn(seen: list[Observed]) -> ET.Element:
    return ET.fromstring(figures.marks_strip(seen, title="Marks").svg)


def test_the_marked_strip_shows_every_token_once() -> None:
    seen = observe_all(PROMPTS, AnthropicCache(), place)
    for row, observed in zip(marked_rows(seen), seen, strict=True):
        sums = {"read": 0, "written": 0, "fresh": 0}
        for block in row.blocks:
            for state, tokens in block.pieces:
                sums[state] += tokens
        result = observed.result
        assert (sums["read"], sums["written"], sums["fresh"]) == (result.read, result.written, result.fresh)
        assert [b.marked for b in row.blocks] == [s.mark is not None for s in observed.prompt]
        assert row.blocks[-1].part == ("tool" if len(row.blocks) > 3 else "user")


def test_the_marked_strip_says_it_in_words_and_letters() -> None:
    seen = observe_all(PROMPTS, AnthropicCache(), place)
    picture = figures.marks_strip(seen, labels=["question", "results"], title="Marks")
    read = seen[1].result.read
    assert f"results: {read:,} read" in picture.alt and "marks on 2, 3, 13, 28 of 28 blocks" in picture.alt
    assert "T= S=| U=| A+" in picture.text and picture.text.startswith("Marks\n")
    drawn = sum(e.tag.endswith("text") and e.text == "▼" for e in _drawn(seen).iter())
    assert drawn == sum(s.mark is not None for o in seen for s in o.prompt)
    assert "no mark" in figures.marks_strip(observe_all(PROMPTS, AnthropicCache(), no_marks)).alt
    with pytest.raises(ValueError, match="no request"):
        figures.marks_strip([])


def test_the_chart_says_both_minima(counted: Counted) -> None:
    curves = [u_curve(counted, p, POLICY, spread(6_000, 90_000, 6)) for p in PROFILES]
    chart = figures.u_chart(curves, title="The session")
    assert chart.png.startswith(b"\x89PNG") and chart.alt.startswith("The session (example prices)")
    for curve in curves:
        assert curve_in_words(curve) in chart.alt
        assert f"{curve.best.threshold:,}" in curve_in_words(curve) and f"{curve.law:,.0f}" in curve_in_words(curve)
    assert "open loop" in chart.alt
    with pytest.raises(ValueError, match="no curve"):
        figures.u_chart([])


def test_the_curve_of_the_panel_shows_point_minimum_and_law(counted: Counted) -> None:
    curve = u_curve(counted, ANTHROPIC, POLICY, spread(6_000, 90_000, 8))
    point = curve.cells[-1]
    picture = figures.cost_curve(curve, point)
    texts = ["".join(e.itertext()) for e in ET.fromstring(picture.svg).iter() if e.tag.endswith("text")]
    assert {"◆", "○", "✕", "this setting", "square-root law"} <= set(texts)
    assert any("example prices" in text and "open loop" in text for text in texts)
    words = point_in_words(curve, point)
    assert usd(point.usd) in words and f"costs {point.usd / curve.best.usd - 1:.0%} more" in words
    assert picture.alt == words and "example prices" in picture.caption
    never = replay_at(counted, ANTHROPIC, replace(POLICY, threshold=10**6))
    assert "it never compacts" in point_in_words(curve, never)


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(0, "0 USD"), (0.0456, "0.0456 USD"), (5.539, "5.54 USD"), (216.1, "216 USD"), (1_234.5, "1,234 USD")],
)
def test_amounts_have_three_digits(amount: float, shown: str) -> None:
    assert usd(amount) == shown


# ------------------------------------------------------------------------------------------------------ the recorded session


def test_the_recorded_session_is_real_size() -> None:
    session = course_session()
    assert session.calls >= 100 and not session.warnings
    with pytest.raises(FileNotFoundError, match="'nothing' is not here"):
        course_session("nothing")
