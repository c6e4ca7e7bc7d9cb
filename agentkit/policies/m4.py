"""M4, the Java course: 24,000 tokens, compaction at 60 % of them, the last 8 messages kept, a cut before a user message."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from agentkit.budget import Budget
from agentkit.compaction import Compactor, Keep
from agentkit.log import Compaction, Log
from agentkit.policies.base import Situation
from agentkit.policies.summarise_middle import SummariseMiddle

BUDGET = 24_000
RATIO = 0.6
KEEP = 8


class M4(SummariseMiddle):
    """`SummariseMiddle` with the numbers of the course, whatever the window.

    Source: part 4 of a Java agent course, 2026 (only its text was at hand): the estimate reaches 24,000 x 0.6 = 14,400; the
    last 8 messages stay, from the user message before them; the summary is a system message behind the system prompt; a
    failure changes nothing. One long tool loop without a new user message is never compacted.

    Simplified: an earlier summary is folded in by the prompt (there it is summarised again like any message), and a failed
    call is not repeated before every request.
    """

    name = "M4"
    year: ClassVar[str] = "2026"
    source: ClassVar[str] = "Java agent course, part 4"
    note: ClassVar[str] = "at 14,400 tokens the middle becomes a summary, the last 8 messages stay"

    def __init__(self, compactor: Compactor, budget: int = BUDGET, ratio: float = RATIO, keep: int = KEEP) -> None:
        super().__init__(replace(compactor, keep=Keep(keep, "messages"), boundary="user", placement="system"))
        self.budget, self.ratio = budget, ratio

    def decide(self, log: Log, situation: Situation) -> Compaction | None:
        """Compact at the course's threshold. The limit stays that of the situation: the course checks none."""
        threshold = min(int(self.budget * self.ratio), situation.budget.limit)
        own = Budget(situation.budget.limit, threshold, f"{self.ratio:.0%} of {self.budget:,}")
        return super().decide(log, replace(situation, budget=own))
