"""An estimator that knows what a replay will count: so that a policy is judged, and not its estimates."""

from __future__ import annotations

from agentkit.messages import Message
from agentkit.replay.counted import Counted
from agentkit.tokens import TextEstimator


class Exact(TextEstimator):
    """Counts as the replay of `counted` does."""

    name = "exact"

    def __init__(self, counted: Counted) -> None:
        super().__init__()
        self.counted = counted

    def message(self, message: Message) -> int:
        """Return the tokens of one message."""
        return len(self.counted.texts.counter.message(message).tokens)

    def text(self, text: str) -> int:
        """Return the tokens of a text."""
        return len(self.counted.texts.text(text).tokens)
