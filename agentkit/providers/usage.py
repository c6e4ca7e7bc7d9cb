"""Token counts as servers report them, settled into one record: cached ones are part of the prompt, or stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.messages import Usage


def update(known: Mapping[str, Any], new: object) -> dict[str, Any]:
    """Return `known` with what `new` adds. Counts are running totals, so the newest wins; null never wipes a count."""
    merged = dict(known)
    for field, value in new.items() if isinstance(new, Mapping) else ():
        if isinstance(value, Mapping):
            before = merged.get(field)
            merged[field] = update(before if isinstance(before, Mapping) else {}, value)
        elif value is not None:
            merged[field] = value
    return merged


def settled(fields: Mapping[str, Any]) -> Usage | None:
    """Return the bill, or None when the server sent no count (which is not the same as 0).

    Here "prompt tokens" includes the cached ones: `prompt_tokens_details.cached_tokens` (OpenAI), `cached_tokens`
    (Moonshot) or `prompt_cache_hit_tokens` (DeepSeek).
    """
    prompt, output = _prompt(fields), _count(fields, "completion_tokens")
    if prompt is None and output is None:
        return None
    details = _part(fields, "prompt_tokens_details")
    read = _first(
        _count(details, "cached_tokens"), _count(fields, "prompt_cache_hit_tokens"), _count(fields, "cached_tokens")
    )
    write = _first(_count(details, "cache_write_tokens"))
    reasoning = _first(_count(_part(fields, "completion_tokens_details"), "reasoning_tokens"))
    fresh = max(0, (prompt or 0) - read - write)
    return Usage(fresh, read, write, _whole_output(fields, prompt or 0, output or 0, reasoning), reasoning)


def settled_apart(fields: Mapping[str, Any]) -> Usage | None:
    """Return the bill of an API that counts cached tokens beside the others (Anthropic), or None when there is none.

    Here `input_tokens` are only what was neither read nor written; the prompt is the sum of three counts.
    """
    fresh, output = _count(fields, "input_tokens"), _count(fields, "output_tokens")
    if fresh is None and output is None:
        return None
    parts = _part(fields, "cache_creation")
    by_life = [_first(_count(parts, f"ephemeral_{life}_input_tokens")) for life in ("5m", "1h")]
    write = _first(_count(fields, "cache_creation_input_tokens"), sum(by_life))
    reasoning = _first(_count(_part(fields, "output_tokens_details"), "thinking_tokens"))
    read = _first(_count(fields, "cache_read_input_tokens"))
    return Usage(fresh or 0, read, write, output or 0, reasoning)


def _whole_output(fields: Mapping[str, Any], prompt: int, output: int, reasoning: int) -> int:
    """Return the output with its thinking. xAI counts thinking beside `completion_tokens`; only the total shows it."""
    beside = reasoning > output or (reasoning > 0 and _count(fields, "total_tokens") == prompt + output + reasoning)
    return output + reasoning if beside else output


def _prompt(fields: Mapping[str, Any]) -> int | None:
    """Return `prompt_tokens`, or where it is missing DeepSeek's hits and misses added up."""
    whole = _count(fields, "prompt_tokens")
    hit, miss = _count(fields, "prompt_cache_hit_tokens"), _count(fields, "prompt_cache_miss_tokens")
    return _first(hit) + _first(miss) if whole is None and (hit, miss) != (None, None) else whole


def _first(*counts: int | None) -> int:
    """Return the first count that was sent, else 0."""
    return next((count for count in counts if count is not None), 0)


def _part(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}


def _count(fields: Mapping[str, Any], name: str) -> int | None:
    """Return a count, or None when it is missing, null or no natural number."""
    value = fields.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
