"""The live comparison, shown: `live_table`, `live_chart`, `disagreement_table`, `survival_table`, `survival_chart`.

All take data from `closed_loop`: rows of `compare_live` or of `load_recorded()`, and what `survival` returns.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentkit.closed_loop.against import Disagreement
from agentkit.closed_loop.cells import CLOSED_LOOP, Row
from agentkit.closed_loop.live import ranked
from agentkit.closed_loop.survival import FACTS, Survived
from agentkit.figures.charts import Chart, _png
from agentkit.figures.palette import LOOKS
from agentkit.figures.picture import INK, PAPER
from agentkit.figures.tables import Table, table
from agentkit.pricing import EXAMPLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = [LOOKS[part].colour for part in ("user", "assistant", "tool", "summary", "system", "tools")]
_STYLES = ("-", "--", "-.", ":")
_MARKERS = "osD^vPX*p<>h"
LIVE_COLUMNS = ("policy", "done", "rounds", "read again", "own calls", "prompt tokens", "cache read", "USD", "not done")
"""The columns of `live_table`. Done: turns whose work was done; own calls: summaries and the like; not done: which turns."""


def live_table(rows: Sequence[Row], *, caption: str = "") -> Table:
    """Return one row a policy, those that did all of their work first, the cheapest first. Give the rows of one scenario."""
    shown = [
        [
            row.policy,
            f"{row.done}/{row.asked}",
            row.rounds,
            row.read_again,
            row.extra,
            row.prompt,
            f"{row.read / max(1, row.prompt):.0%}",
            f"{row.usd:.4f}",
            _not_done(row),
        ]
        for row in ranked(rows)
    ]
    return table(shown, LIVE_COLUMNS, caption=caption)


def _not_done(row: Row) -> str:
    if row.problem:
        return f"ended in turn {row.failed[0]}: {row.problem.partition(';')[0]}" if row.failed else row.problem
    listed = ", ".join(map(str, row.failed[:6]))
    return f"turn {listed}{' …' if len(row.failed) > 6 else ''}" if row.failed else ""


def live_chart(rows: Sequence[Row], *, title: str = "") -> Chart:
    """Return the cost of each policy as a bar (USD, logarithmic), hatched where work was left undone, with what was done.

    Give the rows of one scenario. Raises `ValueError` without a row.
    """
    if not rows:
        raise ValueError("there is no run to draw; give at least one row")
    from matplotlib.ticker import FuncFormatter

    order = ranked(rows)[::-1]

    def draw(axes: Axes) -> None:
        for place, row in enumerate(order):
            look = {"color": _COLOURS[0]} if row.answered else {"color": PAPER, "hatch": "//"}
            name = "all of the work done" if row.answered else "work left undone"
            again = f", {row.read_again} read again" if row.read_again else ""
            bar = axes.barh(place, row.usd, edgecolor=_COLOURS[0], label=name, **look)
            axes.bar_label(bar, [f" {row.usd:.3f} ({row.done}/{row.asked}{again})"], fontsize=9)
        axes.set_yticks(range(len(order)), [row.policy for row in order])
        axes.set_xscale("log")
        plain = FuncFormatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_major_formatter(plain)
        axes.xaxis.set_minor_formatter(plain)
        axes.margins(x=0.3)
        axes.set_xlabel(f"USD ({EXAMPLE})")
        _legend_once(axes)

    return Chart(_png(draw, title, height=1.4 + 0.27 * len(order)), _live_in_words(rows))


def _legend_once(axes: Axes) -> None:
    """Leave one bar of each kind its name: the legend shows a name as often as it was given."""
    seen: set[str] = set()
    for bars in axes.containers:
        name = str(bars.get_label())
        bars.set_label("_again" if name in seen else name)
        seen.add(name)


def _live_in_words(rows: Sequence[Row]) -> str:
    good = [row for row in ranked(rows) if row.answered]
    bad = [row for row in ranked(rows) if not row.answered]
    first = f"cheapest with all of the work done: {good[0].policy} ({good[0].usd:.4f} USD)" if good else "none did all of it"
    left = ", ".join(f"{row.policy} ({row.done} of {row.asked})" for row in bad) or "nobody"
    head = f"{rows[0].scenario}: {len(good)} of {len(rows)} policies did all of the work; {first}"
    return f"{head}; left some undone: {left}. {CLOSED_LOOP}"


def disagreement_table(found: Sequence[Disagreement], *, caption: str = "") -> Table:
    """Return where replay and live runs disagree, one row a policy: both places, both costs, and the measured reasons."""
    rows = [
        [d.policy, d.replayed, d.live, f"{d.usd_replayed:.4f}", f"{d.usd_live:.4f}", "; ".join(d.reasons)] for d in found
    ]
    columns = ("policy", "place replayed", "place live", "USD replayed", "USD live", "why")
    return table(rows, columns, caption=caption)


# -------------------------------------------------------------------------------------------------------------- survival


def share_left(survival: Sequence[Survived], policy: str, keep_list: str, *, seen: str = "answered") -> dict[int, float]:
    """Return for each number of compactions the share of the facts that survived.

    `seen`: `answered` (the agent told it) or `in_view` (it stood in the view word for word).
    """
    found: dict[int, list[bool]] = {}
    for one in survival:
        if (one.policy, one.keep_list) == (policy, keep_list):
            found.setdefault(one.compactions, []).append(getattr(one, seen))
    return {n: sum(alive) / len(alive) for n, alive in sorted(found.items())}


def survival_table(survival: Sequence[Survived], keep_list: str, *, caption: str = "") -> Table:
    """Return one row a policy, one column a kind of fact: after how many compactions it was still told, of how many."""
    rows = []
    for policy in dict.fromkeys(one.policy for one in survival):
        mine = [one for one in survival if (one.policy, one.keep_list) == (policy, keep_list)]
        if mine:
            rows.append([policy, *(_lasted([one for one in mine if one.kind == fact.kind]) for fact in FACTS)])
    return table(rows, ("policy", *(fact.kind for fact in FACTS)), caption=caption)


def _lasted(of_one: Sequence[Survived]) -> str:
    asked = [one for one in of_one if one.compactions]
    return f"{sum(one.answered for one in asked)} of {len(asked)}" if asked else "never compacted"


def survival_chart(
    survival: Sequence[Survived],
    keep_list: str,
    policies: Sequence[str] = (),
    *,
    seen: str = "answered",
    title: str = "",
) -> Chart:
    """Return the survival curve: share of the facts left over the number of compactions, one line a policy.

    `policies` chooses them (none: all); `seen` is `answered` or `in_view`. Lines differ in colour, dashes and mark; policies
    with the same curve share one. Raises `ValueError` when there is nothing to draw.
    """
    names = list(policies or dict.fromkeys(one.policy for one in survival))
    lines = {name: share_left(survival, name, keep_list, seen=seen) for name in names}
    lines = {name: line for name, line in lines.items() if line}
    if not lines:
        raise ValueError(f"there is nothing to draw for the list {keep_list!r}; see closed_loop.survival.LISTS")

    return Chart(_curves(_together(lines), seen, title), _survival_in_words(lines, keep_list, seen))


def _together(lines: dict[str, dict[int, float]]) -> dict[str, dict[int, float]]:
    """Give policies with the same curve one line, with all their names."""
    groups: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for name, line in lines.items():
        groups.setdefault(tuple(line.items()), []).append(name)
    return {", ".join(names): dict(line) for line, names in groups.items()}


def _curves(lines: dict[str, dict[int, float]], seen: str, title: str) -> bytes:
    from matplotlib.figure import Figure

    figure: Figure = Figure(figsize=(8.6, 3.9), facecolor=PAPER, layout="constrained")
    axes = figure.add_subplot(facecolor=PAPER)
    for i, (names, line) in enumerate(lines.items()):
        axes.plot(
            list(line),
            [100 * share for share in line.values()],
            linestyle=_STYLES[i % len(_STYLES)],
            marker=_MARKERS[i % len(_MARKERS)],
            color=_COLOURS[i % len(_COLOURS)],
            markeredgecolor=INK,
            label=textwrap.fill(names, 30),
        )
    axes.set_xlabel("compactions")
    axes.set_ylabel("facts told, %" if seen == "answered" else "facts in view, %")
    axes.set_ylim(-5, 105)
    axes.set_xticks(range(max(n for line in lines.values() for n in line) + 1))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(fontsize=9, loc="outside right upper", frameon=False, labelspacing=0.9)
    if title:
        figure.suptitle(title, fontsize=12, x=0.01, ha="left")
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100, metadata={"Software": None})
    return out.getvalue()


def _survival_in_words(lines: dict[str, dict[int, float]], keep_list: str, seen: str) -> str:
    told = "told" if seen == "answered" else "in view"
    parts = [f"{name} {line[max(line)]:.0%} after {max(line)}" for name, line in lines.items()]
    return f"Facts {told} with the list “{keep_list}”: {', '.join(parts)} compactions. {CLOSED_LOOP}"
