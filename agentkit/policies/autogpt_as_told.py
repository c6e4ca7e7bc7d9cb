"""AutoGPT of April 2023 as it is often told: the last 9 messages, and the 10 most similar earlier ones in the head."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.compaction.transcript import clip
from agentkit.messages import Message, system
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch, pending
from agentkit.policies.ranking import Ranker, ranker
from agentkit.policies.viewing import Viewing

LONGEST_MEMORY = 2_000
MEMORIES = "This reminds you of these events from your past:\n"


class AutoGptAsTold(Viewing):
    """Send the last `last` messages, and in front of them the `top` earlier ones that are most like them, every time anew.

    Source: the text of 2026 on jai's context management, which tells AutoGPT 0.2.1 so. The source of AutoGPT does otherwise:
    see `AutoGpt`. The memories change with every request, and everything behind them is paid in full.

    Simplified: `ranking` (BM25) stands in for embeddings and a vector store; a result whose call is not among the last
    messages is left out, as no API takes it; a memory is clipped at 2,000 characters, as a store keeps pieces; all results
    that wait for an answer are sent, also more than `last`.
    """

    name = "AutoGPT 2023-04 as told"
    year, source = "2023-04", "as told of AutoGPT 0.2.1"
    note = "the last 9 messages, and the 10 most similar earlier ones in the head"

    def __init__(self, last: int = 9, top: int = 10, ranking: Ranker | None = None) -> None:
        super().__init__()
        self.last, self.top, self.ranking = last, top, ranking or ranker()
        self._texts: dict[str, str] = {}

    def decide(self, log: object, situation: Situation) -> None:
        """Record nothing: the view follows from the messages alone."""

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return head, memories and the last messages."""
        start = max(0, min(len(branch.body) - self.last, pending(branch.body)))
        earlier, recent = branch.body[:start], branch.body[start:]
        if not earlier:
            return (*branch.head, *recent)
        texts = [self._text(m) for m in earlier]
        found = self.ranking.best("\n".join(self._text(m) for m in recent), texts, self.top)
        return (*branch.head, system(MEMORIES + "\n".join(texts[i] for i in found)), *recent)

    def _text(self, message: Message) -> str:
        if message.id not in self._texts:
            calls = "".join(f" {c.name}({c.arguments})" for c in message.tool_calls)
            self._texts[message.id] = clip(f"{message.role}: {message.content}{calls}", LONGEST_MEMORY)
        return self._texts[message.id]
