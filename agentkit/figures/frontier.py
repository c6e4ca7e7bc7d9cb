"""The picture of a comparison: cost over recall, one point a policy, and the frontier that no policy beats."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentkit.figures.charts import Chart
from agentkit.figures.palette import LOOKS
from agentkit.figures.picture import INK, PAPER
from agentkit.pricing import EXAMPLE
from agentkit.replay.frontier import Score, frontier
from agentkit.replay.run import OPEN_LOOP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = [LOOKS[part].colour for part in ("user", "assistant", "tool", "summary", "tools")]
_MARKERS = "osD^vPX"
_BEYOND = 103.0
"""Per cent: the pole of the stretched axis."""


def frontier_chart(scores: Sequence[Score], prices: str, *, title: str = "") -> Chart:
    """Return cost (USD, logarithmic) over reference recall: one numbered point a policy, the frontier as a line.

    `prices` is the label of the price list. Raises `ValueError` when no policy has a recall.
    """
    known = sorted((s for s in scores if s.recall is not None), key=lambda s: s.usd)
    if not known:
        raise ValueError("there is no point to draw: no later call refers to anything in these sessions")
    best = frontier(known)

    shown = f"{title} ({EXAMPLE}, {OPEN_LOOP.partition(':')[0]})".strip()
    return Chart(_drawn(known, best, shown), in_words(scores, prices))


def _drawn(known: Sequence[Score], best: Sequence[Score], title: str) -> bytes:
    """Draw with the names beside the picture: there are more of them than fit below it."""
    from matplotlib.figure import Figure

    figure: Figure = Figure(figsize=(8.6, 5.2), facecolor=PAPER, layout="constrained")
    axes = figure.add_subplot(facecolor=PAPER)
    _axes(axes, [s.usd for s in known], min(_percent(s) for s in known))
    corners = [(_percent(s), s.usd) for s in best]
    axes.step(*zip(*corners, strict=True), where="post", color=INK, linewidth=1.2, linestyle="--", label="frontier")
    for i, score in enumerate(known):
        marker, colour = _MARKERS[i % len(_MARKERS)], _COLOURS[i % len(_COLOURS)]
        place = _percent(score), score.usd
        axes.plot(*place, marker, color=colour, markeredgecolor=INK, label=f"{i + 1} {score.policy}")
        axes.annotate(str(i + 1), place, textcoords="offset points", xytext=(5, 5), fontsize=9)
    figure.legend(fontsize=9, loc="outside right upper", frameon=False)
    figure.suptitle(title, fontsize=12, x=0.01, ha="left")
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100, metadata={"Software": None})
    return out.getvalue()


def _axes(axes: Axes, costs: Sequence[float], lowest: float) -> None:
    """Stretch the axis of recall towards 100 %, where most policies lie; write costs as plain numbers."""
    import numpy as np
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xscale("function", functions=(lambda x: -np.log(_BEYOND - x), lambda y: _BEYOND - np.exp(-y)))
    axes.set_xlim(max(0.0, lowest - 5), 100.6)
    axes.set_xticks([tick for tick in (0, 20, 40, 60, 80, 90, 95, 98, 100) if tick >= lowest - 5])
    axes.set_yscale("log")
    axes.set_ylim(0.9 * min(costs), 1.15 * max(costs))
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(plain)
    few = max(costs) < 20 * min(costs)  # else the decades are enough, and more would overlap
    axes.yaxis.set_minor_formatter(plain if few else NullFormatter())
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("reference recall, %")
    axes.set_ylabel("USD")


def _percent(score: Score) -> float:
    return 100 * (score.recall or 0.0)


def in_words(scores: Sequence[Score], prices: str) -> str:
    """Return the frontier in words, and what lies furthest above the optimum."""
    names = [f"{s.policy} ({s.usd:.4g} USD, recall {s.recall or 0:.0%})" for s in frontier(scores)]
    worst = max(scores, key=lambda s: s.ratio)
    return (
        f"on the frontier, cheapest first: {', '.join(names)}; dearest of {len(scores)}: {worst.policy}, "
        f"{worst.ratio:.2f} x the optimum. {prices}. {OPEN_LOOP}"
    )
