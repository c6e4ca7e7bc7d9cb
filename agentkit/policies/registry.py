"""The policies by their names: whoever offers a choice of them takes it from here."""

from __future__ import annotations

from collections.abc import Callable

from agentkit.compaction import Compactor
from agentkit.policies.aider import AiderRepoMap
from agentkit.policies.autogpt import AutoGpt
from agentkit.policies.autogpt_as_told import AutoGptAsTold
from agentkit.policies.autogpt_summary import AutoGptBatches, AutoGptEveryStep
from agentkit.policies.base import Policy
from agentkit.policies.codex import Codex
from agentkit.policies.cost_aware import CostAware
from agentkit.policies.goose import Goose
from agentkit.policies.goose_as_told import GooseAsTold
from agentkit.policies.jai import Jai
from agentkit.policies.keep_everything import KeepEverything
from agentkit.policies.m4 import M4
from agentkit.policies.memgpt import MemGpt
from agentkit.policies.memgpt_code import MemGptCode
from agentkit.policies.notes_file import NotesFile
from agentkit.policies.openhands import OpenHands
from agentkit.policies.pi import Pi
from agentkit.policies.server_compaction import ServerSideCompaction
from agentkit.policies.server_editing import ServerSideEditing
from agentkit.policies.summarise_middle import SummariseMiddle
from agentkit.policies.swe_agent import SweAgent

Maker = Callable[[Compactor], Policy]
"""Makes a policy. The compactor holds what a reader may set: how much to keep, where to cut, who writes the summary."""

POLICIES: dict[str, Maker] = {
    KeepEverything.name: lambda compactor: KeepEverything(),
    SummariseMiddle.name: SummariseMiddle,
    AutoGptAsTold.name: lambda compactor: AutoGptAsTold(),
    AutoGpt.name: lambda compactor: AutoGpt(),
    AutoGptEveryStep.name: AutoGptEveryStep,
    AutoGptBatches.name: AutoGptBatches,
    MemGpt.name: MemGpt,
    MemGptCode.name: MemGptCode,
    AiderRepoMap.name: lambda compactor: AiderRepoMap(),
    SweAgent.name: lambda compactor: SweAgent(),
    Jai.name: Jai,
    M4.name: M4,
    GooseAsTold.name: GooseAsTold,
    Goose.name: Goose,
    ServerSideEditing.name: lambda compactor: ServerSideEditing(),
    ServerSideCompaction.name: ServerSideCompaction,
    Codex.name: Codex,
    OpenHands.name: OpenHands,
    Pi.name: Pi,
    NotesFile.name: NotesFile,
    CostAware.name: CostAware,
}
"""Every system with its own defaults; of the compactor those that summarise take the provider, the list and the lengths.

Only `summarise the middle` also takes from it how much to keep and where to cut.
"""

CLASSES: tuple[type, ...] = (
    KeepEverything,
    SummariseMiddle,
    AutoGptAsTold,
    AutoGpt,
    AutoGptEveryStep,
    AutoGptBatches,
    MemGpt,
    MemGptCode,
    AiderRepoMap,
    SweAgent,
    Jai,
    M4,
    GooseAsTold,
    Goose,
    ServerSideEditing,
    ServerSideCompaction,
    Codex,
    OpenHands,
    Pi,
    NotesFile,
    CostAware,
)
"""The classes, in the order of `POLICIES`; `year`, `source` and `note` of each are for tables."""

WITHOUT_BUDGET = frozenset({KeepEverything.name})
"""Policies that look at no budget and keep no tail: their runs are the same for every setting of those."""


def make_policy(name: str, compactor: Compactor) -> Policy:
    """Return the policy `name`. Raises `ValueError` that lists the names there are."""
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name](compactor)


def describe(name: str) -> dict[str, str]:
    """Return what a table says of the policy `name`: its year, its source, and what it does in one sentence.

    Raises `KeyError` for a name that is not in `POLICIES`.
    """
    made = next((kind for kind in CLASSES if kind.name == name), None)
    if made is None:
        raise KeyError(name)
    return {"name": name, **{key: str(getattr(made, key, "")) for key in ("year", "source", "note")}}
