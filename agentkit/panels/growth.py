"""Chapter 01: what a loop sends, by the number of its rounds and the size of what it reads."""

from __future__ import annotations

import functools

from agentkit.agent import SYSTEM_PROMPT
from agentkit.figures.growth import Growth, growth_picture, reading_loop
from agentkit.panels.common import Panel, View, slider
from agentkit.scenarios import course_workspace
from agentkit.tools import workspace_tools

_ROUNDS, _LINES = "Rounds", "Lines per file"


def loop_growth() -> Panel:
    """Return the panel. The messages are made up as a reading loop makes them; the estimator counts them."""
    controls = {_ROUNDS: slider(_ROUNDS, 12, 1, 30), _LINES: slider(_LINES, 120, 20, 400, 20)}
    return Panel("A loop that reads one file in every round", controls, _draw)


@functools.lru_cache(maxsize=1024)
def _growth(rounds: int, lines: int) -> Growth:
    return reading_loop(rounds, lines, head=SYSTEM_PROMPT, tools=workspace_tools(course_workspace()).specs)


def _draw(panel: Panel) -> View:
    picture = growth_picture(_growth(panel[_ROUNDS], panel[_LINES]))
    return View(picture, f"{panel[_LINES]} lines in each round (estimate). {picture.alt}")
