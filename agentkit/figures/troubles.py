"""What an agent did when things went wrong: its events, one line each, with a bar for every request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentkit.events import Billed, Compacted, CompactionLog, Event, Notice, Recovered, Retrying, Sent, TurnEnded
from agentkit.figures.palette import LOOKS, pale
from agentkit.figures.picture import ALARM, FAINT, INK, Drawing, Picture
from agentkit.recovery.truncation import TRUNCATION

MOST_LINES = 18
_WIDTH, _ROW, _LEFT, _BAR = 760, 22, 196, 116
_START = 64
_ROOM = 76
"""Characters of a line that fit beside the bars."""


@dataclass(frozen=True)
class TroubleLine:
    """One line of the log: a mark, what happened, the size of the request (0: this is none), and whether it is bad news."""

    mark: str
    text: str
    tokens: int = 0
    bad: bool = False


@dataclass(frozen=True)
class Trouble:
    """A conversation with a fault: its lines, how it ended, and how many requests and summary calls it took."""

    title: str
    lines: tuple[TroubleLine, ...]
    ended: str
    requests: int
    summaries: int
    failed: bool = False


def trouble_of(title: str, events: Sequence[Event], error: str = "") -> Trouble:
    """Return what `events` tell; `error` is what the run ended with (empty: it ended in answers)."""
    lines: list[TroubleLine] = []
    for event in events:
        if isinstance(event, Recovered):
            # Why comes before what was done about it: right behind the request.
            sent = [i for i, line in enumerate(lines) if line.mark in "→←"]
            lines.insert(sent[-1] + 1 if sent else 0, TroubleLine("✗", event.reason, bad=True))
        lines += _lines(event)
    if error:
        lines.append(TroubleLine("■", error, bad=True))
    requests = sum(isinstance(e, Sent | Retrying) for e in events)
    summaries = sum(e.outcome.calls for e in events if isinstance(e, CompactionLog) and e.outcome)
    turns = [e for e in events if isinstance(e, TurnEnded)]
    ended = "one clear error" if error else (turns[-1].reason if turns else "nothing")
    return Trouble(title, tuple(lines), ended, requests, summaries, bool(error))


def _lines(event: Event) -> Iterator[TroubleLine]:
    if isinstance(event, Sent):
        yield TroubleLine("→", f"request {event.number}", event.estimate)
    elif isinstance(event, Billed):
        what = "calls a tool" if event.message.tool_calls else event.message.content or "says nothing"
        yield TroubleLine("←", what if event.finish in ("stop", "tool_calls") else f"{event.finish}: {what}")
    elif isinstance(event, Retrying):
        yield TroubleLine("✗", event.reason, bad=True)
        yield TroubleLine("↻", f"the same request again, after {event.seconds:.1f} s")
    elif isinstance(event, Recovered):
        yield TroubleLine("↻", f"{event.step}: {event.tokens_before:,} → {event.tokens_after:,} tokens")
    elif isinstance(event, CompactionLog) and event.outcome and event.outcome.status != "done":
        yield TroubleLine("✗", f"compaction {event.text}", bad=True)
    elif isinstance(event, Compacted):
        done = event.compaction
        what = "left out" if done.policy == TRUNCATION else "summarised"
        yield TroubleLine("▼", f"{done.messages} message{'' if done.messages == 1 else 's'} {what}")
    elif isinstance(event, Notice):
        yield TroubleLine("!", event.text, bad=True)


def trouble_in_words(trouble: Trouble) -> str:
    """Return the outcome as one sentence."""
    requests = f"{trouble.requests} request{'' if trouble.requests == 1 else 's'}"
    summaries = f"{trouble.summaries} summary call{'' if trouble.summaries == 1 else 's'}"
    ended = trouble.ended if trouble.failed else f"“{trouble.ended}”"
    return f"{trouble.title}: it ended in {ended}, after {requests} and {summaries}."


def trouble_picture(trouble: Trouble) -> Picture:
    """Return the log, from top to bottom; a bar is the size of a request, a cross is bad news."""
    words = trouble_in_words(trouble)
    lines = _shown(trouble.lines)
    drawing = Drawing(_WIDTH)
    most = max([1, *(line.tokens for line in lines)])
    for i, line in enumerate(lines):
        _row(drawing, 14 + _ROW * i, line, most)
    text = [f"{line.mark} {line.text}" + (f" ({line.tokens:,} tokens)" if line.tokens else "") for line in lines]
    return Picture(drawing.svg(22 + _ROW * len(lines), words), words, "\n".join([*text, words]), words)


def _shown(lines: Sequence[TroubleLine]) -> list[TroubleLine]:
    """Return at most `MOST_LINES` lines: the first ones and the last ones, and between them how many are missing."""
    if len(lines) <= MOST_LINES:
        return list(lines)
    head = MOST_LINES * 2 // 3
    tail = MOST_LINES - head - 1
    return [*lines[:head], TroubleLine("⋮", f"{len(lines) - head - tail} more lines"), *lines[-tail:]]


def _row(drawing: Drawing, y: float, line: TroubleLine, most: int) -> None:
    look = LOOKS["user"]
    if line.tokens:
        drawing.text(_START - 8, y + 10, f"{line.tokens:,}", anchor="end", fill=FAINT)
        drawing.rect(_START, y - 2, _BAR * line.tokens / most, 15, pale(look.colour, 0.6), f'stroke="{look.colour}"')
    drawing.text(_LEFT + 6, y + 10, line.mark, anchor="middle", fill=ALARM if line.bad else INK, more='font-weight="bold"')
    text = line.text if len(line.text) <= _ROOM else line.text[: _ROOM - 1] + "…"
    drawing.text(_LEFT + 20, y + 10, " ".join(text.split()), fill=ALARM if line.bad else INK)
