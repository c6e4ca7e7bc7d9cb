"""How a policy is checked: it is told stories, and its views have to be pure, whole, and valid in every dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agentkit.budget import Budget
from agentkit.checks.base import Exercise, _about
from agentkit.compaction.compactor import Compactor
from agentkit.log import Log
from agentkit.messages import Message, Request, ToolSpec
from agentkit.policies.base import Policy, Situation
from agentkit.protocol import DIALECTS, violations
from agentkit.providers.base import Provider, ProviderError
from agentkit.replay.any_policy import StandIn
from agentkit.tokens import PerScript

TOOLS = (ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
BUDGET = Budget(4_000, 2_000, "for the check")


class _Down:
    """A summariser that is not there."""

    name = model = "down"

    def stream(self, request: Request) -> Iterator[Any]:
        raise ProviderError("the server is overloaded; try again", kind="overloaded", status=529)
        yield


@dataclass(frozen=True)
class Story:
    """What the check tells a policy: messages, and in between (where a number stands) a decision at that many tokens.

    `down`: the summariser is not there. `shorter`: at the end less than everything has to be shown.
    """

    parts: tuple[Message | int, ...]
    down: bool = False
    shorter: bool = False

    def provider(self) -> Provider:
        """Return the summariser."""
        return _Down() if self.down else StandIn(50)


class PolicyExercise(Exercise):
    """An exercise whose answer is a policy. Each case is a story; the wanted value is that nothing is wrong."""

    def check(self, function: Callable[..., Any]) -> str:
        """Run the stories in order and return one line: to do, what is wrong first, or all right."""
        total = len(self.cases)
        for number, case in enumerate(self.cases, 1):
            try:
                fault = next(faults(function, case.args[0]), None)
            except NotImplementedError:
                return f"○ to do: {self.name}"
            except Exception as error:
                fault = f"raised {type(error).__name__}: {error}"
            if fault:
                return f"✗ case {number} of {total}{_about(case)}: {fault}"
        return f"✓ {total}/{total}"


def faults(make: Callable[[Compactor], Policy], story: Story) -> Iterator[str]:
    """Yield what is wrong with the policy that `make` returns for a compactor, told `story`."""
    policy, log = make(Compactor(story.provider())), Log()
    for part in story.parts:
        if isinstance(part, Message):
            log.append(part)
            continue
        before = tuple(log)
        record = policy.decide(log, Situation(part, 0, BUDGET, TOOLS, lambda news: None))
        if record is not None:
            log.compact(record)
        if tuple(log)[: len(before)] != before:
            yield "the log was changed: append only"
        yield from _of_the_view(policy, log)
        if make(Compactor(StandIn(50))).view(log) != policy.view(log):
            yield "not pure: a new policy shows another view of the same log; what it has to know belongs in the log"
    sizes = [sum(map(PerScript().message, messages)) for messages in (policy.view(log), log.messages())]
    if story.shorter and sizes[0] >= sizes[1]:
        yield f"far over its budget it shows about {sizes[0]:,} of {sizes[1]:,} tokens; something has to go"


def _of_the_view(policy: Policy, log: Log) -> Iterator[str]:
    view = policy.view(log)
    for dialect in DIALECTS:
        yield from (f"{dialect} would answer 400: {found.text}" for found in violations(Request(view, TOOLS), dialect))
    if policy.view(log) != view:
        yield "not pure: asked twice, it shows two views of the same log"
    newest = log.messages()[-1].content
    if not any(newest in message.content for message in view):
        yield f"the newest message is not in view: {newest[:40]!r}"
