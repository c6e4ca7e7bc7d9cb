"""Where to cut: everything before the cut is summarised, everything from it on is the tail and stays word for word.

Two boundary rules. `user`: the tail starts on a user message, so whole turns stay together (M4). `pair`: the tail may start
anywhere but on a tool result or a system note, and a batch of calls is never separated from any of its results (jai, pi).
Both move the cut backwards until it is allowed: the tail is never shorter than what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentkit.messages import Message

Boundary = Literal["user", "pair"]
Unit = Literal["messages", "turns", "tokens"]


@dataclass(frozen=True)
class Keep:
    """How much of the end stays word for word.

    `messages`: the last `amount` messages. `turns`: the last `amount` turns, but only as many as fit into `max_tokens`.
    `tokens`: as many of the last messages as fit into `amount` tokens. At least one message always stays.
    """

    amount: int = 2
    unit: Unit = "turns"
    max_tokens: int = 8_000

    def __post_init__(self) -> None:
        if self.amount < 1:
            raise ValueError(f"keep must be at least 1 {self.unit}, not {self.amount}: the pending question has to stay")
        if self.unit not in ("messages", "turns", "tokens"):
            raise ValueError(f"keep counts messages, turns or tokens, not {self.unit!r}")

    def less(self, steps: int) -> Keep:
        """Return a smaller one: two messages fewer with every step, or one turn, or half of the tokens. Never nothing."""
        if self.unit == "messages":
            return replace(self, amount=max(1, self.amount - 2 * steps))
        if self.unit == "turns":
            return replace(self, amount=max(1, self.amount - steps), max_tokens=self.max_tokens // 2**steps)
        return replace(self, amount=max(1, self.amount // 2**steps))

    def __str__(self) -> str:
        limit = f", at most {self.max_tokens:,} tokens" if self.unit == "turns" else ""
        return f"{self.amount:,} {self.unit if self.amount != 1 else self.unit[:-1]}{limit}"


def is_safe_cut(messages: Sequence[Message], cut: int, boundary: Boundary = "pair") -> bool:
    """Say whether `messages` may be cut before index `cut` without breaking a rule of any API.

    A batch stays whole: the call and all its results on one side, also when something stands between them. The last message
    is never cut off: it may be the pending question, or part of a batch that still waits for results.
    """
    return 0 <= cut < len(messages) and _may_start(messages[cut], boundary) and cut not in _inside_batches(messages)


def _may_start(message: Message, boundary: Boundary) -> bool:
    return message.role == "user" or (boundary == "pair" and message.role == "assistant")


def _inside_batches(messages: Sequence[Message]) -> set[int]:
    """Return every index behind a call, up to its last result. A result belongs to the newest assistant message before."""
    inside: set[int] = set()
    start, ids = 0, set[str]()
    for i, message in enumerate(messages):
        if message.role == "assistant":
            start, ids = i, {c.id for c in message.tool_calls}
        elif message.role == "tool" and message.tool_call_id in ids:
            inside.update(range(start + 1, i + 1))
            start = i
    return inside


def find_cut(
    messages: Sequence[Message],
    keep: Keep,
    boundary: Boundary = "user",
    count: Callable[[Message], int] = lambda message: 0,
) -> int:
    """Return the index of the first message to keep; 0 means that nothing can be cut off.

    `messages` are those after the system prompt. `count` gives the tokens of a message.
    """
    cut = min(_wanted(messages, keep, count), max(len(messages) - 1, 0))
    inside = _inside_batches(messages)
    while cut > 0 and (cut in inside or not _may_start(messages[cut], boundary)):
        cut -= 1
    return cut


def _wanted(messages: Sequence[Message], keep: Keep, count: Callable[[Message], int]) -> int:
    if keep.unit == "messages":
        return max(0, len(messages) - keep.amount)
    if keep.unit == "tokens":
        return _fitting(messages, keep.amount, count)
    starts = [i for i, m in enumerate(messages) if m.role == "user"]
    fits = _fitting(messages, keep.max_tokens, count)
    if not starts or (len(starts) < keep.amount and fits == 0):
        return 0
    # As many whole turns as asked for, but none that starts before the token limit; the newest turn in any case.
    return min((s for s in starts[-keep.amount :] if s >= fits), default=starts[-1])


def _fitting(messages: Sequence[Message], tokens: int, count: Callable[[Message], int]) -> int:
    """Return the first index from which everything to the end fits into `tokens`."""
    for i in range(len(messages) - 1, -1, -1):
        tokens -= count(messages[i])
        if tokens < 0:
            return i + 1
    return 0
