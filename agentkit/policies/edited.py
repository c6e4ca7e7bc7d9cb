"""Messages with another text in their place, each made once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agentkit.messages import Message


class Edited:
    """Give for a message the same message with the text that `text` makes of it, without its pictures."""

    def __init__(self, text: Callable[[Message], str]) -> None:
        self._text = text
        self._made: dict[int, tuple[Message, Message]] = {}

    def __call__(self, message: Message) -> Message:
        known = self._made.get(id(message))
        if known is None or known[0] is not message:
            known = self._made[id(message)] = message, replace(message, content=self._text(message), images=())
        return known[1]
