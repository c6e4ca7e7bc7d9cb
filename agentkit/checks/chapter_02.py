"""Exercises of chapter 02: weigh a long run, count a message, what a bill covers, whether it is stale."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentkit.calibration import LastBill, _Bill
from agentkit.checks.base import Case, Exercise
from agentkit.messages import Image, Message, Request, ToolCall, ToolSpec, Usage, assistant, system, tool_result, user
from agentkit.tokens import IMAGE_TOKENS, PerScript

_SCRIPT = PerScript()


# --- a weight for a long run -----------------------------------------------------------------------------------------------

_HASH = hashlib.sha256(b"a parcel").hexdigest()
_BASE64 = base64.b64encode(bytes(range(120))).decode("ascii")


def _extra(run: str, want: float, note: str) -> Case:
    return Case((run,), want, note, tolerance=1e-6)


_RUN_CASES = (
    _extra(_BASE64, 80.0, "160 letters of base64"),
    _extra(_HASH * 2, 38.4, "128 letters of hexadecimal: two hashes"),
    _extra((_HASH * 2).upper(), 38.4, "the same in capitals"),
    _extra("1234567890" * 8, 24.0, "digits only"),
    _extra("=" * 80, 0.0, "a ruler of equals signs"),
    _extra("feedface" * 10, 0.0, "letters a to f without a digit"),
    _extra("tariff_2_step_" * 6, 0.0, "a long name, letters of one case"),
    _extra("TariffStepOf" * 8, 0.0, "a long name without a digit"),
)


def _is_hexadecimal(run: str) -> bool:
    return all(c in "0123456789abcdefABCDEF" for c in run)


def _hexadecimal_without_a_digit(run: str) -> float:
    return len(run) * 0.3 if _is_hexadecimal(run) else _SCRIPT._extra_of_run(run)


def _always_base64(run: str) -> float:
    return _SCRIPT._extra_of_run(run) if _is_hexadecimal(run) else len(run) * 0.5


def _small_letters_only(run: str) -> float:
    return 0.0 if run.isupper() else _SCRIPT._extra_of_run(run)


def _in_all(run: str) -> float:
    return len(run) * 0.3 + _SCRIPT._extra_of_run(run)


# --- one message -----------------------------------------------------------------------------------------------------------

_CALL = ToolCall("call_1", "read_file", '{"path": "stats.py"}')
_SEARCH = ToolCall("call_2", "search", '{"pattern": "运费"}')
_THOUGHT = replace(assistant("", _CALL), reasoning="The mean is in stats.py, which I have not read.")
_SMALL, _LARGE = (Image("image/png", "iVBORw0KGgo" * n) for n in (10, 10_000))


def _counted(message: Message) -> int:
    return _SCRIPT.message(message)


_MESSAGES = {
    "text": user("How many functions has stats.py?"),
    "Chinese text": user("周报里的中位数怎么算?"),
    "no text at all": assistant(""),
    "two calls": assistant("", _CALL, _SEARCH),
    "a call with reasoning": _THOUGHT,
    "a tool result": tool_result("call_1", "1\tdef mean(values):\n2\t    return sum(values) / len(values)\n"),
    "a small picture": user("What is this?", _SMALL),
    "a large picture: the same": user("What is this?", _LARGE),
    "pictures in a tool result": replace(tool_result("call_2", "two pages"), images=(_SMALL, _LARGE)),
}


def _without(change: Callable[[Message], Message]) -> Callable[[Message], int]:
    return lambda message: _counted(change(message))


def _bytes_counted(message: Message) -> int:
    pictures = sum(_SCRIPT.text(i.data) - IMAGE_TOKENS for i in message.images)
    return _counted(message) + pictures


def _no_frame_for_calls(message: Message) -> int:
    return _counted(message) - 12 * len(message.tool_calls)


# --- what the last bill covers ---------------------------------------------------------------------------------------------

_THINKER = Usage(fresh=20_000, output=55_000, reasoning=50_000)
_CACHED = Usage(fresh=600, cache_read=58_000, cache_write=400, output=300)

_COVERED_CASES = (
    Case((_CACHED, (assistant("Done."), user("And now?"))), 59_300, "answer kept, most of the prompt from the cache"),
    Case((_THINKER, (assistant("Done."), user("And now?"))), 25_000, "long thinking, not sent back"),
    Case((_CACHED, ()), 59_000, "the same request again"),
    Case((_CACHED, (user("Stop. Something else."),)), 59_000, "the answer was thrown away"),
    Case((_THINKER, (assistant("", _CALL), tool_result("call_1", "…"))), 25_000, "a call and its result"),
)


def _billed(usage: Usage, new: tuple[Message, ...]) -> int:
    return LastBill()._billed(usage, new)


# --- stale or not ----------------------------------------------------------------------------------------------------------

_TOOLS = (ToolSpec("read_file", "Read a file.", {"type": "object"}),)
_START = (system("You are a coding agent."), user("Read stats.py."), assistant("", _CALL), tool_result("call_1", "…"))
_SENT = Request(_START, _TOOLS)
_BILL = _Bill(_SENT, Usage(fresh=800, output=20))
_MORE = (assistant("It has five functions."), user("Thanks."))
_COMPACTED = (_START[0], user("Summary: stats.py was read."), *_MORE)


def _replaced(position: int, text: str) -> tuple[Message, ...]:
    changed = replace(_START[position], content=text)
    return (*_START[:position], changed, *_START[position + 1 :], *_MORE)


def _since(request: Request, want: tuple[Message, ...] | None, note: str) -> Case:
    return Case((_BILL, request), want, note)


_SINCE_CASES = (
    _since(Request((*_START, *_MORE), _TOOLS), _MORE, "two messages more"),
    _since(_SENT, (), "the same request again: nothing new, but not stale"),
    _since(Request(_replaced(0, "You are a careful coding agent."), _TOOLS), None, "the system prompt has changed"),
    _since(Request(_replaced(3, "[old output removed]"), _TOOLS), None, "an old tool result was replaced"),
    _since(Request(_COMPACTED, _TOOLS), None, "a compaction, with as many messages as before"),
    _since(Request(_START[:2], _TOOLS), None, "a rewind: fewer messages"),
    _since(Request((*_START, *_MORE)), None, "the tools are gone"),
)


def _never_stale(bill: Any, request: Request) -> tuple[Message, ...]:
    return request.messages[len(bill.request.messages) :]


def _by_length(bill: Any, request: Request) -> tuple[Message, ...] | None:
    size = len(bill.request.messages)
    return request.messages[size:] if len(request.messages) >= size else None


def _messages_only(bill: Any, request: Request) -> tuple[Message, ...] | None:
    return _Bill(replace(bill.request, tools=request.tools), bill.usage).new_messages(request)


def _last_one_only(bill: Any, request: Request) -> tuple[Message, ...] | None:
    new = bill.new_messages(request)
    return new if new is None else new[-1:]


EXERCISES = [
    Exercise(
        "extra_of_run",
        _RUN_CASES,
        (
            "there are three kinds: hexadecimal, base64, and anything else that happens to have no space",
            "a run without a single digit is a ruler or a name: nothing above the ordinary weight",
            "with a digit: 0-9 with a-f, or 0-9 with A-F, is hexadecimal; capitals and small letters mixed is base64",
        ),
        _SCRIPT._extra_of_run,
        {
            "hexadecimal without a digit": _hexadecimal_without_a_digit,
            "everything long is base64": _always_base64,
            "hexadecimal in small letters only": _small_letters_only,
            "all tokens, not those above 0.3": _in_all,
        },
    ),
    Exercise(
        "whole_message",
        [Case((m,), _SCRIPT.message(m), note) for note, m in _MESSAGES.items()],
        (
            "go through the fields of Message: content, reasoning, tool_calls, images; each is sent",
            "8 for the frame of the message, 12 for the frame of each call besides its name and its arguments",
            "a picture is IMAGE_TOKENS, whatever its data; never estimate the data as text",
        ),
        _SCRIPT.message,
        {
            "reasoning forgotten": _without(lambda m: replace(m, reasoning="")),
            "calls forgotten": _without(lambda m: replace(m, tool_calls=())),
            "pictures forgotten": _without(lambda m: replace(m, images=())),
            "bytes of pictures counted": _bytes_counted,
            "no frame around a call": _no_frame_for_calls,
        },
    ),
    Exercise(
        "covered_by_bill",
        _COVERED_CASES,
        (
            "the whole prompt was counted, also what came from the cache: there is a property for the sum",
            "is the first new message the model's own answer? then the bill says how long it is",
            "thinking is in `output` too; it is not sent back here, so it must come off",
        ),
        LastBill()._billed,
        {
            "thinking carried on": lambda usage, new: _billed(replace(usage, reasoning=0), new),
            "only the fresh tokens": lambda usage, new: _billed(replace(usage, cache_read=0, cache_write=0), new),
            "the answer always counted": lambda usage, new: usage.prompt + usage.output - usage.reasoning,
            "the answer never counted": lambda usage, new: usage.prompt,
        },
    ),
    Exercise(
        "new_since",
        _SINCE_CASES,
        (
            "the bill is good when the request starts with exactly the messages that were billed",
            "cut the new request at the length of the old one and compare; records are equal when all fields are",
            "tools are part of the prompt, and they come first: compare them as well",
        ),
        _Bill.new_messages,
        {
            "never stale": _never_stale,
            "only the lengths compared": _by_length,
            "tools not compared": _messages_only,
            "only the last message": _last_one_only,
        },
    ),
]
