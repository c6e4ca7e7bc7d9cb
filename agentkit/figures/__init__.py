"""Pictures: a pure function returns data, a figure turns data into a picture. No widgets here.

Whatever is returned shows itself in a notebook (`_repr_mimebundle_`), with the same result in words.
"""

from agentkit.figures.charts import Chart, error_bars, estimator_errors, threshold_chart, threshold_rows, tokens_per_round
from agentkit.figures.context_strip import Strip, strip
from agentkit.figures.cut import Trial, cut_picture
from agentkit.figures.estimates import Estimate, compare, estimates_picture
from agentkit.figures.growth import Growth, growth_of, growth_picture, reading_loop
from agentkit.figures.kv import EditSeen, PromptBar, edit_picture, kv_bars
from agentkit.figures.picture import Picture
from agentkit.figures.rows import Block, Row, strip_rows
from agentkit.figures.tables import Table, bill_table, table
from agentkit.figures.thresholds import Plan, plan_picture

__all__ = [
    "Block",
    "Chart",
    "EditSeen",
    "Estimate",
    "Growth",
    "Picture",
    "Plan",
    "PromptBar",
    "Row",
    "Strip",
    "Table",
    "Trial",
    "bill_table",
    "compare",
    "cut_picture",
    "edit_picture",
    "error_bars",
    "estimates_picture",
    "estimator_errors",
    "growth_of",
    "growth_picture",
    "kv_bars",
    "plan_picture",
    "reading_loop",
    "strip",
    "strip_rows",
    "table",
    "threshold_chart",
    "threshold_rows",
    "tokens_per_round",
]
