"""One text, several estimators: what each says, and how far it is from the exact count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentkit.figures.palette import LOOKS, pale
from agentkit.figures.picture import INK, Drawing, Picture, text_width
from agentkit.figures.tables import percent
from agentkit.tokens import Estimator, relative_error


@dataclass(frozen=True)
class Estimate:
    """What one estimator says of a text; `error` is a share of the reference (None: this is the reference)."""

    name: str
    tokens: int
    error: float | None


def compare(text: str, estimators: Sequence[Estimator], reference: Estimator) -> tuple[Estimate, ...]:
    """Return the estimates of `text`, and the reference as the last one."""
    exact = reference.text(text)
    found = [(e.name, e.text(text)) for e in estimators]
    rows = [Estimate(name, tokens, relative_error(tokens, exact)) for name, tokens in found]
    return (*rows, Estimate(reference.name, exact, None))


def estimates_in_words(text: str, estimates: Sequence[Estimate]) -> str:
    """Return the comparison as one sentence."""
    exact = estimates[-1]
    if not text:
        return "There is no text yet, so there is nothing to count."
    size = f"{len(text):,} character{'' if len(text) == 1 else 's'}"
    errors = ", ".join(f"{e.name} says {e.tokens:,} ({_far(e.error or 0)})" for e in estimates[:-1])
    return f"{size}: {exact.name} gives {exact.tokens:,}; {errors}."


def _far(error: float) -> str:
    shown = percent(error).lstrip("+−")
    return "the same" if error == 0 else f"{shown} too {'high' if error > 0 else 'low'}"


def estimates_picture(text: str, estimates: Sequence[Estimate], *, width: int = 700) -> Picture:
    """Return one bar for each estimate, with a line at the exact count."""
    words = estimates_in_words(text, estimates)
    drawing = Drawing(width)
    left = 24 + max(text_width(e.name) for e in estimates)
    scale = (width - left - 150) / max(1, *(e.tokens for e in estimates))
    for i, estimate in enumerate(estimates):
        _bar(drawing, left, 16 + 32 * i, scale, estimate)
    height = 20 + 32 * len(estimates)
    x = left + estimates[-1].tokens * scale
    drawing.line(x, 10, x, height - 8, INK, 'stroke-dasharray="4 3"')
    wide = max(len(e.name) for e in estimates)
    lines = [f"{e.name:<{wide}}  {e.tokens:>8,}  {_error(e)}".rstrip() for e in estimates]
    return Picture(drawing.svg(height, words), words, "\n".join([*lines, words]), words)


def _error(estimate: Estimate) -> str:
    return "" if estimate.error is None else percent(estimate.error)


def _bar(drawing: Drawing, left: float, y: float, scale: float, estimate: Estimate) -> None:
    exact = estimate.error is None
    look = LOOKS["tool" if exact else "user"]
    drawing.text(left - 8, y + 15, estimate.name, anchor="end", more='font-weight="bold"' if exact else "")
    colour = look.colour if exact else pale(look.colour, 0.6)
    drawing.rect(left, y, estimate.tokens * scale, 22, colour, f'stroke="{look.colour}"')
    label = " · ".join(part for part in (f"{estimate.tokens:,}", _error(estimate)) if part)
    # A white rim keeps the number readable where the line of the exact count crosses it.
    rim = 'paint-order="stroke" stroke="#ffffff" stroke-width="3"'
    drawing.text(left + estimate.tokens * scale + 8, y + 15, label, more=rim)
