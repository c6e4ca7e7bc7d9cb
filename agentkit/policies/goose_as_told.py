"""Goose as it is told: each pair of call and result summarised by itself, and truncation as a last resort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentkit.budget import Budget
from agentkit.compaction.compactor import Compactor, Outcome, assemble
from agentkit.log import Compaction, Projection
from agentkit.messages import Message, Usage, assistant
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch, last_safe, pending
from agentkit.policies.compacting import Compacting, previous_summary, projected
from agentkit.policies.pairs import KEEP, KEEP_LESS, Pair, ask_each, pair_request, pairs
from agentkit.policies.viewing import added

SHARE = 0.8
TAIL = 8
HARSHEST = 2
PREFIX = "SUMMARY:\n"
DROPPED = "(earlier messages were left out; no summary could be made)"
TRUNCATED = "truncated"


@dataclass(frozen=True)
class Quirks:
    """What the text tells and hardly anybody wants; all of it happens unless switched off.

    `pairs_only`: what user and model said in the middle is in no pair, so it is lost. `as_assistant`: the summary is an
    assistant message.
    """

    pairs_only: bool = True
    as_assistant: bool = True


class GooseAsTold(Compacting):
    """At 80 % of the window keep system prompt and the last K messages; the pairs between them become one line each.

    Source: a lesson of 2026 on Goose @1cb5cb06; the source does otherwise in most of this, see `Goose`. The pairs are
    summarised in parallel and a failed one costs only its own line. A forced compaction keeps K − 2, then K − 4 messages and
    asks for less; after two of them, or when every call fails, the middle is cut away without a summary (`tail` or half of
    it stays).

    Simplified: the tail starts where a message may stand first; an earlier summary is carried on as it is, where the text
    would lose it; K is 8, as no number is told.
    """

    name = "Goose as told"
    year, source = "2026", "a lesson on Goose @1cb5cb06"
    note = "at 80 % every call with its result becomes a line of summary, the last 8 messages stay"

    def __init__(
        self,
        compactor: Compactor,
        share: float = SHARE,
        tail: int = TAIL,
        quirks: Quirks | None = None,
        *,
        workers: int = 4,
    ) -> None:
        super().__init__(compactor)
        self.share, self.tail, self.workers, self.quirks = share, tail, workers, quirks or Quirks()

    def threshold(self, budget: Budget) -> int:
        """Return the first size above the share."""
        return int(budget.limit * self.share) + 1

    def compact(self, branch: Branch, situation: Situation) -> Outcome:
        """Summarise the pairs before the tail; truncate where that fails."""
        view, harsher = projected(branch), situation.harsher
        if harsher > HARSHEST:
            return self._truncated(branch, view, self.tail // 2)
        cut = self._cut(view, max(1, self.tail - 2 * harsher))
        if cut <= 0:
            return Outcome("skipped", "nothing to summarise: everything is kept")
        gone = view.tail[:cut]
        requests = [pair_request(p, KEEP_LESS if harsher else KEEP, self.clip) for p in pairs(gone)]
        situation.report(f"summarising {len(requests)} pairs of call and result …")
        answers = ask_each(self.provider, requests, self.workers)
        if requests and all(answer.fault for answer in answers):
            situation.report(f"truncating: {answers[0].fault}")
            return self._truncated(branch, view, self.tail)
        lines = [answer.text or self._failed(p) for p, answer in zip(pairs(gone), answers, strict=True)]
        said = [] if self.quirks.pairs_only else [f"{m.role}: {m.content}" for m in gone if m.role in ("user", "assistant")]
        text = "\n".join(part for part in [previous_summary(view), *said, *lines] if part) or DROPPED
        usage = added([answer.usage for answer in answers])
        return self._outcome(branch, view, cut, text, "threshold", usage)

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return head, the lines of the summary, tail."""
        view = projected(branch)
        if view.compaction is None or view.compaction.policy != self.name or not self.quirks.as_assistant:
            return assemble(view)
        return (*view.head, assistant(PREFIX + view.compaction.summary), *view.tail)

    def _cut(self, view: Projection, keep: int) -> int:
        return last_safe(view.tail, min(len(view.tail) - keep, pending(view.tail)))

    def _truncated(self, branch: Branch, view: Projection, keep: int) -> Outcome:
        cut = self._cut(view, max(1, keep))
        if cut <= 0:
            return Outcome("skipped", "nothing to cut away: everything is kept")
        return self._outcome(branch, view, cut, previous_summary(view) or DROPPED, TRUNCATED, None)

    def _outcome(self, branch: Branch, view: Projection, cut: int, text: str, reason: str, usage: Usage | None) -> Outcome:
        before, count = self.sizes.sum(self.messages(branch)), self.sizes.estimator.text
        gone = self.sizes.sum(view.tail[:cut]) + count(previous_summary(view))
        if count(text) >= gone:
            return Outcome("failed", f"the summaries are longer than what they replace: {gone:,} → {count(text):,} tokens")
        after = before - gone + count(text)
        record = Compaction(text, view.tail[cut].id, cut, before, after, reason, self.name, "user", usage)
        return Outcome("done", reason, record, usage)

    @staticmethod
    def _failed(pair: Pair) -> str:
        return f"{pair.call.name} was called; what came of it is not summarised"
