"""Cost-aware against the offline optimum, and `compare` over all real sessions. Figures are printed, never asserted.

The two free parameters of the policy were chosen on every second session by name (the first, third, …); the others are for
reporting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest
from session_support import LONG, NAMES, counted_real, needs_sessions, real

from agentkit.budget import Budget
from agentkit.policies.cost_aware import RECEIPT, SHARE, WIDEST
from agentkit.pricing import prices
from agentkit.replay.frontier import Score, Settings, as_table, compare_policies, score_of
from agentkit.replay.optimum import optimum
from agentkit.replay.planned import lately_cuts
from agentkit.sessions import load
from agentkit.u_curve import PROFILES

pytestmark = needs_sessions
HALVES = {"chosen on": NAMES[::2], "reported on": NAMES[1::2]}
BUDGET = Budget.share(200_000)


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def printed(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}", end="")

    return printed


@pytest.mark.parametrize("number", range(len(PROFILES)))
def test_cost_aware_against_the_optimum(number: int, show: Callable[[str], None]) -> None:
    profile = PROFILES[number]
    for half, names in HALVES.items():
        score, best = _pooled(names, Settings(profile.prices, BUDGET, profile.cache))
        figures = f"{score.usd:.3f} USD = {score.usd / best:.3f} x the optimum (target 1.10), recall {score.recall or 0:.1%}"
        what = f"{score.compactions} compactions, share {SHARE}, receipt {RECEIPT}"
        show(f"{profile.name}, {len(names)} sessions {half}: {figures}; {what}")
        assert best > 0


def _pooled(names: Sequence[str], settings: Settings) -> tuple[Score, float]:
    scores, best = [], 0.0
    for name in names:
        counted = counted_real(name).prepare(blocks=True)
        scores.append(score_of(counted, settings, "cost-aware"))
        cuts = lately_cuts(counted, most=BUDGET.threshold // WIDEST)
        best += optimum(counted, settings.prices, cuts, window=BUDGET.threshold, cache=settings.cache).usd
    return sum(scores[1:], scores[0]), best


@pytest.mark.parametrize("number", range(len(PROFILES)))
def test_the_optimum_of_the_longest_session(number: int, show: Callable[[str], None]) -> None:
    counted, profile = counted_real(LONG).prepare(blocks=True), PROFILES[number]
    cuts = lately_cuts(counted)
    start = time.process_time()
    found = optimum(counted, profile.prices, cuts, cache=profile.cache)
    took = time.process_time() - start
    show(f"optimum, {LONG}, {profile.name}: {took:.2f} s (target 1 s), {found.compactions} compactions, {found.usd:.3f} USD")
    never = optimum(counted, profile.prices, [0] * len(cuts), cache=profile.cache)
    assert never.compactions == 0 and 0 < found.usd < never.usd and found.compactions > 0


def test_compare_over_all_sessions(show: Callable[[str], None]) -> None:
    settings = Settings(prices("claude-sonnet-4-5"), BUDGET)
    start = time.perf_counter()
    scores = compare_policies([(load(real(name)), settings) for name in NAMES], progress=True)
    took = time.perf_counter() - start
    show(
        f"compare, {len(NAMES)} sessions, {len(scores)} policies: {took:.0f} s (target 60 s on 2 cores)\n{as_table(scores)}"
    )
    assert len(scores) > 10
