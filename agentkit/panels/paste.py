"""Chapter 02: any text, and what each estimator makes of it."""

from __future__ import annotations

import base64
import functools
import hashlib

from agentkit.figures.estimates import compare, estimates_picture
from agentkit.panels.common import Panel, View, dropdown, textarea
from agentkit.tokens import CharsPerFour, PerScript, TextEstimator
from agentkit.vocabulary import counter

_EXAMPLE, _TEXT, _OWN = "Example", "Your text", "your own"
MOST = 100_000
"""Characters that are counted; what is pasted beyond them is left out, and the sentence says so."""

_RANDOM = hashlib.sha256(b"the same bytes every time").digest() * 6
EXAMPLES = {
    "English prose": "The log is the truth; what the model sees is a view of it. Nothing in the log is ever changed.",
    "Chinese prose": "日志是事实,模型看到的只是它的一个视图。日志里的内容永远不会改变。",
    "Python code": "def total(prices: list[float]) -> float:\n    return round(sum(prices) * 1.19, 2)\n",
    "JSON": '{"id": 4711, "tags": ["a", "b"], "price": {"amount": 12.5, "currency": "EUR"}}',
    "base64": base64.b64encode(_RANDOM).decode("ascii"),
}


def estimators() -> Panel:
    """Return the panel: a field for text, one bar for each estimator, the exact count as the measure."""
    first = next(iter(EXAMPLES))
    controls = {_EXAMPLE: dropdown(_EXAMPLE, [*EXAMPLES, _OWN], first), _TEXT: textarea(_TEXT, EXAMPLES[first])}
    panel = Panel("One text, three estimators", controls, _draw)
    controls[_EXAMPLE].observe(lambda change: _show_example(panel, change.new), "value")
    controls[_TEXT].observe(lambda change: _name_text(panel, change.new), "value")
    return panel


def _show_example(panel: Panel, name: str) -> None:
    if name != _OWN:
        panel.controls[_TEXT].value = EXAMPLES[name]


def _name_text(panel: Panel, text: str) -> None:
    panel.controls[_EXAMPLE].value = next((name for name, example in EXAMPLES.items() if example == text), _OWN)


@functools.cache
def _counters() -> tuple[list[TextEstimator], TextEstimator]:
    return [CharsPerFour(), PerScript()], counter()


def _draw(panel: Panel) -> View:
    text = panel[_TEXT]
    picture = estimates_picture(text[:MOST], compare(text[:MOST], *_counters()))
    note = f" Only the first {MOST:,} characters are counted." if len(text) > MOST else ""
    return View(picture, picture.alt + note)
