"""The context strip, played live: it steps, runs and explains itself in the browser, also while the kernel is busy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anywidget
import traitlets

from agentkit.events import Billed, Compacted
from agentkit.figures.context_strip import strip
from agentkit.figures.palette import LOOKS
from agentkit.figures.picture import Picture
from agentkit.figures.played import Side, as_data, shown
from agentkit.figures.rows import HasBills, bills_of, strip_rows
from agentkit.log import Compaction


def _source(ending: str) -> str:
    return Path(__file__).with_suffix(ending).read_text(encoding="utf-8")


def part_styles() -> str:
    """Return the rules that give each part of a prompt its colour, and its pattern where it was read or written."""
    rules = []
    for part, look in LOOKS.items():
        rules.append(f".ak-{part} {{ --colour: {look.colour}; --on: {look.on_solid}; }}")
        for state, stroke in (("read", look.colour), ("written", "rgba(255,255,255,.6)")):
            line = f"<path d='{look.hatch}' stroke='{stroke}' stroke-width='1.5' fill='none'/>"
            svg = f"<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'>{line}</svg>"
            rules.append(f'.ak-{part}.ak-is-{state} {{ background-image: url("data:image/svg+xml,{quote(svg)}"); }}')
    return "\n".join(rules)


class StripWidget(anywidget.AnyWidget):
    """One strip, or two on one step counter.

    `step` is the position, 0 before the first request; the browser sets it too. `large` is for a projector. Everything that
    is drawn is in `data`, which `show` makes.
    """

    _esm = _source(".js")
    _css = f"{_source('.css')}\n{part_styles()}\n"
    data = traitlets.Dict().tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    large = traitlets.Bool(False).tag(sync=True)

    def __init__(self, sides: Sequence[Side] = (), *, large: bool = False) -> None:
        self.sides: tuple[Side, ...] = ()
        super().__init__(large=large)
        self.show(sides)

    def show(self, sides: Sequence[Side], data: dict[str, Any] | None = None) -> None:
        """Show other strips. Whoever had seen everything sees everything again, others stay at their step.

        `data` is what `as_data` makes of `sides`, for whoever has it already.
        """
        before, data = self.data.get("steps", 0), data or as_data(sides)
        step = data["steps"] if self.step >= before else min(self.step, data["steps"])
        self.sides = tuple(sides)
        with self.hold_sync():
            self.data, self.step = data, step

    def still(self, side: int = 0) -> Picture:
        """Return the strip of one side, as far as it is shown, for a notebook without widgets. Raises `ValueError`."""
        found = self.sides[side]
        at = shown(found)
        upto = at[min(self.step, len(at) - 1)]
        if not upto:
            raise ValueError(f"there is nothing to draw for {found.title or 'this strip'} yet; set step to 1 or more")
        return strip(found.bills, title=found.title, upto=upto, lines=found.lines, compactions=found.compactions)

    def __repr__(self) -> str:
        titles = " and ".join(side.title or "one strip" for side in self.sides) or "nothing"
        return f"StripWidget: {titles}, step {self.step} of {self.data['steps']}"


def live_strip(
    source: HasBills | Sequence[Billed],
    *,
    title: str = "",
    lines: Mapping[str, int] | None = None,
    compactions: Sequence[Compacted | Compaction] = (),
    large: bool = False,
) -> StripWidget:
    """Return the strip of a run or of its bills as a widget; the arguments are those of `figures.strip`.

    Raises `ValueError` without a request.
    """
    bills = bills_of(source)
    if not bills:
        raise ValueError("there is no request to draw; ask the agent something first")
    found = tuple(compactions or getattr(source, "compactions", ()))
    side = Side(title, strip_rows(bills, found), bills, lines=dict(lines or {}), compactions=found)
    return StripWidget([side], large=large)
