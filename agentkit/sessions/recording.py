"""Record a run of this project's own agent as a session, with times and bills."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
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
        said = (e.seq for e in self._log.branch() if e.message and e.message.role == "assistant")
        bills = dict(zip(said, self._bills, strict=False))
        session = session_of(self._log, name, times=dict(enumerate(self._times)), bills=bills, tools=self._tools)
        return replace(session, title=title, model=model, notes=notes)


def session_of(
    log: Log,
    name: str,
    *,
    times: Mapping[int, float] | None = None,
    bills: Mapping[int, Usage | None] | None = None,
    tools: Sequence[ToolSpec] = (),
) -> Session:
    """Return the present branch of `log` as a session. `times` and `bills` go by the `seq` of an entry.

    The form knows one branch, text, calls and compactions that count: pictures, provider data and notes stay behind.
    """
    items: list[Item] = []
    usage: list[Usage | None] = []
    where: dict[str, int] = {}
    for entry in log.branch():
        item = _item(entry, (times or {}).get(entry.seq), where)
        if item is None:
            continue
        where[item.message.id] = len(items)
        items.append(_without_id(item))
        if item.message.role == "assistant":
            usage.append((bills or {}).get(entry.seq))
    return Session(name, tuple(items), tuple(usage), tuple(tools), format="agentkit")


def _item(entry: Entry, at: float | None, where: dict[str, int]) -> Item | None:
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
