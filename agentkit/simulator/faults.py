"""Faults on demand: chosen by a test or a panel, in a stated order, never at random. `failing.py` says how each looks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, get_args

Kind = Literal[
    "rate_limit",
    "overloaded",
    "server_error",
    "cut_stream",
    "error_in_stream",
    "overflow",
    "overflow_in_stream",
    "overflow_stop",
    "cut_by_window",
    "silent_truncation",
    "empty_summary",
    "long_summary",
    "tool_call_summary",
    "cut_summary",
    "no_usage",
    "wrong_usage",
    "slow_first_byte",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
Hits = Literal["any", "turn", "summary"]

ABOUT: dict[Kind, str] = {
    "rate_limit": "429, with the seconds to wait",
    "overloaded": "503 or 529: the server has no room now",
    "server_error": "500",
    "cut_stream": "the line is cut in the middle of the answer",
    "error_in_stream": "an error in the middle of the answer, after status 200",
    "overflow": "400: the context is too long",
    "overflow_in_stream": "the context is too long, said in the stream after status 200",
    "overflow_stop": "status 200 and a stop reason: the window is full, nothing is said",
    "cut_by_window": "status 200, and half an answer: the window is full",
    "silent_truncation": "the oldest messages are dropped; only the count shows it",
    "empty_summary": "a summary of white space",
    "long_summary": "a summary longer than what it replaces",
    "tool_call_summary": "a call of a tool instead of a summary",
    "cut_summary": "a summary cut off before its end",
    "no_usage": "no bill",
    "wrong_usage": "a bill three times too high",
    "slow_first_byte": "a pause before the first byte",
}
"""Each fault in a few words."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, `times` times.

    `seconds` is the retry-after or the delay, where the kind has one. `hits` says which calls it may hit: any, those of a
    turn, or summary calls (faults of summaries hit only these); `after` of them pass first. `window`, in tokens, is what an
    overflow pretends to have (0: three quarters of the prompt).
    """

    kind: Kind
    times: int = 1
    seconds: float = 0.0
    hits: Hits = "any"
    after: int = 0
    window: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown fault {self.kind!r}; there are {', '.join(KINDS)}")
        if self.hits not in get_args(Hits):
            raise ValueError(f"a fault hits {', '.join(get_args(Hits))}, not {self.hits!r}")
        if self.kind.endswith("_summary"):
            object.__setattr__(self, "hits", "summary")

    def may_hit(self, is_summary: bool) -> bool:
        """Say whether this fault is aimed at such a call."""
        return self.hits == "any" or (self.hits == "summary") == is_summary


class FaultPlan:
    """The faults still to come, in order. The first waits for a call that it is aimed at."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._queue: list[Fault] = []
        for fault in faults:
            self._queue += [fault, *[replace(fault, after=0)] * (fault.times - 1)] if fault.times > 0 else []

    def take(self, *, is_summary: bool) -> Fault | None:
        """Return the fault for this request, or None."""
        if not self._queue or not self._queue[0].may_hit(is_summary):
            return None
        if self._queue[0].after > 0:
            self._queue[0] = replace(self._queue[0], after=self._queue[0].after - 1)
            return None
        return self._queue.pop(0)
