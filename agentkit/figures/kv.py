"""How far a KV cache holds: one edit layer by layer, and several changes of a prompt beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentkit.figures.palette import LOOKS, pale
from agentkit.figures.picture import FAINT, INK, Drawing, Picture, flow, text_width

_KEPT, _WORK = LOOKS["user"].colour, LOOKS["assistant"].colour
_HATCH = (
    '<defs><pattern id="ak-kept" width="8" height="8" patternUnits="userSpaceOnUse">'
    f'<rect width="8" height="8" fill="{pale(_KEPT)}"/>'
    f'<path d="M-1 9L9 -1M-1 1L1 -1M7 9L9 7" stroke="{_KEPT}" stroke-opacity="0.55"/></pattern></defs>'
)
_FILLS = {"same": "url(#ak-kept)", "differs": _WORK, "new": "#ffffff"}
_LETTERS = {"same": ".", "differs": "#", "new": "N"}


@dataclass(frozen=True)
class EditSeen:
    """What one edit does to a cache. `words` are the tokens of the new prompt, the first `kept` of them served by the cache.

    `rows` compare keys and values of each layer with those of the old prompt, token by token: same, differs or new.
    `marked` is the token that was edited, `work` the work left as a share of a cold prompt.
    """

    title: str
    words: tuple[str, ...]
    kept: int
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    marked: int | None
    work: float


def edit_in_words(edit: EditSeen) -> str:
    """Return how far the cache holds, what is left to compute, and in which layers later tokens differ."""
    total, fresh = len(edit.words), len(edit.words) - edit.kept
    counts = f"{edit.title}: {edit.kept} of {total} tokens are kept, {_tokens(fresh)} computed."
    work = f"That is {edit.work:.0%} of the work for a cold prompt."
    return f"{counts} {work} {_layers_in_words(edit)}"


def _layers_in_words(edit: EditSeen) -> str:
    changed = [name for name, states in edit.rows if "differs" in states]
    if not changed:
        return "No key and no value of an old token differs."
    same = [name for name, states in edit.rows if "differs" not in states]
    but = f"; only the {' and '.join(same)} are the same" if same else ""
    return f"Behind the edit keys and values differ in {len(changed)} of {len(edit.rows)} rows{but}."


def _tokens(count: int) -> str:
    return f"{count} {'is' if count == 1 else 'are'}"


def edit_picture(edit: EditSeen, *, width: int = 760) -> Picture:
    """Return the prompt word by word (kept, computed), and below it every layer's keys and values."""
    drawing, words = Drawing(width), edit_in_words(edit)
    drawing.raw(_HATCH)
    bottom = _draw_legend(drawing, _draw_words(drawing, edit), ("same", "differs", "new"))
    bottom = _draw_rows(drawing, edit, bottom + 14)
    lines = [f"{name:<20}{''.join(_LETTERS[s] for s in states)}" for name, states in edit.rows]
    cache = f"{'the cache':<20}{'k' * edit.kept}{'c' * (len(edit.words) - edit.kept)}"
    key = "k kept, c computed, . same as before, # differs, N new"
    return Picture(drawing.svg(bottom + 14, words), words, "\n".join([cache, *lines, key, words]), words)


def _draw_words(drawing: Drawing, edit: EditSeen) -> float:
    widths = [text_width(word) + 10 for word in edit.words]
    top, line = 30.0, 0
    drawing.text(16, 20, f"The prompt: {edit.kept} tokens kept (pale), {len(edit.words) - edit.kept} computed (solid)")
    places = flow(widths, drawing.width - 32, gap=4)
    for number, (word, wide, (x, line)) in enumerate(zip(edit.words, widths, places, strict=True)):
        fill = _FILLS["same"] if number < edit.kept else _WORK
        edge = f'stroke="{INK}" stroke-width="2.5"' if number == edit.marked else f'stroke="{FAINT}" stroke-width="0.5"'
        drawing.rect(16 + x, top + 24 * line, wide, 20, fill, edge)
        drawing.text(16 + x + wide / 2, top + 24 * line + 14, word, anchor="middle")
    return top + 24 * (line + 1) + 20


