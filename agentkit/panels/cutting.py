"""Chapter 04: cut a conversation in two, summarise the first part, and see what the APIs say to the result."""

from __future__ import annotations

import functools
from html import escape

from agentkit.compaction import KEEP_LIST, Compactor, Keep
from agentkit.compaction.compactor import assemble
from agentkit.connect import simulated
from agentkit.figures.cut import Trial, cut_picture, refusals
from agentkit.log import Log, Placement, Projection, project
from agentkit.messages import Request
from agentkit.panels.common import Panel, View, checkbox, dropdown, paragraph, slider
from agentkit.protocol import DIALECTS, violations
from agentkit.scenarios import Settings, ask, start
from agentkit.tokens import PerScript

_KEEP, _BOUNDARY, _PLACE = "Messages kept", "Boundary", "Summary placed as"
_BOUNDARIES = (
    ("user: whole turns", "user"),
    ("pair: calls with their results", "pair"),
    ("none: by position alone", "none"),
)
_PLACES = (("system message", "system"), ("user message", "user"))

QUESTIONS = (
    "Remember that we decided to keep prices in whole cents.",
    "Read the big file and say how many methods it has.",
    "Read stats.py and say how many functions it has.",
    "What does compute7 return for 3?",
    "What was the very first question I asked you?",
)
"""With a decision and several calls: something for each rule and each item of the list to act on."""


def compactor() -> Panel:
    """Return the panel; its conversation is `QUESTIONS`, before the last one is answered."""
    most = sum(m.role != "system" for m in _conversation().messages)
    controls = {
        _KEEP: slider(_KEEP, 5, 1, most),
        _BOUNDARY: dropdown(_BOUNDARY, _BOUNDARIES, "user"),
        _PLACE: dropdown(_PLACE, _PLACES, "system"),
        **{item: checkbox(f"Keep {item}") for item in KEEP_LIST},
    }
    return Panel("One cut, and what is sent after it", controls, _draw)


class _ByPosition(Compactor):
    """Cut where the number says and follow no rule: the mistake that this chapter begins with."""

    def plan(self, view: Projection) -> int:
        return max(0, len(view.tail) - self.keep.amount)


@functools.cache
def _conversation() -> Request:
    return ask(start(Settings(budget=1_000_000, compact=False)), QUESTIONS).bills[-1].request


@functools.lru_cache(maxsize=512)
def _try(keep: int, boundary: str, placement: Placement, keep_list: tuple[str, ...]) -> Trial:
    """Compact once with these settings; the simulator writes the summary."""
    request, count = _conversation(), PerScript().messages
    view = project(Log(request.messages))
    kind, rule = (_ByPosition, "pair") if boundary == "none" else (Compactor, boundary)
    made = kind(simulated(), Keep(keep, "messages"), rule, keep_list=keep_list, placement=placement)  # type: ignore[arg-type]
    outcome, head = made.compact(view), len(view.head)
    before = view.head + view.tail
    if outcome.compaction is None:
        reason = outcome.reason.replace(
            f"boundary: {rule}", f"boundary: {boundary}"
        )  # the reader chose none, not its stand-in
        return Trial(before, before, head, head, "", count(before), count(before), reason=reason)
    cut = outcome.compaction.messages
    after = assemble(Projection(view.head, outcome.compaction, view.tail[cut:]))
    refused = tuple(v for d in DIALECTS for v in violations(Request(after, request.tools), d))
    return Trial(before, after, head, head + cut, outcome.compaction.summary, count(before), count(after), refused)


def _draw(panel: Panel) -> View:
    keep_list = tuple(item for item in KEEP_LIST if panel[item])
    trial = _try(panel[_KEEP], panel[_BOUNDARY], panel[_PLACE], keep_list)
    picture = cut_picture(trial)
    answers = "".join(f"<li>{escape(line)}</li>" for line in refusals(trial))
    summary = _summary(trial.summary, keep_list) if trial.done else ""
    asked = f"{panel[_KEEP]} message{'' if panel[_KEEP] == 1 else 's'} to keep, boundary {panel[_BOUNDARY]}."
    return View(picture, f"{asked} {picture.alt}", f"<b>What the APIs answer</b><ul>{answers}</ul>{summary}")


def _summary(summary: str, keep_list: tuple[str, ...]) -> str:
    """Return the summary as HTML, and which items of the list found nothing in the history."""
    written = {line.partition(":")[0] for line in summary.split("\n")}
    idle = [name for name in (item.partition(":")[0] for item in keep_list) if name not in written]
    note = paragraph("Asked for, but not in the history", ", ".join(idle)) if idle else ""
    return f"<b>The summary</b><pre style='white-space:pre-wrap'>{escape(summary)}</pre>{note}"
