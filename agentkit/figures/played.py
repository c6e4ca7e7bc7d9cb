"""The context strip as data for a player: rows, what is said at each step, and where something happens.

No widget and no picture here. The player (`panels.strip_widget`) gets plain lists and numbers, so that it needs no kernel
to move from one request to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agentkit.events import Billed, Compacted
from agentkit.figures import words
from agentkit.figures.palette import LOOKS, STATES
from agentkit.figures.rows import MOST_ROWS, Part, Row, State
from agentkit.log import Compaction
from agentkit.messages import Message, Request, ToolSpec

MOST_PIECES = 20_000
"""Pieces of all rows together that a browser draws and animates without effort."""

PREVIEW = 70
"""Characters of a message that are shown when someone points at its block."""


@dataclass(frozen=True)
class Said:
    """What a side says at one step: a sentence, and labelled lines such as ("You", question)."""

    sentence: str = ""
    lines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Side:
    """One strip of a player. `bills` belong to `rows`, one each.

    `shown` says how many rows stand there at each step, from step 0 on, and `said` what is said then; empty: one row more
    with every step. `lines` are marks on the scale of tokens.
    """

    title: str
    rows: Sequence[Row] = ()
    bills: Sequence[Billed] = ()
    shown: Sequence[int] = ()
    said: Sequence[Said] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    compactions: Sequence[Compacted | Compaction] = ()


def as_data(sides: Sequence[Side]) -> dict[str, Any]:
    """Return everything that a player needs, on one scale and one step counter for all `sides`."""
    longest = max((row.prompt for side in sides for row in side.rows), default=1)
    seen = [{name: at for name, at in side.lines.items() if 0 < at <= 1.3 * longest} for side in sides]
    top = max(longest, 1, *(at for lines in seen for at in lines.values()))
    count = max((len(side.rows) for side in sides), default=0)
    limit = min(300, max(20, MOST_PIECES // max(1, sum(len(side.rows) for side in sides))))
    steps = max((len(shown(side)) - 1 for side in sides), default=0)
    return {
        "sides": [_side(side, lines, top, limit, steps) for side, lines in zip(sides, seen, strict=True)],
        "top": top,
        "steps": steps,
        "stops": stops(sides),
        "group": -(-count // MOST_ROWS) or 1,
        "looks": {part: asdict(look) for part, look in LOOKS.items()},
        "states": STATES,
    }


def shown(side: Side) -> Sequence[int]:
    """Return how many rows stand there at each step."""
    return side.shown or range(len(side.rows) + 1)


def stops(sides: Sequence[Side]) -> list[int]:
    """Return the steps at which something happens on a side: a row with a mark appears."""
    found = set()
    for side in sides:
        at = list(shown(side))
        for step in range(1, len(at)):
            if any(row.marks for row in side.rows[at[step - 1] : at[step]]):
                found.add(step)
    return sorted(found)


def sentence(row: Row) -> str:
    """Return what is to be said of one request."""
    written = f", {row.cache_write:,} written to it" if row.cache_write else ""
    bill = f"{row.prompt:,} prompt tokens: {row.cache_read:,} read from the cache{written}, {row.fresh:,} fresh"
    said = "; ".join(_MARKS.get(mark, mark) for mark in row.marks)
    marks = f" {said[0].upper()}{said[1:]}." if said else ""
    return f"Request {row.number}: {bill}; {row.output:,} output tokens.{marks}"


_MARKS = {
    "compaction": "a compaction came before it",
    "cache miss": "the cache was missed",
    "summary refused": "a summary was paid for and not used",
    "no bill": "there was no bill, the numbers are an estimate",
}


def _side(side: Side, lines: Mapping[str, int], top: int, limit: int, steps: int) -> dict[str, Any]:
    notes = _Notes()
    rows = [_row(row, bill, notes, top / limit) for row, bill in zip(side.rows, side.bills, strict=True)]
    at = list(shown(side))
    said = [[s.sentence, *([label, text] for label, text in s.lines)] for s in side.said]
    return {
        "title": side.title,
        "alt": words.describe(side.rows),
        "rows": rows,
        "notes": notes.texts,
        "shown": at + [at[-1]] * (steps + 1 - len(at)),
        "said": said + said[-1:] * (steps + 1 - len(said)),
        "lines": [[name, tokens] for name, tokens in lines.items()],
        "written": any(row.cache_write for row in side.rows),
    }


def _row(row: Row, bill: Billed, notes: _Notes, least: float) -> dict[str, Any]:
    return {
        "number": row.number,
        "values": [row.prompt, row.cache_read, row.cache_write, row.fresh, row.output],
        "marks": list(row.marks),
        "sentence": sentence(row),
        "pieces": [list(piece) for piece in _pieces(row, bill.request, notes, least)],
    }


def _pieces(row: Row, request: Request, notes: _Notes, least: float) -> Iterator[tuple[Part, State, int, int]]:
    """Yield (part, state, tokens, number of its note). What has fewer than `least` tokens is drawn with its neighbours."""
    done = at = 0
    weights: dict[tuple[Part, State], int] = {}
    inside: list[int] = []
    for block in row.blocks:
        for state, tokens in block.pieces():
            at += tokens
            weights[block.part, state] = weights.get((block.part, state), 0) + tokens
            inside.append(notes.of(block.part, block.index, request))
            if at - done >= least or at == row.prompt:
                part, most = max(weights, key=weights.__getitem__)
                yield part, most, at - done, notes.together(inside)
                done, weights, inside = at, {}, []


class _Notes:
    """The texts that explain pieces, each kept once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._at: dict[str, int] = {}
        # By identity, with the object kept alive: the same message stands in hundreds of requests.
        self._known: dict[tuple[Part, int], tuple[object, int]] = {}

    def of(self, part: Part, index: int | None, request: Request) -> int:
        """Return the number of the note on one block of `request`."""
        about: Message | tuple[ToolSpec, ...] = request.tools if index is None else request.messages[index]
        known = self._known.get((part, id(about)))
        if known is None:
            known = self._known[part, id(about)] = about, self._add(_note(part, about))
        return known[1]

    def together(self, inside: Sequence[int]) -> int:
        """Return the number of the note on several pieces drawn as one."""
        different = list(dict.fromkeys(inside))
        if len(different) == 1:
            return different[0]
        first, last = (self.texts[i].partition(":")[0] for i in (different[0], different[-1]))
        return self._add(f"{len(different)} blocks too narrow to draw alone, from {first} to {last}")

    def _add(self, text: str) -> int:
        if text not in self._at:
            self._at[text] = len(self.texts)
            self.texts.append(text)
        return self._at[text]


def _note(part: Part, about: Message | tuple[ToolSpec, ...]) -> str:
    if not isinstance(about, Message):
        names = [tool.name for tool in about]
        return f"{len(names)} tool{'' if len(names) == 1 else 's'}: {', '.join(names)}"
    name = LOOKS[part].name if part == "summary" else f"{LOOKS[part].name} {about.id}".strip()
    return f"{name}: {preview(about)}"


def preview(message: Message) -> str:
    """Return the beginning of a message, or its calls, on one line."""
    calls = ", ".join(f"{call.name}({call.arguments})" for call in message.tool_calls)
    text = " ".join(f"{message.content[: 4 * PREVIEW]} {calls and 'calls ' + calls}".split())
    return f"“{text[:PREVIEW]}{'…' if len(text) > PREVIEW else ''}”"
