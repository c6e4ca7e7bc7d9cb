"""Goose as in its source: one summary of everything visible, and pair summaries made in the background."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.budget import Budget
from agentkit.compaction.compactor import Compactor, summary_message
from agentkit.log import Compaction, Log
from agentkit.messages import Message, assistant, user
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch, write_note
from agentkit.policies.compacting import Whole
from agentkit.policies.pairs import Pair, ask_each, pair_request, pairs
from agentkit.policies.viewing import Answer

SHARE = 0.8
DROPPED_SHARES = (0, 10, 20, 50, 100)
"""Percent of the tool results that are taken out, one try after the other, when the summary call does not fit."""
BATCH = 10
ANSWERED = "I know the work so far from the summary above and go on from there."
IN_A_LOOP = "I was in the middle of the work; I go on with the next step."


@dataclass(frozen=True)
class Quirks:
    """What the source does and hardly anybody wants; all of it happens unless switched off.

    `once_a_turn`: the size is checked when the user has spoken, and not again in the loop of calls. `whole_messages`: to
    hide a pair its messages are hidden, and with them the other calls of a batch.
    """

    once_a_turn: bool = True
    whole_messages: bool = True


class Goose(Whole):
    """Above 80 % of the window one summary of all that is visible; only the user's last text stays.

    Source: Goose @36cb569e (2026-07-20), crates/goose/src/context_mgmt. The summary is a user message, an assistant message
    goes on from it, and the newest user message (if it is text only) comes last. When the summary call does not fit, 10, 20,
    50, 100 % of the tool results are taken out of it, from the middle outwards.

    Beside that, pair summaries: when more than cutoff + 10 calls are visible (not counting this turn's), the oldest 10 are
    summarised one after the other in the background; each summary then stands where its pair stood. The cutoff grows with
    the window (10 at 32k, 24 at 200k, 120 at 1M). Each batch costs the cached prefix once.

    Simplified: "in the background" is before the request, with effect after its answer; the prompt's nine sections are this
    package's list; the fast model is the same model.
    """

    name = "Goose"
    year, source = "2026-07", "Goose @36cb569e"
    note = "above 80 % one summary of everything; pair summaries in batches of 10"

    def __init__(
        self,
        compactor: Compactor,
        share: float = SHARE,
        quirks: Quirks | None = None,
        *,
        pair_summaries: bool = True,
        batch: int = BATCH,
    ) -> None:
        super().__init__(compactor)
        self.share, self.quirks = share, quirks or Quirks()
        self.pair_summaries, self.batch = pair_summaries, batch

    def threshold(self, budget: Budget) -> int:
        """Return the first size above the share."""
        return int(budget.limit * self.share) + 1

    def is_due(self, branch: Branch, situation: Situation) -> bool:
        """Say whether to compact now: only at the start of a turn."""
        at_start = branch.body[-1].role == "user"
        return super().is_due(branch, situation) and (at_start or not self.quirks.once_a_turn)

    def decide(self, log: Log, situation: Situation) -> Compaction | None:
        """Compact when it is due, else summarise the oldest pairs when there are many."""
        record = super().decide(log, situation)
        branch = self.branch(log)
        if record is None and self.pair_summaries and branch.body and branch.body[-1].role == "user":
            self._summarise_pairs(log, branch, situation)
        return record

    def summary_of(self, gone: Sequence[Message], situation: Situation) -> Answer:
        """Ask; on an overflow take out ever more tool results and ask again."""
        answer = Answer(fault="not asked")
        for percent in DROPPED_SHARES:
            answer = self.summarise(without_results(gone, percent))
            if not answer.overflow:
                break
        return answer

    def opening(self, before: Sequence[Message], compaction: Compaction) -> Sequence[Message]:
        """Return the summary, a word to go on, and the newest text of the user."""
        newest = next((m for m in reversed(before) if m.role == "user"), None)
        summary = summary_message(compaction)
        if newest is None or newest.images or not newest.content.strip():
            return (summary,)
        told = ANSWERED if before[-1] is newest else IN_A_LOOP
        return (summary, assistant(told), newest)

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return what `Whole` shows, with the summaries of hidden pairs in their place."""
        shown = super().messages(branch)
        texts = {key: text for data, place in branch.notes(self.name) for key, text in _effective(branch, data, place)}
        return self._hidden(shown, texts) if texts else shown

    # ------------------------------------------------------------------------------------------------------ pair summaries

    def _summarise_pairs(self, log: Log, branch: Branch, situation: Situation) -> None:
        old = [p for p in pairs(self.messages(branch)) if p.caller.id]
        if len(old) <= cutoff(situation.budget.limit, self.share) + self.batch:
            return
        chosen = old[: self.batch]
        situation.report(f"summarising {len(chosen)} pairs in the background …")
        answers = ask_each(self.provider, [pair_request(p, clip=self.clip) for p in chosen], 1)
        done = [[*_key(p), a.text] for p, a in zip(chosen, answers, strict=True) if not a.fault]
        if done:
            write_note(log, self.name, pairs=done)

    def _hidden(self, shown: Sequence[Message], texts: dict[tuple[str, str], str]) -> list[Message]:
        """Hide the pairs that have a summary, and put the summary where the pair stood."""
        found = [p for p in pairs(shown) if _key(p) in texts]
        after: dict[int, list[Message]] = {}
        gone: set[int] = set()
        calls: dict[int, set[str]] = {}
        for pair in found:
            after.setdefault(pair.place, []).append(user(texts[_key(pair)]))
            gone.add(id(pair.result))
            calls.setdefault(pair.place, set()).add(pair.call.id)
        kept: list[Message] = []
        for i, message in enumerate(shown):
            if i in calls:
                kept += [*self._without(message, calls[i]), *after[i]]
            elif id(message) not in gone:
                kept.append(message)
        return kept

    def _without(self, message: Message, ids: set[str]) -> list[Message]:
        left = tuple(c for c in message.tool_calls if c.id not in ids)
        if self.quirks.whole_messages or not (left or message.content.strip()):
            return []
        return [replace(message, tool_calls=left)]


def cutoff(limit: int, share: float = SHARE) -> int:
    """Return how many calls stay as they are: 3 for each 20,000 tokens of the threshold, from 10 to 500."""
    return min(max(3 * int(limit * share) // 20_000, 10), 500)


def without_results(messages: Sequence[Message], percent: int) -> list[Message]:
    """Return `messages` without `percent` % of the tool results (at least one), from the middle outwards."""
    results = [i for i, m in enumerate(messages) if m.role == "tool"]
    count = max(1, len(results) * percent // 100) if percent else 0
    middle = (len(results) - 1) / 2
    out = {results[i] for i in sorted(range(len(results)), key=lambda i: (abs(i - middle), i))[:count]}
    return [m for i, m in enumerate(messages) if i not in out]


def _key(pair: Pair) -> tuple[str, str]:
    return pair.caller.id, pair.call.id


def _effective(branch: Branch, data: dict[str, Any], place: int) -> list[tuple[tuple[str, str], str]]:
    """Return the summaries of a note once the answer to the request has come in whose background they were made."""
    if not any(m.role == "assistant" for m in branch.body[place:]):
        return []
    return [((caller, call), text) for caller, call, text in data["pairs"]]
