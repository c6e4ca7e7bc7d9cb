"""SWE-agent, May 2024: fold old tool outputs to one line each, all but the last five."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.messages import Message
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch
from agentkit.policies.edited import Edited
from agentkit.policies.viewing import Viewing

PAPER_WORDING = "Old output omitted ({lines} lines)"
LATER_WORDING = "Old environment output: ({lines} lines omitted)"
"""The wording since the end of November 2024."""


class SweAgent(Viewing):
    """Tool outputs older than the last `n` become one line with their line count.

    Source: SWE-agent paper, 2024 (arXiv 2405.15793), and its source up to v0.7.0 (dc18a740); `polling` as of 3ea751c0. The
    observations are counted as there: the task is the first one and never folded, so `n` outputs always stay whole. With
    `polling` = k the fold moves only every k observations, which breaks the cached prefix k times less often.

    Simplified: every tool result is an observation (there a step has one), the first user message is the task, and there
    are no demonstrations and no per-tool tags.
    """

    name = "SWE-agent"
    year, source = "2024-05", "SWE-agent v0.4 to v0.7 (dc18a740), arXiv 2405.15793"
    note = "tool outputs older than the last 5 become one line"

    def __init__(self, n: int = 5, polling: int = 1, wording: str = PAPER_WORDING) -> None:
        if n < 1 or polling < 1:
            raise ValueError("n and polling count observations, 1 or more")
        super().__init__()
        self.n, self.polling = n, polling
        self._folded = Edited(lambda m: wording.format(lines=len(m.content.splitlines())))

    def decide(self, log: object, situation: Situation) -> None:
        """Record nothing: the view follows from the messages alone."""

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return the branch with its old tool outputs folded."""
        outputs = [i for i, m in enumerate(branch.body) if m.role == "tool"]
        seen = 1 + len(outputs)  # the task is an observation too
        last = max(0, seen // self.polling * self.polling - self.n)
        folded = set(outputs[: max(0, last - 1)])
        return [*branch.head, *(self._folded(m) if i in folded else m for i, m in enumerate(branch.body))]
