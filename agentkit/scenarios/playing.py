"""Play a scenario on the simulator, closed loop, and judge every turn by the truth."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agentkit.agent import Agent
from agentkit.budget import Budget, BudgetError
from agentkit.connect import simulated
from agentkit.events import Billed, Compacted, CompactionLog, Event, ToolFinished, TurnEnded
from agentkit.log import Log
from agentkit.messages import Usage
from agentkit.policies import Policy
from agentkit.providers.base import Provider, ProviderError
from agentkit.scenarios.library import Scenario
from agentkit.scenarios.memory import with_memory
from agentkit.tokens import Estimator, PerScript
from agentkit.tools import workspace_tools

MakePolicy = Callable[[Provider], Policy]


@dataclass(frozen=True)
class Judged:
    """One turn: the question, the answer, how the turn ended, and whether the work was done."""

    question: str
    answer: str
    ended: str
    done: bool


@dataclass
class Played:
    """A scenario that was played. `problem` is the line that says why it ended early (empty: it did not)."""

    scenario: str
    policy: str
    turns: list[Judged] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    problem: str = ""
    asked: int = 0
    log: Log | None = None

    @property
    def answered(self) -> bool:
        """Say whether the work of every turn was done."""
        return len(self.turns) == self.asked and all(turn.done for turn in self.turns)

    @property
    def done(self) -> int:
        """Return the number of turns whose work was done."""
        return sum(turn.done for turn in self.turns)

    @functools.cached_property
    def bills(self) -> list[Billed]:
        """Return estimate and bill of every request, in order."""
        return [e for e in self.events if isinstance(e, Billed)]

    @property
    def compactions(self) -> list[Compacted]:
        """Return every compaction, in order."""
        return [e for e in self.events if isinstance(e, Compacted)]

    @property
    def usage(self) -> Usage:
        """Return the sum of the bills of all requests, without summary calls."""
        return sum((bill.usage for bill in self.bills if bill.usage), Usage())

    @property
    def summaries(self) -> Usage:
        """Return the sum of the bills of all summary calls, refused ones too."""
        outcomes = [e.outcome for e in self.events if isinstance(e, CompactionLog) and e.outcome]
        return sum((outcome.usage for outcome in outcomes if outcome.usage), Usage())

    @property
    def read_again(self) -> int:
        """Return how often a file was read whose text had been read before and not changed since."""
        known: set[str] = set()
        again = 0
        for event in self.events:
            if not isinstance(event, ToolFinished) or event.message.is_error:
                continue
            args = event.call.parsed()
            if event.call.name == "read_file":
                key = json.dumps(args, sort_keys=True)
                again += key in known
                known.add(key)
            elif event.call.name in ("edit_file", "write_file"):
                known = {key for key in known if json.loads(key).get("path") != args.get("path")}
        return again


def play(
    scenario: Scenario,
    make_policy: MakePolicy,
    *,
    budget: Budget | None = None,
    provider: Provider | None = None,
    estimator: Estimator | None = None,
    listeners: Callable[[Agent], list[Callable[[Event], None]]] | None = None,
    before_turn: Callable[[int], None] | None = None,
) -> Played:
    """Play `scenario` in a temporary workspace under the policy that `make_policy` returns, and judge it.

    A budget that cannot work and a provider that refuses are the `problem` of the result, never an exception.
    `listeners` makes further listeners for the agent; `before_turn` is called with the number of each turn, from 0.
    """
    provider = provider or simulated()
    policy = make_policy(provider)
    played = Played(scenario.name, policy.name, asked=len(scenario.tasks))
    budget = budget or Budget.ratio(scenario.budget, scenario.threshold)
    with workspace(scenario.workspace) as folder:
        try:
            agent = Agent(
                provider,
                tools=with_memory(workspace_tools(folder), folder),
                policy=policy,
                budget=budget,
                estimator=estimator or Remembering(),
                max_rounds=scenario.max_rounds,
                on_event=played.events.append,
            )
            played.log = agent.log
            agent.listeners += listeners(agent) if listeners else []
            for number, task in enumerate(scenario.tasks):
                if before_turn:
                    before_turn(number)
                ended: TurnEnded = agent.run(task.question)
                done = ended.reason == "answered" and task.check(folder, ended.text)
                played.turns.append(Judged(task.question, ended.text, ended.reason, done))
        except BudgetError as error:
            played.problem = str(error)
        except ProviderError as error:
            played.problem = f"the provider refused: {error}"
    return played


class Remembering(PerScript):
    """The same estimates, each text looked at once: a long session asks for the same ones hundreds of times."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, int] = {}

    def _plain(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = super()._plain(text)
        return self._known[text]


@contextmanager
def workspace(fill: Callable[[Path], None]) -> Iterator[Path]:
    """Make a temporary workspace with `fill`, which is given a folder that is not there yet; remove it in the end."""
    with tempfile.TemporaryDirectory(prefix="agentkit-", ignore_cleanup_errors=True) as name:
        folder = Path(name) / "workspace"
        fill(folder)
        yield folder
