"""The repo map: which symbols of a workspace matter most for the files at hand, as signatures within a token budget."""

from agentkit.repomap.graph import Weights, rank
from agentkit.repomap.symbols import Tag, tags
from agentkit.repomap.text import repo_map

__all__ = ["Tag", "Weights", "rank", "repo_map", "tags"]
