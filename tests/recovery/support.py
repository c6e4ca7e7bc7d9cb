"""Agents that run into trouble, and everything that can be said about how they came out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from strategies import TOOLS

from agentkit import events
from agentkit.agent import Agent
from agentkit.budget import Budget
from agentkit.compaction import Compactor, Keep
from agentkit.compaction.calls import MOST_CALLS
from agentkit.connect import simulated
from agentkit.log import Log
from agentkit.messages import Message, Request
from agentkit.policies import KeepEverything, Policy, SummariseMiddle
from agentkit.protocol import DIALECTS, batches, violations
from agentkit.providers.base import Provider, ProviderError
from agentkit.recovery.overflow import says_overflow
from agentkit.recovery.steps import make_recovery
from agentkit.simulator import Fault
from agentkit.tools import Tool, Toolbox

LINE = "def compute(x): return x + 1  # adds one, and nothing else happens here\n"


@dataclass
class Ran:
    """What became of a conversation: turns that ended, the error if there was one, and every request that went out."""

    agent: Agent
    provider: Provider
    events: list[events.Event] = field(default_factory=list)
    ended: list[events.TurnEnded] = field(default_factory=list)
    error: ProviderError | None = None
    answered: list[int] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def count(self, *kinds: type) -> int:
        """Return how many events of these kinds there were."""
        return sum(isinstance(e, kinds) for e in self.events)

    def of(self, kind: type) -> list[Any]:
        """Return the events of one kind."""
        return [e for e in self.events if isinstance(e, kind)]


def read_tool(text: str = LINE * 40) -> Toolbox:
    """Return a toolbox whose only tool reads `text`, whatever it is asked for."""
    return Toolbox([Tool(TOOLS[0], lambda arguments: text)])


def summarising(provider: Provider, keep: int = 4) -> Policy:
    """Return the policy that summarises the middle."""
    return SummariseMiddle(Compactor(provider, Keep(keep, "messages")))


def keeping(provider: Provider) -> Policy:
    """Return the policy that keeps everything."""
    return KeepEverything()


def start(
    profile: str,
    recovery: str,
    faults: Iterable[Fault] = (),
    *,
    policy: Callable[[Provider], Policy] = summarising,
    budget: Budget | None = None,
    history: Sequence[Message] = (),
    tools: Toolbox | None = None,
    simulator: dict[str, Any] | None = None,
    **options: Any,
) -> Ran:
    """Return an agent on a simulator that counts what it is sent and what it refuses as invalid."""
    provider = simulated(profile, faults=faults, **(simulator or {}))
    agent = Agent(
        provider,
        tools=tools or read_tool(),
        policy=policy(provider),
        budget=budget or Budget.ratio(4_000),
        log=options.pop("log", None) or (Log(list(history)) if history else None),
        system_prompt="You are a coding agent.",
        recovery=make_recovery(recovery),
        sleep=lambda seconds: None,
        seed=1,
        max_rounds=options.pop("max_rounds", 6),
        **options,
    )
    ran = Ran(agent, provider)
    agent.listeners.append(ran.events.append)
    _watch(provider, ran)
    return ran


def _watch(provider: Any, ran: Ran) -> None:
    simulator = provider.simulator
    handle = simulator.handle

    def watched(method: str, path: str, headers: Any, body: bytes) -> Any:
        answer = handle(method, path, headers, body)
        ran.answered.append(answer.status)
        if answer.status == 400:
            chunks = list(answer.chunks)
            text = b"".join(chunks).decode("utf-8")
            if not says_overflow(text):
                ran.refused.append(text)
            answer = type(answer)(answer.status, answer.headers, iter(chunks))
        return answer

    simulator.handle = watched


def ask(ran: Ran, *questions: str) -> Ran:
    """Ask until there is an error."""
    for question in questions:
        try:
            ran.ended.append(ran.agent.run(question))
        except ProviderError as error:
            ran.error = error
            break
    return ran


def assert_sound(ran: Ran, questions: int, before: Sequence[Message] = (), *, exact: bool = True) -> None:
    """The run ended in answers or in one clear error; the history is whole; nothing invalid went out; calls are bounded.

    `exact`: the policy reports all its calls, so they can be counted one by one.
    """
    if ran.error is None:
        assert len(ran.ended) == questions
    else:
        text = str(ran.error)
        assert text and "\n" not in text and ran.error.kind != "bad_request", text
    assert ran.refused == []
    messages = ran.agent.log.messages()
    assert [m.content for m in messages[: len(before)]] == [m.content for m in before]
    asked = [m for m in messages[len(before) :] if m.role == "user"]
    assert len(asked) == len(ran.ended) + (ran.error is not None)
    assert not any(b.unanswered for b in batches(messages[len(before) :]))
    view = Request((*ran.agent.request().messages, Message("user", "and now?")), ran.agent.tools.specs)
    for dialect in DIALECTS:
        assert violations(view, dialect) == ()
    rounds = len(ran.agent.bills) + 1
    recovery = ran.agent.rescue.recovery
    assert ran.count(events.Sent, events.Retrying) <= rounds * recovery.most_requests
    if not exact:
        # Some policies call once for every message that they drop (Codex); none calls more often than that.
        tries = rounds * (1 + len(recovery.steps))
        assert len(ran.answered) <= rounds * recovery.most_requests + tries * max(MOST_CALLS, len(messages))
        return
    summaries = sum(o.outcome.calls for o in ran.of(events.CompactionLog) if o.outcome)
    assert len(ran.answered) == ran.count(events.Sent, events.Retrying) + summaries
    tries = [e.outcome.calls for e in ran.of(events.CompactionLog) if e.outcome and e.outcome.calls]
    assert len(tries) <= rounds * (1 + len(recovery.steps)) and max(tries, default=0) <= MOST_CALLS
