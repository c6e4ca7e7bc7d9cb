"""The compactor: keep head and tail, summarise the middle, and change nothing when anything is wrong with the summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from agentkit.compaction.cut import Boundary, Keep, find_cut
from agentkit.compaction.prompts import KEEP_LIST, summary_prompt
from agentkit.compaction.transcript import CLIP, clip, flatten
from agentkit.log import Compaction, Placement, Projection
from agentkit.messages import Message, Reply, Request, Usage, user
from agentkit.providers.base import Provider, ProviderError, complete
from agentkit.tokens import PerScript, TextEstimator


@dataclass(frozen=True)
class Outcome:
    """What a compaction came to.

    `done`: `compaction` holds the record to append. `skipped`: there was nothing to gain, no call was made. `failed`: the
    call was made (its `usage` is paid) and its answer refused. Except after `done` the view is unchanged; `reason` says why.
    """

    status: Literal["done", "skipped", "failed"]
    reason: str
    compaction: Compaction | None = None
    usage: Usage | None = None
    request: Request | None = None


@dataclass(frozen=True)
class Compactor:
    """Summarise the middle of a conversation.

    `keep` and `boundary` decide the tail, `keep_list` what the summary must hold, `placement` where it stands: as a system
    message after the system prompt, or in the first user message of the tail. `clip` limits each message in the transcript
    (characters), `max_summary` the summary (tokens; a longer one is clipped, with a note).
    """

    provider: Provider
    keep: Keep = field(default_factory=Keep)
    boundary: Boundary = "user"
    keep_list: Sequence[str] = KEEP_LIST
    placement: Placement = "system"
    clip: int = CLIP
    max_summary: int = 2_000
    estimator: TextEstimator = field(default_factory=PerScript)

    def plan(self, view: Projection) -> int:
        """Return the cut in `view.tail`: how many of its messages would be summarised."""
        return find_cut(view.tail, self.keep, self.boundary, self.estimator.message)

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
        request = self.request(view, cut)
        try:
            reply = complete(self.provider, request)
        except (ProviderError, OSError) as error:  # OSError: a provider that forgot to translate a broken connection
            return Outcome("failed", f"the summary call failed: {error}", request=request)
        return self._judge(view, cut, reply, request, fixed, limit, reason)

    def request(self, view: Projection, cut: int) -> Request:
        """Return the summary call: one user message of plain text, no tools, no thinking, room for `max_summary` tokens.

        Tools would let the model call one instead of writing, and thinking would use up the room for the summary. The price:
        a request without tools shares no prefix with the conversation, so all of it is fresh.
        """
        previous = view.compaction.summary if view.compaction else ""
        prompt = summary_prompt(flatten(view.tail[:cut], self.clip), self.keep_list, previous)
        return Request((user(prompt),), max_output=self.max_summary, thinking=False)

    def _judge(
        self, view: Projection, cut: int, reply: Reply, request: Request, fixed: int, limit: int | None, reason: str
    ) -> Outcome:
        def refuse(why: str) -> Outcome:
            return Outcome("failed", why, usage=reply.usage, request=request)

        if fault := _fault(reply):
            return refuse(fault)
        summary = reply.message.content.strip()
        before = self.estimator.messages(assemble(view))

        def record(text: str) -> tuple[Compaction, int]:
            made = Compaction(text, view.tail[cut].id, cut, before, 0, reason, placement=self.placement, usage=reply.usage)
            return made, self.estimator.messages(assemble(Projection(view.head, made, view.tail[cut:])))

        # Judged as it came, before it is clipped: an echo of the history, cut to size, would still be no summary.
        after = record(summary)[1]
        if after >= before:
            return refuse(f"the summary is longer than what it replaces: {before:,} → {after:,} tokens")
        compaction, after = record(self._shorten(summary))
        if limit is not None and after + fixed > limit:
            return refuse(f"still over the limit: {after + fixed:,} tokens after compaction, limit {limit:,}")
        return Outcome("done", reason, replace(compaction, tokens_after=after), reply.usage, request)

    def _shorten(self, summary: str) -> str:
        """Clip `summary` until it fits; what is left may be denser than the whole, so once is not always enough."""
        short, limit = summary, len(summary)
        while limit > 1 and (tokens := self.estimator.text(short)) > self.max_summary:
            limit = max(1, min(limit - 1, limit * self.max_summary // tokens))
            short = clip(summary, limit)
        return short


_UNFINISHED = {
    "length": "the summary was cut off before its end",
    "overflow": "what is to be summarised does not fit into the summariser's window",
    "refused": "the model refused to write a summary",
}


def _fault(reply: Reply) -> str:
    """Return why the answer is no summary, or nothing. Half a summary would silently lose the other half of the history."""
    if reply.message.tool_calls:
        return "the model called a tool instead of writing a summary"
    if reply.finish in _UNFINISHED:
        return _UNFINISHED[reply.finish]
    return "" if reply.message.content.strip() else "the summary is empty"


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
