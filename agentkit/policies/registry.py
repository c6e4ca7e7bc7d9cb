"""The policies by their names: whoever offers a choice of them takes it from here."""

from __future__ import annotations

from collections.abc import Callable

from agentkit.compaction import Compactor
from agentkit.policies.base import Policy
from agentkit.policies.keep_everything import KeepEverything
from agentkit.policies.summarise_middle import SummariseMiddle

Maker = Callable[[Compactor], Policy]
"""Makes a policy. The compactor holds what a reader may set: how much to keep, where to cut, who writes the summary."""

POLICIES: dict[str, Maker] = {
    KeepEverything.name: lambda compactor: KeepEverything(),
    SummariseMiddle.name: SummariseMiddle,
}

WITHOUT_BUDGET = frozenset({KeepEverything.name})
"""Policies that look at no budget and keep no tail: their runs are the same for every setting of those."""


def make_policy(name: str, compactor: Compactor) -> Policy:
    """Return the policy `name`. Raises `ValueError` that lists the names there are."""
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name](compactor)
