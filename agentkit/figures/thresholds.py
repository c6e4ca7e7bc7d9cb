"""Where a budget, its threshold and its reserve lie, and at which request of a conversation the compaction starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentkit.budget import Budget, BudgetError
from agentkit.figures.palette import LOOKS, pale
from agentkit.figures.picture import ALARM, FAINT, INK, Drawing, Picture, text_width


@dataclass(frozen=True)
class Plan:
    """A budget against a conversation that is never compacted.

    `estimates` are the tokens of each request, `fixed` those of system prompt and tools.
    """

    budget: Budget
    estimates: tuple[int, ...]
    fixed: int

    @property
    def first(self) -> int | None:
        """Return the number of the first request that is due for compaction; None when there is none."""
        return next((n for n, e in enumerate(self.estimates, 1) if self.budget.should_compact(e)), None)

    @property
    def problem(self) -> str:
        """Return why this budget cannot work; empty when it can."""
        try:
            self.budget.check_fixed(self.fixed)
        except BudgetError as error:
            return str(error)
        return ""


def plan_in_words(plan: Plan) -> str:
    """Return where the threshold lies and when it is reached."""
    budget, room = plan.budget, plan.budget.limit - plan.budget.threshold
    opening = f"Compaction starts at {budget.threshold:,} tokens ({budget.form}); {room:,} are held back."
    if plan.problem:
        return f"{opening} This cannot work: {plan.problem}."
    if plan.first is None:
        return f"{opening} The conversation never reaches it: its largest request has {max(plan.estimates):,} tokens."
    return f"{opening} The conversation reaches it at request {plan.first}, with {plan.estimates[plan.first - 1]:,} tokens."


def plan_picture(plan: Plan, *, width: int = 700) -> Picture:
    """Return a bar as long as the budget: fixed part, room for the conversation, reserve; the requests as marks above it."""
    drawing, words = Drawing(width), plan_in_words(plan)
    _Bar(drawing, plan, 24, width - 48).draw()
    lines = [f"{name:<28}{tokens:>12,}" for name, tokens in _table(plan)]
    return Picture(drawing.svg(168, words), words, "\n".join([*lines, words]), words)


def _table(plan: Plan) -> Iterator[tuple[str, int]]:
    budget = plan.budget
    yield "system prompt and tools", plan.fixed
    yield "threshold", budget.threshold
    yield "reserve", budget.limit - budget.threshold
    yield "budget", budget.limit
    yield from ((f"request {n}, estimate", tokens) for n, tokens in enumerate(plan.estimates, 1))


class _Bar:
    top, height = 58.0, 44.0

    def __init__(self, drawing: Drawing, plan: Plan, left: float, room: float) -> None:
        self.drawing, self.plan, self.left = drawing, plan, left
        self.right = left + room
        self.scale = room / max(plan.budget.limit, *plan.estimates)

    def draw(self) -> None:
        """Draw everything."""
        budget, blue = self.plan.budget, LOOKS["user"].colour
        pattern = '<pattern id="ak-reserve" width="8" height="8" patternUnits="userSpaceOnUse">'
        hatch = f'<path d="M-1 9L9 -1M-1 1L1 -1M7 9L9 7" stroke="{FAINT}"/>'
        self.drawing.raw(f'<defs>{pattern}<rect width="8" height="8" fill="#eceff2"/>{hatch}</pattern></defs>')
        fixed = min(self.plan.fixed, budget.threshold)
        self._part(0, fixed, LOOKS["tools"].colour, "system prompt, tools", "fixed")
        self._part(fixed, budget.threshold, pale(blue), "room for the conversation", "room")
        self._part(budget.threshold, budget.limit, "url(#ak-reserve)", "reserve")
        self._limits()
        self._requests()

    def x(self, tokens: float) -> float:
        """Return where `tokens` lie."""
        return self.left + tokens * self.scale

    def _part(self, start: float, stop: float, colour: str, *labels: str) -> None:
        wide = (stop - start) * self.scale
        self.drawing.rect(self.x(start), self.top, wide, self.height, colour, f'stroke="{FAINT}"')
        label = next((label for label in labels if text_width(label) + 8 < wide), "")
        if label:
            rim = 'paint-order="stroke" stroke="#ffffff" stroke-width="3"' if colour.startswith("url") else ""
            self.drawing.text(self.x((start + stop) / 2), self.top + 27, label, anchor="middle", more=rim)

    def _limits(self) -> None:
        budget, bottom = self.plan.budget, self.top + self.height
        for line, (name, tokens, colour) in enumerate(
            (("threshold", budget.threshold, ALARM), ("budget", budget.limit, INK)), 1
        ):
            x = self.x(tokens)
            self.drawing.line(x, self.top - 6, x, bottom + 20 * line - 10, colour, 'stroke-width="2" stroke-dasharray="5 3"')
            self._label(x, bottom + 20 * line + 4, f"{name} {tokens:,}")

    def _requests(self) -> None:
        groups: list[tuple[int, int]] = []
        for n, tokens in enumerate(self.plan.estimates, 1):
            near = groups and (tokens - self.plan.estimates[n - 2]) * self.scale < 26
            if near:
                groups[-1] = (groups[-1][0], n)
            else:
                groups.append((n, n))
            self.drawing.line(self.x(tokens), self.top - 12, self.x(tokens), self.top + 9, INK, 'stroke-width="2"')
        for first, last in groups:
            name = f"{first}" if first == last else f"{first}–{last}"
            middle = self.x((self.plan.estimates[first - 1] + self.plan.estimates[last - 1]) / 2)
            self.drawing.text(middle, self.top - 18, name, anchor="middle", more='font-weight="bold"')
        self.drawing.text(
            self.left, 20, "requests of the conversation, never compacted, by their estimate in tokens", fill=FAINT
        )

    def _label(self, x: float, y: float, text: str) -> None:
        half = text_width(text) / 2
        self.drawing.text(min(max(x, self.left + half), self.right - half), y, text, anchor="middle")
