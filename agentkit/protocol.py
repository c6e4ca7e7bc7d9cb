"""What each API refuses, as data; and `settle`, which makes any history acceptable to all of them.

`violations(request, dialect)` says what the API would answer with a 400: which message, which rule, which text. It
never repairs. `settle(messages)` repairs and never looks at a provider: the same view is valid in every dialect.

Source of the rules: the request rules and error shapes of the three vendors as of 2026-11 (see CONTRIBUTING.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from agentkit.messages import Message, Request

Dialect = Literal["openai", "deepseek", "anthropic"]
DIALECTS: tuple[Dialect, ...] = ("openai", "deepseek", "anthropic")
_CHAT: tuple[Dialect, ...] = ("openai", "deepseek")

ID_PATTERN = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True)
class Violation:
    """One thing that an API refuses: `index` is the message's position in the request, `text` the API's sentence."""

    index: int
    rule: str
    dialect: Dialect
    text: str


Finding = tuple[int, str]
"""(index of the message, detail for the API's sentence)"""


@dataclass(frozen=True)
class Rule:
    """One rule of the protocol: its name, why it exists, and each API's sentence when it is broken.

    `answers` maps dialect to sentence; an API that is not in it does not have the rule. `{i}` stands for the message's
    position and `{detail}` for the ids in question. `find` yields every place where a request breaks the rule.
    """

    name: str
    why: str
    answers: dict[Dialect, str]
    find: Callable[[Request], Iterator[Finding]]


@dataclass(frozen=True)
class Batch:
    """An assistant message with its calls and the tool messages that directly follow it.

    `start` is the assistant's index, `stop` the index after the last result.
    """

    start: int
    stop: int
    calls: tuple[str, ...]
    results: tuple[str, ...]

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Return the ids of the calls that have no result in this batch."""
        return tuple(c for c in self.calls if c not in self.results)


def batches(messages: tuple[Message, ...] | list[Message]) -> Iterator[Batch]:
    """Yield every batch of calls and results, in order. A batch is one unit: it is never cut in two."""
    for start, message in enumerate(messages):
        if message.tool_calls:
            stop = start + 1
            while stop < len(messages) and messages[stop].role == "tool":
                stop += 1
            calls = tuple(c.id for c in message.tool_calls)
            yield Batch(start, stop, calls, tuple(m.tool_call_id for m in messages[start + 1 : stop]))


# --- the rules -------------------------------------------------------------------------------------------------------


def _no_messages(request: Request) -> Iterator[Finding]:
    if all(m.role == "system" for m in request.messages):
        yield 0, ""


def _unanswered(request: Request) -> Iterator[Finding]:
    for batch in batches(request.messages):
        if batch.unanswered:
            yield batch.start, ", ".join(batch.unanswered)


def _orphans(request: Request) -> Iterator[Finding]:
    answered = {i: b.calls for b in batches(request.messages) for i in range(b.start + 1, b.stop)}
    for i, message in enumerate(request.messages):
        if message.role == "tool" and message.tool_call_id not in answered.get(i, ()):
            yield i, message.tool_call_id


def _second_results(request: Request) -> Iterator[Finding]:
    for batch in batches(request.messages):
        for i, result in enumerate(batch.results):
            if result in batch.results[:i]:
                yield batch.start + 1 + i, result


def _repeated_ids(request: Request) -> Iterator[Finding]:
    seen: set[str] = set()
    for i, message in enumerate(request.messages):
        for call in message.tool_calls:
            if call.id in seen:
                yield i, call.id
            seen.add(call.id)


def _empty_ids(request: Request) -> Iterator[Finding]:
    for i, message in enumerate(request.messages):
        if any(not c.id for c in message.tool_calls):
            yield i, "''"


def _strange_ids(request: Request) -> Iterator[Finding]:
    for i, message in enumerate(request.messages):
        for call in message.tool_calls:
            if not ID_PATTERN.fullmatch(call.id):
                yield i, repr(call.id)


def says_nothing(message: Message) -> bool:
    """Say whether `message` has neither text nor what its role may send instead: calls, or pictures.

    Opaque data does not count: another provider than its issuer never gets to see it. A system message has text only.
    """
    instead = {"assistant": message.tool_calls, "system": ()}.get(message.role, message.images)
    return not (message.content.strip() or instead)


def _empty_text(request: Request) -> Iterator[Finding]:
    for i, message in enumerate(request.messages):
        if says_nothing(message):
            yield i, message.role


def _empty_assistant(request: Request) -> Iterator[Finding]:
    for i, message in enumerate(request.messages):
        if message.role == "assistant" and says_nothing(message):
            yield i, "assistant"


def _late_system(request: Request) -> Iterator[Finding]:
    size = len(_leading_system(request.messages))
    for i, message in enumerate(request.messages):
        if message.role == "system" and i >= size:
            yield i, "system"


def _prefill(request: Request) -> Iterator[Finding]:
    if request.messages and request.messages[-1].role == "assistant":
        yield len(request.messages) - 1, "assistant"


def _undefined_tools(request: Request) -> Iterator[Finding]:
    if not request.tools:
        for i, message in enumerate(request.messages):
            if message.tool_calls:
                yield i, message.tool_calls[0].name
                return


def _leading_system(messages: tuple[Message, ...] | list[Message]) -> tuple[Message, ...]:
    size = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    return tuple(messages[:size])


_MUST_FOLLOW = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
_MUST_ANSWER = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"

RULES: tuple[Rule, ...] = (
    Rule(
        "at least one message",
        "there must be something to answer",
        dict.fromkeys(DIALECTS, "messages: at least one message is required"),
        _no_messages,
    ),
    Rule(
        "every call answered",
        "all results of a batch stand directly behind the message that called, nothing in between",
        {
            "openai": _MUST_FOLLOW + " The following tool_call_ids did not have response messages: {detail}",
            "deepseek": _MUST_FOLLOW + " (insufficient tool messages following tool_calls message)",
            "anthropic": "messages.{i}: `tool_use` ids were found without `tool_result` blocks immediately after: {detail}",
        },
        _unanswered,
    ),
    Rule(
        "no orphan result",
        "a result names a call of the message directly before its batch",
        {
            **dict.fromkeys(_CHAT, _MUST_ANSWER),
            "anthropic": "messages.{i}: unexpected `tool_use_id` found in `tool_result` blocks: {detail}",
        },
        _orphans,
    ),
    Rule(
        "one result each",
        "a call has a single result",
        {
            **dict.fromkeys(_CHAT, _MUST_ANSWER),
            "anthropic": "messages.{i}: each tool_use must have a single result. Found several for {detail}",
        },
        _second_results,
    ),
    Rule(
        "unique ids",
        "an id names one call",
        {
            **dict.fromkeys(_CHAT, "Duplicate value for 'tool_call_id' of {detail} in messages[{i}]"),
            "anthropic": "messages.{i}: `tool_use` ids must be unique: {detail}",
        },
        _repeated_ids,
    ),
    Rule(
        "ids not empty",
        "an empty id names nothing",
        dict.fromkeys(_CHAT, "messages[{i}]: 'tool_calls[].id' must not be empty"),
        _empty_ids,
    ),
    Rule(
        "id alphabet",
        "letters, digits, _ and -, at most 64",
        {"anthropic": "messages.{i}: tool_use.id {detail} should match pattern '^[a-zA-Z0-9_-]+$'"},
        _strange_ids,
    ),
    Rule(
        "no empty text",
        "white space alone counts as empty",
        {"anthropic": "messages.{i}: text content blocks must be non-empty"},
        _empty_text,
    ),
    Rule(
        "assistant says something",
        "text, or calls",
        dict.fromkeys(_CHAT, "messages[{i}]: an assistant message needs 'content' or 'tool_calls'"),
        _empty_assistant,
    ),
    Rule(
        "system comes first",
        "system text is hoisted out of the list; only some models take one in the middle",
        {"anthropic": 'messages.{i}: role "system" is not supported at this position'},
        _late_system,
    ),
    Rule(
        "no prefill",
        "newer models refuse to continue a message of their own",
        {"anthropic": "messages.{i}: this model does not support assistant message prefill"},
        _prefill,
    ),
    Rule(
        "tools defined",
        "calls in the history need the definitions in the request",
        {"anthropic": "messages.{i}: `tool_use` blocks need `tools` in the request: {detail}"},
        _undefined_tools,
    ),
)


def violations(request: Request, dialect: Dialect) -> tuple[Violation, ...]:
    """Return everything in `request` that the API would answer with a 400, in the order of the messages.

    Raises `ValueError` for an unknown dialect.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"unknown dialect {dialect!r}; there are {', '.join(DIALECTS)}")
    found = [
        Violation(i, rule.name, dialect, rule.answers[dialect].format(i=i, detail=detail))
        for rule in RULES
        if dialect in rule.answers
        for i, detail in rule.find(request)
    ]
    return tuple(sorted(found, key=lambda v: v.index))
