"""Colours and patterns of the parts of a prompt: the same in every picture, told apart without colour too."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from agentkit.figures.picture import INK, Drawing, flow, text_width
from agentkit.figures.rows import Part, State


@dataclass(frozen=True)
class Look:
    """How a part of the prompt looks. `letter` stands for it in plain text, `hatch` is the path of its pattern (8 by 8)."""

    name: str
    letter: str
    colour: str
    on_solid: str
    hatch: str


# The colours are Okabe and Ito's, which colour-blind readers can tell apart.
LOOKS: dict[Part, Look] = {
    "tools": Look("tools", "T", "#8a8f98", "#000000", "M0 4H8"),
    "system": Look("system", "S", "#56b4e9", "#000000", "M4 0V8"),
    "summary": Look("summary", "C", "#cc79a7", "#000000", "M0 4H8M4 0V8"),
    "user": Look("user", "U", "#0072b2", "#ffffff", "M-1 9L9 -1M-1 1L1 -1M7 9L9 7"),
    "assistant": Look("assistant", "A", "#e69f00", "#000000", "M-1 -1L9 9M7 -1L9 1M-1 7L1 9"),
    "tool": Look("result", "R", "#009e73", "#000000", "M1 2H3M5 6H7"),
}

STATES: dict[State, str] = {"read": "cache read", "written": "cache write", "fresh": "fresh"}
"""What a state is called in the legend."""


_SAMPLE: Part = "tools"


def pale(colour: str, share: float = 0.78) -> str:
    """Return `colour` mixed with white."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(p + (255 - p) * share):02x}" for p in parts)


def patterns(used: Collection[tuple[Part, State]]) -> str:
    """Return the `<defs>` of the fills that are not plain colours, those of the legend included."""
    wanted = sorted({(p, state) for part, state in used for p in (part, _SAMPLE) if state != "fresh"})
    return "<defs>" + "".join(_pattern(part, state) for part, state in wanted) + "</defs>"


def _pattern(part: Part, state: State) -> str:
    look = LOOKS[part]
    ground, stroke = (pale(look.colour), look.colour) if state == "read" else (look.colour, "#ffffff")
    lines = f'<path d="{look.hatch}" stroke="{stroke}" stroke-width="1.5" stroke-opacity="0.55"/>'
    box = f'<rect width="8" height="8" fill="{ground}"/>'
    return f'<pattern id="ak-{part}-{state}" width="8" height="8" patternUnits="userSpaceOnUse">{box}{lines}</pattern>'


def fill(part: Part, state: State) -> str:
    """Return the fill of a block: solid when fresh, pale and hatched when read, solid and hatched when written."""
    return LOOKS[part].colour if state == "fresh" else f"url(#ak-{part}-{state})"


def ink(part: Part, state: State) -> str:
    """Return the colour of a label on the block."""
    return INK if state == "read" else LOOKS[part].on_solid


def legend(drawing: Drawing, x: float, y: float, used: Collection[tuple[Part, State]]) -> float:
    """Draw the legend with its first baseline at `y` and return the baseline of its last line."""
    parts, states = {part for part, _ in used}, {state for _, state in used}
    entries = [(look.name, look.colour, look.colour) for part, look in LOOKS.items() if part in parts]
    entries += [(name, fill(_SAMPLE, state), LOOKS[_SAMPLE].colour) for state, name in STATES.items() if state in states]
    widths = [20 + text_width(name) for name, _, _ in entries]
    line = 0
    for (name, colour, edge), (at, line) in zip(entries, flow(widths, drawing.width - 2 * x), strict=True):
        drawing.rect(x + at, y + 18 * line - 10, 14, 11, colour, f'stroke="{edge}"')
        drawing.text(x + at + 20, y + 18 * line, name)
    return y + 18 * line
