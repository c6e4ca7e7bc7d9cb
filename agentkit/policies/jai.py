"""jai, 2026: append only while the prefix is cached, and one compaction when the window is nearly full."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.budget import Budget, reserve_threshold
from agentkit.compaction.compactor import Compactor
from agentkit.messages import Message
from agentkit.policies.base import Situation
from agentkit.policies.branch import last_safe
from agentkit.policies.compacting import KeepingTail, fitting

TAIL_TURNS = 2
CLIP = 2_000


class Jai(KeepingTail):
    """Two steps: never touch the prefix; at window − reserve fold everything but the newest turns into one summary.

    Source: jai-mono @45d72e8 (2026-08-21), packages/agent, harness/compaction. The reserve is the largest output + 4,096, at
    least 8,192 and at most 20,000. The newest 2 turns stay as far as they fit into a quarter of the rest (2,000 to 8,000
    tokens); else as much of the newest turn as fits; else the smallest part that may stand alone. The earlier summary and
    what came since are folded; each message is clipped at 2,000 characters for that. The summary is a user message, merged
    into the first kept one.

    The trigger is meant for an estimate of last bill + tail: give the agent the estimator `LastBill`.

    Simplified: a failed call waits for the next turn (there it is repeated); an answer that was cut off is refused (there
    it is taken); the goals of the prompt are this package's.
    """

    name = "jai"
    year, source = "2026", "jai-mono @45d72e8"
    note = "append only; at window − reserve one summary, 2 turns (≤ 8,000 tokens) stay"

    def __init__(self, compactor: Compactor, max_output: int = 8_192) -> None:
        super().__init__(compactor)
        self.clip, self.max_output = min(self.clip, CLIP), max_output

    def threshold(self, budget: Budget) -> int:
        """Return the first size above window − reserve (there the comparison is strict)."""
        return reserve_threshold(budget.limit, self.max_output) + 1

    def preserved(self, budget: Budget) -> int:
        """Return the tokens that stay word for word."""
        usable = reserve_threshold(budget.limit, self.max_output)
        return min(usable, max(2_000, min(usable // 4, 8_000)))

    def cut(self, tail: Sequence[Message], situation: Situation) -> int:
        """Return where the kept turns begin."""
        preserve = self.preserved(situation.budget) >> situation.harsher
        fits = fitting(tail, preserve, [self.sizes(m) for m in tail])
        starts = [i for i, m in enumerate(tail) if m.role == "user"] or [0]
        turns = [start for start in starts[-TAIL_TURNS:] if start >= fits]
        if turns:
            return turns[0]
        inside = next((i for i in range(max(starts[-1], fits), len(tail)) if last_safe(tail, i) == i), 0)
        return inside or last_safe(tail, len(tail) - 1)
