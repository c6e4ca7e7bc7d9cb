"""Keep everything: the baseline, right until the window ends."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.log import Log
from agentkit.messages import Message
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch
from agentkit.policies.viewing import Viewing


class KeepEverything(Viewing):
    """Send the whole history, every time. The prefix never changes, so the cache always holds."""

    name = "keep everything"
    year, source = "always", "what every agent does that does nothing"
    note = "append only, until the window ends"

    def decide(self, log: Log, situation: Situation) -> None:
        """Record nothing."""

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return every message of the branch."""
        return [*branch.head, *branch.body]
