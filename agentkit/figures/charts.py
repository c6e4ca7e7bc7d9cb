"""Charts with matplotlib, for the chapters: drawn once, never inside a panel.

A chart is a PNG and the same result in words. nbval compares the words and not the pixels, which differ between machines.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentkit.budget import Budget
from agentkit.events import Billed, ContextUsage
from agentkit.figures.growth import growth_of, in_words
from agentkit.figures.palette import LOOKS, pale
from agentkit.figures.picture import ALARM, INK, PAPER
from agentkit.figures.rows import HasBills, bills_of
from agentkit.figures.tables import percent
from agentkit.tokens import Estimator, relative_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLUE, _ORANGE, _GREEN = LOOKS["user"].colour, LOOKS["assistant"].colour, LOOKS["tool"].colour
_SERIES = ((_BLUE, ""), (_ORANGE, "//"), (_GREEN, ".."), (LOOKS["summary"].colour, "xx"), (LOOKS["tools"].colour, "--"))


@dataclass(frozen=True)
class Chart:
    """A finished chart: its PNG, and `alt`, the result in words.

    The alternative text also goes into the output's metadata, where nbconvert looks for it (JupyterLab 4.6 does not).
    """

    png: bytes
    alt: str

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple[dict[str, str], dict[str, Any]]:
        data = {"image/png": base64.b64encode(self.png).decode("ascii"), "text/plain": self.alt}
        return data, {"image/png": {"alt": self.alt}}

    def __repr__(self) -> str:
        return self.alt


def tokens_per_round(source: HasBills | Sequence[Billed], *, title: str = "") -> Chart:
    """Return prompt tokens of each request, and their sum so far beside the n² curve fitted to it.

    A request without a bill counts with its estimate. Raises `ValueError` without a request.
    """
    bills = bills_of(source)
    growth = growth_of([b.usage.prompt if b.usage else b.estimate for b in bills])
    numbers = [b.number for b in bills]

    def draw(each: Axes, sums: Axes) -> None:
        read = [b.usage.cache_read if b.usage else 0 for b in bills]
        rest = [p - r for p, r in zip(growth.prompts, read, strict=True)]
        each.bar(numbers, read, color=pale(_BLUE), edgecolor=_BLUE, hatch="//", label="read from the cache")
        each.bar(numbers, rest, bottom=read, color=_BLUE, edgecolor=_BLUE, label="not in the cache")
        _name(each, "prompt tokens of each request", "tokens")
        steps = [1 + i * (len(numbers) - 1) / 60 for i in range(61)]
        start = numbers[0] - 1
        curve = [growth.curve(n) for n in steps]
        sums.plot([start + n for n in steps], curve, "--", color=_ORANGE, label="n² curve, fitted")
        sums.plot(numbers, growth.sums, "o", color=_BLUE, label="measured")
        _name(sums, "all requests so far", "tokens")

    return Chart(_png(draw, title, panels=2), in_words(growth))


def estimator_errors(
    texts: Mapping[str, str], estimators: Sequence[Estimator], reference: Estimator
) -> dict[str, dict[str, float]]:
    """Return for each estimator and each kind of text the error against `reference`, as a share: -0.2 is 20 % too low."""
    return {
        estimator.name: {kind: relative_error(estimator.text(t), reference.text(t)) for kind, t in texts.items()}
        for estimator in estimators
    }


def error_bars(errors: Mapping[str, Mapping[str, float]], *, title: str = "", reference: str = "the exact count") -> Chart:
    """Return the errors of estimators by kind of text, as `estimator_errors` gives them.

    Raises `ValueError` without an estimator or a kind of text.
    """
    kinds = list(next(iter(errors.values()), {}))
    if not kinds:
        raise ValueError("there is no error to draw; give at least one estimator and one kind of text")
    height = 0.8 / len(errors)

    def draw(axes: Axes) -> None:
        for i, (name, row) in enumerate(errors.items()):
            colour, hatch = _SERIES[i % len(_SERIES)]
            places = [n + (i - (len(errors) - 1) / 2) * height for n in range(len(kinds))]
            values = [100 * row[kind] for kind in kinds]
            bars = axes.barh(places, values, height, color=colour, hatch=hatch, edgecolor=PAPER, label=name)
            axes.bar_label(bars, [percent(row[kind]) for kind in kinds], padding=3, fontsize=10)
        axes.axvline(0, color=INK, linewidth=1)
        axes.set_yticks(range(len(kinds)), kinds)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_xlabel(f"error against {reference}, %")

    height_of_all = 1.4 + 0.3 * len(kinds) * max(2, len(errors))
    return Chart(_png(draw, title, height=height_of_all), _errors_in_words(errors, reference))


def _errors_in_words(errors: Mapping[str, Mapping[str, float]], reference: str) -> str:
    """Name the lowest and the highest error of each estimator."""
    parts = []
    for name, row in errors.items():
        low, high = min(row, key=row.__getitem__), max(row, key=row.__getitem__)
        ends = f"from {percent(row[low])} ({low}) to {percent(row[high])} ({high})" if low != high else percent(row[low])
        parts.append(f"{name}: {ends}")
    return f"Error against {reference}. {'; '.join(parts)}."


def threshold_rows(events: Sequence[object]) -> list[tuple[int, int, int]]:
    """Return (request, estimate before the policy decided, estimate of what was sent) from the events of a run."""
    before: list[int] = []
    rows = []
    for event in events:
        if isinstance(event, ContextUsage):
            before.append(event.estimate)
        elif isinstance(event, Billed):
            rows.append((event.number, before[-1] if before else event.estimate, event.estimate))
    return rows


def threshold_chart(source: Any, budget: Budget | None = None, *, title: str = "") -> Chart:
    """Return the estimate of every request against threshold and budget.

    `source` is a run (with its events, so that the estimate before a compaction is seen too) or a list of bills, for which
    `budget` must be given. Raises `ValueError` without a request or a budget.
    """
    rows = threshold_rows(getattr(source, "events", None) or bills_of(source))
    budget = budget or getattr(getattr(source, "agent", None), "budget", None)
    if not rows or budget is None:
        raise ValueError("give a run with at least one request, or a list of bills and a budget")
    limits = budget

    def draw(axes: Axes) -> None:
        numbers = [n for n, _, _ in rows]
        axes.bar(numbers, [s for _, _, s in rows], color=_BLUE, label="sent")
        saved = [(n, before - sent, sent) for n, before, sent in rows if before > sent]
        if saved:
            at, gone, left = zip(*saved, strict=True)
            axes.bar(at, gone, bottom=left, color="none", edgecolor=_BLUE, hatch="//", label="before the compaction")
        axes.axhline(limits.threshold, color=ALARM, linestyle="--", label=f"threshold {limits.threshold:,}")
        # A budget far above the conversation would press all bars flat; the words still say it.
        if limits.limit <= 3 * max(before for _, before, _ in rows):
            axes.axhline(limits.limit, color=INK, linestyle=":", label=f"budget {limits.limit:,}")
        _name(axes, "", "estimated tokens")

    return Chart(_png(draw, title), _threshold_in_words(rows, budget))


def _threshold_in_words(rows: Sequence[tuple[int, int, int]], budget: Budget) -> str:
    limits = f"threshold {budget.threshold:,}, budget {budget.limit:,} tokens"
    over = [n for n, before, _ in rows if budget.should_compact(before)]
    if not over:
        largest = max(before for _, before, _ in rows)
        return f"No estimate reaches the threshold: {largest:,} at most ({limits})."
    cut = [f"{before:,} → {sent:,} before request {n}" for n, before, sent in rows if sent < before]
    done = f"compacted: {', '.join(cut)}" if cut else "nothing was compacted"
    return f"The estimate reaches the threshold at request {over[0]} ({limits}); {done}."


def _name(axes: Axes, title: str, unit: str) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xlabel("request")
    axes.set_ylabel(unit)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _png(draw: Callable[..., None], title: str, *, panels: int = 1, rows: int = 1, height: float = 3.2) -> bytes:
    """Draw on a figure of its own: pyplot would keep it, and warn after twenty of them."""
    from matplotlib.figure import Figure

    figure: Figure = Figure(figsize=(8.6, height), facecolor=PAPER, layout="constrained")
    axes = [figure.add_subplot(rows, -(-panels // rows), i + 1, facecolor=PAPER) for i in range(panels)]
    draw(*axes)
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    figure.legend(fontsize=10, loc="outside lower center", ncols=5, frameon=False)
    if title:
        figure.suptitle(title, fontsize=12, x=0.01, ha="left")
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100, metadata={"Software": None})
    return out.getvalue()
