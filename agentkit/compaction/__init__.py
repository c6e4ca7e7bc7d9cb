"""How to compact: where to cut, what to show the summariser, what to ask it, and when to refuse its answer."""

from agentkit.compaction.compactor import Compactor, Outcome
from agentkit.compaction.cut import Keep, find_cut, is_safe_cut
from agentkit.compaction.prompts import KEEP_LIST, summary_prompt
from agentkit.compaction.transcript import flatten

__all__ = ["KEEP_LIST", "Compactor", "Keep", "Outcome", "find_cut", "flatten", "is_safe_cut", "summary_prompt"]
