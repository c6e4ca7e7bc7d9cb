"""Chapter 03: budget, threshold and reserve against the four questions."""

from __future__ import annotations

import functools

from agentkit.agent import SYSTEM_PROMPT
from agentkit.budget import Budget
from agentkit.figures.thresholds import Plan, plan_in_words, plan_picture
from agentkit.messages import Request, system
from agentkit.panels.common import Panel, View, dropdown, ratio_slider, slider
from agentkit.scenarios import Settings, four_questions
from agentkit.tokens import PerScript

_FORM, _BUDGET, _RATIO, _WINDOW, _OUTPUT = (
    "Form",
    "Budget in tokens",
    "Threshold",
    "Window in tokens",
    "Longest output in tokens",
)
_FORMS = (("share of a budget", "ratio"), ("window minus a reserve", "reserve"), ("80% of the window", "share"))
_USES = {"ratio": (_BUDGET, _RATIO), "reserve": (_WINDOW, _OUTPUT), "share": (_WINDOW,)}


def budget() -> Panel:
    """Return the panel. What a form does not use is switched off."""
    windows = [(f"{size:,}", size) for size in (4_096, 8_192, 16_384, 32_768, 128_000, 200_000, 1_000_000)]
    outputs = [(f"{size:,}", size) for size in (1_024, 4_096, 8_192, 16_384, 32_768)]
    controls = {
        _FORM: dropdown(_FORM, _FORMS, "ratio"),
        _BUDGET: slider(_BUDGET, 4_000, 1_000, 24_000, 200),
        _RATIO: ratio_slider(_RATIO, 0.6, 0.1, 1.0),
        _WINDOW: dropdown(_WINDOW, windows, 16_384),
        _OUTPUT: dropdown(_OUTPUT, outputs, 8_192),
    }
    return Panel("Where compaction starts", controls, _draw)


@functools.cache
def _conversation() -> tuple[tuple[int, ...], int]:
    """Return the estimates of the four questions, never compacted, and of what every request carries."""
    bills = four_questions(Settings(budget=1_000_000, compact=False)).bills
    fixed = PerScript().request(Request((system(SYSTEM_PROMPT),), bills[0].request.tools))
    return tuple(b.estimate for b in bills), fixed


def _budget(panel: Panel) -> Budget:
    if panel[_FORM] == "ratio":
        return Budget.ratio(panel[_BUDGET], round(panel[_RATIO], 2))
    if panel[_FORM] == "reserve":
        return Budget.reserve(panel[_WINDOW], panel[_OUTPUT])
    return Budget.share(panel[_WINDOW])


def _draw(panel: Panel) -> View:
    for label, control in panel.controls.items():
        control.disabled = label != _FORM and label not in _USES[panel[_FORM]]
    plan = Plan(_budget(panel), *_conversation())
    return View(plan_picture(plan), plan_in_words(plan))
