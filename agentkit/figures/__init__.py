"""Pictures: a pure function returns data, a figure turns data into a picture. No widgets here.

Whatever is returned shows itself in a notebook (`_repr_mimebundle_`), with the same result in words.
"""

from agentkit.figures.bill import cost_curve, u_chart
from agentkit.figures.charts import Chart, error_bars, estimator_errors, threshold_chart, threshold_rows, tokens_per_round
from agentkit.figures.context_strip import Strip, strip
from agentkit.figures.cut import Trial, cut_picture
from agentkit.figures.dialects import Side, dialects_picture, side
from agentkit.figures.estimates import Estimate, compare, estimates_picture
from agentkit.figures.growth import Growth, growth_of, growth_picture, reading_loop
from agentkit.figures.kv import EditSeen, PromptBar, edit_picture, kv_bars
from agentkit.figures.marks import marks_strip
from agentkit.figures.picture import Picture
from agentkit.figures.rows import Block, Row, strip_rows
from agentkit.figures.scrubber import Moment, moment, moment_picture
from agentkit.figures.strategies import filmstrip, policy_strip, recall_points
from agentkit.figures.tables import Table, bill_table, table
from agentkit.figures.thresholds import Plan, plan_picture
from agentkit.figures.troubles import Trouble, trouble_of, trouble_picture

__all__ = [
    "Block",
    "Chart",
    "EditSeen",
    "Estimate",
    "Growth",
    "Moment",
    "Picture",
    "Plan",
    "PromptBar",
    "Row",
    "Side",
    "Strip",
    "Table",
    "Trial",
    "Trouble",
    "bill_table",
    "compare",
    "cost_curve",
    "cut_picture",
    "dialects_picture",
    "edit_picture",
    "error_bars",
    "estimates_picture",
    "filmstrip",
    "estimator_errors",
    "growth_of",
    "growth_picture",
    "kv_bars",
    "moment",
    "moment_picture",
    "marks_strip",
    "plan_picture",
    "policy_strip",
    "reading_loop",
    "recall_points",
    "side",
    "strip",
    "strip_rows",
    "table",
    "threshold_chart",
    "threshold_rows",
    "tokens_per_round",
    "trouble_of",
    "trouble_picture",
    "u_chart",
]
