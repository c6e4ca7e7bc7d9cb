"""Which facts outlast compactions: planted at the beginning, looked for in the view, and asked of the agent.

Each fact is told by the user in a turn of its own. Then comes work, until the policy has compacted often enough. After every
compaction the conversation is forked: in each fork the agent is asked for one fact. So no answer brings a fact back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from agentkit.agent import Agent
from agentkit.budget import Budget
from agentkit.closed_loop.cells import MODEL, provider_for
from agentkit.closed_loop.live import spread
from agentkit.compaction import KEEP_LIST, Compactor, Keep
from agentkit.compaction.prompts import ONLY_OPEN_TASKS
from agentkit.events import Compacted
from agentkit.log import Log
from agentkit.messages import Message
from agentkit.policies.base import Policy
from agentkit.policies.registry import make_policy
from agentkit.pricing import prices
from agentkit.providers.base import Provider, ProviderError
from agentkit.scenarios.memory import with_memory
from agentkit.scenarios.playing import Remembering, workspace
from agentkit.scenarios.project import MODULES, make_project
from agentkit.tools import workspace_tools


@dataclass(frozen=True)
class Fact:
    """One planted fact: its kind, how the user tells it, the question, and the text that has to come back."""

    kind: str
    told: str
    question: str
    needle: str


FACTS: tuple[Fact, ...] = (
    Fact(
        "path",
        "The tariffs of last year are not in the project any more; they lie in archive/tariffs_2025.csv.",
        "Where do the tariffs of last year lie?",
        "archive/tariffs_2025.csv",
    ),
    Fact(
        "number",
        "The town has told us the most that a member may hire at the same time: 7 bicycles.",
        "What is the most bicycles that a member may hire at the same time?",
        "7 bicycles",
    ),
    Fact(
        "constraint",
        "Remember that the nightly export of the depot must never start before 06:40, because of the bank.",
        "When may the nightly export start at the earliest?",
        "06:40",
    ),
    Fact(
        "negation",
        "The deposit is part of a refund, but for the tax office that deposit is not taxed.",
        "Is the deposit that is part of a refund taxed?",
        "not taxed",
    ),
    Fact(
        "wish",
        "In every report that we print for the owners I prefer all amounts in Swiss francs.",
        "In what do I prefer the amounts of a report?",
        "Swiss francs",
    ),
)
"""Five kinds; only one says "remember", as users do."""

LISTS: dict[str, tuple[str, ...]] = {
    "full list": KEEP_LIST,
    "only open tasks": ONLY_OPEN_TASKS,
    "user's words": (*KEEP_LIST, "wording: what the user said, word for word"),
}
"""The lists of what to keep in the summary prompt, by name."""

POLICY_NAMES = (
    "summarise the middle",
    "MemGPT",
    "jai",
    "M4",
    "Goose as told",
    "Goose",
    "Codex",
    "OpenHands",
    "pi",
    "notes file",
    "cost-aware",
)
"""Policies that compact within the budget of this experiment."""

WITHOUT_RECALL = "cost-aware without recall"
"""The same policy with its receipt, but without the tool that gets an original back."""

MOST = 6
"""Compactions after which a run ends."""
BUDGET = Budget.ratio(12_000, 0.6)
_TURNS = tuple(f"How many functions does {path} have?" for path in MODULES) * 3
_WIDE = Budget.ratio(1_000_000, 1.0)


@dataclass(frozen=True)
class Survived:
    """Whether a fact was there after `compactions`: in the view word for word, and in the agent's answer."""

    policy: str
    keep_list: str
    kind: str
    compactions: int
    in_view: bool
    answered: bool


def survival(
    policies: tuple[str, ...] = (*POLICY_NAMES, WITHOUT_RECALL),
    lists: tuple[str, ...] = tuple(LISTS),
    *,
    most: int = MOST,
    processes: int | None = None,
    progress: bool = False,
) -> list[Survived]:
    """Return what survived 0, 1 … `most` compactions, for each policy, list and fact. Closed loop; the same every time.

    Raises `ValueError` for a policy or a list that does not exist.
    """
    for name in lists:
        if name not in LISTS:
            raise ValueError(f"unknown list {name!r}; there are {', '.join(LISTS)}")
    tasks = [(policy, name, most) for policy in policies for name in lists]
    found = spread(_run, tasks, processes=processes, progress="survival" if progress else "")
    return [one for part in found for one in part]


def _run(task: tuple[str, str, int]) -> list[Survived]:
    policy, keep_list, most = task
    with workspace(make_project) as folder:
        return Planted(policy, keep_list, folder).run(most)


class WithoutRecall:
    """A policy without its tools: the model cannot fetch what has left the context."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self.name = policy, WITHOUT_RECALL
        self.decide, self.view = policy.decide, policy.view


class Planted:
    """One conversation with planted facts, and its forks."""

    def __init__(self, policy: str, keep_list: str, folder: Path) -> None:
        self.policy, self.keep_list, self.folder = policy, keep_list, folder
        self.compactions = 0

    def run(self, most: int) -> list[Survived]:
        """Plant, work, and look after each compaction."""
        agent = self._agent(Log(), BUDGET)
        agent.listeners.append(self._heard)
        for fact in FACTS:
            agent.run(fact.told)
        found = self._look(agent.log, 0) if not self.compactions else []
        seen = 0
        for question in _TURNS:
            agent.run(question)
            if self.compactions > seen:
                seen = self.compactions
                found += self._look(agent.log, min(seen, most))
            if seen >= most:
                break
        return found

    def _heard(self, event: object) -> None:
        self.compactions += isinstance(event, Compacted)

    def _look(self, log: Log, compactions: int) -> list[Survived]:
        return [
            Survived(self.policy, self.keep_list, fact.kind, compactions, self._in_view(log, fact), self._asked(log, fact))
            for fact in FACTS
        ]

    def _in_view(self, log: Log, fact: Fact) -> bool:
        view = self._policy(provider_for(prices(MODEL))).view(log.fork(len(log) - 1))
        return any(fact.needle in _said(message) for message in view)

    def _asked(self, log: Log, fact: Fact) -> bool:
        """Ask in a fork of the conversation, with room enough that nothing more is compacted."""
        agent = self._agent(log.fork(len(log) - 1), _WIDE)
        try:
            return fact.needle in agent.run(fact.question).text
        except ProviderError:
            return False

    def _agent(self, log: Log, budget: Budget) -> Agent:
        provider = provider_for(prices(MODEL))
        tools = with_memory(workspace_tools(self.folder), self.folder)
        return Agent(provider, tools=tools, policy=self._policy(provider), budget=budget, estimator=Remembering(), log=log)

    def _policy(self, provider: Provider) -> Policy:
        keep = LISTS[self.keep_list]
        compactor = Compactor(provider, Keep(6, "messages"), keep_list=keep, estimator=Remembering())
        made = make_policy("cost-aware" if self.policy == WITHOUT_RECALL else self.policy, compactor)
        return WithoutRecall(made) if self.policy == WITHOUT_RECALL else made


def _said(message: Message) -> str:
    return re.sub(r"\s+", " ", message.content)
