"""The context strip, the picture of this book: one row for each request, its width the tokens of the prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentkit.events import Billed, Compacted
from agentkit.figures import words
from agentkit.figures.palette import LOOKS, fill, ink, legend, patterns
from agentkit.figures.picture import ALARM, EDGE, FAINT, INK, Drawing, Picture, number, text_width
from agentkit.figures.rows import Group, HasBills, Part, Row, State, bills_of, groups, strip_rows
from agentkit.log import Compaction
from agentkit.tokens import TextEstimator

TEXT_WIDTH = 100
_LEFT, _COLUMN, _MARGIN, _MARK = 42, 54, 14, 18


@dataclass(frozen=True, repr=False)
class Strip(Picture):
    """The picture and the rows that it shows."""

    rows: tuple[Row, ...] = ()


def strip(
    source: HasBills | Sequence[Billed],
    *,
    title: str = "",
    upto: int | None = None,
    width: int = 700,
    lines: Mapping[str, int] | None = None,
    compactions: Sequence[Compacted | Compaction] = (),
    estimator: TextEstimator | None = None,
) -> Strip:
    """Return the strip of a run or of its bills.

    `upto` shows only the first requests, on the scale of all of them; `width` is in pixels; `lines` are marks on the scale
    of tokens, such as `{"threshold": 2400}`; one far to the right of the longest row is left out. `compactions` come from
    the run where it has them. Raises `ValueError` without a request.
    """
    rows = strip_rows(bills_of(source), compactions or getattr(source, "compactions", ()), estimator)
    if not rows:
        raise ValueError("there is no request to draw; ask the agent something first")
    longest = max(r.prompt for r in rows)
    seen = {name: at for name, at in (lines or {}).items() if 0 < at <= 1.3 * longest}
    top = max(longest, 1, *seen.values())
    shown = tuple(rows[:upto])
    grouped = groups(shown)
    alt, caption = words.describe(shown), words.caption(shown, title, len(grouped))
    svg = _Sheet(grouped, top, width, seen).svg(alt)
    return Strip(svg, alt, words.as_text(grouped, top, caption, TEXT_WIDTH), caption, shown)


@dataclass(frozen=True)
class _Cell:
    part: Part
    state: State
    start: float
    stop: float


def _cells(row: Row, scale: float) -> Iterator[_Cell]:
    """Yield the row's blocks in pixels. What is narrower than two pixels is drawn together with its neighbours."""
    done = at = 0
    weights: dict[tuple[Part, State], int] = {}
    for block in row.blocks:
        for state, tokens in block.pieces():
            at += tokens
            weights[block.part, state] = weights.get((block.part, state), 0) + tokens
            if (at - done) * scale >= 2 or at == row.prompt:
                yield _Cell(*max(weights, key=weights.__getitem__), done * scale, at * scale)
                done, weights = at, {}


