"""The picture of a sweep: what a session costs for each keep and threshold, and what is still in view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentkit.figures.charts import Chart, _png
from agentkit.pricing import EXAMPLE
from agentkit.replay.run import OPEN_LOOP
from agentkit.sweep import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def sweep_map(cells: Sequence[Cell], prices: str, *, title: str = "") -> Chart:
    """Return USD as a map over keep and threshold, the cheapest cell marked, and recall in a map beside it.

    `prices` is the label of the price list; it is shown, and so is that the figures are open loop.
    Raises `ValueError` without a cell.
    """
    if not cells:
        raise ValueError("no cells to draw")
    keeps, thresholds = sorted({c.keep for c in cells}), sorted({c.threshold for c in cells})
    at = {(c.keep, c.threshold): c for c in cells}
    best = min(cells, key=lambda c: c.usd)

    def draw(cost: Axes, recall: Axes) -> None:
        for axes, name, value in ((cost, "USD", "usd"), (recall, "reference recall", "recall")):
            grid = [[getattr(at[k, t], value) if (k, t) in at else float("nan") for t in thresholds] for k in keeps]
            grid = [[float("nan") if cell is None else cell for cell in row] for row in grid]
            picture = axes.imshow(grid, aspect="auto", origin="lower", cmap="cividis")
            axes.figure.colorbar(picture, ax=axes, label=name)
            where = thresholds.index(best.threshold), keeps.index(best.keep)
            label = "cheapest" if name == "USD" else None
            axes.plot(*where, "X", color="white", markeredgecolor="black", label=label)
            _ticks(axes, keeps, thresholds)
            axes.set_title(name)

    shown = f"{title} ({EXAMPLE}, {OPEN_LOOP.partition(':')[0]})".strip()
    return Chart(_png(draw, shown, panels=2), in_words(cells, prices))


def _ticks(axes: Axes, keeps: Sequence[int], thresholds: Sequence[int]) -> None:
    across, up = (range(0, len(values), max(1, len(values) // 5)) for values in (thresholds, keeps))
    axes.set_xticks(list(across), [f"{thresholds[i] / 1000:,.0f}k" for i in across])
    axes.set_yticks(list(up), [str(keeps[i]) for i in up])
    axes.set_xlabel("threshold, tokens")
    axes.set_ylabel("keep")


def in_words(cells: Sequence[Cell], prices: str) -> str:
    """Return the result of a sweep in words."""
    best, worst = (choose(cells, key=lambda c: c.usd) for choose in (min, max))
    seen = f", recall {best.recall:.0%}" if best.recall is not None else ""
    return (
        f"cheapest: keep {best.keep}, threshold {best.threshold:,} tokens, {best.usd:.4g} USD, "
        f"compactions: {best.compactions}{seen}; dearest: keep {worst.keep}, threshold {worst.threshold:,}, "
        f"{worst.usd:.4g} USD. {prices}. {OPEN_LOOP}"
    )
