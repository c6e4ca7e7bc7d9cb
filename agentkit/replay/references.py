"""Reference recall, where a replay looks for it; the finding itself is in `agentkit.references`, which policies use too."""

from agentkit.references import References, find_references, identifiers, said

__all__ = ["References", "find_references", "identifiers", "said"]
