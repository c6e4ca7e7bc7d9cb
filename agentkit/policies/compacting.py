"""Policies that append only, and replace what is old by one summary when a threshold is reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from agentkit.budget import Budget
from agentkit.compaction.compactor import Compactor, Outcome, assemble
from agentkit.compaction.prompts import summary_prompt
from agentkit.compaction.transcript import flatten
from agentkit.log import Compaction, Log, Placement, Projection, with_question
from agentkit.messages import Message, Request, user
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch
from agentkit.policies.viewing import Answer, Viewing, ask


class Compacting(Viewing):
    """The frame: when it is due, summarise, judge, record. A failed call changes nothing.

    After a failure the next try waits for the next turn, and after three in a row for the context to grow by a fifth: a
    summariser that is down must not be called before every request. A compaction that is forced (the provider refused the
    request) waits for nothing.
    """

    keep_list: ClassVar[tuple[str, ...]] = ()
    placement: ClassVar[Placement] = "user"

    def __init__(self, compactor: Compactor) -> None:
        super().__init__(compactor.estimator)
        self.provider, self.max_summary, self.clip = compactor.provider, compactor.max_summary, compactor.clip
        self.keep = self.keep_list or tuple(compactor.keep_list)
        self._failures = 0
        self._failed_at: tuple[str, int] | None = None

    def threshold(self, budget: Budget) -> int:
        """Return the estimate from which on a compaction is due."""
        raise NotImplementedError

    def is_due(self, branch: Branch, situation: Situation) -> bool:
        """Say whether to compact now."""
        return situation.estimate >= self.threshold(situation.budget)

    def compact(self, branch: Branch, situation: Situation) -> Outcome:
        """Make the summary call, or several, and return what came of it."""
        raise NotImplementedError

    def decide(self, log: Log, situation: Situation) -> Compaction | None:
        """Compact when it is due; report every attempt and its outcome."""
        branch, forced = self.branch(log), situation.forced
        if not branch.body or not (forced or self.is_due(branch, situation) and not self._must_wait(branch, situation)):
            return None
        outcome = self.compact(branch, situation)
        situation.report(outcome)
        if outcome.status == "failed":
            self._failures, self._failed_at = self._failures + 1, (branch.turn, situation.estimate)
        elif outcome.status == "done":
            self._failures, self._failed_at = 0, None
        return outcome.compaction

    def _must_wait(self, branch: Branch, situation: Situation) -> bool:
        if self._failed_at is None:
            return False
        turn, size = self._failed_at
        return turn == branch.turn or (self._failures >= 3 and situation.estimate < 1.2 * size)

    # ------------------------------------------------------------------------------------------------- what subclasses use

    def summary_request(self, messages: Sequence[Message], previous: str = "", *, clip: int | None = None) -> Request:
        """Return the summary call for `messages`, as plain text, each clipped at `clip` characters."""
        prompt = summary_prompt(flatten(messages, self.clip if clip is None else clip), self.keep, previous)
        return Request((user(prompt),), max_output=self.max_summary, thinking=False)

    def summarise(self, messages: Sequence[Message], previous: str = "", *, clip: int | None = None) -> Answer:
        """Ask for a summary of `messages`."""
        return ask(self.provider, self.summary_request(messages, previous, clip=clip))

    def judged(
        self, branch: Branch, first_kept: str, gone: Sequence[Message], answer: Answer, reason: str = "threshold"
    ) -> Outcome:
        """Return the outcome of a summary that stands for `gone`: refused when it failed, or is no shorter than that."""
        if answer.fault:
            return Outcome("failed", answer.fault, usage=answer.usage)
        before, after = self.sizes.sum(gone), self.sizes.estimator.text(answer.text)
        if branch.newest:  # the summary in force is replaced too
            before += self.sizes.estimator.text(branch.newest[0].summary)
        if after >= before:
            fault = f"the summary is longer than what it replaces: {before:,} → {after:,} tokens"
            return Outcome("failed", fault, usage=answer.usage)
        whole = self.sizes.sum(branch.head) + self.sizes.sum(self._shown(branch))
        record = Compaction(
            answer.text,
            first_kept,
            len(gone),
            whole,
            whole - before + after,
            reason,
            self.name,
            self.placement,
            answer.usage,
        )
        return Outcome("done", reason, record, answer.usage)

    def _shown(self, branch: Branch) -> Sequence[Message]:
        return self.messages(branch)[len(branch.head) :]


class Whole(Compacting):
    """Compacting with no tail: everything up to now goes into the summary, and `opening` says what stands in its place."""

    def opening(self, before: Sequence[Message], compaction: Compaction) -> Sequence[Message]:
        """Return what is shown of `before`, the messages that were there when `compaction` was made."""
        raise NotImplementedError

    def compact(self, branch: Branch, situation: Situation) -> Outcome:
        """Summarise all that the model sees after the system prompt; an older summary is part of it."""
        gone = self._shown(branch)
        situation.report(f"summarising {len(gone)} messages …")
        # The record has to name a message. What it names is not shown any more, and a system note may not be named.
        last = next(m.id for m in reversed(branch.body) if m.role != "system")
        return self.judged(branch, last, gone, self.summary_of(gone, situation))

    def summary_of(self, gone: Sequence[Message], situation: Situation) -> Answer:
        """Ask for the summary of `gone`."""
        return self.summarise(gone)

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return head, opening, and what came since the compaction."""
        if branch.newest is None or branch.newest[0].policy != self.name:
            return assemble(projected(branch))
        compaction, place = branch.newest
        return (*branch.head, *self.opening(branch.body[:place], compaction), *branch.body[place:])


class KeepingTail(Compacting):
    """Compacting with a tail that stays word for word: head, summary, and the messages from the cut on.

    The question of a running turn stays too, also when the cut lies behind it.
    """

    def cut(self, tail: Sequence[Message], situation: Situation) -> int:
        """Return the position in `tail` of the first message to keep; 0: there is nothing to summarise."""
        raise NotImplementedError

    def compact(self, branch: Branch, situation: Situation) -> Outcome:
        """Summarise what stands before the cut, with the summary in force folded in."""
        view = projected(branch)
        cut = self.cut(view.tail, situation)
        if cut <= 0 or len(with_question(view.tail, cut)) >= len(view.tail):
            return Outcome("skipped", "nothing to summarise: everything is kept")
        situation.report(f"summarising {cut} messages …")
        return self.judged(branch, view.tail[cut].id, view.tail[:cut], self.summary_of(view, cut, situation))

    def summary_of(self, view: Projection, cut: int, situation: Situation) -> Answer:
        """Ask for the summary of the tail up to `cut`."""
        return self.summarise(view.tail[:cut], previous_summary(view))

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return head, summary in force and tail."""
        return assemble(projected(branch))


def projected(branch: Branch) -> Projection:
    """Return the branch as its newest compaction leaves it: head, compaction, tail (the same as `log.project`)."""
    if branch.newest is None:
        return Projection(branch.head, None, branch.body)
    compaction, known = branch.newest
    return Projection(branch.head, compaction, with_question(branch.body, branch.start(compaction), known))


def previous_summary(view: Projection) -> str:
    """Return the summary in force, or nothing."""
    return view.compaction.summary if view.compaction else ""


def fitting(messages: Sequence[Message], tokens: int, sizes: Sequence[int]) -> int:
    """Return the first position from which everything to the end fits into `tokens`; `sizes` are those of the messages."""
    for i in range(len(messages) - 1, -1, -1):
        tokens -= sizes[i]
        if tokens < 0:
            return i + 1
    return 0
