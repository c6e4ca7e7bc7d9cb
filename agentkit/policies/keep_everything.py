"""Keep everything: the baseline, right until the window ends."""

from __future__ import annotations

from agentkit.log import Log
from agentkit.messages import Message
from agentkit.policies.base import Situation
from agentkit.settle import settle


class KeepEverything:
    """Send the whole history, every time. The prefix never changes, so the cache always holds."""

    name = "keep everything"

    def decide(self, log: Log, situation: Situation) -> None:
        """Record nothing."""

    def view(self, log: Log) -> tuple[Message, ...]:
        """Return every message of the branch."""
        return settle(log.messages())
