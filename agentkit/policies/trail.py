"""What the agent referred to lately, and how far back that was: read from the messages and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentkit.messages import Message
from agentkit.references import identifiers, referred, said

LATELY = 30
"""How many of the newest references count as lately."""


class Trail:
    """Where each path and symbol was last seen, and how many tokens back the calls reached that named one again.

    It grows with the messages: only new ones are read, and another list of messages is read from its start. Positions are
    indices of that list; `sizes` gives the tokens of a message.
    """

    def __init__(self, sizes: Callable[[Message], int]) -> None:
        self._sizes = sizes
        self._begin()

    def _begin(self) -> None:
        self.messages: tuple[Message, ...] = ()
        self._ends = [0]
        self._last: dict[str, int] = {}
        self._answers: dict[str, frozenset[str]] = {}
        self.reaches: list[int] = []
        self.named: dict[str, int] = {}
        self.shown: dict[str, int] = {}

    def follow(self, messages: Sequence[Message]) -> Trail:
        """Read what is new in `messages` and return this trail."""
        known = len(self.messages)
        if tuple(messages[:known]) != self.messages:
            self._begin()
            known = 0
        for position in range(known, len(messages)):
            self._add(position, messages[position])
        self.messages = tuple(messages)
        return self

    def tokens(self, start: int) -> int:
        """Return the tokens of all messages before position `start`."""
        return self._ends[start]

    def reach(self, share: float) -> int:
        """Return how many tokens back that `share` of the latest references went; 0 when nothing was referred to."""
        lately = sorted(self.reaches[-LATELY:])
        return lately[min(len(lately) - 1, int(share * len(lately)))] if lately else 0

    def _add(self, position: int, message: Message) -> None:
        """Note the references of a call before what it says itself counts as seen."""
        for name in sorted(referred(message.tool_calls)):
            if name in self._last:
                self.reaches.append(self._ends[position] - self._ends[self._last[name]])
            self.named[name] = position
        for call in message.tool_calls:
            self._answers[call.id] = referred((call,))
        for name in self._answers.get(message.tool_call_id, ()) if message.role == "tool" else ():
            self.shown[name] = position
        self._last.update(dict.fromkeys(identifiers(said(message)), position))
        self._ends.append(self._ends[-1] + self._sizes(message))

    def last_seen(self, name: str) -> int:
        """Return the position of the newest message that says `name`."""
        return self._last[name]
