"""The agent loop: ask the model, run the tools it asks for, ask again, until it answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from agentkit import events
from agentkit.budget import Budget
from agentkit.compaction.compactor import Outcome
from agentkit.events import Billed, EndReason, Event, TurnEnded
from agentkit.log import Compaction, Log
from agentkit.messages import Reply, Request, ToolCall, system, tool_result, user
from agentkit.policies.base import Policy, Situation
from agentkit.policies.keep_everything import KeepEverything
from agentkit.providers.base import Done, Provider, ProviderError, ReasoningDelta, TextDelta
from agentkit.recovery.rescue import Rescue
from agentkit.recovery.retry import Patient
from agentkit.recovery.steps import NONE, Recovery, make_recovery
from agentkit.recovery.truncation import shown
from agentkit.settle import INTERRUPTED
from agentkit.tokens import Estimator, PerScript
from agentkit.tools import Toolbox

SYSTEM_PROMPT = (
    "You are a coding agent. You work in one folder, the workspace, and see it only through your tools. "
    "Read before you answer: what a file says counts, not what it might say. Change files with edit_file, "
    "and run the tests after every change. Answer briefly, and name the files that your answer rests on. "
    "If something is no longer in your context, say so; do not guess."
)
"""Never holds a date, a time or anything else that changes: one changed byte here and no prefix is ever cached."""

NOT_RUN = "(not run: the answer was cut off before the call was complete)"


class Agent:
    """An agent: a provider, tools, a policy and a log.

    `budget` and `estimator` decide when the policy may compact; both are looked at before *every* request. A turn ends after
    `max_rounds` answers at the latest. `recovery` says what to do when a request fails, by name or as a record (`none`:
    report it); `window` is the server's, in tokens, where it is known; `sleep` waits between retries, `seed` fixes their
    jitter. Every step is an event for `on_event`; three of them also have a callback each. Raises `BudgetError` when system
    prompt and tools alone reach the threshold.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        tools: Toolbox | None = None,
        policy: Policy | None = None,
        budget: Budget | None = None,
        estimator: Estimator | None = None,
        system_prompt: str = SYSTEM_PROMPT,
        log: Log | None = None,
        max_rounds: int = 25,
        max_output: int | None = None,
        recovery: str | Recovery = NONE,
        window: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
        seed: int | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_context_usage: Callable[[int, int, Billed | None], None] | None = None,
        on_compaction_log: Callable[[str], None] | None = None,
        on_compacted: Callable[[Compaction], None] | None = None,
    ) -> None:
        self.provider, self.tools = provider, tools or Toolbox(())
        self.policy, self.budget = policy or KeepEverything(), budget or Budget.ratio()
        self.estimator: Estimator = estimator or PerScript()
        self.max_rounds, self.max_output = max_rounds, max_output
        self.log = log if log is not None else Log()
        if not len(self.log) and system_prompt:
            self.log.append(system(system_prompt))
        if own := getattr(self.policy, "tools", None):  # a policy may offer the model tools of its own
            self.tools = Toolbox((*self.tools.tools, *own(self.log)), limit=self.tools.limit)
        self.bills: list[Billed] = []
        self.listeners: list[Callable[[Event], None]] = [on_event] if on_event else []
        self._context_usage, self._compaction_log, self._compacted = on_context_usage, on_compaction_log, on_compacted
        self._sent = 0
        self._sleep, self._seed = sleep, seed
        self.use_recovery(recovery, window)
        self.budget.check_fixed(self._estimate(Request(self.log.messages()[:1], self.tools.specs)))

    def use_recovery(self, recovery: str | Recovery, window: int | None = None) -> None:
        """Do from now on what `recovery` says when a request fails. Raises `ValueError` for an unknown name."""
        self.rescue = Rescue(self, make_recovery(recovery), window)
        rules = self.rescue.recovery.retry
        self._patient = Patient(self.provider, rules, sleep=self._sleep, seed=self._seed, tell=self._retrying)

    def run(self, question: str) -> TurnEnded:
        """Run one turn: append `question`, then rounds until an answer. Raises `ProviderError`; the log stays valid."""
        self.log.append(user(question))
        for number in range(1, self.max_rounds + 1):
            reply = self._ask()
            if reply.finish in ("length", "overflow"):
                self._answer_all(reply.message.tool_calls, NOT_RUN)
                return self._end(reply.message.content, number, "cut off")
            if not reply.message.tool_calls:
                return self._end(reply.message.content, number, "answered")
            self._run_tools(reply.message.tool_calls)
        return self._end("", self.max_rounds, "too many rounds")

    def request(self) -> Request:
        """Return the request as it would be sent now."""
        return Request(shown(self.policy.view(self.log), self.log), self.tools.specs, self.rescue.output)

    def _ask(self) -> Reply:
        """Send one request and return its answer; after an overflow send a smaller one, as often as the recovery allows."""
        self.rescue.start()
        self._maybe_compact()
        while True:
            try:
                return self._exchange()
            except ProviderError as error:
                self.rescue.recover(error)

    def _exchange(self) -> Reply:
        request = self.request()
        estimate = self._estimate(request)
        self.rescue.check(estimate)
        self._sent += 1
        self.tell(events.Sent(self._sent, request, estimate))
        reply = self._stream(request)
        if self.rescue.examine(request, estimate, reply) and reply.usage:
            self.estimator.observe(request, reply.usage)
        self.log.append(reply.message)
        billed = Billed(self._sent, request, estimate, reply.usage, reply.message, reply.finish)
        self.bills.append(billed)
        self.tell(billed)
        return reply

    def _stream(self, request: Request) -> Reply:
        for event in self._patient.stream(request):
            if isinstance(event, Done):
                return event.reply
            if isinstance(event, TextDelta | ReasoningDelta):
                self.tell(events.TextArrived(event.text, isinstance(event, ReasoningDelta)))
        raise ProviderError("the stream ended without an answer; try again", kind="broken_stream")

    def _maybe_compact(self) -> None:
        """Let the policy decide, before every request: a tool result can fill the context in the middle of a turn."""
        before = self.estimate()
        last = self.bills[-1] if self.bills else None
        self.tell(events.ContextUsage(before, self.budget.threshold, self.budget.limit, last))
        if self.rescue.due:
            self.rescue.press(before)
        elif self.rescue.guard.allows(before):
            compaction = self.policy.decide(self.log, self.situation(before, self.budget))
            if compaction is not None:
                self.rescue.compacted(before, self.record(compaction, before))

    def situation(self, estimate: int, budget: Budget, *, forced: bool = False, harsher: int = 0) -> Situation:
        """Return what the policy may know at `estimate` tokens under `budget`."""
        fixed = self._estimate(Request((), self.tools.specs))
        return Situation(estimate, fixed, budget, self.tools.specs, self._report, forced, harsher)

    def record(self, compaction: Compaction, before: int) -> int:
        """Append a compaction that was decided at `before` tokens; return the estimate of the request after it."""
        self.log.compact(compaction)
        after = self.estimate()
        self.tell(events.Compacted(compaction, before, after))
        return after

    def estimate(self) -> int:
        """Return the tokens of the request as it would be sent now."""
        return self._estimate(self.request())

    def _retrying(self, error: ProviderError, attempt: int, pause: float) -> None:
        self.tell(events.Retrying(str(error), attempt, pause))

    def _report(self, news: str | Outcome) -> None:
        if isinstance(news, Outcome):
            self.rescue.heard(news)
            self.tell(events.CompactionLog(f"{news.status}: {news.reason}", news))
        else:
            self.tell(events.CompactionLog(news))

    def _run_tools(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls in order. Every call gets an answer, also when the user stops in the middle."""
        for i, call in enumerate(calls):
            self.tell(events.ToolCalled(call))
            try:
                result = self.tools.run(call)
            except KeyboardInterrupt:
                self._answer_all(calls[i:], INTERRUPTED)
                raise
            self.log.append(result)
            self.tell(events.ToolFinished(call, result))

    def _answer_all(self, calls: Sequence[ToolCall], text: str) -> None:
        for call in calls:
            self.log.append(tool_result(call.id, text, is_error=True))

    def _end(self, text: str, rounds: int, reason: EndReason) -> TurnEnded:
        ended = TurnEnded(text, rounds, reason)
        self.tell(ended)
        return ended

    def _estimate(self, request: Request) -> int:
        return self.estimator.request(request)

    def tell(self, event: Event) -> None:
        """Pass `event` on to all listeners and callbacks."""
        for listener in self.listeners:
            listener(event)
        if isinstance(event, events.ContextUsage) and self._context_usage:
            self._context_usage(event.estimate, event.limit, event.last)
        elif isinstance(event, events.CompactionLog) and self._compaction_log:
            self._compaction_log(event.text)
        elif isinstance(event, events.Compacted) and self._compacted:
            self._compacted(event.compaction)


def answers(agent: Agent, questions: Sequence[str]) -> list[str]:
    """Run one turn for each question and return the answers."""
    return [agent.run(question).text for question in questions]
