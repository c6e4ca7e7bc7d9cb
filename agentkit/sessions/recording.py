"""Record a run of this project's own agent as a session, with times and bills."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from agentkit.events import Billed, Event
from agentkit.log import Entry, Log
from agentkit.messages import Message, ToolSpec, Usage
from agentkit.sessions.form import SUMMARY, Item, RecordedCut, Session


class Recorder:
    """Listen to an agent and turn its log into a session: `agent.listeners.append(recorder)` before the first question.

    Every entry of the log gets the time of the first event after it. `clock` gives seconds since 1970.
    """

    def __init__(self, log: Log, tools: Sequence[ToolSpec] = (), *, clock: Callable[[], float] = time.time) -> None:
        self._log, self._tools, self._clock = log, tuple(tools), clock
        self._times: list[float] = []
        self._bills: list[Usage | None] = []

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        now = self._clock()
        self._times += [now] * (len(self._log) - len(self._times))
        if isinstance(event, Billed):
            self._bills.append(event.usage)

    def session(self, name: str, *, title: str = "", model: str = "", notes: str = "") -> Session:
        """Return what was recorded of the present branch. Entries from before the first event have no time."""
        items: list[Item] = []
        where: dict[str, int] = {}
        for entry in self._log.branch():
            if (item := self._item(entry, where)) is not None:
                where[item.message.id] = len(items)
                items.append(item)
        calls = sum(item.message.role == "assistant" for item in items)
        usage = tuple([*self._bills, *[None] * calls][:calls])
        items = [_without_id(item) for item in items]
        return Session(name, tuple(items), usage, self._tools, title=title, format="agentkit", model=model, notes=notes)

    def _item(self, entry: Entry, where: dict[str, int]) -> Item | None:
        at = self._times[entry.seq] if entry.seq < len(self._times) else None
        if entry.message is not None:
            return Item(entry.message, at)
        made = entry.compaction
        if made is None or made.status != "done":
            return None
        cut = RecordedCut(where[made.first_kept], made.tokens_before, made.usage)
        return Item(Message("user", made.summary, id=f"summary-{entry.seq}"), at, SUMMARY, cut)


def _without_id(item: Item) -> Item:
    """Drop the log's own id: the form has none, positions say which message is meant."""
    return replace(item, message=replace(item.message, id=""))
