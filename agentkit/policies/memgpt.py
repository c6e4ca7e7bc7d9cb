"""MemGPT, October 2023: the context as memory with pages. A warning when it fills, eviction when it is full, and search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from agentkit.budget import Budget
from agentkit.compaction.compactor import Compactor, assemble
from agentkit.log import Compaction, Log, Projection
from agentkit.messages import Message, Request, system, user
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch, first_safe, last_safe, pending, write_note
from agentkit.policies.compacting import KeepingTail, previous_summary, projected
from agentkit.policies.recall import remember_tool, search_tool
from agentkit.policies.viewing import Answer, ask
from agentkit.tools.base import Tool

PRESSURE = (
    "[memory pressure] Your context is nearly full, and the oldest messages will leave it soon. Save what you will still "
    "need with remember; what has left you can find again with search_conversation."
)
_MANNER = "Write from your own point of view, in the first person, in less than 100 words.\n\n"


class MemGpt(KeepingTail):
    """Warn the model at 70 % of the window; above 100 % evict the oldest half of it and summarise what was evicted.

    Source: MemGPT paper, 2023 (arXiv 2310.08560, section 2.2; the percentages are its examples). The summary is recursive:
    the earlier one and what is evicted make the next. Evicted messages stay in the log, and the model can search them; what
    it saves stands behind the system prompt. The warning is given once between two evictions.

    Simplified: search is by words, in pages of five; there is one store of saved facts (no separate archive), and it is only
    appended to.
    """

    name = "MemGPT"
    year: ClassVar[str] = "2023-10"
    source: ClassVar[str] = "arXiv 2310.08560"
    note: ClassVar[str] = "a warning at 70 %, at 100 % the oldest half is evicted, searchable"
    placement = "system"

    def __init__(self, compactor: Compactor, warn: float = 0.7, full: float = 1.0, evict: float = 0.5) -> None:
        super().__init__(compactor)
        self.warn, self.full, self.evict = warn, full, evict

    def threshold(self, budget: Budget) -> int:
        """Return the first size that is more than full."""
        return int(budget.limit * self.full) + 1

    def warns_at(self, budget: Budget) -> int:
        """Return the first size that is worth a warning."""
        return int(budget.limit * self.warn) + 1

    def decide(self, log: Log, situation: Situation) -> Compaction | None:
        """Evict when it is due; else warn, once."""
        record = super().decide(log, situation)
        branch = self.branch(log)
        if record is None and branch.body and situation.estimate >= self.warns_at(situation.budget):
            since = branch.newest[1] if branch.newest else 0
            if not any(place >= since for place in self._warnings(branch)):
                write_note(log, self.name, kind="pressure")
                situation.report("memory pressure: the model was warned")
        return record

    def cut(self, tail: Sequence[Message], situation: Situation) -> int:
        """Evict the oldest messages until half a window is free."""
        left = int(situation.budget.limit * self.evict) << situation.harsher
        for i, message in enumerate(tail):
            left -= self.sizes(message)
            if left <= 0:
                return last_safe(tail, min(first_safe(tail, i + 1), pending(tail)))
        return last_safe(tail, pending(tail)) if situation.forced else 0

    def summary_of(self, view: Projection, cut: int, situation: Situation) -> Answer:
        """Ask for the recursive summary."""
        request = self.summary_request(view.tail[:cut], previous_summary(view))
        message = user(_MANNER + request.messages[0].content)
        return ask(self.provider, Request((message,), max_output=self.max_summary, thinking=False))

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return head, saved facts, summary, tail; with the warning where it was given."""
        view = projected(branch)
        facts = [data["text"] for data, _ in branch.notes(self.name) if data["kind"] == "fact"]
        saved = (system("Saved facts:\n" + "\n".join(f"- {fact}" for fact in facts)),) if facts else ()
        return self.assembled(Projection((*view.head, *saved), view.compaction, self._warned(branch, view.tail)))

    def assembled(self, view: Projection) -> Sequence[Message]:
        """Return the messages of `view` in order."""
        return assemble(view)

    def _warned(self, branch: Branch, tail: Sequence[Message]) -> tuple[Message, ...]:
        """Return the tail with the warnings that were given in it."""
        start = branch.start(branch.newest[0]) if branch.newest else 0
        moved = len(tail) - (len(branch.body) - start)  # the question of the turn, in front of the tail
        parts: list[Message] = []
        done = 0
        for place in self._warnings(branch):
            if place > start:
                parts += [*tail[done : place - start + moved], user(PRESSURE)]
                done = place - start + moved
        return (*parts, *tail[done:])

    def tools(self, log: Log) -> tuple[Tool, ...]:
        """Return the tools of the model: search what left the view, save a fact."""
        return search_tool(lambda: self._evicted(log)), remember_tool(lambda text: self._save(log, text))

    def _save(self, log: Log, text: str) -> None:
        write_note(log, self.name, kind="fact", text=text)

    def _evicted(self, log: Log) -> Sequence[Message]:
        branch = self.branch(log)
        return branch.body[: branch.start(branch.newest[0])] if branch.newest else ()

    def _warnings(self, branch: Branch) -> list[int]:
        return [place for data, place in branch.notes(self.name) if data["kind"] == "pressure"]
