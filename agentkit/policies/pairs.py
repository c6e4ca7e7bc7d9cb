"""Pairs of a tool call and its result, and one summary for each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from agentkit.compaction.prompts import summary_prompt
from agentkit.compaction.transcript import CLIP, flatten
from agentkit.messages import Message, Request, ToolCall, user
from agentkit.policies.viewing import Answer, ask
from agentkit.providers.base import Provider

KEEP = (
    "done: what the call was for",
    "results: what came of it",
    "facts: file names, classes, functions, numbers, error messages",
)
KEEP_LESS = ("facts: file names, error messages",)
"""For a harsher recovery: only what is needed most."""

MOST = 300
"""Tokens of one pair's summary."""


@dataclass(frozen=True)
class Pair:
    """One call and its result; `place` is the position of the message that called."""

    call: ToolCall
    place: int
    caller: Message
    result: Message


def pairs(messages: Sequence[Message]) -> list[Pair]:
    """Return every call in `messages` that has its result there, in order."""
    results: dict[tuple[int, str], Message] = {}
    caller = -1
    for i, message in enumerate(messages):
        if message.role == "assistant":
            caller = i
        elif message.role == "tool":
            results.setdefault((caller, message.tool_call_id), message)
    return [
        Pair(call, i, message, results[i, call.id])
        for i, message in enumerate(messages)
        for call in (message.tool_calls if message.role == "assistant" else ())
        if (i, call.id) in results
    ]


def pair_request(pair: Pair, keep: Sequence[str] = KEEP, clip: int = CLIP) -> Request:
    """Return the summary call for one pair."""
    shown = [Message("assistant", tool_calls=(pair.call,)), pair.result]
    return Request((user(summary_prompt(flatten(shown, clip), keep)),), max_output=MOST, thinking=False)


def ask_each(provider: Provider, requests: Sequence[Request], workers: int) -> list[Answer]:
    """Send all requests, `workers` at a time, and return the answers in order. One failure spoils no other."""
    each: Callable[[Request], Answer] = lambda request: ask(provider, request)  # noqa: E731
    if workers == 1 or len(requests) < 2 or getattr(provider, "one_at_a_time", False):
        return [each(request) for request in requests]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(each, requests))
