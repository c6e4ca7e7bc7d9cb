"""What one agent does about overflows: the steps left for the present request, and what it has learned and said."""

from __future__ import annotations

from dataclasses import replace

from agentkit.compaction.compactor import Outcome
from agentkit.events import Notice, Recovered
from agentkit.log import Compaction
from agentkit.messages import Reply, Request
from agentkit.providers.base import ProviderError
from agentkit.recovery import overflow, truncation
from agentkit.recovery.guard import Guard, Verdict, largest
from agentkit.recovery.host import Host
from agentkit.recovery.learned import Learned
from agentkit.recovery.overflow import Sizes, is_overflow, sizes_of
from agentkit.recovery.steps import KEEP_LAST, Recovery, Step

LEAST_OUTPUT = 1_024
"""Tokens. With less room than this for the answer it is better to compact than to ask for a shorter answer."""
_SMALLER = 0.95
"""A request that was refused is not sent again with more than this share of its size."""


class Rescue:
    """The recovery of one agent. `window` is the server's, in tokens, if it is known; errors may teach it.

    `due`: why a compaction has to come before the next request (empty: it has not). `room`: the output that
    fits beside the prompt (None: whatever is asked for).
    """

    def __init__(self, agent: Host, recovery: Recovery, window: int | None = None) -> None:
        self.agent, self.recovery = agent, recovery
        self.guard = Guard(recovery.share, stop=recovery.stop)
        self.learned, self._window = Learned(), window
        self.due = ""
        self.room: int | None = None
        self._steps: list[Step] = []
        self._refused = self._reason = ""
        self._failures = self._asks = 0
        self._failed_at: tuple[int, int] | None = None
        self._outcome: Outcome | None = None
        self._last: tuple[Request, int, int] | None = None

    @property
    def window(self) -> int | None:
        """Return the window by our own count; None: not known."""
        return self.learned.of(self.agent.provider.model).room or self._window

    @property
    def output(self) -> int | None:
        """Return the output to ask for, in tokens: what the agent wants, but never more than half of a known window."""
        if self.agent.max_output is None:
            return self.room
        sizes = [self.agent.max_output, self.room, self.window and max(1, self.window // 2)]
        return min(size for size in sizes if size)

    # --- before and after a request ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a new request: all steps are there again."""
        self._asks += 1
        self._steps, self.room = list(self.recovery.steps), None

    def check(self, estimate: int) -> None:
        """Raise `ProviderError` (`overflow`) instead of sending a request that is known to be too long."""
        if not self.recovery.steps:
            return
        if self.window and estimate > self.window:
            text = f"the request needs about {estimate:,} tokens, the window holds {self.window:,}"
            raise ProviderError(text, kind="overflow")
        if self._refused and estimate > self.agent.budget.limit:
            limit = self.agent.budget.limit
            text = f"the request needs about {estimate:,} tokens, the budget allows {limit:,}; compaction: {self._refused}"
            raise ProviderError(text, kind="overflow")

    def examine(self, request: Request, estimate: int, reply: Reply) -> bool:
        """Look at an answer; say whether its bill may be learned from.

        Raises `ProviderError` (`overflow`) for an answer that is none, because the window was full.
        """
        if overflow.came_with_nothing(reply):
            raise ProviderError("the window was full before a word was said", kind="overflow", status=200)
        if overflow.cut_by_context(reply, request, self.window):
            self._must_compact("the answer before was cut off by the window")
        if reply.usage is None or not self.recovery.steps:
            return reply.usage is not None
        before = None
        if self._last and request.messages[: len(self._last[0].messages)] == self._last[0].messages:
            before = self._last[1:]
        self._last = (request, estimate, reply.usage.prompt)
        pictures = any(m.images for m in request.messages)
        why = "" if pictures else overflow.silent_truncation(estimate, reply.usage, before, self._window)
        if why:
            self._must_compact("the server seems to have dropped a part of the prompt")
            text = f"suspected silent truncation: {why}. The answer may rest on a part of the conversation only"
            self._say(self.guard.once("silent", text))
        return not why

    # --- compactions ------------------------------------------------------------------------------------------------------

    def heard(self, outcome: Outcome) -> None:
        """Note the outcome of an attempt to compact."""
        self._outcome = outcome
        if outcome.status == "done":
            self._refused, self._failures = "", 0
            self.guard.helped()
            return
        self._refused = outcome.reason
        if outcome.status == "failed":
            self._failures += 1
            self._failed_at = (self.agent.estimate(), 0)
            if self._failures == 3 and self.recovery.steps:
                self._say(self.guard.unavailable(outcome.reason))

    def compacted(self, before: int, after: int, *, forced: bool = False) -> None:
        """Note a compaction. Raises `ProviderError` (`overflow`) when the guard says stop."""
        self._refused = ""
        if not self.recovery.steps:
            return
        budget, number = self.agent.budget, self._asks
        verdict = self.guard.saw(before, after, budget.threshold, budget.limit, number, self._largest(), forced=forced)
        if verdict.stop:
            raise ProviderError(verdict.notice, kind="overflow")
        self._say(verdict)

    def _must_compact(self, why: str) -> None:
        self.due = why if self.recovery.steps else ""

    def press(self, estimate: int) -> None:
        """Compact because the last answer was cut off; when that does not work, the server will say so."""
        self.due, self._reason = "", self.due
        self._take(Step("compact"), estimate, self._target(estimate, refused=True))

    # --- after an overflow ------------------------------------------------------------------------------------------------

    def recover(self, error: ProviderError) -> None:
        """Make the next request smaller than the one that `error` refused, or raise."""
        if not is_overflow(error) or not self.recovery.steps:
            raise error
        estimate, self._reason = self.agent.estimate(), str(error)
        sizes = sizes_of(str(error), estimate, self.output or 0)
        self._check_bytes(error, estimate)
        sent = error.status is not None
        if sent:
            self._learn(estimate, sizes)
            if self._less_output(sizes):
                return
        target = self._target(estimate, refused=sent)
        while self._steps and self._smallest(clipped=True, otherwise=estimate) <= target:
            step = self._steps.pop(0)
            if not self._in_vain(step, estimate, target) and self._take(step, estimate, target):
                return
        raise self._given_up(error, estimate, target)

    def _learn(self, estimate: int, sizes: Sizes) -> None:
        known = self.learned.overflow(self.agent.provider.model, estimate, sizes)
        if known.room:
            self.agent.budget = self.agent.budget.within(known.room)

    def _check_bytes(self, error: ProviderError, estimate: int) -> None:
        """Raise when the body is too large although the prompt is not: no summary makes a picture smaller."""
        limit = self.window or self.agent.budget.limit
        if error.status == 413 and estimate < limit // 2:
            request = self.agent.log.messages()
            heaviest = max(request, key=lambda m: len(m.content) + sum(len(i.data) for i in m.images))
            size = len(heaviest.content) + sum(len(i.data) for i in heaviest.images)
            text = f"too many bytes, not too many tokens (about {estimate:,}): the largest message is {heaviest.id}"
            raise ProviderError(
                f"{text} ({heaviest.role}, {size:,} bytes); leave its attachment out", kind="too_large", status=413
            ) from None

    def _less_output(self, sizes: Sizes) -> bool:
        """Ask for a shorter answer when prompt and answer together are too long, and the prompt alone is not."""
        if self.room is not None or not (sizes.used and sizes.output and sizes.limit):
            return False
        room = sizes.limit - sizes.used
        if room < LEAST_OUTPUT:
            return False
        self.room = room
        self._must_compact("there was hardly room for an answer")
        step = f"an answer of at most {room:,} tokens instead of {sizes.output:,}"
        self.agent.tell(Recovered(step, sizes.used, sizes.used, self._reason))
        return True

    def _target(self, estimate: int, *, refused: bool) -> int:
        """Return the most tokens, by our count, that the next request may have."""
        limits = [self.agent.budget.limit]
        if self.window:
            limits.append(self.window - (self.output or 0))
        if refused:
            limits.append(int(_SMALLER * estimate))
        return max(1, min(limits))

    def _in_vain(self, step: Step, estimate: int, target: int) -> bool:
        """Say whether a compaction as hard as this one has just failed at this size, or any has and none can succeed."""
        if step.kind == "truncate" or self._failed_at is None or estimate >= self._failed_at[0] * (1 + self.recovery.share):
            return False
        tried = self._failed_at[1]
        return step.harsher <= tried or (tried > 0 and self._smallest(clipped=False, otherwise=estimate) > target)

    def _take(self, step: Step, estimate: int, target: int) -> bool:
        """Take one step and say whether the view became smaller and is under the target."""
        if step.kind == "truncate":
            return self._truncate(step, estimate, target)
        agent, self._outcome = self.agent, None
        budget = agent.budget.within(target)
        record = agent.policy.decide(agent.log, agent.situation(estimate, budget, forced=True, harsher=step.harsher))
        outcome: Outcome | None = self._outcome
        if record is None and (outcome is None or outcome.status == "skipped"):
            return self._truncate(Step("truncate", keep=KEEP_LAST), estimate, target)
        if record is not None and self._size_with(record, estimate) <= min(target, estimate - 1):
            return self._done(step, record, estimate)
        self._failed_at = (estimate, step.harsher)
        return False

    def _truncate(self, step: Step, estimate: int, target: int) -> bool:
        for record in truncation.truncations(self.agent.log, step.keep):
            after = self._size_with(record, estimate)
            if after <= min(target, estimate - 1):
                return self._done(step, replace(record, tokens_before=estimate, tokens_after=after), estimate)
        return False

    def _done(self, step: Step, record: Compaction, before: int) -> bool:
        after = self.agent.record(record, before)
        self._failed_at = None
        self.agent.tell(Recovered(str(step), before, after, self._reason))
        self.compacted(before, after, forced=True)
        return True

    def _size_with(self, record: Compaction | None, estimate: int) -> int:
        """Return the estimate of the request as it would be with `record` in the log."""
        agent = self.agent
        if record is None:
            return estimate
        trial = agent.log.at(len(agent.log) - 1)
        trial.compact(record)
        view = truncation.shown(agent.policy.view(trial), trial)
        return agent.estimator.request(Request(view, agent.tools.specs))

    def _smallest(self, *, clipped: bool, otherwise: int) -> int:
        """Return the size of what has to stay, with long tool results `clipped` or whole."""
        return self._size_with(truncation.smallest(self.agent.log, clipped=clipped), otherwise)

    def _given_up(self, error: ProviderError, estimate: int, target: int) -> ProviderError:
        smallest = self._smallest(clipped=True, otherwise=estimate)
        said = f"the context is too long: about {estimate:,} tokens, at most {target:,} fit"
        advice = "raise the budget, or start a new conversation"
        if smallest > target:
            advice = "what has to stay does not fit: shorten the question or put it into a file, or raise the budget"
        elif all(step.kind == "compact" for step in self.recovery.steps):
            advice += ", or use a recovery that truncates (goose)"
        text = f"{said}; recovery {self.recovery.name!r} did not help ({error}); the largest: {self._largest()}; {advice}"
        return ProviderError(text, kind="overflow", status=error.status, code=error.code)

    def _largest(self) -> str:
        return largest(self.agent.log.messages(), self.agent.estimator)

    def _say(self, verdict: Verdict) -> None:
        if verdict.notice:
            self.agent.tell(Notice(verdict.notice))
