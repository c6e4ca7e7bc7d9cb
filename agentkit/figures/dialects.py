"""One history as the wire requests of two dialects, side by side, and what each API answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.figures.cut import NAMES
from agentkit.figures.palette import LOOKS, pale
from agentkit.figures.picture import ALARM, EDGE, FAINT, Drawing, Picture, columns
from agentkit.figures.rows import Part
from agentkit.messages import Request
from agentkit.protocol import Dialect, violations
from agentkit.providers.anthropic_wire import to_wire as to_messages
from agentkit.providers.openai_wire import encode
from agentkit.providers.openai_wire import to_wire as to_chat
from agentkit.providers.profiles import DEEPSEEK, OPENAI
from agentkit.simulator import PROFILES, Simulator

ACCEPTED = "200, accepted"


@dataclass(frozen=True)
class Line:
    """One part of a wire message: what it is, a few words of it, and whether a cache mark stands on it."""

    part: Part
    text: str
    marked: bool = False


@dataclass(frozen=True)
class Box:
    """One message on the wire, or one field beside the messages. `index` is its number there (None: a field)."""

    name: str
    lines: tuple[Line, ...]
    index: int | None = None


@dataclass(frozen=True)
class Side:
    """One dialect's request and the answer to it. `wrong` is the number of the message that the API names."""

    dialect: Dialect
    boxes: tuple[Box, ...]
    answer: str
    wrong: int | None = None

    @property
    def messages(self) -> int:
        """Return how many messages the request has on the wire."""
        return sum(box.index is not None for box in self.boxes)

    @property
    def accepted(self) -> bool:
        """Say whether the API takes the request."""
        return self.answer == ACCEPTED


def wire_of(request: Request, dialect: Dialect) -> dict[str, Any]:
    """Return the body that goes to an API of this dialect, with the simulator's model."""
    model = PROFILES[dialect].model
    if dialect == "anthropic":
        return to_messages(request, model)
    return to_chat(request, model, DEEPSEEK if dialect == "deepseek" else OPENAI)


def answer_to(body: dict[str, Any], dialect: Dialect) -> tuple[int, str]:
    """Return status and text of what the simulator answers to a body; the text is empty when it is accepted."""
    path = "/v1/messages" if dialect == "anthropic" else "/v1/chat/completions"
    plain = {field: value for field, value in body.items() if field not in ("stream", "stream_options")}
    answer = Simulator(dialect).handle("POST", path, {"anthropic-version": "2023-06-01"}, encode(plain))
    read = json.loads(b"".join(answer.chunks))
    return answer.status, "" if answer.status == 200 else read["error"]["message"]


def side(request: Request, dialect: Dialect) -> Side:
    """Return the request in one dialect, with the answer to it."""
    body = wire_of(request, dialect)
    status, text = answer_to(body, dialect)
    fields = [Box(name, tuple(lines)) for name, lines in _fields(body) if lines]
    boxes = [Box(m["role"], tuple(_lines(m)), i) for i, m in enumerate(body["messages"])]
    answer = ACCEPTED if status == 200 else f"{status}, {text}"
    return Side(dialect, (*fields, *boxes), answer, None if status == 200 else _named(text, request, dialect))


def _named(text: str, request: Request, dialect: Dialect) -> int:
    """Return the message that an error is about: it says so itself, or the rules do."""
    if found := re.match(r"messages\.(\d+)", text):
        return int(found[1])
    return next((v.index for v in violations(request, dialect)), 0)


def _fields(body: dict[str, Any]) -> Iterator[tuple[str, list[Line]]]:
    if tools := body.get("tools"):
        yield "tools", [Line("tools", ", ".join(_name(t) for t in tools), "cache_control" in tools[-1])]
    yield "system", [Line("system", b["text"], "cache_control" in b) for b in body.get("system") or ()]


def _name(tool: dict[str, Any]) -> str:
    return tool["name"] if "name" in tool else tool["function"]["name"]


def _lines(message: dict[str, Any]) -> Iterator[Line]:
    if isinstance(message.get("content"), list):
        yield from (_block(message["role"], block) for block in message["content"])
        return
    part: Part = message["role"]
    if message.get("reasoning_content") is not None and part == "assistant":
        yield Line(part, f"reasoning_content {message['reasoning_content']!r}")
    if part == "tool":
        yield Line(part, f"for {message['tool_call_id']}: {message['content']}")
    elif message.get("content"):
        yield Line(part, message["content"])
    for call in message.get("tool_calls") or ():
        yield Line(part, f"tool_calls {call['id']}: {call['function']['name']} {call['function']['arguments']!r}")


