"""What a session costs over the threshold: four price lists beside each other, and one curve with the present point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentkit.figures.charts import Chart, _png
from agentkit.figures.palette import LOOKS
from agentkit.figures.picture import ALARM, EDGE, FAINT, INK, PAPER, Drawing, Picture, text_width
from agentkit.pricing import EXAMPLE
from agentkit.replay.run import OPEN_LOOP
from agentkit.sweep import Cell
from agentkit.u_curve import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE, _ORANGE = LOOKS["user"].colour, "#b35c00"
_OPEN = OPEN_LOOP.partition(":")[0]


def usd(value: float) -> str:
    """Return an amount with three digits that count: `12.3 USD`, `0.0456 USD`."""
    digits = 0 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f} USD"


def curve_in_words(curve: Curve) -> str:
    """Return where a curve has its minimum, where the law puts it, and what the difference costs."""
    best, law = curve.best, curve.near(curve.law)
    more = law.usd / best.usd - 1
    return (
        f"{curve.name}: cheapest replay at a threshold of {best.threshold:,} tokens, {usd(best.usd)} with "
        f"{best.compactions} compactions; the square-root law says {curve.law:,.0f}, and the replay nearest to it "
        f"({law.threshold:,}) costs {usd(law.usd)}, {more:.0%} more. Without compaction: {usd(curve.never)}."
    )


# ----------------------------------------------------------------------------------------------------------- four at a time


def u_chart(curves: Sequence[Curve], *, title: str = "") -> Chart:
    """Return cost over threshold for each curve: replayed and by formula, both minima marked.

    Raises `ValueError` without a curve.
    """
    if not curves:
        raise ValueError("there is no curve to draw")

    def draw(*axes: Axes) -> None:
        for number, (each, curve) in enumerate(zip(axes, curves, strict=True)):
            _draw(each, curve, named=number == 0)

    rows = -(-len(curves) // 2)
    shown = f"{title} ({EXAMPLE}, {_OPEN})".strip()
    png = _png(draw, shown, panels=len(curves), rows=rows, height=0.8 + 2.6 * rows)
    return Chart(png, "\n".join([f"{title} ({EXAMPLE})".strip(), *map(curve_in_words, curves), OPEN_LOOP]))


def _draw(axes: Axes, curve: Curve, *, named: bool) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    thresholds = [c.threshold for c in curve.cells]
    fine = _fine(thresholds[0], thresholds[-1], curve)
    labels: dict[str, Any] = dict.fromkeys(("replay", "law", "best", "marked"))
    if named:
        labels = {"replay": "replayed", "law": "by formula", "best": "cheapest replay", "marked": "square-root law"}
    axes.plot(thresholds, [c.usd for c in curve.cells], ".-", color=_BLUE, label=labels["replay"])
    axes.plot(fine, [curve.law_usd(t) for t in fine], "--", color=_ORANGE, label=labels["law"])
    axes.plot(curve.best.threshold, curve.best.usd, "o", ms=10, mfc="none", mec=_BLUE, mew=2, label=labels["best"])
    axes.plot(curve.law, curve.law_usd(curve.law), "X", ms=10, color=_ORANGE, mec=PAPER, label=labels["marked"])
    axes.set_xscale("log")
    axes.set_ylim(*_span(curve))
    axes.set_xlim(right=thresholds[-1])
    axes.set_title(curve.name, fontsize=11, loc="left")
    axes.set_xlabel("threshold, tokens")
    axes.set_ylabel("USD")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1000:,.0f}k"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _span(curve: Curve) -> tuple[float, float]:
    """Return the amounts to show: from below the minimum to at most three times it; further up nothing is to be seen."""
    values = [c.usd for c in curve.cells]
    low = min(*values, curve.law_usd(curve.law))
    return 0.85 * low, min(1.05 * max(values), 3 * low)


def _fine(low: float, high: float, curve: Curve) -> list[float]:
    """Return thresholds for a smooth line. The law may put its minimum to the left of all replays."""
    low = max(1.02 * curve.pace.base, min(low, 0.95 * curve.law))
    return [low * (high / low) ** (i / 80) for i in range(81)] if high > low else []


# --------------------------------------------------------------------------------------------------- one, for the panel


def point_in_words(curve: Curve, point: Cell) -> str:
    """Return what one setting costs, and how it compares with the cheapest threshold and the square-root law."""
    seen = f" {point.recall:.0%} of what the agent used again was still in view word for word." if point.recall else ""
    much = f"{usd(point.usd)}, {usd(point.summaries_usd)} of it for {_times(point.compactions)}"
    if not point.compactions:
        much = f"{usd(point.usd)}; it never compacts"
    more = point.usd / min(curve.best.usd, point.usd) - 1
    best = f"The cheapest threshold replayed is {curve.best.threshold:,} ({usd(curve.best.usd)})"
    return (
        f"{curve.name}, keep {point.keep}, threshold {point.threshold:,} tokens: {much}.{seen} "
        f"{best}; this setting costs {more:.0%} more. The square-root law says {curve.law:,.0f}."
    )


def _times(count: int) -> str:
    return f"{count} summary call{'' if count == 1 else 's'}"


def cost_curve(curve: Curve, point: Cell, *, width: int = 720) -> Picture:
    """Return one curve with the present point on it. Example prices, open loop: the picture says so."""
    words = point_in_words(curve, point)
    text = [f"{c.threshold:>9,}  {usd(c.usd):>12}  {_times(c.compactions)}" for c in curve.cells]
    note = f"{curve.prices.label()}; {_OPEN}"
    return Picture(_Plot(curve, point, width).svg(words), words, "\n".join([*text, words, note]), note)


class _Plot:
    """The axes of one curve: thresholds on a scale of equal factors, USD from 0 up."""

    left, right, top, height = 64.0, 20.0, 44.0, 240.0

    def __init__(self, curve: Curve, point: Cell, width: int) -> None:
        self.curve, self.point, self.drawing = curve, point, Drawing(width)
        self.room = width - self.left - self.right
        thresholds = [c.threshold for c in curve.cells]
        self.low, self.high = thresholds[0], thresholds[-1]
        self.most = 1.08 * max(*(c.usd for c in curve.cells), point.usd)

    def x(self, threshold: float) -> float:
        """Return where a threshold lies; one outside the scale lies at its edge."""
        share = math.log(max(threshold, 1) / self.low) / math.log(self.high / self.low)
        return self.left + min(1.0, max(0.0, share)) * self.room

    def y(self, amount: float) -> float:
        """Return where an amount lies."""
        return self.top + self.height * (1 - min(amount, self.most) / self.most)

    def svg(self, words: str) -> str:
        """Draw everything."""
        self._axes()
        curve, draw = self.curve, self.drawing
        fine = [t for t in _fine(self.low, self.high, curve) if curve.law_usd(t) <= self.most and t >= self.low]
        if len(fine) > 1:
            draw.path([(self.x(t), self.y(curve.law_usd(t))) for t in fine], _ORANGE, 'stroke-dasharray="6 4"')
        draw.path([(self.x(c.threshold), self.y(c.usd)) for c in curve.cells], _BLUE)
        for cell in curve.cells:
            draw.rect(self.x(cell.threshold) - 2.5, self.y(cell.usd) - 2.5, 5, 5, _BLUE)
        self._marker(curve.law, min(curve.law_usd(max(curve.law, self.low)), self.most), "✕", _ORANGE)
        self._marker(curve.best.threshold, curve.best.usd, "○", _BLUE)
        at = self.x(self.point.threshold)
        draw.line(at, self.top, at, self.top + self.height, ALARM, 'stroke-dasharray="3 3"')
        self._marker(self.point.threshold, self.point.usd, "◆", ALARM)
        self._legend()
        return draw.svg(self.top + self.height + 66, words)

    def _marker(self, threshold: float, amount: float, sign: str, colour: str) -> None:
        bold = 'font-size="18" font-weight="bold"'
        self.drawing.text(self.x(threshold), self.y(amount) + 6, sign, anchor="middle", fill=colour, more=bold)

    def _axes(self) -> None:
        step = _step(self.most)
        for i in range(int(self.most / step) + 1):
            y = self.y(i * step)
            self.drawing.line(self.left, y, self.left + self.room, y, EDGE)
            self.drawing.text(self.left - 8, y + 4, f"{i * step:.4g}", anchor="end")
        self.drawing.text(16, 22, f"USD for the whole session ({EXAMPLE}, {_OPEN})", fill=FAINT)
        for threshold in self.curve.cells[:: max(1, len(self.curve.cells) // 5)]:
            x = self.x(threshold.threshold)
            self.drawing.line(x, self.top + self.height, x, self.top + self.height + 5, FAINT)
            label = f"{threshold.threshold / 1000:.3g}k"
            self.drawing.text(x, self.top + self.height + 19, label, anchor="middle")
        self.drawing.text(self.left + self.room, self.top + self.height + 34, "threshold, tokens", anchor="end", fill=FAINT)

    def _legend(self) -> None:
        x, y = 16.0, self.top + self.height + 54
        for sign, name, colour in (
            ("■", "replayed", _BLUE),
            ("╌", "by formula", _ORANGE),
            ("○", "cheapest replay", _BLUE),
            ("✕", "square-root law", _ORANGE),
            ("◆", "this setting", ALARM),
        ):
            self.drawing.text(x, y, sign, fill=colour, more='font-weight="bold"')
            self.drawing.text(x + 18, y, name, fill=INK)
            x += 42 + text_width(name)


def _step(top: float) -> float:
    """Return a round step of which four to eight make `top`."""
    power = 10.0 ** math.floor(math.log10(top / 4))
    return next(factor * power for factor in (1, 2, 5, 10) if top / (factor * power) <= 8)
