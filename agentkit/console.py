"""The conversation in a terminal: every event as a line of text, or as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from agentkit.events import (
    Billed,
    Compacted,
    CompactionLog,
    ContextUsage,
    Event,
    Notice,
    Recovered,
    Retrying,
    TextArrived,
    ToolCalled,
    ToolFinished,
    TurnEnded,
)
from agentkit.recovery.truncation import TRUNCATION

_WIDTH = 100


class Console:
    """Print events as they come. `write` takes text without a line end."""

    def __init__(self, write: Callable[[str], Any]) -> None:
        self._write = write
        self._open = False

    def line(self, text: str) -> None:
        """Print one line, ending a line of streamed text first."""
        self._write(("\n" if self._open else "") + text + "\n")
        self._open = False

    def show(self, event: Event) -> None:
        """Print what `event` says to a reader."""
        if isinstance(event, TextArrived):
            if not event.thinking:
                self._write(event.text)
                self._open = True
        elif text := describe(event):
            self.line(text)


def describe(event: Event) -> str:
    """Return the line for `event`; empty for those that have none."""
    if isinstance(event, ContextUsage):
        return f"[context] estimate {event.estimate:,} of {event.threshold:,} (budget {event.limit:,})"
    if isinstance(event, CompactionLog):
        return _compaction(event)
    if isinstance(event, Compacted):
        return _compacted(event)
    if isinstance(event, ToolCalled):
        return f"  → {event.call.name} {_clip(event.call.arguments)}"
    if isinstance(event, ToolFinished):
        mark = "✗" if event.message.is_error else "←"
        return f"  {mark} {_clip(event.message.content)}"
    if isinstance(event, Billed):
        return _bill(event)
    if isinstance(event, TurnEnded) and event.reason != "answered":
        return f"[stopped: {event.reason}, after {event.rounds} rounds]"
    return _trouble(event)


def _trouble(event: Event) -> str:
    if isinstance(event, Retrying):
        return f"[retry {event.attempt}] {event.reason}; asking again in {event.seconds:.1f} s"
    if isinstance(event, Recovered):
        return f"[recovery] {event.step}: {event.tokens_before:,} → {event.tokens_after:,} tokens; asking again"
    return f"[notice] {event.text}" if isinstance(event, Notice) else ""


def _compacted(event: Compacted) -> str:
    before, after, done = event.tokens_before, event.tokens_after, event.compaction
    what = f"{done.messages} messages {'left out' if done.policy == TRUNCATION else '→ 1 summary'}"
    return f"[compaction] {what}, {before:,} → {after:,} tokens, −{1 - after / before:.0%}"


def _compaction(event: CompactionLog) -> str:
    # The summary call is the dearest part of a compaction, so its bill is shown like any other.
    usage = event.outcome.usage if event.outcome else None
    paid = f"summary call: in={usage.prompt:,} cache={usage.cache_read:,} out={usage.output:,}" if usage else ""
    if event.outcome and event.outcome.status == "done":
        return f"[compaction] {paid}" if paid else ""
    return f"[compaction] {event.text}" + (f" ({paid})" if paid else "")


def _bill(event: Billed) -> str:
    if event.usage is None:
        return f"[request {event.number}] the provider sent no bill; estimate {event.estimate:,}"
    usage, error = event.usage, (event.error or 0) / max(event.usage.prompt, 1)
    bill = f"in={usage.prompt:,} cache={usage.cache_read:,} out={usage.output:,}"
    return f"[request {event.number}] {bill}  (estimated {event.estimate:,}, {error:+.1%})"


def _clip(text: str) -> str:
    first, *rest = text.splitlines() or [""]
    more = f" … ({len(rest)} more lines)" if rest else ""
    return (first if len(first) <= _WIDTH else first[: _WIDTH - 1] + "…") + more


def to_json(event: Event) -> str:
    """Return `event` as one line of JSON: its kind and its fields. A request is given as its number of messages."""
    fields = {k: _plain(v) for k, v in vars(event).items() if k != "last"}
    return json.dumps({"event": type(event).__name__, **fields}, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "messages") and hasattr(value, "tools"):
        return {"messages": len(value.messages), "tools": len(value.tools)}
    if type(value).__name__ == "Outcome":
        return {"status": value.status, "reason": value.reason, "usage": _plain(value.usage)}
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value
