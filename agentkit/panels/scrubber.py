"""Chapter 08: a scrubber through the time of a ledger: the full history left, the model's view right, and a way back."""

from __future__ import annotations

import functools

from agentkit.figures.scrubber import moment, moment_in_words, moment_picture
from agentkit.ledger import Ledger
from agentkit.log import Log
from agentkit.panels.common import Panel, View, checkbox, paragraph, slider
from agentkit.scenarios import Settings, ask, start

_NOW, _BACK = "Newest entry", "Go back to this entry in the whole ledger"

QUESTIONS = (
    "Read the big file and say how many methods it has.",
    "What does compute7 return for 3?",
    "Read stats.py and say how many functions it has.",
    "How many lines is the big file?",
    "What does compute9 return for 2?",
    "How many lines is stats.py?",
    "What was the very first question I asked you?",
)
"""Long enough for more than one compaction with a budget of 4,000 tokens and two messages kept."""


@functools.cache
def conversation() -> Log:
    """Return the conversation of the panel, as a log in memory."""
    with Ledger(":memory:") as ledger:
        return ask(start(Settings(budget=4_000, keep=2), log=ledger), QUESTIONS).agent.log.at(len(ledger) - 1)


def ledger_scrubber() -> Panel:
    """Return the panel. The slider is time; the box goes back, which is another thing: nothing leaves the left side."""
    last = len(conversation()) - 1
    return Panel("The ledger through time", {_NOW: slider(_NOW, last, 0, last), _BACK: checkbox(_BACK, False)}, _draw)


def _draw(panel: Panel) -> View:
    log = conversation()
    shown = moment(log, panel[_NOW], rewound=panel[_BACK])
    entry = shown.lines[panel[_NOW]]
    text = paragraph(f"Entry {panel[_NOW]} ({entry.place})", entry.words)
    return View(moment_picture(shown, rows=len(log) + 1), moment_in_words(shown), text)
