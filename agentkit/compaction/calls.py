"""The summary calls: usually one; a second one, terser, when the answer was cut off; several when the history does not fit.

A history that is too long for the summariser's window is folded in chunks: the summary of the first is the earlier summary
of the second. Nothing counts as summarised that was not in a request with a good answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentkit.messages import Message, Reply, Request, Usage
from agentkit.providers.base import Provider, ProviderError, complete
from agentkit.recovery.learned import Learned
from agentkit.recovery.overflow import is_overflow, sizes_of

MOST_CALLS = 24
"""Summary calls of one compaction. More would cost more than starting a new conversation."""
MOST_SHRINKS = 3
"""How often the chunks are made smaller after an overflow."""
_SHORTEST_CLIP = 200
_MARGIN = 0.9
_NO_ROOM = "what is to be summarised does not fit into the summariser's window"

UNFINISHED = {
    "length": "the summary was cut off before its end",
    "overflow": _NO_ROOM,
    "refused": "the model refused to write a summary",
}


def fault_of(reply: Reply) -> str:
    """Return why the answer is no summary, or nothing. Half a summary would silently lose the other half of the history."""
    if reply.message.tool_calls:
        return "the model called a tool instead of writing a summary"
    if reply.finish in UNFINISHED:
        return UNFINISHED[reply.finish]
    return "" if reply.message.content.strip() else "the summary is empty"


@dataclass(frozen=True)
class Draft:
    """One summary call to be: the messages, the summary so far, how terse (0: no length is said), the clip in characters.

    `most_output` in tokens, where the model's window is known: a small window must not be used up by room for the answer.
    """

    messages: Sequence[Message]
    previous: str
    terse: int
    clip: int
    most_output: int | None = None


class Calls:
    """Make the summary of a list of messages, in one call or in several.

    `build` makes the request of a draft, `count` estimates it in tokens; without `fold` there is one call, and one more when
    that was cut off. Afterwards `fault` says what went wrong (empty:
    nothing), `usage` and `made` count every call, `request` is the last one.
    """

    def __init__(
        self,
        provider: Provider,
        build: Callable[[Draft], Request],
        count: Callable[[Request], int],
        learned: Learned,
        *,
        terse: int = 0,
        clip: int = 4_000,
        fold: bool = True,
    ) -> None:
        self.provider, self.build, self.count, self.learned = provider, build, count, learned
        self.terse, self.clip = max(terse, int(learned.of(provider.model).wordy)), clip
        self.fold = fold
        self.fault, self.summary = "", ""
        self.usage: Usage | None = None
        self.request: Request | None = None
        self.made = 0
        self._shrinks = 0
        self._waiting: Sequence[Message] = ()
        self._refusal: ProviderError | None = None

    def write(self, messages: Sequence[Message], previous: str = "") -> str:
        """Make the calls and return the summary; empty when there is a fault."""
        self.summary, self._waiting = previous, messages
        known = self.learned.of(self.provider.model).window if self.fold else None
        room = self._clipped(self._room()) if known else None
        while self._waiting:
            chunk = self._fitting(self._waiting, room)
            if self._ask(self._waiting[:chunk]):
                self._waiting = self._waiting[chunk:]
            elif not self.fold or (room := self._shrunk()) is None:
                return ""
        return self.summary

    def _ask(self, messages: Sequence[Message]) -> bool:
        """Make one call, and a terser one when it was cut off. Say whether there is a new summary."""
        if self.made >= MOST_CALLS:
            self.fault, self._refusal = f"no summary after {self.made} calls, and no more are made", None
            return False
        self.request, self.made = self._request(messages), self.made + 1
        try:
            reply = complete(self.provider, self.request)
        except (ProviderError, OSError) as error:  # OSError: a provider that forgot to translate a broken connection
            self.fault = f"the summary call failed: {error}"
            self._refusal = error if isinstance(error, ProviderError) else None
            return False
        if reply.usage:
            self.usage = self.usage + reply.usage if self.usage else reply.usage
        if reply.finish == "length" and not self.terse and not reply.message.tool_calls:
            self.learned.is_wordy(self.provider.model)
            self.terse = 1
            return self._ask(messages)
        self.fault = fault_of(reply)
        self._refusal = ProviderError(self.fault, kind="overflow") if reply.finish == "overflow" else None
        if not self.fault:
            self.summary = reply.message.content.strip()
        return not self.fault

    def _shrunk(self) -> int | None:
        """Return the room for the next chunk after an overflow; None after any other fault, or when it is enough."""
        if self._refusal is None or not is_overflow(self._refusal) or self._shrinks >= MOST_SHRINKS or self.request is None:
            return None
        self._shrinks += 1
        sent = self.count(self.request)
        sizes = sizes_of(str(self._refusal), sent, self.request.max_output or 0)
        self.learned.overflow(self.provider.model, sent, sizes)
        told = self._room() if sizes.limit else sent // 2
        # Never the same request again: what was sent is known to be too much, whatever the numbers say.
        return self._clipped(min(told, int(_MARGIN * sent)))

    def _room(self) -> int:
        """Return the tokens by our count that a request may have: the window without the room for the answer."""
        known, asked = self.learned.of(self.provider.model), self._request(()).max_output or 0
        return max(1, int(_MARGIN * ((known.window or 0) - asked) / known.factor))

    def _fitting(self, messages: Sequence[Message], room: int | None) -> int:
        """Return how many of the first messages fit into one request of `room` tokens; one at least."""
        n = len(messages)
        while room and n > 1 and self.count(self._request(messages[:n])) > room:
            n = max(1, n * 3 // 4)
        if room and n == 1 and self.count(self._request(messages[:1])) > room:
            self.clip = max(_SHORTEST_CLIP, self.clip // 2)
            return n if self.clip == _SHORTEST_CLIP else self._fitting(messages, room)
        return n

    def _clipped(self, room: int) -> int | None:
        """Return `room`, or None when nothing fits into it; clip harder when the history would need too many calls."""
        empty = self.count(self._request(()))
        if room <= empty:
            return None
        enough = (room - empty) * (MOST_CALLS // 2)
        while self.clip > _SHORTEST_CLIP and self.count(self._request(self._waiting)) - empty > enough:
            self.clip = max(_SHORTEST_CLIP, self.clip // 2)
        return room

    def _request(self, messages: Sequence[Message]) -> Request:
        window = self.learned.of(self.provider.model).window
        most = max(1, window // 4) if window else None
        return self.build(Draft(messages, self.summary, self.terse, self.clip, most))
