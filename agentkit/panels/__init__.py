"""Panels: controls wired to pictures. The only place that imports ipywidgets."""

from agentkit.panels.common import Panel, View
from agentkit.panels.costs import bill
from agentkit.panels.cutting import compactor
from agentkit.panels.dialects import dialects
from agentkit.panels.faults import fault_picker
from agentkit.panels.growth import loop_growth
from agentkit.panels.kv import kv_edit
from agentkit.panels.lab import lab
from agentkit.panels.paste import estimators
from agentkit.panels.player import strip_player
from agentkit.panels.scrubber import ledger_scrubber
from agentkit.panels.strategies import strategies
from agentkit.panels.strip_widget import StripWidget, live_strip
from agentkit.panels.thresholds import budget

__all__ = [
    "Panel",
    "StripWidget",
    "View",
    "bill",
    "budget",
    "compactor",
    "dialects",
    "estimators",
    "fault_picker",
    "kv_edit",
    "lab",
    "ledger_scrubber",
    "live_strip",
    "loop_growth",
    "strategies",
    "strip_player",
]
