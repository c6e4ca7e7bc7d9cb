"""Summarise the middle: append only, and one compaction whenever the budget's threshold is reached (M4, jai)."""

from __future__ import annotations

from dataclasses import replace

from agentkit.compaction.compactor import Compactor, Outcome, assemble
from agentkit.log import Compaction, Log, project
from agentkit.messages import Message
from agentkit.policies.base import Situation
from agentkit.settle import settle


class SummariseMiddle:
    """Keep the head and the tail, replace the middle by a summary.

    A failed summary leaves everything as it was. The next try waits for the next turn, and after three failures in a row for
    the context to grow by a fifth: a summariser that is down must not be called before every request.
    """

    name = "summarise the middle"

    def __init__(self, compactor: Compactor) -> None:
        self.compactor = compactor
        self._failures = 0
        self._failed_at: tuple[str, int] | None = None

    def decide(self, log: Log, situation: Situation) -> Compaction | None:
        """Compact when the estimate reaches the threshold; report every attempt and its outcome."""
        if not situation.budget.should_compact(situation.estimate) or self._must_wait(log, situation.estimate):
            return None
        view = project(log)
        cut = self.compactor.plan(view)
        if cut:
            situation.report(f"summarising {cut} messages …")
        outcome = self.compactor.compact(view, fixed=situation.fixed, limit=situation.budget.limit)
        situation.report(outcome)
        self._remember(log, outcome, situation.estimate)
        return replace(outcome.compaction, policy=self.name) if outcome.compaction else None

    def view(self, log: Log) -> tuple[Message, ...]:
        """Return system prompt, summary in force and tail."""
        return settle(assemble(project(log)))

    def _must_wait(self, log: Log, estimate: int) -> bool:
        if self._failed_at is None:
            return False
        turn, size = self._failed_at
        return _turn(log) == turn or (self._failures >= 3 and estimate < 1.2 * size)

    def _remember(self, log: Log, outcome: Outcome, estimate: int) -> None:
        if outcome.status == "failed":
            self._failures += 1
            self._failed_at = (_turn(log), estimate)
        elif outcome.status == "done":
            self._failures, self._failed_at = 0, None


def _turn(log: Log) -> str:
    return next((m.id for m in reversed(log.messages()) if m.role == "user"), "")
