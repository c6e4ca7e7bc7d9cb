"""The parts of a request in the order in which Anthropic hashes them, and which part each kind of change invalidates.

A cache is a prefix, so a change loses the part it stands in and every part behind it. A request parameter stands in no part
of its own; `arrange` puts it, as a segment without tokens, in front of the first part that is lost when it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentkit.caching.prefix import Kind, Segment

Part = Literal["tools", "system", "messages"]
PARTS: tuple[Part, ...] = ("tools", "system", "messages")


@dataclass(frozen=True)
class Change:
    """One kind of change: what it is, and the first part of the request that can no longer be read."""

    what: str
    first_lost: Part
    note: str = ""

    @property
    def lost(self) -> tuple[Part, ...]:
        """Return the parts that are lost, in order."""
        return PARTS[PARTS.index(self.first_lost) :]


PARAMETERS: dict[str, Change] = {
    "model": Change("another model", "tools"),
    "features": Change("web search, citations or speed switched on or off", "system"),
    "tool_choice": Change("tool_choice", "messages"),
    "thinking": Change("thinking switched, its budget, or effort", "messages", "some models lose more"),
    "images": Change("a picture added or removed anywhere", "messages"),
}
"""Changes of a request parameter, by the name that `arrange` knows. Source: Anthropic's prompt caching page, 2026-08-21."""

CHANGES: dict[str, Change] = {
    **PARAMETERS,
    "tools": Change("a tool definition: name, description, schema, the order of tools or of keys", "tools"),
    "system": Change("the system text", "system"),
    "message": Change("a message edited", "messages", "from the edit on"),
    "stripped thinking": Change(
        "a plain user message, on models that then drop earlier thinking (before Opus 4.5 and Sonnet 4.6; every Haiku)",
        "messages",
        "from the dropped block on",
    ),
}
"""What invalidates what, as a table. Source: as above."""


def parameter(name: str, value: object) -> Segment:
    """Return a request parameter as a segment without tokens."""
    return Segment(f"{name}={value}".encode(), (), "parameter")


def arrange(
    tools: Iterable[Segment] = (),
    system: Iterable[Segment] = (),
    messages: Iterable[Segment] = (),
    parameters: Mapping[str, object] | None = None,
) -> list[Segment]:
    """Return a prompt in the order tools, system, messages, each parameter where its change takes effect.

    `parameters` maps a name of `PARAMETERS` to its value; for `images` that is how many pictures the request has.
    Raises `ValueError` on an unknown name.
    """
    given = dict(parameters or {})
    if unknown := sorted(given.keys() - PARAMETERS.keys()):
        raise ValueError(f"unknown parameter {unknown[0]!r}; there are {', '.join(PARAMETERS)}")
    parts: dict[Part, Iterable[Segment]] = {
        "tools": _all(tools, "tools"),
        "system": _all(system, "system"),
        "messages": messages,
    }
    prompt: list[Segment] = []
    for part in PARTS:
        before = [name for name, change in PARAMETERS.items() if change.first_lost == part and name in given]
        prompt += [parameter(name, given[name]) for name in before]
        prompt += parts[part]
    return prompt


def _all(segments: Iterable[Segment], kind: Kind) -> list[Segment]:
    return [s if s.kind == kind else replace(s, kind=kind) for s in segments]


def what_differs(alternatives: Sequence[tuple[bytes, Kind]]) -> str:
    """Return the name of the change that separates prompts which go on with one of `alternatives` at the same place.

    Where one prompt has a tool and the other goes on with the system text, it is the tools that changed: the earlier part.
    """
    names = [
        data.partition(b"=")[0].decode("utf-8", "replace") if kind == "parameter" else kind for data, kind in alternatives
    ]
    first = min(names, key=_rank)
    return first if first in PARAMETERS or first in ("tools", "system") else "messages"


def _rank(name: str) -> tuple[float, int]:
    if name in PARAMETERS:
        return PARTS.index(PARAMETERS[name].first_lost) - 0.5, list(PARAMETERS).index(name)
    return PARTS.index("system" if name == "system" else "tools" if name == "tools" else "messages"), 0
