"""Tool calls that arrive in pieces, put together again.

The standard joins on `index`. Servers leave it out, send 0 for every call, send the id with the first piece only or
another one with each piece, repeat the name, or send arguments before it; so a piece is judged by all it carries.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.messages import ToolCall
from agentkit.providers.text import paired


@dataclass
class _Call:
    index: int | None
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: Any = None

    @property
    def arguments(self) -> str:
        return paired("".join(self.pieces))

    @property
    def complete(self) -> bool:
        try:
            return isinstance(json.loads(self.arguments), dict)
        except ValueError:
            return False


@dataclass(frozen=True)
class _Piece:
    index: int | None
    id: str
    name: str
    arguments: str
    extra: Any

    @staticmethod
    def read(raw: Mapping[str, Any], index: object) -> _Piece:
        function = raw.get("function")
        function = function if isinstance(function, Mapping) else {}
        return _Piece(
            index if isinstance(index, int) else None,
            str(raw.get("id") or ""),
            str(function.get("name") or ""),
            _text(function.get("arguments")),
            raw.get("extra_content"),
        )


class ToolCalls:
    """The calls of one answer, in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def add(self, raw: Iterable[object], *, whole: bool = False) -> None:
        """Take in one list of pieces. `whole`: each is a call of its own, as in an answer that is not streamed."""
        for place, piece in enumerate(raw):
            if isinstance(piece, Mapping):
                self._take(_Piece.read(piece, place if whole else piece.get("index")))

    def finished(self, *, cut: bool) -> tuple[tuple[ToolCall, ...], list[Any]]:
        """Return the calls, each with an id of its own, and the opaque data of each (an empty list when none had any).

        `cut`: the answer hit its limit, so a last call without a name is left out; without `cut` it is a `ValueError`.
        """
        self._drop_cut(cut)
        if not all(call.name for call in self._calls):
            raise ValueError("a tool call without a name")
        ids = distinct_ids([call.id for call in self._calls])
        calls = tuple(ToolCall(i, paired(c.name), c.arguments) for i, c in zip(ids, self._calls, strict=True))
        extras = [call.extra for call in self._calls]
        return calls, extras if any(extra is not None for extra in extras) else []

    def _drop_cut(self, cut: bool) -> None:
        if cut and self._calls and not self._calls[-1].name:
            self._calls.pop()

    def _take(self, piece: _Piece) -> None:
        call = self._matching(piece)
        if call is None or _begins_another(call, piece):
            call = _Call(piece.index)
            self._calls.append(call)
        call.id = call.id or piece.id
        call.name = _grown(call.name, piece.name)
        call.pieces.append(piece.arguments)
        call.extra = piece.extra if piece.extra is not None else call.extra

    def _matching(self, piece: _Piece) -> _Call | None:
        """Find the call that `piece` may belong to: by index, else by id (which may come late), else the one in progress."""
        newest = self._calls[::-1]
        if piece.index is not None:
            return next((call for call in newest if call.index == piece.index), None)
        if piece.id:
            same = next((call for call in newest if call.id == piece.id), None)
            if same or piece.name or not newest or newest[0].id:
                return same
        return newest[0] if newest else None


def distinct_ids(ids: list[str]) -> list[str]:
    """Return `ids` with every empty or repeated one replaced: `call_0`, `k-2`. The same ids give the same answer."""
    taken = set(ids)
    seen: set[str] = set()
    result = []
    for place, wanted in enumerate(ids):
        name = wanted or f"call_{place}"
        n = 2
        while name in seen or (name != wanted and name in taken):
            name, n = f"{wanted or f'call_{place}'}-{n}", n + 1
        seen.add(name)
        result.append(name)
    return result


def _begins_another(call: _Call, piece: _Piece) -> bool:
    """Tell whether `piece` begins a call of its own although index or id say `call`. Only a name can begin one."""
    if not (piece.name and call.name):
        return False
    other_id = bool(piece.id and call.id and piece.id != call.id)
    other_name = piece.index is None and piece.name != call.name
    return other_id or other_name or (bool(piece.arguments.strip()) and call.complete)


def _grown(name: str, piece: str) -> str:
    """Add a piece of a name. A server that repeats the name, or sends all of it so far, adds nothing twice."""
    return piece if piece.startswith(name) else name + piece


def _text(arguments: object) -> str:
    """Return arguments as text; a server that sends an object instead of its text is understood."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
