"""MemGPT as its code was in October 2023: a fixed warning, and eviction only when the provider refuses the request."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentkit.budget import Budget
from agentkit.compaction.compactor import Compactor
from agentkit.log import Compaction, Projection
from agentkit.messages import Message, user
from agentkit.policies.base import Situation
from agentkit.policies.branch import first_safe
from agentkit.policies.compacting import fitting
from agentkit.policies.memgpt import MemGpt
from agentkit.policies.viewing import Answer, added

WINDOW = 8_192
WARNING = 7_000
KEPT = 0.2

MOST_HALVINGS = 3


class MemGptCode(MemGpt):
    """Warn at 7,000 of 8,192 tokens; when a request does not fit, keep about the last 1,400 and summarise the rest.

    Source: MemGPT @468fedee (2023-10-19), memgpt/agent.py, memory.py. At least the last 3 messages stay; a tail that would
    begin with a user message begins one later. The summary is a user message in the second place, so the next eviction
    summarises it again with the rest: recursion by position, each time into 100 words (`words` in the prompt).

    `by_position=False` hands the earlier summary on as such. Simplified: where the window is smaller than 8,192 tokens the
    numbers shrink with it; a request above the window counts as refused; there was no limit to the retries, here the
    recovery has one; there is no time in the message.
    """

    name = "MemGPT 2023-10 code"
    source = "MemGPT @468fedee (2023-10-19)"
    note = "a warning at 7,000 tokens, on overflow all but about 1,400 is evicted"
    placement = "user"

    def __init__(
        self, compactor: Compactor, window: int = WINDOW, warning: int = WARNING, *, by_position: bool = True
    ) -> None:
        super().__init__(compactor)
        self.window, self.warning, self.by_position = window, warning, by_position

    def threshold(self, budget: Budget) -> int:
        """Return the first size that the model refuses."""
        return min(self.window, budget.limit) + 1

    def warns_at(self, budget: Budget) -> int:
        """Return the first size above the warning."""
        return self.warning * min(self.window, budget.limit) // self.window + 1

    def cut(self, tail: Sequence[Message], situation: Situation) -> int:
        """Keep what fits into a fifth of the warning, and at least 3 messages."""
        keep = int(self.warns_at(situation.budget) * KEPT) >> situation.harsher
        cutoff = min(len(tail) - 3, fitting(tail, keep, [self.sizes(m) for m in tail]))
        if cutoff <= 0:
            return 0
        return first_safe(tail, cutoff + (tail[cutoff].role == "user"))

    def summary_of(self, view: Projection, cut: int, situation: Situation) -> Answer:
        """Ask for a summary of everything before the cut, the earlier summary among it."""
        if not self.by_position or view.compaction is None:
            return self._summarised(view, view.tail[:cut], situation)
        first = self.package(view.compaction)
        return self._summarised(Projection(view.head, None, view.tail), (first, *view.tail[:cut]), situation)

    def _summarised(self, view: Projection, messages: Sequence[Message], situation: Situation, depth: int = 0) -> Answer:
        """Ask; what the summariser cannot read in one piece it reads in two, the first one summarised.

        The code had no bound here; one message that is too long would be halved for ever.
        """
        whole = Projection(view.head, view.compaction, tuple(messages))
        answer = super().summary_of(whole, len(messages), situation)
        if not answer.overflow or len(messages) < 2 or depth >= MOST_HALVINGS:
            return answer
        half = len(messages) // 2
        first = self._summarised(view, messages[:half], situation, depth + 1)
        if first.fault:
            return first
        told = (user(first.text), *messages[half:])
        rest = self._summarised(Projection(view.head, None, view.tail), told, situation, depth + 1)
        return Answer(rest.text, added([answer.usage, first.usage, rest.usage]), rest.fault)

    def assembled(self, view: Projection) -> Sequence[Message]:
        """Return head, the packaged summary, tail."""
        if view.compaction is None:
            return (*view.head, *view.tail)
        return (*view.head, self.package(view.compaction), *view.tail)

    @staticmethod
    def package(compaction: Compaction) -> Message:
        """Return the message that tells of the summary."""
        count = compaction.messages
        told = f"Note: {count} earlier messages are hidden from view. What follows is a summary of them:"
        text = json.dumps({"type": "system_alert", "message": f"{told}\n{compaction.summary}"}, ensure_ascii=False)
        return user(text)
