"""Codex, 2026: keep the user's own words, and let one summary stand for everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentkit.budget import Budget
from agentkit.compaction.compactor import Compactor
from agentkit.compaction.transcript import clip
from agentkit.log import Compaction
from agentkit.messages import Message, user
from agentkit.policies.base import Situation
from agentkit.policies.branch import rounds
from agentkit.policies.compacting import Whole
from agentkit.policies.viewing import Answer

SHARE = 0.9
USER_TOKENS = 20_000
BYTES_PER_TOKEN = 4
PREFIX = (
    "Another model worked on this task before and left this summary of its work. Build on it; do not do again what is done."
)


class Codex(Whole):
    """At 90 % of the window: the newest user messages up to 20,000 tokens, then the summary, and nothing else.

    Source: codex-rs as mirrored in just-every/code @6ad6d5c9 (2026-08-12), core/compact.rs. The oldest user message that
    is kept is clipped to what is left of the 20,000 tokens (4 bytes each). Answers, calls and results go; the summary is the
    last user message. When what is to be summarised does not fit, the oldest round is dropped and the call repeated.

    Simplified: the check before every request stands for that before and within a turn; the compaction service of the
    vendor and the mode without a summary are left out.
    """

    name = "Codex"
    year, source = "2026-08", "codex-rs, mirror just-every/code @6ad6d5c9"
    note = "at 90 % of the window: user messages up to 20,000 tokens and a summary"

    def __init__(self, compactor: Compactor, share: float = SHARE, user_tokens: int = USER_TOKENS) -> None:
        super().__init__(compactor)
        self.share, self.user_tokens = share, user_tokens

    def threshold(self, budget: Budget) -> int:
        """Return 90 % of the window."""
        return max(1, int(budget.limit * self.share))

    def summary_of(self, gone: Sequence[Message], situation: Situation) -> Answer:
        """Ask; on an overflow drop the oldest round and ask again."""
        answer = self.summarise(gone)
        while answer.overflow and len(found := rounds(gone)) > 1:
            gone = gone[found[0].stop :]
            answer = self.summarise(gone)
        return answer

    def opening(self, before: Sequence[Message], compaction: Compaction) -> Sequence[Message]:
        """Return the newest user messages and the summary."""
        left, kept = self.user_tokens * BYTES_PER_TOKEN, list[Message]()
        for message in reversed([m for m in before if m.role == "user"]):
            size = len(message.content.encode("utf-8", "replace"))
            if left <= 0:
                break
            kept.append(message if size <= left else replace(message, content=_clipped(message.content, left)))
            left -= size
        return [*reversed(kept), user(f"{PREFIX}\n\n{compaction.summary}")]


def _clipped(text: str, size: int) -> str:
    """Return the start and the end of `text`, about `size` bytes of it."""
    return clip(text, size * len(text) // len(text.encode("utf-8", "replace")))
