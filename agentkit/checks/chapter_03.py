"""The exercises of chapter 03: the reserve, the moment to compact, and a budget that can work at all."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.budget import reserve_threshold, smallest_budget
from agentkit.checks.base import Case, Exercise


def first_due(estimates: Sequence[int], budget: int, ratio: float) -> int:
    """Return the index of the first request whose estimate reaches the threshold; -1 when none does."""
    threshold = budget * ratio
    return next((i for i, estimate in enumerate(estimates) if estimate >= threshold), -1)


EXERCISES = (
    Exercise(
        "reserve_threshold",
        (
            Case((200_000, 8_192), 187_712, "a large window, an ordinary answer"),
            Case((200_000, 64_000), 180_000, "the reserve has an upper end"),
            Case((128_000, 1_000), 119_808, "and a lower end"),
            Case((20_000, 4_000), 11_808, "a small window"),
            Case((8_000, 4_000), 4_000, "never more than half of the window"),
        ),
        (
            "Work out the reserve first: the answer's tokens plus 4,096.",
            "The reserve is never below 8,192 and never above 20,000: max(…, 8_192) inside min(…, 20_000).",
            "The reserve is never more than half of the window: min(reserve, window // 2).",
        ),
        reserve_threshold,
        {
            "no lower end": lambda window, out: window - min(out + 4_096, 20_000),
            "no upper end": lambda window, out: window - max(out + 4_096, 8_192),
            "forgets the answer": lambda window, out: window - 8_192,
            "eats a small window": lambda window, out: window - min(max(out + 4_096, 8_192), 20_000),
        },
    ),
    Exercise(
        "first_due",
        (
            Case(([900, 1_800, 2_400, 3_000], 4_000, 0.6), 2, "exactly at the threshold is due"),
            Case(([900, 1_800], 4_000, 0.6), -1, "never"),
            Case(([5_000, 100], 4_000, 0.6), 0, "at once"),
            Case(([100, 3_300, 200, 3_300], 4_000, 0.8), 1, "the first of several"),
            Case(([], 4_000, 0.6), -1, "no request at all"),
        ),
        (
            "Compare each estimate with budget × ratio, from the first one on.",
            "Reaching the threshold is enough: >=, not >.",
        ),
        first_due,
        {
            "above, not at": lambda e, b, r: next((i for i, x in enumerate(e) if x > b * r), -1),
            "compares with the budget": lambda e, b, r: next((i for i, x in enumerate(e) if x >= b), -1),
            "the last one": lambda e, b, r: max((i for i, x in enumerate(e) if x >= b * r), default=-1),
        },
    ),
    Exercise(
        "smallest_budget",
        (
            Case((1_021, 0.6), 3_500, "system prompt and tools of this agent"),
            Case((1_000, 0.5), 4_000, "twice the fixed part, at half of the budget"),
            Case((1_000, 1.0), 2_000, "a threshold at the budget itself"),
            Case((12_001, 0.8), 30_100, "rounded up to a hundred"),
        ),
        (
            "The threshold should lie at twice the fixed part: once for itself, once for a summary and a tail.",
            "The budget is that threshold divided by the ratio, rounded up to a hundred.",
        ),
        smallest_budget,
        {
            "room for nothing": lambda fixed, ratio: -(-int(fixed / ratio) // 100) * 100,
            "rounded down": lambda fixed, ratio: int(2 * fixed / ratio) // 100 * 100,
            "multiplied": lambda fixed, ratio: -(-int(2 * fixed * ratio) // 100) * 100,
        },
    ),
)
