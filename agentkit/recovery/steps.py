"""The recovery policies, by name: each is a list of steps to take after an overflow, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentkit.recovery.retry import NO_RETRY, RetryRules


@dataclass(frozen=True)
class Step:
    """One thing to try.

    `compact`: a forced compaction, `harsher` times harder than usual. `truncate`: keep the last `keep` messages, the system
    prompt and the running question.
    """

    kind: Literal["compact", "truncate"]
    harsher: int = 0
    keep: int = 0

    def __str__(self) -> str:
        if self.kind == "truncate":
            return f"truncation to the last {self.keep} messages"
        return "a forced compaction" if not self.harsher else f"a forced compaction, {2 * self.harsher} messages fewer kept"


KEEP_LAST = 4
"""Messages that a truncation leaves, if they fit."""


@dataclass(frozen=True)
class Recovery:
    """What to do when a request fails.

    `steps` for an overflow: each counts only if the view really became smaller and is under the limit, then the request is
    sent once more. With no step left the error is raised, with what to do. `retry` for everything that may pass by itself.
    `share` and `stop` are those of the guard.
    """

    name: str
    steps: tuple[Step, ...] = ()
    retry: RetryRules = RetryRules()
    share: float = 0.05
    stop: bool = False

    @property
    def most_requests(self) -> int:
        """Return the most requests that one round may take, retries and the one with less output included."""
        return self.retry.tries + len(self.steps) + 1


NONE = Recovery("none", retry=NO_RETRY)
"""Nothing: every error is reported as it came, and no compaction is watched."""
ONCE = Recovery("once", (Step("compact"),))
"""One forced compaction and one retry (jai). A policy that cannot compact is truncated instead."""
GOOSE = Recovery("goose", (Step("compact", 1), Step("compact", 2), Step("truncate", keep=KEEP_LAST)))
"""Two compactions, each keeping two messages fewer and terser, then truncation (the course text on Goose, 2026)."""

RECOVERIES: dict[str, Recovery] = {r.name: r for r in (NONE, ONCE, GOOSE)}


def make_recovery(name: str | Recovery) -> Recovery:
    """Return the recovery policy `name`. Raises `ValueError` that lists the names there are."""
    if isinstance(name, Recovery):
        return name
    if name not in RECOVERIES:
        raise ValueError(f"unknown recovery {name!r}; there are {', '.join(RECOVERIES)}")
    return RECOVERIES[name]
