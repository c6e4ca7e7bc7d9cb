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
    return tuple(_unique_ids(_paired(_filled(m) for m in _system_first(messages))))


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
        if message.role == "system" and not leading:
            yield replace(message, role="user", content=f"[system note] {message.content}")
        else:
            yield message


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


def _unique_ids(messages: Iterator[Message]) -> Iterator[Message]:
    """Give every call of the whole history an id of its own, in an alphabet that every API takes."""
    used: dict[str, int] = {}
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
