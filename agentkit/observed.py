"""Show requests to a cache model, one after the other: which of their tokens are read, written and fresh."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentkit.caching import CacheResult, Placement, PrefixCache, Segment, add_marks, arrange
from agentkit.caching.prefix import Kind
from agentkit.messages import Message, Request, Role, Usage
from agentkit.pricing import Bill, Prices
from agentkit.replay.counted import VOCABULARY, Texts

_KINDS: dict[Role, Kind] = {"system": "system", "user": "user", "tool": "user", "assistant": "assistant"}


@dataclass(frozen=True)
class Observed:
    """One prompt as it was sent, with its marks, and what the cache made of it."""

    prompt: tuple[Segment, ...]
    result: CacheResult


@functools.cache
def _texts() -> Texts:
    return Texts.of(VOCABULARY)


def blocks(request: Request) -> list[Segment]:
    """Return a request as blocks in the order in which a cache sees them: each tool, the system prompt, the messages.

    The text of an answer and each of its calls are blocks of their own, as at Anthropic.
    """
    texts, system, messages = _texts(), list[Segment](), list[Segment]()
    for message in request.messages:
        where = system if message.role == "system" and not messages else messages
        where += [replace(texts.counter.message(part), kind=_KINDS[message.role]) for part in _parts(message)]
    return arrange([texts.text(spec.canonical()) for spec in request.tools], system, messages)


def _parts(message: Message) -> list[Message]:
    if not message.tool_calls:
        return [message]
    said = [replace(message, tool_calls=())] if message.content or message.reasoning else []
    return said + [Message("assistant", tool_calls=(call,)) for call in message.tool_calls]


def observe_all(
    prompts: Iterable[Sequence[Segment]], cache: PrefixCache, placement: Placement | None = None, *, pause: float = 10.0
) -> list[Observed]:
    """Show `prompts` to `cache`, `pause` seconds apart; `placement` puts marks on each."""
    seen = []
    for number, prompt in enumerate(prompts):
        sent = add_marks(prompt, placement(prompt)) if placement else list(prompt)
        seen.append(Observed(tuple(sent), cache.observe(sent, number * pause)))
    return seen


def prompt_bill(seen: Sequence[Observed], prices: Prices) -> Bill:
    """Return the bill in USD of all prompts; answers are not in it."""
    usages = (Usage(o.result.fresh, o.result.read, o.result.written) for o in seen)
    return sum((prices.bill(usage) for usage in usages), Bill())


def read_share(seen: Sequence[Observed]) -> float:
    """Return the share of all prompt tokens that was read from the cache, between 0 and 1."""
    sent = sum(o.result.read + o.result.written + o.result.fresh for o in seen)
    return sum(o.result.read for o in seen) / max(1, sent)
