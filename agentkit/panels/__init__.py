"""Panels: controls wired to pictures. The only place that imports ipywidgets."""

from agentkit.panels.common import Panel, View
from agentkit.panels.cutting import compactor
from agentkit.panels.growth import loop_growth
from agentkit.panels.paste import estimators
from agentkit.panels.player import strip_player
from agentkit.panels.thresholds import budget

__all__ = ["Panel", "View", "budget", "compactor", "estimators", "loop_growth", "strip_player"]
