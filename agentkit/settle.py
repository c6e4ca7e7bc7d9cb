"""Make any history acceptable to every API: the last step of every view.

A history breaks the rules for ordinary reasons: a turn was interrupted between call and result, a server sent two
calls with one id, a command printed nothing. The log keeps what happened; this repairs what is sent. Repairing a second
time changes nothing, and the same history always gives the same bytes, so the cached prefix stays.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from agentkit.messages import Message
from agentkit.protocol import ID_PATTERN, says_nothing

NO_OUTPUT = "(no output)"
NO_TEXT = "(empty)"
INTERRUPTED = "(interrupted: this call was not finished and has no result)"


def settle(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return `messages` with every call answered once, no orphan result, safe unique ids, no empty text."""
    return tuple(_unique_ids(_paired(_filled(m) for m in _system_first(messages)), {}))


def wire_id(call_id: str, pattern: str = ID_PATTERN.pattern, length: int = 9) -> str:
    """Return `call_id` if it fits `pattern`, else a stand-in of `length` letters and digits.

    The stand-in depends on nothing but the id, so call and result keep matching and the bytes never change.
    """
    if re.fullmatch(pattern, call_id):
        return call_id
    return hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()[:length]


def _system_first(messages: Sequence[Message]) -> Iterator[Message]:
    """Turn a system message in the middle into a labelled user message: not every API takes it there."""
    leading = True
    for message in messages:
        leading = leading and message.role == "system"
        yield message if leading else _late(message)


def _late(message: Message) -> Message:
    if message.role != "system":
        return message
    return replace(message, role="user", content=f"[system note] {message.content}")


def _filled(message: Message) -> Message:
    """Give an empty message a visible text, and take calls off a role that cannot call."""
    if message.tool_calls and message.role != "assistant":
        message = replace(message, tool_calls=())
    if not says_nothing(message):
        return message
    return replace(message, content=NO_OUTPUT if message.role == "tool" else NO_TEXT)


def _paired(messages: Iterator[Message]) -> Iterator[Message]:
    """Put the results of each batch behind their call, in the order of the calls; drop results that answer nothing.

    A result belongs to the newest assistant message before it, whatever stands between them. A user message that came
    in between is moved behind the batch.
    """
    caller: Message | None = None
    pending: list[Message] = []
    for message in messages:
        if message.role == "assistant":
            yield from _batch(caller, pending)
            caller, pending = message, []
        else:
            pending.append(message)
    yield from _batch(caller, pending)


def _batch(caller: Message | None, rest: list[Message]) -> Iterator[Message]:
    if caller is not None:
        results = [m for m in rest if m.role == "tool"]
        answers = [_answer(call.id, results) for call in caller.tool_calls]
        ids = [f"{call.id}#{n}" for n, call in enumerate(caller.tool_calls)] if _ambiguous(caller) else None
        if ids:
            calls = tuple(replace(c, id=i) for c, i in zip(caller.tool_calls, ids, strict=True))
            caller = replace(caller, tool_calls=calls)
            answers = [replace(a, tool_call_id=i) for a, i in zip(answers, ids, strict=True)]
        yield caller
        yield from answers
    yield from (m for m in rest if m.role != "tool")


def _answer(call_id: str, results: list[Message]) -> Message:
    """Take the first result with this id out of `results`; with equal ids the position decides."""
    for i, result in enumerate(results):
        if result.tool_call_id == call_id:
            return results.pop(i)
    return Message("tool", INTERRUPTED, tool_call_id=call_id, is_error=True)


def _ambiguous(message: Message) -> bool:
    ids = [c.id for c in message.tool_calls]
    return "" in ids or len(set(ids)) < len(ids)


def _unique_ids(messages: Iterator[Message], used: dict[str, int]) -> Iterator[Message]:
    """Give every call of the whole history an id of its own, in an alphabet that every API takes."""
    names: dict[str, str] = {}
    for message in messages:
        if message.tool_calls:
            names = {c.id: _free(wire_id(c.id), used) for c in message.tool_calls}
            calls = tuple(replace(c, id=names[c.id]) for c in message.tool_calls)
            yield message if calls == message.tool_calls else replace(message, tool_calls=calls)
        elif message.role == "tool" and names.get(message.tool_call_id, message.tool_call_id) != message.tool_call_id:
            yield replace(message, tool_call_id=names[message.tool_call_id])
        else:
            yield message


def _free(wanted: str, used: dict[str, int]) -> str:
    """Return `wanted`, or with a number behind it; `used` holds the last number of each id, so as not to count up again."""
    name, n = wanted, used.get(wanted, 1)
    while name in used:
        n += 1
        suffix = f"-{n}"
        name = wanted[: 64 - len(suffix)] + suffix
    used[name], used[wanted] = 1, n
    return name


# ------------------------------------------------------------------------------------------------- for a list that grows


class Settler:
    """`settle` for a conversation that grows: what was settled at the last call is not looked at again.

    It gives the same messages as `settle`, and the very same objects for what did not change. After a change in the middle
    it goes on from there.
    """

    def __init__(self) -> None:
        self._source: list[Message] = []
        self._done: list[Message] = []
        self._used = _Used()
        # One for each part, an assistant message and what follows it: its end in the source, in what is done, in `undo`.
        self._ends: list[tuple[int, int, int]] = []

    def settle(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return `messages` settled."""
        new = list(messages)
        self._back_to(new)
        start = self._ends[-1][0] if self._ends else 0
        starts = [i for i in range(start + 1, len(new)) if new[i].role == "assistant"]
        for begin, end in zip([start, *starts], [*starts, len(new)], strict=True):
            part = new[begin:end]
            late = map(_late, part) if begin else _system_first(part)
            self._done += _unique_ids(_paired(map(_filled, late)), self._used)
            self._ends.append((end, len(self._done), len(self._used.undo)))
        self._source = new
        return tuple(self._done)

    def _back_to(self, new: list[Message]) -> None:
        """Forget all parts that are not the same in `new`; the last part may have grown, so it is always done again."""
        same = len(self._source)
        if new[:same] != self._source:
            pairs = enumerate(zip(new, self._source, strict=False))
            same = next((i for i, (a, b) in pairs if a is not b and a != b), min(len(new), same))
        self._ends = self._ends[:-1]
        while self._ends and not (self._ends[-1][0] <= same and _is_assistant(new, self._ends[-1][0])):
            self._ends.pop()
        _, done, undo = self._ends[-1] if self._ends else (0, 0, 0)
        del self._done[done:]
        self._used.back_to(undo)


class _Used(dict[str, int]):
    """The last number of each id, with a list of what each was before."""

    def __init__(self) -> None:
        super().__init__()
        self.undo: list[tuple[str, int | None]] = []

    def __setitem__(self, name: str, number: int) -> None:
        self.undo.append((name, self.get(name)))
        super().__setitem__(name, number)

    def back_to(self, length: int) -> None:
        """Take back every change but the first `length`."""
        while len(self.undo) > length:
            name, number = self.undo.pop()
            if number is None:
                del self[name]
            else:
                super().__setitem__(name, number)


def _is_assistant(messages: list[Message], index: int) -> bool:
    return index < len(messages) and messages[index].role == "assistant"
