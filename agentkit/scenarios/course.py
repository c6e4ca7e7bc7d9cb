"""Conversations to run again and again: the same questions to an agent, under settings that a reader changes.

The command line, the panels and the chapters all start their agents here, so they show the same thing.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentkit.agent import Agent
from agentkit.budget import Budget
from agentkit.compaction import KEEP_LIST, Compactor, Keep
from agentkit.compaction.cut import Boundary
from agentkit.connect import simulated
from agentkit.events import Billed, Compacted, Event, TurnEnded
from agentkit.log import Log, Placement
from agentkit.policies import KeepEverything, Policy, SummariseMiddle
from agentkit.providers.base import Provider
from agentkit.tokens import Estimator
from agentkit.tools import Toolbox, workspace_tools

FOUR_QUESTIONS: tuple[str, ...] = (
    "Read the big file and say how many methods it has.",
    "What does compute7 return for 3?",
    "How many lines is the big file?",
    "What was the very first question I asked you?",
)
"""The conversation of the M4 course: it fills a small budget, compacts once, and asks for what is gone."""


@dataclass(frozen=True)
class Settings:
    """What a reader can change. Tokens where not said otherwise; see `Budget`, `Keep` and `Compactor`."""

    budget: int = 4_000
    threshold: float = 0.6
    keep: int = 4
    unit: str = "messages"
    boundary: Boundary = "user"
    keep_list: Sequence[str] = KEEP_LIST
    placement: Placement = "system"
    compact: bool = True

    def policy(self, provider: Provider) -> Policy:
        """Return the policy that these settings describe."""
        if not self.compact:
            return KeepEverything()
        keep = Keep(self.keep, self.unit)  # type: ignore[arg-type]
        compactor = Compactor(provider, keep, self.boundary, keep_list=tuple(self.keep_list), placement=self.placement)
        return SummariseMiddle(compactor)


@dataclass
class Run:
    """What came of a conversation: the agent with its log, every event, the answer to each question."""

    agent: Agent
    events: list[Event] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    @property
    def bills(self) -> list[Billed]:
        """Return estimate and bill of every request, in order."""
        return [e for e in self.events if isinstance(e, Billed)]

    @property
    def compactions(self) -> list[Compacted]:
        """Return every compaction, in order."""
        return [e for e in self.events if isinstance(e, Compacted)]


def course_workspace() -> Path:
    """Return the folder of the small project that the agent works on. Raises `FileNotFoundError` when it is not here."""
    for base in (Path.cwd(), Path.cwd() / "chapters", Path(__file__).resolve().parents[2] / "chapters"):
        if (base / "workspace" / "big_service.py").is_file():
            return base / "workspace"
    raise FileNotFoundError(
        "the course workspace is not here; start in the project's folder, or name a folder with --workspace"
    )


def fresh_workspace() -> Path:
    """Return a copy of the course workspace in a temporary folder, for an agent that may edit it.

    The copy is removed when Python ends.
    """
    temporary = Path(tempfile.mkdtemp(prefix="agentkit-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    folder = temporary / "workspace"
    shutil.copytree(course_workspace(), folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return folder


def start(
    settings: Settings | None = None,
    *,
    provider: Provider | None = None,
    tools: Toolbox | None = None,
    estimator: Estimator | None = None,
    max_rounds: int = 25,
    log: Log | None = None,
) -> Run:
    """Return a run that has not been asked anything yet: an agent on the simulator and the course workspace by default."""
    settings = settings or Settings()
    provider = provider or simulated()
    agent = Agent(
        provider,
        tools=tools if tools is not None else workspace_tools(course_workspace()),
        policy=settings.policy(provider),
        budget=Budget.ratio(settings.budget, settings.threshold),
        estimator=estimator,
        max_rounds=max_rounds,
        log=log,
    )
    run = Run(agent)
    agent.listeners.append(run.events.append)
    return run


def ask(run: Run, questions: Sequence[str]) -> Run:
    """Ask `questions` one after the other and return the same run with their answers."""
    for question in questions:
        ended: TurnEnded = run.agent.run(question)
        run.answers.append(ended.text)
    return run


def four_questions(settings: Settings | None = None, **options: object) -> Run:
    """Run the four questions of the M4 course under `settings`."""
    return ask(start(settings, **options), FOUR_QUESTIONS)  # type: ignore[arg-type]
