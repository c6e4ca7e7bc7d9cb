"""Summarise the middle: append only, and one compaction whenever the budget's threshold is reached (M4, jai)."""

from __future__ import annotations

from dataclasses import replace

from agentkit.compaction.compactor import Compactor, Outcome, assemble
from agentkit.log import Compaction, Log, project
from agentkit.messages import Message
from agentkit.policies.base import Situation
from agentkit.settle import Settler


class SummariseMiddle:
    """Keep the head and the tail, replace the middle by a summary.

    A failed summary leaves everything as it was. The next try waits for the next turn, and after three failures in a row for
    the context to grow by a fifth: a summariser that is down must not be called before every request.
    """

    name = "summarise the middle"

    def __init__(self, compactor: Compactor) -> None:
        self.compactor = compactor
        self._settler = Settler()
        self._failures = 0
        self._failed_at: tuple[str, int] | None = None

    def decide(self, log: Log, situation: Situation) -> Compaction | None:
        """Compact when the estimate reaches the threshold, or when forced; report every attempt and its outcome."""
        forced, budget = situation.forced, situation.budget
        if not forced and (not budget.should_compact(situation.estimate) or self._must_wait(log, situation.estimate)):
            return None
        view = project(log)
        compactor = (
            self.compactor.pressed(view, budget.limit - situation.fixed, situation.harsher) if forced else self.compactor
        )
        if compactor is None:
            situation.report(Outcome("skipped", "no summary can help: what has to stay word for word is too long"))
            return None
        cut = compactor.plan(view)
        if cut:
            situation.report(f"summarising {cut} messages …")
        reason = "overflow" if forced else "threshold"
        outcome = compactor.compact(view, fixed=situation.fixed, limit=budget.limit, reason=reason)
        situation.report(outcome)
        self._remember(log, outcome, situation.estimate)
        return replace(outcome.compaction, policy=self.name) if outcome.compaction else None

    def view(self, log: Log) -> tuple[Message, ...]:
        """Return system prompt, summary in force and tail."""
        return self._settler.settle(assemble(project(log)))

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
