"""Faults on demand: chosen by a test or a panel, in a stated order, never at random."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal[
    "rate_limit",
    "overloaded",
    "server_error",
    "cut_stream",
    "error_in_stream",
    "empty_summary",
    "long_summary",
    "tool_call_summary",
    "no_usage",
    "wrong_usage",
    "slow_first_byte",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
_ONLY_SUMMARIES = ("empty_summary", "long_summary", "tool_call_summary")


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong, `times` times. `seconds` is the retry-after or the delay, where the kind has one."""

    kind: Kind
    times: int = 1
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown fault {self.kind!r}; there are {', '.join(KINDS)}")


class FaultPlan:
    """The faults still to come, in order. A fault that only concerns summaries waits for a summary call."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._queue: list[Fault] = [f for fault in faults for f in [fault] * fault.times]

    def take(self, *, is_summary: bool) -> Fault | None:
        """Return the fault for this request, or None."""
        if self._queue and (is_summary or self._queue[0].kind not in _ONLY_SUMMARIES):
            return self._queue.pop(0)
        return None
