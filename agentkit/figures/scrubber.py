"""A moment of a log: on the left everything that it holds, on the right, beside it, what the model sees of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentkit.compaction.compactor import assemble
from agentkit.figures.palette import LOOKS, pale
from agentkit.figures.picture import FAINT, INK, SIZE, Drawing, Picture, columns
from agentkit.figures.rows import Part
from agentkit.ledger import Line, history
from agentkit.log import Log, project
from agentkit.tokens import PerScript, TextEstimator

_HIDDEN = ("other branch", "no message", "superseded", "failed")


@dataclass(frozen=True)
class Moment:
    """A log as it was when entry `now` was its newest, or, if `rewound`, as it is after going back there.

    `seen` is the number of messages in the model's view (the summary counts as one), `branch` those on the branch, and
    `tokens` an estimate of the view.
    """

    lines: tuple[Line, ...]
    now: int
    seen: int
    branch: int
    tokens: int
    rewound: bool = False

    @property
    def summarised(self) -> int:
        """Return how many messages the model sees only in the summary."""
        return sum(line.place == "in the summary" for line in self.lines)

    @property
    def aside(self) -> int:
        """Return how many entries lie on another branch."""
        return sum(line.place == "other branch" for line in self.lines)


def moment(log: Log, now: int, *, rewound: bool = False, estimator: TextEstimator | None = None) -> Moment:
    """Return the moment `now` of `log`, which is not changed. Raises `ValueError` when there is no such entry."""
    past = log.at(len(log) - 1 if rewound else now)
    if rewound:
        past.rewind(now)
    view = assemble(project(past))
    tokens = (estimator or PerScript()).messages(view)
    return Moment(history(past), now, len(view), len(past.messages()), tokens, rewound)


def moment_in_words(shown: Moment) -> str:
    """Return what is to be seen, as a sentence or two."""
    did = f"After going back to entry {shown.now}" if shown.rewound else f"With entry {shown.now} as the newest"
    holds = f"{did}, the ledger holds {_many(len(shown.lines), 'entry', 'entries')}"
    part = f"{_many(shown.summarised, 'message')} only as a summary" if shown.summarised else "nothing as a summary"
    sees = f"the model sees {_many(shown.seen, 'message')}, {part}: about {shown.tokens:,} tokens (estimate)"
    other = f" On another branch, kept and not seen: {_many(shown.aside, 'entry', 'entries')}."
    aside = other if shown.aside else ""
    return f"{holds}; {sees}.{aside}"


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"


def moment_picture(shown: Moment, *, rows: int = 0, width: int = 700) -> Picture:
    """Return history and view side by side, one row for each entry; `rows` keeps room for more than there are."""
    words = moment_in_words(shown)
    drawing = Drawing(width)
    bottom = _Sheet(drawing, shown, width).draw(max(rows, len(shown.lines)))
    return Picture(drawing.svg(bottom, words), words, "\n".join([*_text(shown), words]), words)


def _text(shown: Moment) -> Iterator[str]:
    for line in shown.lines:
        yield f"{line.entry.seq:>4}  {line.place:<14}  {_clipped(line.words, 60)}"


def _clipped(text: str, most: float) -> str:
    """Return as much of `text` as fits into `most` columns."""
    if len(text) <= most and columns(text) <= most:
        return text
    text = text[: int(most)]  # no character takes less than one column
    while columns(text) > most - 1:
        text = text[:-1]
    return text.rstrip() + "…"


class _Sheet:
    """The drawing: one row for each entry, the view beside it."""

    top, high, step = 46.0, 19.0, 22.0

    def __init__(self, drawing: Drawing, shown: Moment, width: float) -> None:
        self.drawing, self.shown = drawing, shown
        self.left, self.wide = 44.0, (width - 44 - 44 - 16) / 2
        self.right = self.left + self.wide + 44

    def draw(self, rows: int) -> float:
        """Draw everything and return where it ends."""
        for x, title in ((self.left, "the ledger: everything"), (self.right, "what the model sees")):
            self.drawing.text(x, 24, title, more='font-weight="bold"')
        for row, line in enumerate(self.shown.lines):
            self._entry(row, line)
        for first, last in self._runs():
            self._summary(first, last, label=first == self._runs()[0][0])
        end = self.top + rows * self.step
        notes = "solid: seen word for word; pale: shortened, or only in the summary; dashed: not seen"
        self.drawing.text(self.left, end + 16, notes, fill=FAINT)
        return end + 30

    def _y(self, row: int) -> float:
        return self.top + row * self.step

    def _entry(self, row: int, line: Line) -> None:
        part, label = _look(line)
        look, y = LOOKS[part], self._y(row)
        solid = line.place in ("word for word", "in force")
        edge = f'stroke="{look.colour}"' + (' stroke-dasharray="4 3"' if line.place in _HIDDEN else "")
        mark = ' font-weight="bold"' if line.entry.seq == self.shown.now else ""
        self.drawing.text(self.left - 8, y + 14, f"{line.entry.seq}", anchor="end", fill=INK if mark else FAINT, more=mark)
        self.drawing.rect(self.left, y, self.wide, self.high, look.colour if solid else pale(look.colour, 0.85), edge)
        self._label(self.left, y, label, look.on_solid if solid else INK)
        if line.place in ("word for word", "shortened"):
            self.drawing.line(self.left + self.wide, y + 9.5, self.right, y + 9.5, FAINT)
            self.drawing.rect(self.right, y, self.wide, self.high, look.colour if solid else pale(look.colour, 0.85), edge)
            self._label(self.right, y, label if solid else f"(shortened) {label}", look.on_solid if solid else INK)

    def _label(self, x: float, y: float, text: str, fill: str) -> None:
        self.drawing.text(x + 6, y + 14, _clipped(text, (self.wide - 10) / (SIZE * 0.6)), fill=fill)

    def _runs(self) -> list[tuple[int, int]]:
        """Return where messages that are only in the summary stand one under the other, as first and last row."""
        runs: list[tuple[int, int]] = []
        together = False
        for row, line in enumerate(self.shown.lines):
            if line.place == "in the summary":
                runs = [*runs[:-1], (runs[-1][0], row)] if together else [*runs, (row, row)]
                together = True
            elif line.place in ("word for word", "shortened", "other branch"):
                together = False
        return runs

    def _summary(self, first: int, last: int, *, label: bool) -> None:
        look, y = LOOKS["summary"], self._y(first)
        self.drawing.rect(self.right, y, self.wide, self._y(last) - y + self.high, look.colour)
        for row in {first, last}:
            middle = self._y(row) + 9.5
            self.drawing.line(self.left + self.wide, middle, self.right, middle, FAINT, 'stroke-dasharray="2 3"')
        made = next((e.entry.compaction for e in self.shown.lines if e.place == "in force"), None)
        if label and made is not None:
            self._label(self.right, y, f"summary: {' '.join(made.summary.split())}", look.on_solid)


def _look(line: Line) -> tuple[Part, str]:
    """Return the colours and the label of an entry."""
    if line.entry.message is not None:
        return line.entry.message.role, line.words
    if line.entry.compaction is not None:
        return "summary", f"▼ compaction ({line.place}), keeps from {line.entry.compaction.first_kept}"
    return "tools", f"↩ {line.words}" if line.entry.kind == "rewind" else line.words
