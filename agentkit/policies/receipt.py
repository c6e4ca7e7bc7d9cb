"""The receipt of a compaction: what was left out, how many tokens, under which ids; and the tool that gets one back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentkit.log import Log
from agentkit.messages import Message, ToolSpec
from agentkit.policies.trail import Trail
from agentkit.tools.base import Arguments, Tool, ToolError
from agentkit.tools.text import quote

OPENING = "[Receipt:"
RECALL = "recall"
SAID = "user said:"
BEGINNING = 60
"""Characters of a user's message that the receipt shows."""


def make_receipt(gone: Sequence[Message], trail: Trail, count: Callable[[str], int], limit: int) -> str:
    """Return the receipt of `gone`, the first messages of those that `trail` has read: at most `limit` tokens.

    It names the paths and symbols that calls referred to, the newest first as long as there is room, each beside the id
    of the message that shows it: the result of the newest call that named it, else the call. A third of the room is for
    the beginnings of what the user said, the oldest first: no file has that. `count` gives the tokens of a text.
    """
    lines = [
        f"{OPENING} {len(gone):,} messages, {trail.tokens(len(gone)):,} tokens, left out; {RECALL}(id) gives one back.]"
    ]
    room = limit - count(lines[0])
    if said := _said(gone, count, room // 3):
        lines.append(said)
        room -= count(f"\n{said}")
    found: dict[int, list[str]] = {}
    for name, place in sorted(_places(len(gone), trail).items(), key=lambda item: (-trail.named[item[0]], item[0])):
        new = "" if place in found else f"\n{_label(gone[place], trail, place)}"
        room -= count(f"{new} {name},")
        if room < 0:
            break
        found.setdefault(place, []).append(name)
    lines += [f"{_label(gone[place], trail, place)} {', '.join(found[place])}" for place in sorted(found)]
    return "\n".join(lines)


def _said(gone: Sequence[Message], count: Callable[[str], int], room: int) -> str:
    """Return one line with the beginnings of the user's messages, as many as fit into `room` tokens; empty: none does."""
    line = SAID
    for message in gone:
        text = " ".join(message.content.split())
        if message.role != "user" or not text:
            continue
        more = f"{line} {message.id} “{text if len(text) <= BEGINNING else text[:BEGINNING] + '…'}”"
        if count(f"\n{more}") > room:
            break
        line = more
    return line if line != SAID else ""


def _places(size: int, trail: Trail) -> dict[str, int]:
    """Return where each name that is left out can be read: names that a kept message says are still in view."""
    out = {}
    for name, called in trail.named.items():
        place = trail.shown.get(name, called)
        if place < size and trail.last_seen(name) < size:
            out[name] = place
    return out


def _label(message: Message, trail: Trail, place: int) -> str:
    return f"{message.id} ({trail.tokens(place + 1) - trail.tokens(place):,}):"


def without_receipt(summary: str) -> str:
    """Return a summary without the receipt at its end."""
    return summary.partition(f"\n\n{OPENING}")[0]


def recall_tool(log: Log) -> Tool:
    """Return `recall`, which gives a message of the log back word for word, by its id."""

    def run(arguments: Arguments) -> str:
        wanted = arguments["id"].strip()
        message = next((m for m in log.messages() if m.id == wanted), None)
        if message is None:
            raise ToolError(f"no message has the id {quote(wanted)}; the receipt in the summary lists the ids")
        calls = [f"<call {call.name}({call.arguments})>" for call in message.tool_calls]
        return "\n".join([f"[{message.role} {message.id}]", *filter(None, [message.content, *calls])])

    schema = {
        "type": "object",
        "properties": {"id": {"type": "string", "description": "the id, as the receipt has it"}},
        "required": ["id"],
        "additionalProperties": False,
    }
    about = (
        "Give back, word for word, a message that was left out of your context. The receipt in the summary lists the ids."
    )
    return Tool(ToolSpec(RECALL, about, schema), run)
