"""The log as a policy reads it: head and body, the compaction in force, and the policy's own notes with their places."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.compaction.cut import is_safe_cut
from agentkit.log import Compaction, Entry, Log, shown_messages
from agentkit.messages import Message

_START = '{"policy": '


@dataclass(frozen=True)
class Branch:
    """The present branch of a log. A position is an index of `body`, the messages after the leading system messages.

    `places[i]` is how many messages of the body stand before entry `i`.
    """

    entries: tuple[Entry, ...]
    head: tuple[Message, ...]
    body: tuple[Message, ...]
    places: tuple[int, ...]

    @functools.cached_property
    def newest(self) -> tuple[Compaction, int] | None:
        """Return the newest compaction that counts, and how many messages of the body stand before it."""
        found = zip(reversed(self.entries), reversed(self.places), strict=True)
        return next(((e.compaction, n) for e, n in found if e.compaction and e.compaction.status == "done"), None)

    @functools.cached_property
    def rounds(self) -> list[Round]:
        """Return the body in rounds."""
        return rounds(self.body)

    def start(self, compaction: Compaction) -> int:
        """Return the position of the first message that `compaction` keeps."""
        return next((i for i, m in enumerate(self.body) if m.id == compaction.first_kept), len(self.body))

    def notes(self, policy: str) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield the notes of `policy`, oldest first, each with its position."""
        for entry, place in zip(self.entries, self.places, strict=True):
            if entry.kind == "note" and (data := own_note(entry.text, policy)):
                yield data, place

    @property
    def turn(self) -> str:
        """Return the id of the newest user message."""
        return next((m.id for m in reversed(self.body) if m.role == "user"), "")


def read(log: Log) -> Branch:
    """Return the present branch of `log`."""
    entries = log.branch()
    messages = shown_messages(entries)
    size = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    places, count = [], 0
    for entry in entries:
        places.append(max(0, count - size))
        count += entry.message is not None
    return Branch(entries, messages[:size], messages[size:], tuple(places))


class Reader:
    """`read` for a log that grows: only what was appended since the last call is looked at."""

    def __init__(self) -> None:
        self._last: tuple[Log, int, Branch] | None = None

    def read(self, log: Log) -> Branch:
        """Return the present branch of `log`; the very same object while nothing was appended."""
        if self._last is None or self._last[0] is not log or self._last[1] != len(log):
            branch = self._extended(log) or read(log)
            self._last = log, len(log), branch
        return self._last[2]

    def _extended(self, log: Log) -> Branch | None:
        """Return the last branch with the new entries behind it; None where they change what stands before them."""
        if self._last is None or self._last[0] is not log or self._last[1] > len(log):
            return None
        _, known, before = self._last
        new = tuple(log)[known:]
        parents = [known - 1, *(entry.seq for entry in new)]
        if not before.body or any(e.parent != parent for e, parent in zip(new, parents, strict=False)):
            return None  # a rewind; or the head may still grow
        if any(e.compaction and e.compaction.clip for e in new):
            return None  # results that were whole are shortened now
        places, count = [], len(before.body)
        for entry in new:
            places.append(count)
            count += entry.message is not None
        body = before.body + tuple(e.message for e in new if e.message is not None)
        branch = Branch(before.entries + new, before.head, body, before.places + tuple(places))
        if "rounds" in vars(before):
            vars(branch)["rounds"] = _grown(before, body)
        return branch


def write_note(log: Log, policy: str, **data: Any) -> None:
    """Append what `policy` has to remember to `log`, as JSON in a note."""
    log.note(json.dumps({"policy": policy, **data}, ensure_ascii=False))


def own_note(text: str, policy: str) -> dict[str, Any]:
    """Return what a note says, if `policy` wrote it; else nothing."""
    data = _parsed(text) if text.startswith(_START) else {}
    return data if data.get("policy") == policy else {}


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


# --------------------------------------------------------------------------------------------------------- cuts and rounds


def first_safe(body: Sequence[Message], wanted: int) -> int:
    """Return the first position from `wanted` on where a tail may start, or the last one before it if there is none."""
    later = next((i for i in range(max(0, wanted), len(body)) if _starts(body, i)), None)
    return last_safe(body, wanted) if later is None else later


def last_safe(body: Sequence[Message], wanted: int) -> int:
    """Return the last position up to `wanted` where a tail may start; 0 if there is none."""
    return next((i for i in range(min(wanted, len(body) - 1), 0, -1) if _starts(body, i)), 0)


def _starts(body: Sequence[Message], position: int) -> bool:
    # The roles decide almost always; the whole check costs work for the whole body.
    return body[position].role in ("user", "assistant") and is_safe_cut(body, position)


@dataclass(frozen=True)
class Round:
    """Messages that belong together, from position `start` to `stop`: a call with its results, or one message."""

    start: int
    stop: int


def rounds(body: Sequence[Message]) -> list[Round]:
    """Return the body in rounds: an assistant message takes what follows it, up to its last result."""
    found: list[Round] = []
    i = 0
    while i < len(body):
        ids = {c.id for c in body[i].tool_calls} if body[i].role == "assistant" else set()
        stop = i + 1
        for j in range(i + 1, len(body) if ids else 0):
            if body[j].role == "assistant":
                break
            if body[j].role == "tool" and body[j].tool_call_id in ids:
                stop = j + 1
        found.append(Round(i, stop))
        i = stop
    return found


def _grown(before: Branch, body: Sequence[Message]) -> list[Round]:
    """Return the rounds of `body`, which begins with the body of `before`; those up to its last call are known."""
    known, old = before.rounds, before.body
    last = next((n for n in range(len(known) - 1, -1, -1) if old[known[n].start].role == "assistant"), 0)
    start = known[last].start if known else 0
    return [*known[:last], *(Round(r.start + start, r.stop + start) for r in rounds(body[start:]))]


def pending(body: Sequence[Message]) -> int:
    """Return the position of what has to stay: the newest question, or the results that the model has not answered."""
    last = len(body) - 1
    if last >= 0 and body[last].role == "tool":
        return next((i for i in range(last, -1, -1) if body[i].role == "assistant"), last)
    return max(0, last)