class _Sheet:
    """The drawing of a strip: head, rows, legend, from top to bottom."""

    def __init__(self, groups: Sequence[Group], top: int, width: int, lines: Mapping[str, int]) -> None:
        self.groups, self.lines = groups, lines
        self.names = ["prompt", "read", *(["written"] if any(g.row.cache_write for g in groups) else []), "fresh", "output"]
        wide = max([len(g.label) for g in groups], default=1) > 4
        self.left = _LEFT + (24 if wide else 0)
        self.room = max(120, width - self.left - _MARGIN - _COLUMN * len(self.names))
        self.scale = self.room / top
        self.height = 26 if len(groups) <= 12 else 20 if len(groups) <= 24 else 16
        self.drawing = Drawing(self.left + self.room + _COLUMN * len(self.names) + _MARGIN)
        self.shapes: dict[tuple[Part, State], list[str]] = {}
        self.labels: list[tuple[float, float, str, Part, State]] = []

    def svg(self, alt: str) -> str:
        """Draw everything."""
        top = self._head()
        bottom = self._rows(top)
        self._shapes()
        self._lines(top, bottom)
        bottom = legend(self.drawing, _MARGIN, bottom + 24, self.shapes)
        return self.drawing.svg(bottom + 12, alt)

    def _head(self) -> float:
        y = 22.0
        self.drawing.text(self.left, y, f"{self._step():,} tokens", fill=FAINT)
        self.drawing.line(self.left, y + 6, self.left + self._step() * self.scale, y + 6, FAINT)
        for i, name in enumerate(self.names, 1):
            self.drawing.text(self.left + self.room + _COLUMN * i, y, name, anchor="end", fill=FAINT)
        return y + (26 if self.lines else 12)

    def _step(self) -> int:
        power = 10 ** (len(str(int(self.room / self.scale))) - 1)
        return max(1, power)

    def _rows(self, y: float) -> float:
        for group in self.groups:
            if group.row.marks:
                self._mark(y, group.row.marks)
                y += _MARK
            self._row(y, group)
            y += self.height + (4 if self.height > 16 else 2)
        return y

    def _mark(self, y: float, marks: Sequence[str]) -> None:
        text = "▼ " + " · ".join(marks)
        self.drawing.text(self.left, y + 13, text, fill=ALARM if "cache miss" in marks else INK, more='font-weight="bold"')
        x = self.left + text_width(text) + 8
        self.drawing.line(x, y + 9, self.left + self.room, y + 9, EDGE, 'stroke-dasharray="4 3"')

    def _row(self, y: float, group: Group) -> None:
        middle = y + self.height / 2 + 4.5
        self.drawing.text(self.left - 8, middle, group.label, anchor="end")
        for cell in _cells(group.row, self.scale):
            self._cell(y, middle, cell)
        row = group.row
        written = [row.cache_write] if "written" in self.names else []
        for i, value in enumerate([row.prompt, row.cache_read, *written, row.fresh, row.output], 1):
            self.drawing.text(self.left + self.room + _COLUMN * i, middle, f"{value:,}", anchor="end")

    def _cell(self, y: float, middle: float, cell: _Cell) -> None:
        wide = cell.stop - cell.start
        inset = 0.5 if wide > 3 else 0
        shape = f"M{number(self.left + cell.start + inset)} {number(y + 0.5)}h{number(wide - 2 * inset)}v{self.height - 1}"
        self.shapes.setdefault((cell.part, cell.state), []).append(f"{shape}h-{number(wide - 2 * inset)}z")
        look = LOOKS[cell.part]
        label = look.name if wide > text_width(look.name) + 6 else look.letter if wide > 13 else ""
        if label:
            self.labels.append((self.left + (cell.start + cell.stop) / 2, middle, label, cell.part, cell.state))

    def _shapes(self) -> None:
        """Draw all blocks of one look as one path: 40 rows of 200 messages stay a small picture."""
        self.drawing.raw(patterns(self.shapes))
        for (part, state), shapes in sorted(self.shapes.items()):
            edge = "" if state == "fresh" else f' stroke="{LOOKS[part].colour}"'
            self.drawing.raw(f'<path d="{"".join(shapes)}" fill="{fill(part, state)}"{edge}/>')
        for x, y, text, part, state in self.labels:
            halo = f'paint-order="stroke" stroke="{"#ffffff" if state == "read" else "none"}" stroke-width="3"'
            self.drawing.text(x, y, text, anchor="middle", fill=ink(part, state), more=halo)

    def _lines(self, top: float, bottom: float) -> None:
        for name, at in self.lines.items():
            x = self.left + at * self.scale
            self.drawing.line(x, top - 6, x, bottom, ALARM if name == "threshold" else INK, 'stroke-dasharray="5 3"')
            fits = x + text_width(name) / 2 < self.left + self.room + _COLUMN / 2
            self.drawing.text(x, top - 9, f"{name}", anchor="middle" if fits else "end")
