"""The two questions every policy answers: what should be recorded now, and which messages does the model see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agentkit.budget import Budget
from agentkit.compaction.compactor import Outcome
from agentkit.log import Log
from agentkit.messages import Message, ToolSpec

if TYPE_CHECKING:
    from agentkit.log import Compaction


@dataclass(frozen=True)
class Situation:
    """What a policy may know when it decides, besides the log.

    `estimate` are the tokens of the request as it would be sent now, `fixed` those of the tool specs. `report` takes the
    outcome of an attempt, also of one that failed. `forced`: the provider refused the request or cut the answer, so the view
    has to get smaller whatever the threshold says; `harsher` is how much harder to press. A policy may honour both.
    """

    estimate: int
    fixed: int
    budget: Budget
    tools: tuple[ToolSpec, ...]
    report: Callable[[str | Outcome], None]
    forced: bool = False
    harsher: int = 0


class Policy(Protocol):
    """A strategy. Nothing that changes the view may live outside the log: same log, same view."""

    name: str

    def decide(self, log: Log, situation: Situation) -> Compaction | None:
        """Return a record to append to the log, or None. May call a model; never raises for a failed call."""
        ...

    def view(self, log: Log) -> tuple[Message, ...]:
        """Return the messages that the model sees. A pure function of the log, valid in every dialect."""
        ...
