"""Anthropic's server-side editing: the oldest tool results give way to a placeholder once the input is large."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from agentkit.messages import Message
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch
from agentkit.policies.edited import Edited
from agentkit.policies.viewing import Viewing
from agentkit.tokens import TextEstimator

PLACEHOLDER = "[cleared to save context]"


class ServerSideEditing(Viewing):
    """Clear old tool uses: above `trigger` tokens every tool result but those of the last `keep` uses is replaced.

    Source: Anthropic's context editing page (`clear_tool_uses_20250919`), read 2026-08-21; the defaults are its defaults.
    `clear_at_least`: do nothing unless that many tokens go. `exclude_tools` names tools whose results stay.
    `clear_inputs` empties the arguments of the cleared calls as well. `fixed` are the tokens of the tool specs, which the
    log does not hold.

    The rule is applied to what the client sends, which is always the whole history: above the trigger each new tool use
    clears one more. `batches` reads the page another way: only what is left after the earlier edits is measured, so that the
    prefix stays until the trigger is reached again. The page does not say which of the two it is.

    Simplified: the server counts exactly, here `estimator` counts; thinking blocks are not cleared.
    """

    name = "server-side editing"
    year, source = "2025-09", "Anthropic API, clear_tool_uses_20250919 (documentation of 2026-08-21)"
    note = "above 100,000 tokens tool results but the last 3 are cleared"

    def __init__(
        self,
        trigger: int = 100_000,
        keep: int = 3,
        clear_at_least: int = 0,
        exclude_tools: Collection[str] = (),
        *,
        clear_inputs: bool = False,
        batches: bool = False,
        fixed: int = 0,
        estimator: TextEstimator | None = None,
    ) -> None:
        super().__init__(estimator)
        self.trigger, self.keep, self.clear_at_least = trigger, keep, clear_at_least
        self.exclude_tools, self.clear_inputs, self.batches, self.fixed = exclude_tools, clear_inputs, batches, fixed
        self._cleared = Edited(lambda message: PLACEHOLDER)

    def decide(self, log: object, situation: Situation) -> None:
        """Record nothing: the server does the same again with every request."""

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return the branch with what the server would clear cleared."""
        gone = self._in_batches(branch) if self.batches else self._at(branch, len(branch.body), frozenset())
        if not gone:
            return [*branch.head, *branch.body]
        shown = [self._cleared(m) if i in gone else m for i, m in enumerate(branch.body)]
        return [*branch.head, *(self._without_inputs(branch.body, gone, shown) if self.clear_inputs else shown)]

    def _at(self, branch: Branch, end: int, gone: frozenset[int]) -> frozenset[int]:
        """Return the positions that are cleared in a request that ends at `end`, where `gone` are cleared already."""
        size = self.fixed + self.sizes.sum(branch.head) + self.sizes.sum(branch.body[:end])
        if size - sum(self._freed(branch.body[i]) for i in gone) <= self.trigger:
            return gone
        names = {c.id: c.name for m in branch.body[:end] for c in m.tool_calls}
        uses = [i for i, m in enumerate(branch.body[:end]) if m.role == "tool"]
        old = uses[: max(0, len(uses) - self.keep)]
        new = {i for i in old if names.get(branch.body[i].tool_call_id) not in self.exclude_tools} - gone
        freed = sum(self._freed(branch.body[i]) for i in new)
        return gone | new if new and freed >= self.clear_at_least else gone

    def _in_batches(self, branch: Branch) -> frozenset[int]:
        """Walk through all requests up to now: each sees what the ones before it left."""
        gone: frozenset[int] = frozenset()
        for end in [*(i for i, m in enumerate(branch.body) if m.role == "assistant"), len(branch.body)]:
            gone = self._at(branch, end, gone)
        return gone

    def _freed(self, message: Message) -> int:
        return max(0, self.sizes(message) - self.sizes(self._cleared(message)))

    def _without_inputs(self, body: Sequence[Message], gone: frozenset[int], shown: Sequence[Message]) -> list[Message]:
        ids = {body[i].tool_call_id for i in gone}
        return [self._empty(m, ids) if any(c.id in ids for c in m.tool_calls) else m for m in shown]

    def _empty(self, message: Message, ids: set[str]) -> Message:
        return replace(
            message, tool_calls=tuple(replace(c, arguments="{}") if c.id in ids else c for c in message.tool_calls)
        )
