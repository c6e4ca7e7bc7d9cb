"""Marks on a request: which blocks are read from the cache, written to it and fresh, and where the marks stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentkit.figures.palette import LOOKS, fill, ink, legend, patterns
from agentkit.figures.picture import ALARM, FAINT, Drawing, Picture, text_width
from agentkit.figures.rows import Part, State
from agentkit.observed import Observed

_COLUMN, _GAP, _SIGNS = 58, 16, {"read": "=", "written": "+", "fresh": "."}


@dataclass(frozen=True)
class MarkedBlock:
    """One block: its part, its tokens by state in the order of the prompt, and whether it carries a mark."""

    part: Part
    pieces: tuple[tuple[State, int], ...]
    marked: bool

    @property
    def tokens(self) -> int:
        """Return the tokens of the block."""
        return sum(tokens for _, tokens in self.pieces)

    @property
    def sign(self) -> str:
        """Return the block in plain text: a letter, how most of it was billed, and its mark."""
        state = max(self.pieces, key=lambda piece: piece[1])[0]
        return LOOKS[self.part].letter + _SIGNS[state] + ("|" if self.marked else "")


@dataclass(frozen=True)
class MarkedRow:
    """One request with its label, its blocks and its bill in tokens."""

    label: str
    blocks: tuple[MarkedBlock, ...]
    read: int
    written: int
    fresh: int


def marked_rows(seen: Sequence[Observed], labels: Sequence[str] = ()) -> list[MarkedRow]:
    """Return one row for each request; without `labels` they are counted from 1."""
    names = labels or [f"request {n}" for n in range(1, len(seen) + 1)]
    return [_row(name, observed) for name, observed in zip(names, seen, strict=True)]


def _row(label: str, observed: Observed) -> MarkedRow:
    result = observed.result
    left: dict[State, int] = {"read": result.read, "written": result.written, "fresh": result.fresh}
    blocks = []
    for segment in observed.prompt:
        if segment.tokens:
            part = _part(segment.kind, segment.data)
            blocks.append(MarkedBlock(part, tuple(_take(left, len(segment.tokens))), segment.mark is not None))
    return MarkedRow(label, tuple(blocks), result.read, result.written, result.fresh)


def _part(kind: str, data: bytes) -> Part:
    if kind in ("tools", "system"):
        return kind  # type: ignore[return-value]
    if kind in ("assistant", "thinking"):
        return "assistant"
    return "tool" if data.startswith(b"<tool") else "user"


def _take(left: dict[State, int], tokens: int) -> Iterator[tuple[State, int]]:
    """Yield how the next `tokens` of the prompt were billed: what was read stands first, then what was written."""
    for state in left:
        taken = min(tokens, left[state])
        left[state] -= taken
        tokens -= taken
        if taken:
            yield state, taken


def marks_in_words(rows: Sequence[MarkedRow]) -> str:
    """Return the tokens of every request and which of its blocks are marked."""
    return " ".join(_words(row) for row in rows)


def _words(row: MarkedRow) -> str:
    marked = [str(i) for i, block in enumerate(row.blocks, 1) if block.marked]
    where = f"; marks on {', '.join(marked)} of {len(row.blocks)} blocks" if marked else "; no mark"
    return f"{row.label}: {row.read:,} read, {row.written:,} written, {row.fresh:,} fresh{where}."


def marks_strip(
    seen: Sequence[Observed], *, labels: Sequence[str] = (), title: str = "", width: int = 760, scale: int | None = None
) -> Picture:
    """Return the requests as a strip, one row each, with a triangle over every marked block.

    `scale` are the tokens that fill the width, so that several strips can be compared (None: the longest request).
    Raises `ValueError` without a request.
    """
    if not seen:
        raise ValueError("there is no request to draw")
    rows = marked_rows(seen, labels)
    words = marks_in_words(rows)
    svg = _Sheet(rows, width, scale).svg(title, words)
    return Picture(svg, f"{title}. {words}" if title else words, _text(rows, title))


def _text(rows: Sequence[MarkedRow], title: str) -> str:
    wide = max(len(row.label) for row in rows)
    lines = [" " * wide + f"{'read':>8}{'written':>9}{'fresh':>8}  blocks"]
    for row in rows:
        blocks = " ".join(block.sign for block in row.blocks)
        lines.append(f"{row.label:<{wide}}{row.read:>8,}{row.written:>9,}{row.fresh:>8,}  {blocks}")
    parts = {block.part for row in rows for block in row.blocks}
    names = ", ".join(f"{look.letter} {look.name}" for part, look in LOOKS.items() if part in parts)
    return "\n".join(filter(None, [title, *lines, f"{names}; = read, + written, . fresh; | a mark behind this block"]))


class _Sheet:
    def __init__(self, rows: Sequence[MarkedRow], width: int, scale: int | None) -> None:
        self.rows = rows
        self.left = 26 + max(text_width(row.label) for row in rows)
        self.room = width - self.left - 3 * _COLUMN - _GAP
        longest = scale or max(sum(block.tokens for block in row.blocks) for row in rows)
        self.scale = self.room / max(1, longest)
        self.drawing = Drawing(width)

    def svg(self, title: str, words: str) -> str:
        used = {(block.part, state) for row in self.rows for block in row.blocks for state, _ in block.pieces}
        self.drawing.raw(patterns(used))
        y = 22.0
        if title:
            self.drawing.text(_GAP, y, title, more='font-weight="bold"')
            y += 22
        for number, name in enumerate(("read", "written", "fresh"), 1):
            self.drawing.text(self.left + self.room + number * _COLUMN, y, name, anchor="end", fill=FAINT)
        for row in self.rows:
            y += 14
            self._row(row, y)
            y += 26
        y = legend(self.drawing, _GAP, y + 22, used)
        self.drawing.text(_GAP, y + 20, "▼ a mark behind this block", fill=ALARM)
        return self.drawing.svg(y + 34, f"{title}. {words}" if title else words)

    def _row(self, row: MarkedRow, y: float) -> None:
        self.drawing.text(_GAP, y + 16, row.label)
        at = self.left
        for block in row.blocks:
            end = at + block.tokens * self.scale
            self._block(block, at, end, y)
            at = end
        for number, tokens in enumerate((row.read, row.written, row.fresh), 1):
            self.drawing.text(self.left + self.room + number * _COLUMN, y + 16, f"{tokens:,}", anchor="end")

    def _block(self, block: MarkedBlock, start: float, end: float, y: float) -> None:
        look, at = LOOKS[block.part], start
        for state, tokens in block.pieces:
            wide = tokens * self.scale
            self.drawing.rect(at, y, wide, 22, fill(block.part, state), f'stroke="{look.colour}" stroke-width="0.7"')
            at += wide
        state = max(block.pieces, key=lambda piece: piece[1])[0]
        label = look.name if end - start > text_width(look.name) + 6 else look.letter if end - start > 13 else ""
        if label:
            halo = 'paint-order="stroke" stroke="#ffffff" stroke-width="3"' if state == "read" else ""
            self.drawing.text((start + end) / 2, y + 15, label, anchor="middle", fill=ink(block.part, state), more=halo)
        if block.marked:
            self.drawing.text(end - 1, y - 1, "▼", anchor="middle", fill=ALARM, more='font-size="10"')
