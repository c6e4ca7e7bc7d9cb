"""Policies: what to record, and what the model sees. One file per strategy."""

from agentkit.policies.base import Policy, Situation
from agentkit.policies.keep_everything import KeepEverything
from agentkit.policies.summarise_middle import SummariseMiddle

__all__ = ["KeepEverything", "Policy", "Situation", "SummariseMiddle"]
