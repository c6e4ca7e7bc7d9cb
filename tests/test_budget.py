"""The budget: three forms, always a threshold that can work, and a sentence when it cannot."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.budget import Budget, BudgetError, reserve_threshold, smallest_budget

many = settings(max_examples=300)


def test_the_course_s_budget() -> None:
    budget = Budget.ratio()
    assert (budget.limit, budget.threshold, budget.form) == (24_000, 14_400, "60% of 24,000")


@pytest.mark.parametrize(
    ("window", "max_output", "threshold"),
    [
        (200_000, 8_192, 187_712),
        (200_000, 1_000, 191_808),  # at least 8,192
        (200_000, 100_000, 180_000),  # at most 20,000
        (200_000, 12_288, 183_616),
        (8_192, 8_192, 4_096),
        (13_000, 8_192, 6_500),  # a reserve of 12,288 would leave 712
        (1, 8_192, 1),
    ],
)
def test_the_reserve(window: int, max_output: int, threshold: int) -> None:
    assert reserve_threshold(window, max_output) == threshold
    assert Budget.reserve(window, max_output).threshold == threshold


@many
@given(st.integers(1, 2_000_000), st.integers(0, 200_000))
def test_a_reserve_never_takes_more_than_half(window: int, max_output: int) -> None:
    budget = Budget.reserve(window, max_output)
    assert budget.threshold >= window / 2
    assert 1 <= budget.threshold <= budget.limit == window


def test_a_share_of_the_window() -> None:
    assert Budget.share(200_000) == Budget(200_000, 160_000, "80% of 200,000")


@pytest.mark.parametrize("ratio", [0, -0.1, 1.01, float("nan")])
def test_a_ratio_out_of_bounds_is_refused(ratio: float) -> None:
    with pytest.raises(BudgetError, match=f"above 0 and at most 1, not {ratio}"):
        Budget.ratio(24_000, ratio)


@pytest.mark.parametrize(("limit", "threshold"), [(0, 1), (-5, -5), (100, 0), (100, 101)])
def test_a_threshold_outside_the_budget_is_refused(limit: int, threshold: int) -> None:
    with pytest.raises(BudgetError, match="must lie between 1 and the budget"):
        Budget(limit, threshold, "by hand")


@pytest.mark.parametrize("make", [Budget.ratio, Budget.share, Budget.reserve])
def test_a_budget_of_nothing_is_refused(make: type[Budget]) -> None:
    with pytest.raises(BudgetError):
        make(0)


def test_compaction_is_due_from_the_threshold_on() -> None:
    budget = Budget(1_000, 600, "by hand")
    assert [budget.should_compact(n) for n in (0, 599, 600, 2_000)] == [False, False, True, True]


def test_a_fixed_part_that_reaches_the_threshold_is_refused_with_a_way_out() -> None:
    budget = Budget.ratio(1_000, 0.6)
    budget.check_fixed(599)
    with pytest.raises(BudgetError, match=r"need about 600 tokens, but compaction starts at 600 .*at least 2,000") as caught:
        budget.check_fixed(600)
    assert "\n" not in str(caught.value)


@many
@given(st.integers(1, 300_000), st.floats(0.05, 1))
def test_the_smallest_budget_works(fixed: int, ratio: float) -> None:
    enough = smallest_budget(fixed, ratio)
    Budget.ratio(enough, ratio).check_fixed(fixed)
    assert enough % 100 == 0
    assert enough < 2 * fixed / ratio + 101


@many
@given(st.integers(1, 300_000), st.integers(1, 200_000))
def test_the_advice_in_the_error_works(fixed: int, window: int) -> None:
    for make in (Budget.ratio, Budget.share, Budget.reserve):
        try:
            make(window).check_fixed(fixed)
        except BudgetError as error:
            advised = int(str(error).rpartition("at least ")[2].split()[0].replace(",", ""))
            make(advised).check_fixed(fixed)
