"""OpenHands, 2026: keep the first events, forget a stretch in the middle between legal cuts, leave a tombstone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentkit.budget import Budget
from agentkit.compaction.compactor import Compactor, Outcome, assemble, summary_message
from agentkit.compaction.cut import is_safe_cut
from agentkit.messages import Message
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch, last_safe, pending
from agentkit.policies.compacting import Compacting, projected

MAX_SIZE = 240
KEEP_FIRST = 2
LEAST_PROGRESS = 0.1
RESET = "hard reset"
SHRINK, TRIES = 0.8, 5


class OpenHands(Compacting):
    """Above `max_size` events keep the first ones and the newest, half of `max_size` together, and summarise between them.

    Source: OpenHands software-agent-sdk @61162999 (2026-08-22), context/condenser. Its default is 240 events (80 in another
    place), the first 2 kept. A cut is legal where it parts no batch of calls, no call from its result and no loop of calls
    with thinking. The record in the log is the tombstone: what is forgotten, the summary, and where it stands. A
    condensation that would forget less than a tenth is not made; if it has to be (the request does not fit, or was refused)
    everything becomes a summary, from ever shorter texts (x 0.8, five tries).

    Simplified: a message is an event (there each call is one); in the hard reset what waits for an answer stays.
    """

    name = "OpenHands"
    year, source = "2026-08", "OpenHands software-agent-sdk @61162999"
    note = "above 240 events the middle is forgotten down to 120"

    def __init__(self, compactor: Compactor, max_size: int = MAX_SIZE, keep_first: int = KEEP_FIRST) -> None:
        if max_size < 2 * keep_first + 4:
            raise ValueError(f"max_size {max_size} leaves no middle behind the first {keep_first} events; use a larger one")
        super().__init__(compactor)
        self.max_size, self.keep_first = max_size, keep_first

    def threshold(self, budget: Budget) -> int:
        """Return the first size that does not fit; below it only events count."""
        return budget.limit + 1

    def is_due(self, branch: Branch, situation: Situation) -> bool:
        """Say whether there are too many events, or too many tokens."""
        return len(self._shown(branch)) > self.max_size or super().is_due(branch, situation)

    def compact(self, branch: Branch, situation: Situation) -> Outcome:
        """Forget the middle; where that is not enough progress and it has to be, everything."""
        shown = len(self._shown(branch))
        must = situation.forced or super().is_due(branch, situation)
        first, start = self._first(branch), self._start(branch)
        target = min(self.max_size, shown) // 2 >> situation.harsher
        cut = _legal(branch.body, len(branch.body) - max(1, target - first - 1))
        if cut - start >= LEAST_PROGRESS * shown:
            gone = branch.body[start:cut]
            situation.report(f"forgetting {len(gone)} events …")
            answer = self.summarise(gone, self._previous(branch))
            if answer.overflow and must:
                return self._reset(branch, situation)
            return self.judged(branch, branch.body[cut].id, gone, answer)
        return self._reset(branch, situation) if must else Outcome("skipped", "too little would be forgotten")

    def _reset(self, branch: Branch, situation: Situation) -> Outcome:
        cut = last_safe(branch.body, pending(branch.body))
        gone = branch.body[0 if self._first(branch) else self._start(branch) : cut]
        if not gone:
            return Outcome("skipped", "nothing stands before what waits for an answer")
        situation.report("summarising everything …")
        clip = self.clip
        for _ in range(TRIES):
            answer = self.summarise(gone, self._previous(branch), clip=clip)
            if not answer.overflow:
                break
            clip = int(clip * SHRINK)
        return self.judged(branch, branch.body[cut].id, gone, answer, RESET)

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return head, first events, summary, and what comes after the forgotten ones."""
        if branch.newest is None or branch.newest[0].policy != self.name:
            return assemble(projected(branch))
        summary = replace(summary_message(branch.newest[0]), role="user")
        return (*branch.head, *branch.body[: self._first(branch)], summary, *branch.body[self._start(branch) :])

    def _previous(self, branch: Branch) -> str:
        return branch.newest[0].summary if branch.newest else ""

    def _start(self, branch: Branch) -> int:
        """Return the position behind everything that is forgotten, or kept as the first events."""
        return branch.start(branch.newest[0]) if branch.newest else self._first(branch)

    def _first(self, branch: Branch) -> int:
        """Return how many first events stay: none after a hard reset, and none that would part a batch."""
        records = [e.compaction for e in branch.entries if e.compaction and e.compaction.status == "done"]
        if any(record.policy != self.name or record.reason == RESET for record in records):
            return 0
        size = min(self.keep_first, len(branch.body))
        return size if size == len(branch.body) else _legal_before(branch.body, size)


def _is_legal(body: Sequence[Message], position: int) -> bool:
    return body[position].role in ("user", "assistant") and is_safe_cut(body, position) and not _in_loop(body, position)


def _legal(body: Sequence[Message], wanted: int) -> int:
    """Return the first legal position from `wanted` on, else the last one before it."""
    later = (i for i in range(max(0, wanted), len(body)) if _is_legal(body, i))
    return next(later, _legal_before(body, wanted))


def _legal_before(body: Sequence[Message], wanted: int) -> int:
    return next((i for i in range(min(wanted, len(body) - 1), 0, -1) if _is_legal(body, i)), 0)


def _in_loop(body: Sequence[Message], position: int) -> bool:
    """Say whether `position` is inside a loop of calls whose messages carry thinking that has to go back with them."""
    if body[position].role != "assistant" or body[position - 1].role != "tool":
        return False
    first = next((i for i in range(position - 1, -1, -1) if body[i].role == "user"), -1)
    last = next((i for i in range(position, len(body)) if body[i].role == "user"), len(body))
    return any(m.opaque for m in body[first + 1 : last] if m.tool_calls)
