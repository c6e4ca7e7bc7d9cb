"""Anthropic's server-side compaction: above 150,000 tokens the server writes a summary and drops what stands before it."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.budget import Budget
from agentkit.compaction.compactor import Compactor, assemble
from agentkit.compaction.prompts import summary_prompt
from agentkit.log import Projection
from agentkit.messages import Message, Request, user
from agentkit.policies.base import Situation
from agentkit.policies.branch import last_safe, pending
from agentkit.policies.compacting import KeepingTail
from agentkit.policies.viewing import Answer, ask

SMALLEST_TRIGGER = 50_000


class ServerSideCompaction(KeepingTail):
    """Replace everything by a summary once the input is above `trigger` tokens.

    Source: Anthropic's compaction page (`compact_20260112`), read 2026-08-21: trigger 150,000, at least 50,000. The same
    model summarises, in the same request, so the call reads the cached prefix (`shares_prefix`).

    Simplified: the server puts the summary into an assistant block and goes on answering; here it is a user message, and
    what waits for the answer (the newest question, or the newest results with their call) stays word for word.
    """

    name = "server-side compaction"
    year, source = "2026-01", "Anthropic API, compact_20260112 (documentation of 2026-08-21)"
    note = "above 150,000 tokens everything becomes a summary"

    def __init__(self, compactor: Compactor, trigger: int = 150_000, *, shares_prefix: bool = True) -> None:
        if trigger < SMALLEST_TRIGGER:
            raise ValueError(f"trigger {trigger:,} is too small; the server takes {SMALLEST_TRIGGER:,} tokens or more")
        super().__init__(compactor)
        self.trigger, self.shares_prefix = trigger, shares_prefix

    def threshold(self, budget: Budget) -> int:
        """Return the first size above the trigger."""
        return self.trigger + 1

    def cut(self, tail: Sequence[Message], situation: Situation) -> int:
        """Keep only what waits for an answer."""
        return last_safe(tail, pending(tail))

    def summary_of(self, view: Projection, cut: int, situation: Situation) -> Answer:
        """Ask behind the conversation itself, so that its prefix is read from the cache."""
        if not self.shares_prefix:
            return super().summary_of(view, cut, situation)
        prompt = summary_prompt("(the conversation above)", self.keep)
        messages = (*self._settler.settle(assemble(view)), user(prompt))
        return ask(self.provider, Request(messages, situation.tools, self.max_summary, thinking=False))
