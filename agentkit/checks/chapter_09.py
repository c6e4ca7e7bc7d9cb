"""The exercises of chapter 09: results in front, three counts that stand apart, and running totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentkit.checks.base import Case, Exercise
from agentkit.messages import Usage
from agentkit.providers.anthropic_wire import results_first
from agentkit.providers.usage import settled_apart, update

Block = dict[str, Any]

# --- results_first -------------------------------------------------------------------------------------------------------


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _result(call_id: str) -> Block:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}


_PICTURE = {"type": "image", "source": {}}


def _order(blocks: list[Block], note: str) -> Case:
    return Case((blocks,), results_first(blocks), note)


_ORDER_CASES = (
    _order([_result("c1"), _result("c2")], "two results"),
    _order([_text("note"), _result("c1")], "a note before the result"),
    _order([_result("c2"), _text("b"), _result("c1"), _text("a")], "the order within each kind stays"),
    _order([_result("c1"), _PICTURE, _result("c2"), _text("look")], "a picture between two results"),
    _order([_text("b"), _text("a")], "nothing but text"),
    _order([], "nothing at all"),
)


def _by_id(blocks: Sequence[Block]) -> list[Block]:
    return sorted(blocks, key=lambda block: block.get("tool_use_id", "~"))


def _only_last(blocks: Sequence[Block]) -> list[Block]:
    """Move the last block to the front if it is a result: right for one result only."""
    moved = list(blocks)
    if moved and moved[-1]["type"] == "tool_result":
        moved.insert(0, moved.pop())
    return moved


def _drops_text(blocks: Sequence[Block]) -> list[Block]:
    results = [block for block in blocks if block["type"] == "tool_result"]
    return results or list(blocks)


# --- settled_apart -------------------------------------------------------------------------------------------------------

_SENT = {"input_tokens": 12, "cache_read_input_tokens": 3_000, "cache_creation_input_tokens": 450, "output_tokens": 80}
_LIVES = {"input_tokens": 5, "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}}
_THOUGHT = {"input_tokens": 9, "output_tokens": 70, "output_tokens_details": {"thinking_tokens": 50}}


def _bill(fields: Mapping[str, Any], note: str) -> Case:
    return Case((fields,), settled_apart(fields), note)


_BILL_CASES = (
    _bill(_SENT, "all four counts"),
    _bill({"input_tokens": 12, "output_tokens": 3}, "no cache"),
    _bill({"input_tokens": 0, "output_tokens": 0}, "zero is a count"),
    _bill({}, "no count at all"),
    _bill({"input_tokens": 12, "cache_read_input_tokens": None, "output_tokens": 3}, "null"),
    _bill({**_SENT, "cache_creation": {"ephemeral_5m_input_tokens": 450}}, "the same writes, told twice"),
    _bill(_LIVES, "writes told by their life only"),
    _bill(_THOUGHT, "thinking is a part of the output"),
)


def _contains(fields: Mapping[str, Any]) -> Usage | None:
    """Read it as OpenAI's: the cached tokens are taken off what was counted."""
    bill = settled_apart(fields)
    return bill and Usage(
        max(0, bill.fresh - bill.cache_read), bill.cache_read, bill.cache_write, bill.output, bill.reasoning
    )


def _no_writes(fields: Mapping[str, Any]) -> Usage | None:
    bill = settled_apart(fields)
    return bill and Usage(bill.fresh, bill.cache_read, 0, bill.output, bill.reasoning)


def _writes_twice(fields: Mapping[str, Any]) -> Usage | None:
    bill, lives = settled_apart(fields), fields.get("cache_creation") or {}
    twice = sum(lives.values()) if "cache_creation_input_tokens" in fields else 0
    return bill and Usage(bill.fresh, bill.cache_read, bill.cache_write + twice, bill.output, bill.reasoning)


def _zero_is_nothing(fields: Mapping[str, Any]) -> Usage | None:
    return settled_apart(fields) if fields.get("input_tokens") else None


# --- running_totals ------------------------------------------------------------------------------------------------------


def _totals(known: dict[str, Any], new: object, note: str) -> Case:
    return Case((known, new), update(known, new), note)


_TOTAL_CASES = (
    _totals({"input_tokens": 25, "output_tokens": 1}, {"output_tokens": 15}, "the newest total counts"),
    _totals({"cache_read_input_tokens": 9}, {"cache_read_input_tokens": 9}, "the same total twice"),
    _totals({"input_tokens": 25}, {"input_tokens": None, "output_tokens": 3}, "null wipes nothing"),
    _totals({"input_tokens": 25}, {"output_tokens": 3}, "what is not told stays"),
    _totals({"input_tokens": 0}, {"input_tokens": 31}, "the true value comes last"),
    _totals({}, {"input_tokens": 7}, "the first one"),
    _totals({"input_tokens": 7}, None, "an event without counts"),
    _totals({"a": {"x": 1, "y": 2}}, {"a": {"x": None, "y": 3}}, "counts inside counts"),
)

_Totals = Callable[[Mapping[str, Any], object], dict[str, Any]]


def _added(known: Mapping[str, Any], new: object) -> dict[str, Any]:
    """Add up totals as if they were parts."""
    total = update(known, new)
    return {k: (known.get(k, 0) + v if isinstance(v, int) and k in (new or {}) else v) for k, v in total.items()}  # type: ignore[operator]


def _replaced(known: Mapping[str, Any], new: object) -> dict[str, Any]:
    return {**known, **(new or {})}  # type: ignore[dict-item]


def _first_wins(known: Mapping[str, Any], new: object) -> dict[str, Any]:
    return {**update({}, new), **known}


EXERCISES = [
    Exercise(
        "results_first",
        _ORDER_CASES,
        (
            "There are two kinds of block. What has to be in front, and what must not change within each kind?",
            "Python's `sorted` keeps the order of what it holds for equal. Which key makes all results equal, and smaller?",
            "`False` sorts before `True`: use `block['type'] != 'tool_result'` as the key.",
        ),
        results_first,
        {"sorts by id": _by_id, "moves one result only": _only_last, "drops the text": _drops_text},
    ),
    Exercise(
        "settled_apart",
        _BILL_CASES,
        (
            "Which of the three input counts is already what `fresh` means? Nothing has to be taken off anything.",
            "Nothing sent is None; zero sent is zero. A count may be missing, or null.",
            "Writes come as one count, or by their life. Take the one count where it is there, else the sum of the lives.",
        ),
        settled_apart,
        {
            "takes the cached tokens off": _contains,
            "forgets the writes": _no_writes,
            "counts the writes twice": _writes_twice,
            "takes zero for nothing": _zero_is_nothing,
        },
    ),
    Exercise(
        "running_totals",
        _TOTAL_CASES,
        (
            "A total replaces the total before it. When must it not?",
            "Three cases for each field: a number, null, not there. Only one of them changes anything.",
            "Where the value is itself a dictionary, do the same once more inside it.",
        ),
        update,
        {"adds totals up": _added, "lets null in": _replaced, "keeps the first value": _first_wins},
    ),
]
