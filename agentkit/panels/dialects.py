"""Chapter 09: one history in two dialects side by side, cut where the reader wants, and what each API answers."""

from __future__ import annotations

import functools
from html import escape

from agentkit.figures.cut import NAMES
from agentkit.figures.dialects import Side, dialects_picture, side, sides_in_words
from agentkit.messages import Message, Request, ToolCall, ToolSpec, assistant, system, tool_result, user
from agentkit.panels.common import Panel, View, checkbox, dropdown, slider
from agentkit.protocol import DIALECTS, Dialect
from agentkit.settle import settle

_LEFT, _RIGHT, _STORY, _CUT, _SETTLED = (
    "Left dialect",
    "Right dialect",
    "History",
    "Messages cut off",
    "Settled before sending",
)

_READ = ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def _reading(call_id: str, path: str) -> ToolCall:
    return ToolCall(call_id, "read_file", f'{{"path": "{path}"}}')


def _story(one: str, two: str, *between: Message) -> tuple[Message, ...]:
    return (
        system("You are a coding agent."),
        user("Read a.txt and b.txt at once."),
        assistant("I read both.", _reading(one, "a.txt"), _reading(two, "b.txt")),
        tool_result(one, "alpha"),
        *between,
        tool_result(two, "error: no such file", is_error=True),
        assistant("a.txt holds alpha; there is no b.txt."),
        user("And c.txt?"),
    )


STORIES: dict[str, tuple[Message, ...]] = {
    "two results": _story("call_1", "call_2"),
    "a note between them": _story("call_1", "call_2", user("Be quick.")),
    "ids of another server": _story("read_file:0", "read_file:1"),
}
"""Short histories that every dialect writes differently."""


def dialects() -> Panel:
    """Return the panel."""
    names = [(NAMES[d], d) for d in DIALECTS]
    most = max(len(story) for story in STORIES.values()) - 2
    controls = {
        _LEFT: dropdown(_LEFT, names, "openai"),
        _RIGHT: dropdown(_RIGHT, names, "anthropic"),
        _STORY: dropdown(_STORY, list(STORIES), "two results"),
        _CUT: slider(_CUT, 2, 0, most),
        _SETTLED: checkbox(_SETTLED, False),
    }
    return Panel("One history, two wire requests", controls, _draw)


@functools.lru_cache(maxsize=256)
def _side(story: str, cut: int, settled: bool, dialect: Dialect) -> Side:
    messages = STORIES[story]
    kept = (messages[0], *messages[1 + min(cut, len(messages) - 2) :])
    return side(Request(settle(kept) if settled else kept, (_READ,)), dialect)


def _draw(panel: Panel) -> View:
    chosen = [panel[_LEFT], panel[_RIGHT]]
    sides = [_side(panel[_STORY], panel[_CUT], panel[_SETTLED], dialect) for dialect in chosen]
    answers = "".join(f"<li>{escape(NAMES[one.dialect])}: {escape(one.answer)}</li>" for one in sides)
    cut = panel[_CUT]
    begun = f"Without the first {cut} messages" if cut > 1 else "Without the first message" if cut else "With every message"
    how = ", settled" if panel[_SETTLED] else ", as they are"
    sentence = f"{begun}{how}: {sides_in_words(sides)}"
    return View(dialects_picture(sides), sentence, f"<b>What the APIs answer</b><ul>{answers}</ul>")