def _draw_legend(drawing: Drawing, y: float, states: Sequence[str]) -> float:
    drawing.text(16, y, "Against the old prompt:")
    x = 30 + text_width("Against the old prompt:")
    for state in states:
        drawing.rect(x, y - 10, 14, 11, _FILLS[state], f'stroke="{INK}"')
        drawing.text(x + 20, y, state)
        x += 40 + text_width(state)
    return y


def _draw_rows(drawing: Drawing, edit: EditSeen, top: float) -> float:
    left, high = 138.0, 15.0
    wide = (drawing.width - left - 16) / len(edit.words)
    for line, (name, states) in enumerate(edit.rows):
        y = top + line * high
        drawing.text(left - 8, y + 11, name, anchor="end")
        for number, state in enumerate(states):
            drawing.rect(left + number * wide, y, wide - 1, high - 2, _FILLS[state], f'stroke="{FAINT}" stroke-width="0.5"')
    return top + len(edit.rows) * high


@dataclass(frozen=True)
class PromptBar:
    """One request: tokens read from the cache, tokens computed, and the time as a share of the cold one where measured."""

    name: str
    kept: int
    computed: int
    time: float | None = None


def kv_bars(bars: Sequence[PromptBar], *, title: str = "", width: int = 760) -> Picture:
    """Return one bar for each request: kept and computed, with the time beside it.

    Raises `ValueError` without a bar.
    """
    if not bars:
        raise ValueError("there is nothing to draw; give at least one bar")
    drawing, words = Drawing(width), _bars_in_words(bars)
    drawing.raw(_HATCH)
    drawing.text(16, 22, title or "Tokens of the prompt", more='font-weight="bold"')
    label = 24 + max(text_width(bar.name) for bar in bars)
    scale = (width - label - 235) / max(1, *(bar.kept + bar.computed for bar in bars))
    for number, bar in enumerate(bars):
        _draw_bar(drawing, bar, label, scale, 36 + 25 * number)
    bottom = 36 + 25 * len(bars) + 16
    _bar_legend(drawing, bottom)
    text = "\n".join(_bar_line(bar) for bar in bars)
    return Picture(drawing.svg(bottom + 14, words), words, f"{text}\n{words}", f"{title}. {words}" if title else words)


def _draw_bar(drawing: Drawing, bar: PromptBar, left: float, scale: float, y: float) -> None:
    drawing.text(left - 8, y + 14, bar.name, anchor="end")
    drawing.rect(left, y, bar.kept * scale, 19, _FILLS["same"], f'stroke="{_KEPT}"')
    drawing.rect(left + bar.kept * scale, y, bar.computed * scale, 19, _WORK, f'stroke="{INK}" stroke-width="0.5"')
    time = f", {_share(bar.time)} of the time" if bar.time is not None else ""
    drawing.text(left + (bar.kept + bar.computed) * scale + 6, y + 14, f"{bar.computed:,} computed{time}")


def _bar_legend(drawing: Drawing, y: float) -> None:
    for x, fill, name in ((16, _FILLS["same"], "read from the cache"), (176, _WORK, "computed")):
        drawing.rect(x, y - 10, 14, 11, fill, f'stroke="{INK}"')
        drawing.text(x + 20, y, name)


def _bar_line(bar: PromptBar) -> str:
    time = f"{_share(bar.time):>8}" if bar.time is not None else ""
    return f"{bar.name:<34}{bar.kept:>7,} kept {bar.computed:>7,} computed{time}"


def _bars_in_words(bars: Sequence[PromptBar]) -> str:
    most, least = (pick(bars, key=lambda bar: bar.computed) for pick in (max, min))
    return f"Most to compute: {most.name} ({most.computed:,} tokens). Least: {least.name} ({least.computed:,})."


def _share(value: float) -> str:
    """Return a share as per cent, with a decimal where it is small."""
    return f"{value:.0%}" if value >= 0.1 else f"{value:.1%}"
