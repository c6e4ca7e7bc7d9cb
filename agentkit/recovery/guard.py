"""The anti-thrash guard: a compaction that gains nothing is not repeated until there is something to gain.

Without it an agent compacts before every request: each time it pays for a summary, each time the context is still too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentkit.messages import Message
from agentkit.tokens import Estimator

WITHIN, OFTEN = 9, 3
"""The third compaction within nine requests: the context is filled again as fast as it is emptied."""


@dataclass(frozen=True)
class Verdict:
    """What the guard says to a compaction: a notice for the user (empty: nothing to say), and whether to stop."""

    notice: str = ""
    stop: bool = False


class Guard:
    """Watch the compactions of one agent.

    `share`: a compaction that frees less than this share of the context and leaves it over the threshold has failed; it is
    allowed again when the context has grown by that share. `stop`: end the turn when the context refills at once, again and
    again; otherwise that is only said, unless every one was forced. Each thing is said once.
    """

    def __init__(self, share: float = 0.05, *, stop: bool = False) -> None:
        self.share, self.stop = share, stop
        self._wait_for = 0
        self._at: list[tuple[int, bool]] = []
        self._said: set[str] = set()

    def allows(self, estimate: int) -> bool:
        """Say whether a compaction may be tried at `estimate` tokens."""
        return estimate >= self._wait_for

    def saw(
        self, before: int, after: int, threshold: int, limit: int, request: int, largest: str, *, forced: bool = False
    ) -> Verdict:
        """Judge a compaction from `before` to `after` tokens, made before request number `request`.

        `forced`: after an overflow. The third of those within nine requests is a loop, so the verdict is to stop.
        """
        if not self._at or self._at[-1][0] != request:  # several steps for one request are one attempt
            self._at.append((request, forced))
        if not forced and after >= threshold and before - after < self.share * before:
            return self.futile(after, threshold, limit, largest)
        self._wait_for = 0
        recent = [was_forced for n, was_forced in self._at if n > request - WITHIN]
        if len(recent) < OFTEN:
            return Verdict()
        notice = (
            f"thrashing: {len(recent)} compactions within {WITHIN} requests, the context refills at once; the largest: "
            f"{largest}. Raise the budget, or let the tools return less"
        )
        stop = self.stop or sum(recent) >= OFTEN
        return Verdict(notice if stop else self.once("thrashing", notice).notice, stop)

    def futile(self, size: int, threshold: int, limit: int, largest: str) -> Verdict:
        """Note that compacting at `size` tokens gained nothing."""
        self._wait_for = int(size * (1 + self.share))
        notice = (
            f"compaction no longer helps: {size:,} tokens after it, it starts at {threshold:,}, the budget is {limit:,}; "
            f"the largest: {largest}. It is not tried again below {self._wait_for:,} tokens. Raise the budget, keep less "
            "word for word, or start a new conversation"
        )
        return self.once("futile", notice)

    def unavailable(self, reason: str) -> Verdict:
        """Note that the summary call has failed several times in a row."""
        return self.once("unavailable", f"compaction unavailable, it failed three times in a row: {reason}")

    def helped(self) -> None:
        """Note that a compaction worked: what was said may be said again."""
        self._said.discard("unavailable")

    def once(self, topic: str, notice: str) -> Verdict:
        """Say `notice`, unless something on this topic was said before."""
        known = topic in self._said
        self._said.add(topic)
        return Verdict("" if known else notice)


def largest(messages: Sequence[Message], estimator: Estimator, most: int = 3) -> str:
    """Name the largest messages and their tokens, largest first: what a reader would have to do something about."""
    ranked = sorted(((estimator.message(m), -i, m) for i, m in enumerate(messages)), key=lambda row: row[:2], reverse=True)
    called = {c.id: c.name for m in messages for c in m.tool_calls}
    return ", ".join(f"{_name(m, called)} {size:,} tokens" for size, _, m in ranked[:most])


def _name(message: Message, called: dict[str, str]) -> str:
    who = {"system": "the system prompt", "user": "a user message", "assistant": "an answer"}
    name = called.get(message.tool_call_id, "a tool")
    return f"{who.get(message.role) or f'a result of {name}'} ({message.id})" if message.id else who.get(message.role, name)
