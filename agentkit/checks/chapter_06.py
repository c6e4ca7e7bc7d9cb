"""The exercises of chapter 06: what a request is billed for, where to put marks, when a compaction pays, which threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from agentkit.break_even import Pace, break_even, compaction_usd, square_root_threshold
from agentkit.caching import AnthropicCache, Kind, Life, Segment, place
from agentkit.checks.base import Case, Exercise
from agentkit.pricing import Rates, plain

# --- read_written_fresh --------------------------------------------------------------------------------------------------


def read_written_fresh(
    sizes: Sequence[int], marks: Sequence[int], entries: Sequence[int], minimum: int = 1_024
) -> tuple[int, int, int]:
    """Return the tokens read, written and fresh of a request of blocks, under Anthropic's rule.

    `sizes` are the tokens of each block, `marks` the marked blocks, `entries` the blocks at whose end earlier requests put
    a mark; all counted from 0.
    """
    ends = list(accumulate(sizes))
    stored = {entry for entry in entries if ends[entry] >= minimum}
    seen = (next((i for i in range(mark, mark - 20, -1) if i in stored), None) for mark in marks)
    read = max((ends[i] for i in seen if i is not None), default=0)
    last = max((ends[mark] for mark in marks if ends[mark] >= minimum), default=0)
    written = max(0, last - read)
    return read, written, ends[-1] - read - written


def _billed(sizes: Sequence[int], marks: Sequence[int], entries: Sequence[int], note: str) -> Case:
    """Ask the package's cache model what it would say."""
    cache = AnthropicCache(1_024)
    prompt = [Segment(str(i).encode(), tuple((i, n) for n in range(size))) for i, size in enumerate(sizes)]
    for entry in entries:
        cache.observe([*prompt[:entry], Segment(prompt[entry].data, prompt[entry].tokens, mark="5m")])
    sent = [Segment(s.data, s.tokens, mark="5m" if i in marks else None) for i, s in enumerate(prompt)]
    result = cache.observe(sent, 10.0)
    return Case((list(sizes), list(marks), list(entries), 1_024), (result.read, result.written, result.fresh), note)


_SMALL = [900, 300, *[50] * 40]
_REQUESTS = (
    _billed([900, 300, 50], [2], [], "the first request: nothing to read"),
    _billed([900, 300, 50], [], [1], "no mark, although there is an entry"),
    _billed([900, 300, 50, 60, 200], [1, 4], [1], "one mark on an entry, one on the newest block"),
    _billed([900, 300, 50, 60, 200], [1], [1], "a mark on the system prompt only"),
    _billed([900, 300, 50, 60, 200, 70], [4], [2], "something behind the last mark"),
    _billed([600, 100, 80, 90], [1, 3], [], "all of it under the minimum"),
    _billed([600, 100, 80, 500], [1, 3], [1], "an entry that was too short to be stored"),
    _billed(_SMALL[:24], [22], [3], "the entry is 20 blocks back, the mark itself counted: seen"),
    _billed(_SMALL[:25], [23], [3], "the entry is one block too far"),
    _billed(_SMALL[:30], [3, 28], [3], "a mark stands on the old place as well"),
)


def _no_look_back(
    sizes: Sequence[int], marks: Sequence[int], entries: Sequence[int], minimum: int = 1_024
) -> tuple[int, int, int]:
    """Look back as far as there are blocks."""
    ends = list(accumulate(sizes))
    known = [e for e in entries if ends[e] >= minimum and any(e <= mark for mark in marks)]
    read = max((ends[e] for e in known), default=0)
    last = max((ends[mark] for mark in marks if ends[mark] >= minimum), default=0)
    return read, max(0, last - read), ends[-1] - max(read, last)


def _all_written(
    sizes: Sequence[int], marks: Sequence[int], entries: Sequence[int], minimum: int = 1_024
) -> tuple[int, int, int]:
    read, _, _ = read_written_fresh(sizes, marks, entries, minimum)
    return read, sum(sizes) - read, 0


def _no_minimum(
    sizes: Sequence[int], marks: Sequence[int], entries: Sequence[int], minimum: int = 1_024
) -> tuple[int, int, int]:
    return read_written_fresh(sizes, marks, entries, 0)


# --- place_marks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Block:
    kind: Kind
    mark: Life | None = None

    def __repr__(self) -> str:
        return self.kind


def _kinds(*parts: str | tuple[str, int]) -> list[_Block]:
    blocks = []
    for part in parts:
        kind, count = part if isinstance(part, tuple) else (part, 1)
        blocks += [_Block(kind)] * count  # type: ignore[arg-type]
    return blocks


def _places(note: str, *parts: str | tuple[str, int]) -> Case:
    blocks = _kinds(*parts)
    return Case((blocks,), place(blocks), note)


_HEAD = (("tools", 3), "system")
_PLACES = (
    _places("the first question", *_HEAD, "user"),
    _places("the second question", *_HEAD, "user", "assistant", "user"),
    _places("parallel results are one message", *_HEAD, "user", ("assistant", 3), ("user", 3)),
    _places("no system prompt: the last tool", ("tools", 3), "user"),
    _places("a long turn: one more mark, 15 blocks behind another", *_HEAD, "user", ("assistant", 17), ("user", 17)),
    _places("thinking carries no mark", *_HEAD, "user", "thinking", "assistant", "user", ("empty", 1)),
)


def _system_and_last(blocks: Sequence[_Block]) -> list[int]:
    return sorted({*(place(blocks)[:1]), len(blocks) - 1})


