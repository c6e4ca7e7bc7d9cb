"""How the prompt tokens of a loop grow: every round sends everything again, and the sum grows with n².

One function measures, one puts it in words, one draws.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentkit.figures.palette import LOOKS, pale
from agentkit.figures.picture import FAINT, INK, Drawing, Picture, nice_step
from agentkit.messages import Message, ToolCall, ToolSpec, assistant, system, tool_result, user
from agentkit.tokens import PerScript, TextEstimator


@dataclass(frozen=True)
class Growth:
    """Prompt tokens of each request, and the curve `square * n² + linear * n` fitted to their running sum."""

    prompts: tuple[int, ...]
    square: float
    linear: float

    @property
    def sums(self) -> tuple[int, ...]:
        """Return the prompt tokens of the first n requests together, for every n."""
        return tuple(itertools.accumulate(self.prompts))

    def curve(self, n: float) -> float:
        """Return the fitted sum of the first `n` requests."""
        return self.square * n * n + self.linear * n


def growth_of(prompts: Sequence[int]) -> Growth:
    """Fit the curve through the origin (least squares). Raises `ValueError` without a request."""
    if not prompts:
        raise ValueError("there is no request to measure; run the loop first")
    sums = list(itertools.accumulate(prompts))
    if len(sums) == 1:
        return Growth(tuple(prompts), 0.0, float(sums[0]))
    numbers = range(1, len(sums) + 1)
    n2, n3, n4 = (sum(n**power for n in numbers) for power in (2, 3, 4))
    y1 = sum(n * y for n, y in zip(numbers, sums, strict=True))
    y2 = sum(n * n * y for n, y in zip(numbers, sums, strict=True))
    # The normal equations of two unknowns, by Cramer's rule.
    determinant = n4 * n2 - n3 * n3
    return Growth(tuple(prompts), (y2 * n2 - y1 * n3) / determinant, (n4 * y1 - n3 * y2) / determinant)


def reading_loop(
    rounds: int, lines: int, *, head: str = "", tools: Sequence[ToolSpec] = (), estimator: TextEstimator | None = None
) -> Growth:
    """Return the growth of a loop that reads one file of `lines` lines in every round.

    No model is asked: the messages are made up as such a loop makes them, and the estimator measures them. `head` is the
    system prompt.
    """
    measure = estimator or PerScript()
    opening = [system(head), user("Read the files one by one and tell me what they do.")]
    size = measure.tools(tools) + measure.messages(opening)
    prompts = []
    for number in range(1, rounds + 1):
        prompts.append(size)
        size += measure.messages(list(_round(number, lines)))
    return growth_of(prompts)


def _round(number: int, lines: int) -> Iterator[Message]:
    call = ToolCall(f"call_{number}", "read_file", f'{{"path": "module_{number}.py"}}')
    yield assistant("", call)
    yield tool_result(call.id, "\n".join(f"{i}\t{_CODE[i % len(_CODE)]}" for i in range(1, lines + 1)))


# About 25 characters a line, as in the course's big file.
_CODE = (
    "    def compute(self, x: int) -> int:",
    "        self.calls += 1",
    "        base = x * self.rate",
    "        shifted = base << 3",
    "        return shifted + self.rest",
    "",
)


def in_words(growth: Growth) -> str:
    """Return what the growth comes to, as sentences."""
    rounds, total = len(growth.prompts), growth.sums[-1]
    opening = f"{_count(rounds)}: the last one sends {growth.prompts[-1]:,} tokens, all together {total:,}"
    if rounds < 2:
        return f"{opening}."
    half = rounds // 2
    factor = total / growth.sums[half - 1]
    return (
        f"{opening}, {total / growth.prompts[-1]:.1f} times the last. From {_count(half)} to {rounds}, "
        f"{rounds / half:.1f} times as many, the sum grows {factor:.1f} times."
    )


def _count(rounds: int) -> str:
    return f"{rounds} request{'' if rounds == 1 else 's'}"


def growth_picture(growth: Growth, *, width: int = 700, height: int = 250) -> Picture:
    """Return two panels: prompt tokens of each request, and their running sum beside the fitted n² curve."""
    drawing = Drawing(width)
    half = width / 2
    _Bars(drawing, 64, half - 84, height).draw(growth.prompts)
    _Sums(drawing, half + 64, half - 84, height).draw(growth)
    words = in_words(growth)
    text = "\n".join(_text(growth))
    return Picture(drawing.svg(height, words), words, f"{text}\n{words}", words)


def _text(growth: Growth) -> Iterator[str]:
    yield f"{'request':>7}{'prompt':>10}{'sum':>12}{'n² curve':>12}"
    rounds = len(growth.prompts)
    for n in sorted({1, 2, 3, rounds // 2, rounds} & set(range(1, rounds + 1))):
        yield f"{n:>7}{growth.prompts[n - 1]:>10,}{growth.sums[n - 1]:>12,}{growth.curve(n):>12,.0f}"


class _Plot:
    """One panel with a scale of tokens on its left and requests below."""

    def __init__(self, drawing: Drawing, left: float, room: float, height: float) -> None:
        self.drawing, self.left, self.room = drawing, left, room
        self.top, self.bottom = 40.0, height - 40

    def frame(self, title: str, most: float, requests: int) -> None:
        """Draw title and scales; sets `self.scale` in pixels a token and `self.step` in pixels a request."""
        step = nice_step(most, 4)
        self.scale, self.step = (self.bottom - self.top) / max(most, 1), self.room / requests
        self.drawing.text(self.left, 22, title, more='font-weight="bold"')
        for value in range(0, int(most) + 1, step):
            y = self.bottom - value * self.scale
            self.drawing.line(self.left, y, self.left + self.room, y, "#d8dee4")
            self.drawing.text(self.left - 6, y + 4, f"{value:,}", anchor="end", fill=FAINT)
        for n in range(1, requests + 1):
            if n == 1 or n % nice_step(requests, 6) == 0:
                self.drawing.text(self.left + (n - 0.5) * self.step, self.bottom + 16, f"{n}", anchor="middle", fill=FAINT)
        self.drawing.text(self.left + self.room / 2, self.bottom + 32, "request", anchor="middle", fill=FAINT)

    def at(self, n: float, value: float) -> tuple[float, float]:
        """Return the point of `value` at request `n`."""
        return self.left + (n - 0.5) * self.step, self.bottom - value * self.scale


class _Bars(_Plot):
    def draw(self, prompts: Sequence[int]) -> None:
        self.frame("prompt tokens of each request", max(prompts), len(prompts))
        for n, value in enumerate(prompts, 1):
            x, y = self.at(n, value)
            self.drawing.rect(x - self.step * 0.4, y, self.step * 0.8, self.bottom - y, LOOKS["user"].colour)


class _Sums(_Plot):
    def draw(self, growth: Growth) -> None:
        sums = growth.sums
        room = 1.5 if len(sums) < 3 else 1  # the legend is where the curve of a long loop never comes
        self.frame("all requests so far", room * max(sums[-1], growth.curve(len(sums))), len(sums))
        fine = [1 + i * (len(sums) - 1) / 60 for i in range(61)]
        self.drawing.path([self.at(n, growth.curve(n)) for n in fine], LOOKS["assistant"].colour, 'stroke-dasharray="6 4"')
        for n, value in enumerate(sums, 1):
            x, y = self.at(n, value)
            self.drawing.raw(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{LOOKS["user"].colour}"/>')
        x = self.left + 10
        self.drawing.rect(x - 4, self.top - 2, 150, 40, pale("#d0d7de", 0.8))
        self.drawing.raw(f'<circle cx="{x + 10:.1f}" cy="{self.top + 10:.1f}" r="3.5" fill="{LOOKS["user"].colour}"/>')
        self.drawing.text(x + 28, self.top + 14, "estimated")
        self.drawing.path([(x, self.top + 28), (x + 20, self.top + 28)], LOOKS["assistant"].colour, 'stroke-dasharray="6 4"')
        self.drawing.text(x + 28, self.top + 32, "n² curve, fitted", fill=INK)
