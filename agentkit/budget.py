"""When to compact: the budget is not the window.

The window is the most that fits. The budget is how much we want to carry: money, speed and quality all get worse long
before the window ends. All numbers are tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


def reserve_threshold(window: int, max_output: int) -> int:
    """Return the threshold that leaves a reserve at the end of `window` for the answer.

    The reserve is `max_output + 4,096`, at least 8,192 and at most 20,000 (jai), but never more than half the window: a
    small model would compact all the time.
    """
    reserve = min(max(max_output + 4_096, 8_192), 20_000)
    return max(1, window - min(reserve, window // 2))


def smallest_budget(fixed: int, ratio: float) -> int:
    """Return the smallest budget that works with a fixed prefix of `fixed` tokens and a threshold at `ratio` of the budget.

    The threshold then lies at twice the fixed part: as much again for a summary and a tail. Rounded up to a hundred.
    """
    return math.ceil(round(2 * fixed / ratio, 6) / 100) * 100


class BudgetError(ValueError):
    """The budget cannot work; the text says why and what to do."""


@dataclass(frozen=True)
class Budget:
    """A token budget and the threshold at which to compact.

    `limit` is the most that a request may hold, `threshold` the estimate at which compaction starts. The room between them
    is for the compaction itself and for the answer. `form` says how the threshold came about.
    """

    limit: int
    threshold: int
    form: str

    def __post_init__(self) -> None:
        if self.limit < 1 or not 0 < self.threshold <= self.limit:
            raise BudgetError(f"threshold {self.threshold:,} must lie between 1 and the budget {self.limit:,}")

    @classmethod
    def ratio(cls, tokens: int = 24_000, ratio: float = 0.6) -> Budget:
        """Make a budget that compacts at a share of itself.

        24,000 and 0.6 are the M4 course's: small on purpose, so that a compaction happens within one conversation.
        Raises `BudgetError` unless `0 < ratio <= 1`.
        """
        if tokens < 1:
            raise BudgetError(f"the budget must be at least 1 token, not {tokens:,}")
        if not 0 < ratio <= 1:
            raise BudgetError(f"the threshold ratio must be above 0 and at most 1, not {ratio}")
        return cls(tokens, max(1, int(tokens * ratio)), f"{ratio:.0%} of {tokens:,}")

    @classmethod
    def reserve(cls, window: int, max_output: int = 8_192) -> Budget:
        """Make a budget that leaves a reserve at the end of the window for the answer: see `reserve_threshold`."""
        threshold = reserve_threshold(window, max_output)
        return cls(window, threshold, f"{window:,} − {window - threshold:,} reserve")

    @classmethod
    def share(cls, window: int, share: float = 0.8) -> Budget:
        """Make a budget that compacts at a share of the window (Goose: 80 %)."""
        return cls.ratio(window, share)

    def within(self, limit: int) -> Budget:
        """Return this budget, or one of `limit` tokens with the same share as threshold when that is less."""
        if limit >= self.limit:
            return self
        limit = max(1, limit)
        threshold = min(limit, max(1, self.threshold * limit // self.limit))
        return Budget(limit, threshold, f"{threshold / limit:.0%} of {limit:,}")

    def should_compact(self, estimate: int) -> bool:
        """Say whether a request estimated at `estimate` tokens is due for compaction."""
        return estimate >= self.threshold

    def check_fixed(self, fixed: int) -> None:
        """Raise `BudgetError` when system prompt and tools alone, `fixed` tokens, reach the threshold.

        No compaction could ever help then: it would run before every request and change nothing.
        """
        if fixed >= self.threshold:
            enough = smallest_budget(fixed, self.threshold / self.limit)
            raise BudgetError(
                f"system prompt and tools alone need about {fixed:,} tokens, but compaction starts at {self.threshold:,}"
                f" (budget {self.limit:,}); use a budget of at least {enough:,}, so that a summary and a tail fit too,"
                " or fewer tools"
            )
