"""AutoGPT of May and June 2023: a running summary in the head, made anew in every step, later only of what left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from agentkit.compaction.compactor import Compactor
from agentkit.compaction.prompts import summary_prompt
from agentkit.compaction.transcript import flatten
from agentkit.log import Compaction, Log
from agentkit.messages import Message, Request, Usage, system, user
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch, own_note, write_note
from agentkit.policies.filling import FOR_THE_ANSWER, TOKEN_LIMIT, clock, fill, time_message
from agentkit.policies.viewing import Answer, Viewing, added, ask

REMINDER = "This reminds you of these events from your past: \n"
FIRST = "I was created."
NOTHING_NEW = "Nothing new happened."
_MANNER = "The summary is a running one: concise, in the first person and the past tense.\n\n"


@dataclass(frozen=True)
class Quirks:
    """What the source does and hardly anybody wants; all of it happens unless switched off.

    `every_step`: the model is asked in every step, also when nothing left the window. `first_never`: the first message is
    never summarised. `by_equality`: a message that left is overlooked if one with the same text is still in the window, and
    the place up to which all is summarised is that of the first message with the same text. `whole_message`: the summary so
    far is handed on as the whole message around it, written out as a Python dict.
    """

    every_step: bool = True
    first_never: bool = True
    by_equality: bool = True
    whole_message: bool = True


class AutoGptEveryStep(Viewing):
    """Fill a small window newest first, and rewrite the summary of what does not fit in every step.

    Source: AutoGPT v0.3.0 (d8f5cdbb, 2023-05-02), autogpt/chat.py, memory_management/summary_memory.py. 500 tokens are set
    aside for the summary, whose length nobody limits. The summary stands in the head, so every step changes the prefix.

    Simplified: what the user said is left out of the events, as there; renaming the roles in them (with its
    fault of skipping the message behind a removed one) and taking the thoughts out of a JSON reply have no counterpart. The
    newest user message and what waits for an answer are always sent.
    """

    name = "AutoGPT 2023-05"
    year: ClassVar[str] = "2023-05"
    source: ClassVar[str] = "AutoGPT v0.3.0 (d8f5cdbb)"
    note: ClassVar[str] = "a running summary in the head, rewritten in every step"
    reserved: ClassVar[int] = 500
    cycles: ClassVar[bool] = False

    def __init__(
        self,
        compactor: Compactor,
        token_limit: int = TOKEN_LIMIT,
        quirks: Quirks | None = None,
        *,
        tell_time: Callable[[int], str] = clock,
    ) -> None:
        super().__init__(compactor.estimator)
        self.provider, self.keep_list, self.clip = compactor.provider, compactor.keep_list, compactor.clip
        self.max_summary, self.token_limit, self.tell_time = compactor.max_summary, token_limit, tell_time
        self.quirks = quirks or self.default_quirks()

    @classmethod
    def default_quirks(cls) -> Quirks:
        """Return the quirks of this version."""
        return Quirks()

    def decide(self, log: Log, situation: Situation) -> Compaction | None:
        """Fold what left the window since the last time into the summary."""
        branch = self.branch(log)
        chosen = self._chosen(branch) if branch.body else []
        new = self._new(branch, chosen)
        if not chosen or not (new or self.quirks.every_step):
            return None
        events = [branch.body[i] for i in new if branch.body[i].role != "user"]
        answer = self._summarised(self._so_far(branch), events)
        if answer.fault:
            situation.report(f"the running summary stays as it was: {answer.fault}")
            return None
        if new:
            write_note(log, self.name, summarised=self._place(branch, new[-1]))
        kept = next((branch.body[i].id for i in chosen if branch.body[i].role != "system"), branch.body[0].id)
        before, text = self.sizes.sum(self.messages(branch)), self.sizes.estimator.text(answer.text)
        return Compaction(answer.text, kept, len(new), before, before + text, "step", self.name, usage=answer.usage)

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return head, time, summary, and what fits."""
        base = [*branch.head, time_message(len(branch.body), self.tell_time)]
        if branch.newest:
            base.append(system(REMINDER + branch.newest[0].summary))
        return [*base, *(branch.body[i] for i in self._chosen(branch))]

    def _chosen(self, branch: Branch) -> list[int]:
        base = [*branch.head, time_message(len(branch.body), self.tell_time)]
        room = self.token_limit - FOR_THE_ANSWER - self.reserved - self.sizes.sum(base)
        return fill(branch.body, self.sizes, room, cycles=branch.rounds if self.cycles else None)

    def _new(self, branch: Branch, chosen: Sequence[int]) -> list[int]:
        """Return the positions of what is neither summarised nor in the window."""
        notes = (own_note(entry.text, self.name) for entry in reversed(branch.entries) if entry.kind == "note")
        last = next((data["summarised"] for data in notes if data), None)
        if last is None:
            last = 0 if self.quirks.first_never else -1
        shown = set(chosen)
        out = [i for i in range(last + 1, len(branch.body)) if i not in shown]
        if not (out and self.quirks.by_equality):
            return out
        texts = {_same(branch.body[i]) for i in chosen}
        return [i for i in out if _same(branch.body[i]) not in texts]

    def _place(self, branch: Branch, last: int) -> int:
        if not self.quirks.by_equality:
            return last
        wanted = _same(branch.body[last])
        return next(i for i, m in enumerate(branch.body) if _same(m) == wanted)

    def _so_far(self, branch: Branch) -> str:
        if branch.newest is None:
            return FIRST
        text = branch.newest[0].summary
        return str({"role": "system", "content": REMINDER + text}) if self.quirks.whole_message else text

    def _summarised(self, so_far: str, events: Sequence[Message]) -> Answer:
        """Return the new summary; here by one call for everything."""
        return self._ask(so_far, events)

    def _ask(self, so_far: str, events: Sequence[Message]) -> Answer:
        transcript = flatten(events, self.clip) if events else NOTHING_NEW
        prompt = summary_prompt(transcript, self.keep_list, so_far)
        return ask(self.provider, Request((user(_MANNER + prompt),), max_output=self.max_summary, thinking=False))


