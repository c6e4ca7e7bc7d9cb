"""A tool, a box of tools, and the promise that a call is always answered.

Whatever the model asks for, `Toolbox.run` returns a tool message: the output, or one line that says what was wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from agentkit.messages import Message, ToolCall, ToolSpec, tool_result
from agentkit.tools.text import EMPTY, LIMIT, SMALLEST_LIMIT, clip, one_line, quote

Arguments = dict[str, Any]


class ToolError(Exception):
    """A tool could not do what was asked. Its text is what the model reads: what was wrong, where, what to do."""


@dataclass(frozen=True)
class Tool:
    """What the model sees of a tool (`spec`) and what happens when it is called (`run`).

    `run` gets the checked arguments, returns text, and raises `ToolError` for what the model should put right.
    """

    spec: ToolSpec
    run: Callable[[Arguments], str]


class Toolbox:
    """The tools of one session, fixed when it begins: a tool that comes or goes would cost the whole cached prefix."""

    def __init__(self, tools: Iterable[Tool] = (), *, limit: int = LIMIT) -> None:
        """Collect `tools`; results are clipped to `limit` characters. Raises `ValueError` for two of one name."""
        if limit < SMALLEST_LIMIT:
            raise ValueError(f"limit {limit} is too small; a tool result needs at least {SMALLEST_LIMIT} characters")
        self.tools: tuple[Tool, ...] = tuple(sorted(tools, key=lambda tool: tool.spec.name))
        self.limit = limit
        self._by_name = {tool.spec.name: tool for tool in self.tools}
        if len(self._by_name) < len(self.tools):
            names = [tool.spec.name for tool in self.tools]
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ValueError(f"two tools are called {', '.join(twice)}; give each its own name")
        # Kept as text: a schema is a dict, and whoever holds it could change it between two requests.
        self._canonical = tuple(tool.spec.canonical() for tool in self.tools)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the specs, sorted by name and with sorted keys: the same bytes for every request."""
        return tuple(ToolSpec(**json.loads(text)) for text in self._canonical)

    def run(self, call: ToolCall) -> Message:
        """Run `call` and return its tool message. Every failure is an answer too; only Ctrl-C gets through."""
        try:
            return tool_result(call.id, self._fit(self._output(call)))
        except ToolError as error:
            reason = str(error) or "the tool failed and gave no reason"
        except (Exception, SystemExit) as error:
            reason = f"{call.name} failed: {type(error).__name__}: {error}"
        return tool_result(call.id, self._fit(one_line(f"error: {reason}")), is_error=True)

    def _output(self, call: ToolCall) -> str:
        tool = self._by_name.get(call.name)
        if tool is None:
            raise ToolError(_no_such_tool(call.name, list(self._by_name)))
        output = tool.run(_arguments(call, tool.spec))
        if not isinstance(output, str):
            raise ToolError(f"{call.name} returned {type(output).__name__}, not text; this is a fault of the tool")
        return output

    def _fit(self, text: str) -> str:
        text = clip(text, self.limit)
        return text if text.strip() else EMPTY


def signature(spec: ToolSpec) -> str:
    """Return the tool as one writes it down: `read_file(path, first_line?)`; `?` marks what may be left out."""
    required = spec.parameters.get("required", ())
    names = [name if name in required else f"{name}?" for name in spec.parameters.get("properties", {})]
    return f"{spec.name}({', '.join(sorted(names, key=lambda name: name.endswith('?')))})"


def _no_such_tool(name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"no tool is called {quote(name)}; {hint}the tools are: {', '.join(names) or 'none'}"


def _arguments(call: ToolCall, spec: ToolSpec) -> Arguments:
    """Return the arguments of `call`, checked against the schema. Raises `ToolError`."""
    try:
        arguments = call.parsed()
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ToolError(f"the arguments of {call.name} are not one JSON object ({error}); {_usage(spec)}") from error
    schema = spec.parameters
    required = schema.get("required", ())
    # Some models send null for what they want to leave out.
    given = {name: value for name, value in arguments.items() if value is not None or name in required}
    problem = next(_problems(given, schema), "")
    if problem:
        raise ToolError(f"{call.name}: {problem}; {_usage(spec)}")
    return given


def _usage(spec: ToolSpec) -> str:
    return f"call it as {signature(spec)}"


def _problems(arguments: Arguments, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield what does not fit: missing, unknown and wrong-typed parameters of the top level (no deeper)."""
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in arguments:
            yield f"parameter {quote(name)} is missing"
    for name, value in arguments.items():
        if name not in properties:
            if schema.get("additionalProperties") is not True:
                yield f"parameter {quote(name)} is unknown"
        elif kinds := _misfit(value, properties[name]):
            yield f"parameter {quote(name)} must be of type {kinds}, not {quote(value)}"


# The exact type decides: in Python True is an int, in JSON it is not.
_JSON_TYPES: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}


def _misfit(value: object, schema: Mapping[str, Any]) -> str:
    """Return the types that `schema` asks for when `value` has none of them, else an empty string."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    kind = _JSON_TYPES[type(value)]
    fits = not kinds or kind in kinds or (kind == "integer" and "number" in kinds)
    return "" if fits else " or ".join(kinds)
