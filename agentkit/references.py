"""Reference recall: of what later tool calls mention and had been seen before, how much was still in view.

Cheap is not good. An identifier is a path, a symbol (`snake_case`, `camelCase`, `SomeError`) or a quoted error message. A
tool call refers to it if it stands in the call's arguments; it is in view if a message that is sent word for word has it, or
the summary in force.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.messages import Message, ToolCall

_PART = r"[\w.@+-]+"
_TYPES = "py pyi ts tsx js jsx json md toml yaml yml c h cpp rs go java rb sh css html sql txt pony ipynb"
_IDENTIFIER = re.compile(
    r"https?://[^\s\"'<>)]+"
    # A path: one that starts like one, one with a known ending, or one of three parts; a closing tag is none.
    rf"|(?<![<\w/])(?:~|\.\.?)?/{_PART}(?:/{_PART})*"
    rf"|\b(?:{_PART}/)*[\w+-]+(?:\.[\w+-]+)*\.(?:{'|'.join(_TYPES.split())})\b"
    rf"|\b{_PART}(?:/{_PART}){{2,}}"
    # A symbol: a capital behind a small letter, or an underscore inside.
    r"|\b[A-Za-z]*[a-z0-9][A-Z]\w*|\b[A-Za-z]\w*_\w*[A-Za-z0-9]"
)
_QUOTED = re.compile(r"[\"'`]([^\"'`\n]{8,120} [^\"'`\n]{1,120})[\"'`]")
_ERROR = re.compile(r"error|exception|fail|cannot|not found|undefined|denied", re.IGNORECASE)


@dataclass(frozen=True)
class References:
    """For each request: what its tool calls refer to that had been seen before, with the last message that has it.

    A position is an index of the body; what the head has is always in view and has the position of the request itself.
    """

    names: tuple[tuple[str, ...], ...]
    places: tuple[tuple[int, ...], ...]

    def used(self, request: int) -> int:
        """Return how many references the calls of this request make."""
        return len(self.places[request])

    def in_view(self, request: int, start: int, summary: frozenset[str] = frozenset()) -> int:
        """Return how many of them are in view when the body is sent from `start` on, after a summary with these names."""
        gone = bisect_left(self.places[request], start)
        saved = sum(name in summary for name in self.names[request][:gone]) if summary else 0
        return len(self.places[request]) - gone + saved

    def missing(self, request: int, start: int, summary: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Return the names that are not in view."""
        gone = bisect_left(self.places[request], start)
        return tuple(name for name in self.names[request][:gone] if name not in summary)


@functools.lru_cache(maxsize=4_096)  # twenty policies on one session look at the same texts
def identifiers(text: str) -> frozenset[str]:
    """Return the paths and symbols in `text`."""
    return frozenset(name.removeprefix("./").rstrip(".") for name in _IDENTIFIER.findall(text))


def find_references(body: Sequence[Message], ends: Iterable[int], head: str = "") -> References:
    """Find the references of every request; `ends` are the positions of the answers in `body`."""
    last: dict[str, int] = {}
    always = identifiers(head)
    names, places = [], []
    done = 0
    for end in ends:
        for i in range(done, end):
            last.update(dict.fromkeys(identifiers(said(body[i])), i))
        done = end
        found = {name: end if name in always else last.get(name) for name in referred(body[end].tool_calls)}
        found |= dict(_quoted_errors(body, end))
        known = sorted((place, name) for name, place in found.items() if place is not None)
        names.append(tuple(name for _, name in known))
        places.append(tuple(place for place, _ in known))
    return References(tuple(names), tuple(places))


def said(message: Message) -> str:
    """Return all text of a message, with the arguments of its calls as the model wrote them."""
    return "\n".join([message.content, message.reasoning, *(_arguments(call) for call in message.tool_calls)])


def referred(calls: Sequence[ToolCall]) -> frozenset[str]:
    """Return the paths and symbols that stand in the arguments of `calls`."""
    return frozenset().union(*(identifiers(_arguments(call)) for call in calls))


def _quoted_errors(body: Sequence[Message], end: int) -> Iterator[tuple[str, int | None]]:
    for call in body[end].tool_calls:
        for text in _QUOTED.findall(_arguments(call)):
            if _ERROR.search(text):
                yield text, next((i for i in range(end - 1, -1, -1) if text in body[i].content), None)


def _arguments(call: ToolCall) -> str:
    """Return the texts inside the arguments, without JSON's escapes, which would glue letters to names."""
    try:
        return "\n".join(_texts(call.parsed()))
    except ValueError:
        return call.arguments


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