class AutoGptBatches(AutoGptEveryStep):
    """The same, only when something left the window, by whole rounds, and in batches that the summariser can read.

    Source: AutoGPT #4652 (bc5dbb66, 2023-06-11) and #4670, as of v0.4.4 (2240033b), memory/message_history.py. A batch may
    have limit − 100 − summary tokens. 500 more tokens are set aside for functions.

    `empty_batch`: in front of an event that is too large for any batch, an empty batch is summarised, and then the event is
    sent alone all the same. Simplified: as in `AutoGptEveryStep`.
    """

    name = "AutoGPT 2023-06"
    year = "2023-06"
    source = "AutoGPT #4652 (bc5dbb66), v0.4.4 (2240033b)"
    note = "a running summary in the head, in batches of what left the window"
    reserved = 1_000
    cycles = True
    empty_batch: bool = True

    @classmethod
    def default_quirks(cls) -> Quirks:
        """Return the quirks that were left."""
        return Quirks(every_step=False, whole_message=False)

    def _summarised(self, so_far: str, events: Sequence[Message]) -> Answer:
        usages: list[Usage | None] = []
        for batch in self._batches(so_far, events):
            answer = self._ask(so_far, batch)
            usages.append(answer.usage)
            if answer.fault:
                return replace(answer, usage=added(usages))
            so_far = answer.text
        return Answer(so_far, added(usages))

    def _batches(self, so_far: str, events: Sequence[Message]) -> list[list[Message]]:
        text = self.sizes.estimator.text
        room = self.token_limit - 100 - text(so_far)
        batches, size = [list[Message]()], 0
        for event in events:
            tokens = text(flatten([event], self.clip))
            if size + tokens > room and (batches[-1] or self.empty_batch):
                batches.append([])
                size = 0
            batches[-1].append(event)
            size += tokens
        return batches


def _same(message: Message) -> tuple[object, ...]:
    """Return what makes two messages equal for AutoGPT, which had neither ids nor calls: role and text."""
    return message.role, message.content, tuple((c.name, c.arguments) for c in message.tool_calls)
