"""What every picture is made of: an SVG with its own light panel, the same result in words, and a plain-text form.

JupyterLab removes inline SVG and `aria-*` from a notebook that is not trusted yet, so a picture is shown as `<img>` with an
alternative text and the SVG in its address. Panels put the SVG itself into a widget, which is not sanitised.
"""

from __future__ import annotations

import base64
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

INK, FAINT, PAPER, EDGE = "#1f2328", "#57606a", "#fcfcfa", "#d0d7de"
ALARM = "#b42318"
"""For what an API would refuse; always with words beside it, never colour alone."""
SIZE = 12
"""Font size in pixels: the smallest in any picture."""
_FONTS = "system-ui,'Segoe UI','DejaVu Sans',Arial,sans-serif"


@dataclass(frozen=True)
class Picture:
    """A picture that a notebook can show. `alt` says the result in words, `text` is the form without graphics."""

    svg: str
    alt: str
    text: str
    caption: str = ""

    @property
    def html(self) -> str:
        """Return a `<figure>` that survives JupyterLab's sanitiser."""
        data = base64.b64encode(self.svg.encode("utf-8")).decode("ascii")
        image = f'<img alt="{escape(self.alt)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'
        return f'<figure style="margin:0">{image}<figcaption>{escape(self.caption)}</figcaption></figure>'

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.text}

    def __repr__(self) -> str:
        return self.text


def number(value: float) -> str:
    """Return a coordinate with one decimal at most: the same bytes on every machine."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text != "-0.0" else "0"


def columns(text: str) -> int:
    """Return how many columns `text` takes in a terminal: Chinese, Japanese and Korean characters take two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def text_width(text: str, size: int = SIZE) -> float:
    """Return about how wide `text` is, in pixels; on the safe side for the fonts that browsers use."""
    return columns(text) * size * 0.6


class Drawing:
    """An SVG under construction, from top to bottom. Coordinates are pixels."""

    def __init__(self, width: float) -> None:
        self.width = width
        self._parts: list[str] = []

    def raw(self, markup: str) -> None:
        """Add markup as it is."""
        self._parts.append(markup)

    def rect(self, x: float, y: float, width: float, height: float, fill: str, more: str = "") -> None:
        """Add a rectangle; `more` are further attributes."""
        box = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        self.raw(f'<rect {box} fill="{fill}"{" " + more if more else ""}/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = INK, more: str = "") -> None:
        """Add a line; `more` are further attributes, a dash pattern for instance."""
        ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
        self.raw(f'<line {ends} stroke="{stroke}"{" " + more if more else ""}/>')

    def path(self, points: Sequence[tuple[float, float]], stroke: str, more: str = "") -> None:
        """Add a line through `points`."""
        way = "L".join(f"{number(x)} {number(y)}" for x, y in points)
        self.raw(f'<path d="M{way}" fill="none" stroke="{stroke}" stroke-width="2"{" " + more if more else ""}/>')

    def text(self, x: float, y: float, text: str, *, anchor: str = "start", fill: str = INK, more: str = "") -> None:
        """Add text with its baseline at `y`."""
        at = "" if anchor == "start" else f' text-anchor="{anchor}"'
        colour = "" if fill == INK else f' fill="{fill}"'
        self.raw(f'<text x="{number(x)}" y="{number(y)}"{at}{colour}{" " + more if more else ""}>{escape(text)}</text>')

    def svg(self, height: float, alt: str) -> str:
        """Return the whole SVG on its own light panel, which reads well in a light and in a dark theme."""
        size = f'width="{number(self.width)}" height="{number(height)}"'
        view = f'viewBox="0 0 {number(self.width)} {number(height)}"'
        font = f'font-family="{_FONTS}" font-size="{SIZE}" fill="{INK}" style="max-width:100%;height:auto"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} role="img" aria-label="{escape(alt)}" {font}>'
        panel = f'<rect x="0.5" y="0.5" width="{number(self.width - 1)}" height="{number(height - 1)}" rx="4"'
        return f'{head}{panel} fill="{PAPER}" stroke="{EDGE}"/>{"".join(self._parts)}</svg>'


def flow(widths: Sequence[float], room: float, gap: float = 18) -> Iterator[tuple[float, int]]:
    """Yield (x, line) for things of these widths that are set one after the other, starting a new line where one is full."""
    x, line = 0.0, 0
    for width in widths:
        if x and x + width > room:
            x, line = 0.0, line + 1
        yield x, line
        x += width + gap


def nice_step(top: float, most: int = 5) -> int:
    """Return a round step (1, 2 or 5 times a power of ten) that divides 0 … `top` into at most `most` parts."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if top <= factor * power * most:
                return factor * power
        power *= 10