def _every_user_block(blocks: Sequence[_Block]) -> list[int]:
    """Take each block of parallel results for a message of its own."""
    users = [i for i, block in enumerate(blocks) if block.kind == "user"]
    return sorted({*place(blocks)[:1], *users[-3:]})


# --- break_even ----------------------------------------------------------------------------------------------------------

_SONNET = plain("claude-sonnet-5", fresh=2, read=0.2, write=2.5, output=10).rates
_FLASH = plain("deepseek-flash", fresh=0.15, read=0.003, output=0.6).rates
_NO_CACHE = Rates(2.0, 2.0, 2.0, 2.0, 10.0)


def _even(rates: Rates, removed: float, rewritten: float, call_usd: float, note: str) -> Case:
    want = break_even(rates, removed, rewritten, call_usd)
    return Case((rates, removed, rewritten, call_usd), want, note, 0.01)


_EVEN = (
    _even(_FLASH, 3_136, 192, 0.00069, "M4, with the summary call"),
    _even(_FLASH, 3_136, 192, 0, "M4, the summary call left out"),
    _even(
        _SONNET, 40_000, 8_000, 0.09, "a write price: storing a token anew costs the write, less the read it would have been"
    ),
    _even(_NO_CACHE, 3_000, 0, 0.01, "no cache: every token saved is a fresh one"),
    Case((_SONNET, 0, 100, 0.01), math.inf, "nothing removed: it never pays (math.inf)"),
)


def _ten_times(rates: Rates, removed: float, rewritten: float, call_usd: float) -> float:
    """Count a stored token at its fresh price, as if storing were free."""
    return (call_usd * 1_000_000 + rewritten * (rates.fresh - rates.read)) / (removed * rates.read or math.nan)


def _without_the_call(rates: Rates, removed: float, rewritten: float, call_usd: float) -> float:
    return break_even(rates, removed, rewritten, 0)


def _saves_fresh(rates: Rates, removed: float, rewritten: float, call_usd: float) -> float:
    """Believe that every token left out would have been paid in full."""
    return break_even(rates, removed, rewritten, call_usd) * rates.read / rates.fresh


# --- cheapest_threshold --------------------------------------------------------------------------------------------------

_PACE = Pace(growth=800, head=2_600, summary=1_000, tail=3_000, instruction=160, told=0.5)


def _cheapest(rates: Rates, pace: Pace, note: str) -> Case:
    return Case((rates, pace), square_root_threshold(rates, pace), note, 1.0)


_THRESHOLDS = (
    _cheapest(_SONNET, _PACE, "a write price"),
    _cheapest(_FLASH, _PACE, "reading is nearly free: later"),
    _cheapest(_NO_CACHE, _PACE, "no cache: earlier"),
    _cheapest(_SONNET, Pace(3_200, 2_600, 1_000, 3_000, 160), "four times the growth"),
    _cheapest(_SONNET, Pace(800, 2_600, 1_000, 20_000, 160), "a long tail"),
    _cheapest(plain("mine", fresh=1, read=0.05, write=1.25, output=5).rates, _PACE, "a price list of your own"),
)


def _no_base(rates: Rates, pace: Pace) -> float:
    """Give the room to grow, and not the threshold."""
    return square_root_threshold(rates, pace) - pace.base


def _no_two(rates: Rates, pace: Pace) -> float:
    return pace.base + (square_root_threshold(rates, pace) - pace.base) / math.sqrt(2)


def _no_root(rates: Rates, pace: Pace) -> float:
    return pace.base + 2 * compaction_usd(rates, pace) * 1_000_000 * pace.growth / rates.read


EXERCISES = [
    Exercise(
        "read_written_fresh",
        _REQUESTS,
        (
            "first turn sizes into ends: `list(accumulate(sizes))` says how many tokens a prompt has up to each block",
            "an entry counts when its end has `minimum` tokens and it stands on one of the 20 blocks up to a mark",
            "written reaches from the end of the read to the last mark that has `minimum` tokens; the rest is fresh",
        ),
        read_written_fresh,
        {"looks back for ever": _no_look_back, "writes all": _all_written, "no minimum": _no_minimum},
    ),
    Exercise(
        "place_marks",
        _PLACES,
        (
            "best first: the end of system (or of the tools), the end of the newest user message, the end of the one before",
            "results that stand side by side are one message; `thinking` and `empty` carry no mark",
            "what is left of the four goes back from the newest mark: count blocks since a mark (no empty ones), and at 15 "
            "mark the block if it is of kind user or assistant",
        ),
        place,
        {"system and last block": _system_and_last, "every result": _every_user_block},
    ),
    Exercise(
        "break_even",
        _EVEN,
        (
            "two amounts: what it costs once, and what every request saves; the answer is one divided by the other",
            "once: the call, and for each rewritten token the write less the read that it would have been",
            "saved: `removed * rates.read`; prices are for a million tokens, `call_usd` is not",
        ),
        break_even,
        {"no write price": _ten_times, "without the call": _without_the_call, "saves fresh tokens": _saves_fresh},
    ),
    Exercise(
        "cheapest_threshold",
        _THRESHOLDS,
        (
            "`compaction_usd(rates, pace)` is K, `pace.growth` is g, `rates.read` is r; mind the million",
            "the cheapest room to grow is the root of 2 · K · g / r",
            "the threshold is that room on top of `pace.base`",
        ),
        square_root_threshold,
        {"room only": _no_base, "half forgotten": _no_two, "no root": _no_root},
    ),
]
