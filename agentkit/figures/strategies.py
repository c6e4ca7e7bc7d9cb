"""Many policies in one picture: a thin strip for each, and each as a point on cost over recall."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from agentkit.figures import words
from agentkit.figures.context_strip import Strip, _cells, _Sheet
from agentkit.figures.palette import LOOKS, fill, legend, patterns
from agentkit.figures.picture import ALARM, EDGE, FAINT, INK, Drawing, Picture, nice_step, number, text_width
from agentkit.figures.rows import Part, Row, State, groups, strip_rows
from agentkit.pricing import EXAMPLE
from agentkit.replay.frontier import Score, frontier
from agentkit.replay.run import OPEN_LOOP
from agentkit.strategies import Played

_OPEN = OPEN_LOOP.partition(":")[0]
_LINE, _LEFT, _RIGHT = 6, 22, 16


def rows_of(played: Played) -> list[Row]:
    """Return the rows of a strip; a request with a new summary is marked also where the summary does not look like one."""
    rows = strip_rows(played.bills, played.compactions)
    made = {row.number for row in played.replay.rows if any(event.startswith("compacted") for event in row.events)}
    return [_marked(row) if row.number in made and "compaction" not in row.marks else row for row in rows]


def _marked(row: Row) -> Row:
    return replace(row, marks=("compaction", *row.marks))


def in_short(played: Played) -> str:
    """Return what came of a policy in one sentence, for a replay of any length."""
    score = played.score
    recall = "" if score.recall is None else f" · recall {score.recall:.0%}"
    calls = f"{score.extra} extra call{'' if score.extra == 1 else 's'}"
    return f"cache read {score.read_share:.0%} · largest {score.largest:,} · {calls}{recall}"


def policy_strip(played: Played, *, width: int = 700) -> Strip:
    """Return the strip of a session under one policy. Open loop, and the caption says so."""
    rows = rows_of(played)
    drawn = groups(rows)
    alt = f"{played.name}: {words.describe(rows)}"
    caption = f"{words.caption(rows, played.name, len(drawn))} {_OPEN.capitalize()}; summary calls are not drawn."
    top = max(1, *(row.prompt for row in rows))
    svg = _Sheet(drawn, top, width, {}).svg(alt)
    return Strip(svg, alt, words.as_text(drawn, top, caption, 100), caption, tuple(rows))


# ------------------------------------------------------------------------------------------------------- one under another


def filmstrip(runs: Sequence[Played], *, top: int = 0, width: int = 700) -> Picture:
    """Return a thin strip for each of `runs`, all on one scale of tokens (`top`: where the scale ends, 0: the longest row).

    Raises `ValueError` without a run.
    """
    if not runs:
        raise ValueError("there is no policy to draw")
    film = _Film([(played, rows_of(played)) for played in runs], top, width)
    alt = " ".join(f"{_title(played)}: {in_short(played)}." for played in runs)
    lines = [line for played in runs for line in (_title(played), f"  {played.note}", f"  {in_short(played)}")]
    caption = f"The first {len(runs[0].bills)} requests, one line each, summary calls not drawn; {_OPEN}."
    return Picture(film.svg(alt), alt, "\n".join([*lines, caption]), caption)


def _title(played: Played) -> str:
    year = "" if played.year in ("", "always") or played.year in played.name else f" ({played.year})"
    return f"{played.name}{year}"


class _Film:
    def __init__(self, runs: Sequence[tuple[Played, list[Row]]], top: int, width: int) -> None:
        self.runs, self.drawing = runs, Drawing(width)
        longest = max(row.prompt for _, rows in runs for row in rows)
        self.scale = (width - _LEFT - _RIGHT) / max(longest, top)
        self.step = nice_step(max(longest, top))
        self.shapes: dict[tuple[Part, State], list[str]] = {}

    def svg(self, alt: str) -> str:
        """Draw everything."""
        draw = self.drawing
        draw.text(_LEFT, 20, f"{self.step:,} tokens", fill=FAINT)
        draw.line(_LEFT, 26, _LEFT + self.step * self.scale, 26, FAINT)
        y = 48.0
        for played, rows in self.runs:
            y = self._one(y, played, rows)
        draw.raw(patterns(self.shapes))
        for (part, state), shapes in sorted(self.shapes.items()):
            draw.raw(f'<path d="{"".join(shapes)}" fill="{fill(part, state)}"/>')
        _triangle(draw, 14, y + 1)
        draw.text(_LEFT + 4, y + 5, "before this request a compaction")
        bottom = legend(draw, 14, y + 24, self.shapes)
        return draw.svg(bottom + 14, alt)

    def _one(self, y: float, played: Played, rows: Sequence[Row]) -> float:
        draw, title = self.drawing, _title(played)
        draw.text(_LEFT, y, title, more='font-weight="bold"')
        draw.text(_LEFT + 1.1 * text_width(title) + 10, y, in_short(played), fill=FAINT)
        y += 8
        for row in rows:
            if "compaction" in row.marks:
                _triangle(draw, 14, y + _LINE / 2)
            for cell in _cells(row, self.scale):
                wide = number(cell.stop - cell.start)
                shape = f"M{number(_LEFT + cell.start)} {number(y)}h{wide}v{_LINE - 1}h-{wide}z"
                self.shapes.setdefault((cell.part, cell.state), []).append(shape)
            y += _LINE
        return y + 26


def _triangle(draw: Drawing, x: float, y: float) -> None:
    draw.raw(f'<path d="M{number(x - 4)} {number(y - 4)}l8 4l-8 4z" fill="{ALARM}"/>')


# ----------------------------------------------------------------------------------------------------- cost over recall


def point_in_words(scores: Sequence[Score], chosen: str) -> str:
    """Return where one policy lies: its cost, its recall, and who is cheaper at equal or better recall.

    Raises `ValueError` when it is not among `scores`.
    """
    score = _find(scores, chosen)
    better = [s for s in scores if s.usd < score.usd and (s.recall or 0) >= (score.recall or 0)]
    beaten = f"{_names(better)} cheaper at equal or better recall" if better else "no other policy is cheaper at that recall"
    return f"{score.policy}: {score.usd:.2f} USD, {score.ratio:.2f} × optimum, recall {score.recall or 0:.0%}; {beaten}"


def _find(scores: Sequence[Score], chosen: str) -> Score:
    found = next((s for s in scores if s.policy == chosen), None)
    if found is None:
        raise ValueError(f"no policy {chosen!r} among the scores; there are {', '.join(s.policy for s in scores)}")
    return found


def _names(scores: Sequence[Score]) -> str:
    names = [s.policy for s in sorted(scores, key=lambda s: s.usd)]
    if len(names) == 1:
        return f"{names[0]} is"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more} are"


def recall_points(scores: Sequence[Score], chosen: str, *, width: int = 700) -> Picture:
    """Return cost (USD, equal factors) over recall: a point a policy, the frontier, and one policy marked and named."""
    said = point_in_words(scores, chosen)
    caption = f"The whole session, recorded; {EXAMPLE}, {_OPEN}."
    return Picture(_Points(scores, width).svg(_find(scores, chosen), said), said, f"{said}\n{caption}", caption)


class _Points:
    left, top, height = 64.0, 40.0, 200.0

    def __init__(self, scores: Sequence[Score], width: int) -> None:
        self.scores, self.drawing, self.room = scores, Drawing(width), width - 64.0 - 30
        costs, recalls = [s.usd for s in scores], [s.recall or 0.0 for s in scores]
        self.cheap, self.dear = 0.85 * min(costs), 1.15 * max(costs)
        self.low = math.floor(10 * min(recalls)) / 10 if min(recalls) < 1 else 0.9

    def place(self, score: Score) -> tuple[float, float]:
        """Return where a score lies, in pixels."""
        return self.x(score.recall or 0.0), self.y(score.usd)

    def x(self, recall: float) -> float:
        """Return where a recall lies."""
        return self.left + self.room * (recall - self.low) / (1.02 - self.low)

    def y(self, usd: float) -> float:
        """Return where a price lies."""
        return self.top + self.height * (1 - math.log(usd / self.cheap) / math.log(self.dear / self.cheap))

    def svg(self, chosen: Score, words: str) -> str:
        """Draw everything."""
        draw, best = self.drawing, frontier(self.scores)
        self._axes()
        corners = [self.place(s) for s in best]
        steps = [p for a, b in zip(corners, corners[1:], strict=False) for p in (a, (b[0], a[1]))] + corners[-1:]
        if len(steps) > 1:
            draw.path(steps, INK, 'stroke-dasharray="5 3"')
        for score in self.scores:
            x, y = self.place(score)
            draw.raw(f'<circle cx="{number(x)}" cy="{number(y)}" r="4" fill="{LOOKS["user"].colour}"/>')
        x, y = self.place(chosen)
        draw.text(x, y + 7, "◆", anchor="middle", fill=ALARM, more='font-size="20"')
        right = x < self.left + self.room / 2
        draw.text(x + (12 if right else -12), y - 8, chosen.policy, anchor="start" if right else "end", fill=ALARM)
        return draw.svg(self.top + self.height + 46, words)

    def _axes(self) -> None:
        draw, bottom = self.drawing, self.top + self.height
        draw.text(14, 22, f"USD for the whole session ({EXAMPLE}, {_OPEN})", fill=FAINT)
        for usd in (f * 10**p for p in range(-4, 4) for f in (1, 2, 5)):
            if self.cheap <= usd <= self.dear:
                draw.line(self.left, self.y(usd), self.left + self.room, self.y(usd), EDGE)
                draw.text(self.left - 8, self.y(usd) + 4, f"{usd:g}", anchor="end")
        for tenth in range(round(10 * self.low), 11):
            draw.text(self.x(tenth / 10), bottom + 18, f"{10 * tenth} %", anchor="middle")
        draw.text(self.left + self.room, bottom + 36, "recall: still in view when used", anchor="end", fill=FAINT)