def _block(role: str, block: dict[str, Any]) -> Line:
    marked, kind = "cache_control" in block, block["type"]
    if kind == "tool_use":
        return Line("assistant", f"tool_use {block['id']}: {block['name']} {json.dumps(block['input'])}", marked)
    if kind == "tool_result":
        failed = " (is_error)" if block.get("is_error") else ""
        return Line("tool", f"tool_result for {block['tool_use_id']}{failed}: {block['content']}", marked)
    text = block.get("text") or block.get("thinking") or kind
    return Line("assistant" if role == "assistant" else "user", f"{kind}: {text}", marked)


# ------------------------------------------------------------------------------------------------------------ the picture


def sides_in_words(sides: Sequence[Side]) -> str:
    """Return what is to be seen, a sentence for each side."""
    return " ".join(_sentence(one) for one in sides)


def _sentence(one: Side) -> str:
    count = f"{NAMES[one.dialect]} gets {one.messages} message{'' if one.messages == 1 else 's'}"
    return f"{count} and accepts them." if one.accepted else f"{count} and answers {one.answer.rstrip('.')}."


_LINE, _GAP, _LEFT, _TOP = 18.0, 8.0, 14.0, 44.0


def dialects_picture(sides: Sequence[Side], *, width: int = 760) -> Picture:
    """Return the requests beside each other: a box for each message, a line for each of its parts."""
    words = sides_in_words(sides)
    drawing = Drawing(width)
    room = (width - _LEFT * (len(sides) + 1)) / len(sides)
    ends = [_column(drawing, one, _LEFT + n * (room + _LEFT), room) for n, one in enumerate(sides)]
    key = "M: a cache mark. A thick edge and “400”: the message that the API names."
    drawing.text(_LEFT, max(ends) + 18, key, fill=FAINT)
    return Picture(drawing.svg(max(ends) + 30, words), words, _as_text(sides, words), words)


def _column(drawing: Drawing, one: Side, x: float, room: float) -> float:
    beside = f"{NAMES[one.dialect]}: {one.messages} messages, {'accepted' if one.accepted else 'refused'}"
    drawing.text(x, 24, beside, more='font-weight="bold"')
    y = _TOP
    for box in one.boxes:
        wrong = box.index is not None and box.index == one.wrong
        high = _LINE * max(1, len(box.lines)) + 8
        edge = f'stroke="{ALARM}" stroke-width="3"' if wrong else f'stroke="{EDGE}"'
        drawing.rect(x, y, room, high, "#ffffff", f'{edge} rx="3"')
        label = box.name if box.index is None else f"{box.index} {box.name}"
        drawing.text(x + 6, y + 16, label, fill=FAINT, more='font-weight="bold"')
        _box_lines(drawing, box, x + 88, y, room - 92, wrong)
        y += high + _GAP
    return y


def _box_lines(drawing: Drawing, box: Box, x: float, y: float, room: float, wrong: bool) -> None:
    for n, line in enumerate(box.lines):
        top = y + 4 + n * _LINE
        drawing.rect(x, top, room, _LINE - 2, pale(LOOKS[line.part].colour, 0.72))
        spare = 4 + (12 if line.marked else 0) + (30 if wrong and n == 0 else 0)
        drawing.text(x + 4, top + 12, _clipped(line.text, int((room - spare) / 6.8)))
        if line.marked:
            drawing.text(x + room - 3, top + 12, "M", anchor="end", more='font-weight="bold"')
        if wrong and n == 0:
            end = x + room - (16 if line.marked else 3)
            drawing.text(end, top + 12, "400", anchor="end", fill=ALARM, more='font-weight="bold"')


def _clipped(text: str, most: int) -> str:
    line = " ".join(text.split())
    while columns(line) > most:
        line = line[:-2].rstrip() + "…" if len(line) > 2 else ""
    return line


def _as_text(sides: Sequence[Side], words: str) -> str:
    rows = []
    for one in sides:
        rows.append(f"{NAMES[one.dialect]}")
        for box in one.boxes:
            label = box.name if box.index is None else f"{box.index} {box.name}"
            wrong = "400 " if box.index is not None and box.index == one.wrong else ""
            for n, line in enumerate(box.lines):
                mark = " [M]" if line.marked else ""
                rows.append(f"  {wrong if n == 0 else '':4}{label if n == 0 else '':12} {_clipped(line.text, 66)}{mark}")
    return "\n".join([*rows, words])
