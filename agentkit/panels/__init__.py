"""Panels: controls wired to pictures. The only place that imports ipywidgets."""

from agentkit.panels.common import Panel, View
from agentkit.panels.cutting import compactor
from agentkit.panels.growth import loop_growth
from agentkit.panels.kv import kv_edit
from agentkit.panels.lab import lab
from agentkit.panels.paste import estimators
from agentkit.panels.player import strip_player
from agentkit.panels.strip_widget import StripWidget, live_strip
from agentkit.panels.thresholds import budget

__all__ = [
    "Panel",
    "StripWidget",
    "View",
    "budget",
    "compactor",
    "estimators",
    "kv_edit",
    "lab",
    "live_strip",
    "loop_growth",
    "strip_player",
]
