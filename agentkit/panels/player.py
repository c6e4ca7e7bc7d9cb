"""Chapter 00: the four questions, played request by request."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agentkit.budget import BudgetError
from agentkit.events import Billed, Compacted, CompactionLog, Event
from agentkit.figures import strip
from agentkit.panels.common import Panel, View, paragraph, slider
from agentkit.scenarios import Settings, four_questions

_KEEP, _SHOWN, _BUDGET = "Messages kept", "Requests shown", "Budget in tokens"


def strip_player(settings: Settings | None = None) -> Panel:
    """Return the panel: messages kept and budget run the four questions again, `Requests shown` plays them."""
    start = settings or Settings()
    start = replace(start, keep_list=tuple(start.keep_list))
    most = max(12, start.keep)
    for keep in range(1, most + 1):
        _run(replace(start, keep=keep))  # now, so that a key is answered from memory later
    count = len(_run(start).bills) or 1
    low, high = min(2_000, start.budget), max(8_000, start.budget)
    controls = {
        _KEEP: slider(_KEEP, start.keep, 1, most),
        _BUDGET: slider(_BUDGET, start.budget, low, high, 200),
        _SHOWN: slider(_SHOWN, count, 1, count),
    }
    return Panel("The four questions, one row for each request", controls, functools.partial(_draw, start))


@dataclass(frozen=True)
class _Played:
    """What a run came to; `problem` is why there was none."""

    bills: tuple[Billed, ...] = ()
    events: tuple[Event, ...] = ()
    problem: str = ""

    @property
    def compactions(self) -> tuple[Compacted, ...]:
        """Return every compaction, in order."""
        return tuple(e for e in self.events if isinstance(e, Compacted))


@functools.lru_cache(maxsize=256)
def _run(settings: Settings) -> _Played:
    """Run the four questions; the simulator answers the same way every time, so once for each setting is enough."""
    try:
        run = four_questions(settings)
    except BudgetError as error:
        return _Played(problem=str(error))
    return _Played(tuple(run.bills), tuple(run.events))


def _draw(start: Settings, panel: Panel) -> View:
    settings = replace(start, keep=panel[_KEEP], budget=panel[_BUDGET])
    played = _run(settings)
    if not played.bills:
        return View(None, f"There is no run to show: {played.problem}.")
    shown = _follow(panel, len(played.bills))
    threshold = int(settings.budget * settings.threshold)
    lines = {"threshold": threshold, "budget": settings.budget}
    picture = strip(played, title="The four questions", upto=shown, lines=lines)
    return View(picture, " ".join(_sentence(settings, threshold, played, shown)), _said(played.bills[shown - 1]))


def _follow(panel: Panel, count: int) -> int:
    """Fit `Requests shown` to a run of `count` requests; whoever saw all of them still does. Return its value."""
    control = panel.controls[_SHOWN]
    shown = count if control.value == control.max else min(control.value, count)
    control.max, control.value = count, shown
    return shown


def _sentence(settings: Settings, threshold: int, played: _Played, shown: int) -> Iterator[str]:
    kept = f"{settings.keep} message{'' if settings.keep == 1 else 's'} kept"
    prompt = sum(b.usage.prompt if b.usage else b.estimate for b in played.bills[:shown])
    yield f"{kept}, budget {settings.budget:,}: compaction is due from an estimate of {threshold:,} tokens."
    yield f"{shown} of {len(played.bills)} requests shown, {prompt:,} prompt tokens together."
    attempts = [line for number, line in _attempts(played.events) if number <= shown]
    yield from attempts or ["No compaction was due."]


def _attempts(events: tuple[Event, ...]) -> Iterator[tuple[int, str]]:
    """Yield (request, sentence) for every time that a compaction was due before a request."""
    number, idle = 1, 0
    for event in events:
        if isinstance(event, Billed):
            number = event.number + 1
        elif isinstance(event, Compacted):
            size = f"{event.tokens_before:,} → {event.tokens_after:,} tokens (estimate)"
            yield number, f"Before request {number}, {event.compaction.messages} messages became a summary: {size}."
        elif isinstance(event, CompactionLog) and event.outcome and event.outcome.status == "failed":
            yield number, f"Before request {number}, a compaction failed and changed nothing: {event.outcome.reason}."
        elif isinstance(event, CompactionLog) and event.outcome and event.outcome.status == "skipped":
            idle += 1
            if idle == 1:
                yield number, f"Due first before request {number}, but then all messages are to be kept."


def _said(bill: Billed) -> str:
    asked = next((m.content for m in reversed(bill.request.messages) if m.role == "user"), "")
    calls = ", ".join(f"{c.name}({c.arguments})" for c in bill.message.tool_calls)
    answer = paragraph("Answer", bill.message.content) if bill.message.content else ""
    called = paragraph("The model calls", calls) if calls else ""
    return paragraph(f"Question at request {bill.number}", asked) + called + answer
