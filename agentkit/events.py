"""What happens during a turn, as one stream of events. The command line, the panels and the figures all read this stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentkit.compaction.compactor import Outcome
from agentkit.log import Compaction
from agentkit.messages import FinishReason, Message, Request, ToolCall, Usage

EndReason = Literal["answered", "cut off", "too many rounds"]


@dataclass(frozen=True)
class ContextUsage:
    """Before every request: its estimate against the budget. `last` is the request before, estimate and bill together."""

    estimate: int
    threshold: int
    limit: int
    last: Billed | None = None


@dataclass(frozen=True)
class CompactionLog:
    """A line about a compaction under way; `outcome` once there is one."""

    text: str
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Compacted:
    """A compaction is in the log. The estimates are of the whole request, tools included."""

    compaction: Compaction
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True)
class Sent:
    """Request `number` of this agent goes out."""

    number: int
    request: Request
    estimate: int


@dataclass(frozen=True)
class TextArrived:
    """A piece of the answer, or of the thinking."""

    text: str
    thinking: bool = False


@dataclass(frozen=True)
class Billed:
    """The answer to request `number` is complete. Estimate and bill are of the same request.

    `usage` is None when the provider sent no bill.
    """

    number: int
    request: Request
    estimate: int
    usage: Usage | None
    message: Message
    finish: FinishReason

    @property
    def error(self) -> int | None:
        """Return estimate minus bill, in tokens."""
        return None if self.usage is None else self.estimate - self.usage.prompt


@dataclass(frozen=True)
class ToolCalled:
    """A tool is about to run."""

    call: ToolCall


@dataclass(frozen=True)
class ToolFinished:
    """A tool has run; `message` is its result."""

    call: ToolCall
    message: Message


@dataclass(frozen=True)
class TurnEnded:
    """The turn is over: an answer, an answer that was cut off, or no answer within the rounds allowed."""

    text: str
    rounds: int
    reason: EndReason


@dataclass(frozen=True)
class Retrying:
    """Attempt number `attempt` failed; the same request goes out again after `seconds`."""

    reason: str
    attempt: int
    seconds: float


@dataclass(frozen=True)
class Recovered:
    """Because of `reason` a `step` made the request smaller: it goes out again. Sizes are estimates of the whole request."""

    step: str
    tokens_before: int
    tokens_after: int
    reason: str = ""


@dataclass(frozen=True)
class Notice:
    """Something that the user should know and can do something about; each is told once."""

    text: str


Event = (
    ContextUsage
    | CompactionLog
    | Compacted
    | Sent
    | TextArrived
    | Billed
    | ToolCalled
    | ToolFinished
    | TurnEnded
    | Retrying
    | Recovered
    | Notice
)
