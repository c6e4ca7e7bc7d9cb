"""Public bug reports about budgets and bills (group D, as far as it applies), as small inputs with the right result."""

from __future__ import annotations

import pytest

from agentkit.budget import Budget
from agentkit.calibration import LastBill, SelfCalibrating
from agentkit.messages import Request, Usage, system, user
from agentkit.tokens import PerScript

PER_SCRIPT = PerScript()


def billed(estimator: LastBill | SelfCalibrating, usage: Usage) -> Request:
    """Give `estimator` a first bill and return its request."""
    request = Request((user("q"),))
    estimator.observe(request, usage)
    return request


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
