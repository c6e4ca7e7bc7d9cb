"""What a recovery needs of the agent that it serves."""

from __future__ import annotations

from typing import Protocol

from agentkit.budget import Budget
from agentkit.events import Event
from agentkit.log import Compaction, Log
from agentkit.policies.base import Policy, Situation
from agentkit.providers.base import Provider
from agentkit.tokens import Estimator
from agentkit.tools import Toolbox


class Host(Protocol):
    """What a rescue needs of its agent."""

    provider: Provider
    policy: Policy
    budget: Budget
    estimator: Estimator
    tools: Toolbox
    log: Log
    max_output: int | None

    def estimate(self) -> int:
        """Return the tokens of the request as it would be sent now."""
        ...

    def situation(self, estimate: int, budget: Budget, *, forced: bool = False, harsher: int = 0) -> Situation:
        """Return what a policy may know."""
        ...

    def record(self, compaction: Compaction, before: int) -> int:
        """Append a compaction to the log and return the new estimate."""
        ...

    def tell(self, event: Event) -> None:
        """Pass on an event."""
        ...
