"""The compactor: keep head and tail, summarise the middle, and change nothing when anything is wrong with the summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from agentkit.compaction.calls import Calls, Draft
from agentkit.compaction.cut import Boundary, Keep, find_cut
from agentkit.compaction.prompts import KEEP_LIST, summary_prompt
from agentkit.compaction.transcript import CLIP, clip, flatten
from agentkit.log import Compaction, Placement, Projection, with_question
from agentkit.messages import Message, Request, Usage, user
from agentkit.providers.base import Provider
from agentkit.recovery.learned import Learned
from agentkit.tokens import PerScript, TextEstimator

_ROOM_FOR_TAIL = 0.9
"""The rest is for the summary."""


@dataclass(frozen=True)
class Outcome:
    """What a compaction came to.

    `done`: `compaction` holds the record to append. `skipped`: there was nothing to gain, no call was made. `failed`: the
    call was made (its `usage` is paid) and its answer refused. Except after `done` the view is unchanged; `reason` says why.
    `request` is the last summary call, `calls` how many there were.
    """

    status: Literal["done", "skipped", "failed"]
    reason: str
    compaction: Compaction | None = None
    usage: Usage | None = None
    request: Request | None = None
    calls: int = 0


@dataclass(frozen=True)
class Compactor:
    """Summarise the middle of a conversation.

    `keep` and `boundary` decide the tail, `keep_list` what the summary must hold, `placement` where it stands: as a system
    message after the system prompt, or in the first user message of the tail. `clip` limits each message in the transcript
    (characters), `max_summary` the summary (tokens; a longer one is clipped, with a note). `terse` above 0 says a length in
    the prompt: half of it, a quarter …; `fold`: a history that the summariser's window does not hold is summarised in
    chunks, each with the summary so far; `learned` is what overflows have taught about the summariser.
    """

    provider: Provider
    keep: Keep = field(default_factory=Keep)
    boundary: Boundary = "user"
    keep_list: Sequence[str] = KEEP_LIST
    placement: Placement = "system"
    clip: int = CLIP
    max_summary: int = 2_000
    estimator: TextEstimator = field(default_factory=PerScript)
    terse: int = 0
    fold: bool = False
    learned: Learned = field(default_factory=Learned, compare=False)

    def plan(self, view: Projection) -> int:
        """Return the cut in `view.tail`: how many of its messages would be summarised."""
        cut = find_cut(view.tail, self.keep, self.boundary, self.estimator.message)
        # The question of a running turn stays; where it is all that the cut takes away, nothing is taken away.
        return cut if len(with_question(view.tail, cut)) < len(view.tail) else 0

    def pressed(self, view: Projection, room: int, harsher: int = 0) -> Compactor | None:
        """Return the compactor for a view that has to fit into `room` tokens: `harsher` times less kept, a terser summary.

        Where that keeps too much the tail is the last turn, and then a part of it: a cut may lie inside a turn. None when
        even then too much has to stay word for word: no summary can help, so none is paid for.
        """
        keep = self.keep.less(harsher)
        ways: tuple[tuple[Boundary, Keep], ...] = (
            (self.boundary, keep),
            ("user", Keep(1, "turns")),
            ("pair", keep),
            ("pair", Keep(1, "messages")),
        )
        made = [
            replace(self, keep=kept, boundary=boundary, terse=self.terse + harsher, fold=True) for boundary, kept in ways
        ]
        return next((one for one in made if one.plan(view) and one._kept(view) <= _ROOM_FOR_TAIL * room), None)

    def _kept(self, view: Projection) -> int:
        return self.estimator.messages((*view.head, *with_question(view.tail, self.plan(view))))

    def compact(self, view: Projection, *, fixed: int = 0, limit: int | None = None, reason: str = "threshold") -> Outcome:
        """Try to replace the middle of `view` by a summary.

        `fixed` are the tokens of the tool specs, `limit` the most that the new view may hold with them (None: no limit).
        Never raises for a failed call: the outcome says what happened.
        """
        cut = self.plan(view)
        if cut == 0:
            return Outcome(
                "skipped", f"nothing to summarise: keeping {self.keep} (boundary: {self.boundary}) keeps everything"
            )
        calls = Calls(
            self.provider,
            self._build,
            self.estimator.request,
            self.learned,
            terse=self.terse,
            clip=self.clip,
            fold=self.fold,
        )
        summary = calls.write(view.tail[:cut], view.compaction.summary if view.compaction else "")
        outcome = self._judge(view, cut, summary, calls.usage, fixed, limit, reason) if summary else calls.fault
        if isinstance(outcome, str):
            return Outcome("failed", outcome, usage=calls.usage, request=calls.request, calls=calls.made)
        return Outcome("done", reason, outcome, calls.usage, calls.request, calls.made)

    def request(self, view: Projection, cut: int) -> Request:
        """Return the summary call: one user message of plain text, no tools, no thinking, room for `max_summary` tokens.

        Tools would let the model call one instead of writing, and thinking would use up the room for the summary. The price:
        a request without tools shares no prefix with the conversation, so all of it is fresh.
        """
        previous = view.compaction.summary if view.compaction else ""
        return self._build(Draft(view.tail[:cut], previous, self.terse, self.clip))

    def _build(self, draft: Draft) -> Request:
        most = draft.most_output or 2 * self.max_summary
        terse = max(draft.terse, int(most < self.max_summary))
        # A model that is told a length keeps to it roughly; so it gets twice the room, and the summary is clipped anyway.
        words = min(self.max_summary, most) * 2 // (3 * 2**terse) if terse else 0
        prompt = summary_prompt(flatten(draft.messages, draft.clip), self.keep_list, draft.previous, words)
        room = min(self.max_summary * (2 if terse else 1), most)
        return Request((user(prompt),), max_output=room, thinking=False)

    def _judge(
        self, view: Projection, cut: int, summary: str, usage: Usage | None, fixed: int, limit: int | None, reason: str
    ) -> Compaction | str:
        """Return the record for `summary`, or why it is refused."""
        before = self.estimator.messages(assemble(view))

        def record(text: str) -> tuple[Compaction, int]:
            made = Compaction(text, view.tail[cut].id, cut, before, 0, reason, placement=self.placement, usage=usage)
            return made, self.estimator.messages(assemble(Projection(view.head, made, with_question(view.tail, cut))))

        # Judged as it came, before it is clipped: an echo of the history, cut to size, would still be no summary.
        after = record(summary)[1]
        if after >= before:
            return f"the summary is longer than what it replaces: {before:,} → {after:,} tokens"
        compaction, after = record(self._shorten(summary))
        if limit is not None and after + fixed > limit:
            return f"still over the limit: {after + fixed:,} tokens after compaction, limit {limit:,}"
        return replace(compaction, tokens_after=after)

    def _shorten(self, summary: str) -> str:
        """Clip `summary` until it fits; what is left may be denser than the whole, so once is not always enough."""
        short, limit = summary, len(summary)
        while limit > 1 and (tokens := self.estimator.text(short)) > self.max_summary:
            limit = max(1, min(limit - 1, limit * self.max_summary // tokens))
            short = clip(summary, limit)
        return short


_SYSTEM_OPENING = (
    "[Summary of the earlier conversation. The original messages are left out to save context; "
    "what they established is listed here, their wording is not.]"
)
_USER_OPENING = "The conversation before this point was compacted. This is what it established; its wording is not kept."


def summary_message(compaction: Compaction) -> Message:
    """Return the message that stands for what was summarised, with its one header."""
    if compaction.placement == "system":
        return Message("system", f"{_SYSTEM_OPENING}\n\n{compaction.summary}", id=f"summary-{compaction.first_kept}")
    text = f"{_USER_OPENING}\n\n<summary>\n{compaction.summary}\n</summary>"
    return Message("user", text, id=f"summary-{compaction.first_kept}")


def assemble(view: Projection) -> tuple[Message, ...]:
    """Return the messages of `view` in order: head, summary, tail.

    A summary placed as a user message is merged into a tail that starts with one: two user messages in a row are refused by
    some chat templates.
    """
    if view.compaction is None:
        return view.head + view.tail
    summary = summary_message(view.compaction)
    if summary.role == "user" and view.tail and view.tail[0].role == "user":
        first = view.tail[0]
        return (*view.head, replace(first, content=f"{summary.content}\n\n{first.content}"), *view.tail[1:])
    return (*view.head, summary, *view.tail)
