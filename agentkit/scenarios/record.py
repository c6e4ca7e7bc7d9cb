"""Record this project's own sessions: `python -m agentkit.scenarios.record` writes chapters/sessions again, byte for byte.

The work is real: requests, files, edits and test runs are those of the agent on the simulator. The pauses are not: nobody
sat there. They are made up by a seed, with coffee breaks and a lunch, so that a cache that forgets after five minutes does.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path

from agentkit.agent import Agent
from agentkit.budget import Budget
from agentkit.connect import simulated
from agentkit.events import Billed, Event, ToolFinished
from agentkit.policies import KeepEverything
from agentkit.scenarios.course import course_workspace
from agentkit.scenarios.library import BIG_FILE, LONG_REFACTOR, Scenario
from agentkit.scenarios.playing import Played, play
from agentkit.sessions import Recorder, Session, save

START = 1_780_300_800.0
"""Seconds since 1970 at which every recorded session begins: a Monday morning, 1 June 2026, 08:00 UTC."""

BREAKS = {5: 7, 8: 26, 13: 9, 16: 84, 20: 12, 23: 31}
"""Minutes that the user is away before a turn, by its number from 0: coffee, a meeting, lunch."""

SECONDS = {"run_tests": (4, 9), "grep": (0.2, 0.5), "write_file": (0.1, 0.2)}
"""What a tool takes, from and to; one that is not named takes 0.05 to 0.2 s."""

NOTES = (
    "The model is this project's simulator, a program that knows only what it is sent, no language model. Requests, files "
    "and test runs are real. The pauses are made up by the seed {seed}: nobody sat there."
)


class Pauses:
    """A clock that nobody waits for: it moves on when something happens, by pauses that a seed decides."""

    def __init__(self, seed: int) -> None:
        self.now, self._chance = START, random.Random(seed)

    def __call__(self) -> float:
        """Return the time in seconds since 1970."""
        return self.now

    def turn(self, number: int) -> None:
        """Let the user read, think and type; before some turns, be away."""
        if number:
            self.now += self._between(15, 150) + 60 * BREAKS.get(number, 0)

    def event(self, event: Event) -> None:
        """Let the model write, and the tool work."""
        if isinstance(event, Billed):
            self.now += self._between(0.8, 2.5) + (event.usage.output if event.usage else 0) / 60
        elif isinstance(event, ToolFinished):
            self.now += self._between(*SECONDS.get(event.call.name, (0.05, 0.2)))

    def _between(self, low: float, high: float) -> float:
        # `random()` gives the same numbers in every version of Python; the other methods need not. Whole milliseconds, as
        # the file has them.
        return round(low + (high - low) * self._chance.random(), 3)


def record(scenario: Scenario, name: str, title: str, *, seed: int = 6) -> tuple[Session, Played]:
    """Play `scenario` under keep everything and return it as a session, with what came of it."""
    pauses = Pauses(seed)
    recorders: list[Recorder] = []

    def listeners(agent: Agent) -> list[Callable[[Event], None]]:
        recorders.append(Recorder(agent.log, agent.tools.specs, clock=pauses))
        return [recorders[0], pauses.event]

    played = play(
        scenario,
        lambda provider: KeepEverything(),
        budget=Budget.ratio(1_000_000, 1.0),
        provider=simulated("deepseek", clock=pauses),
        listeners=listeners,
        before_turn=pauses.turn,
    )
    model = "simulated-deepseek"
    return recorders[0].session(name, title=title, model=model, notes=NOTES.format(seed=seed)), played


SESSIONS: dict[str, Callable[[], tuple[Session, Played]]] = {
    "four-questions": lambda: record(BIG_FILE, "four-questions", "The four questions on the course workspace"),
    "long-refactor": lambda: record(LONG_REFACTOR, "long-refactor", "A long refactor of 15 modules"),
}
"""What there is to record, by file name."""


def main(arguments: list[str] | None = None) -> int:
    """Write the sessions named, or all of them. Raises `ValueError` when the work of one was not done."""
    about = "Record this project's own sessions again."
    parser = argparse.ArgumentParser(prog="python -m agentkit.scenarios.record", description=about)
    parser.add_argument("name", nargs="*", help=f"which: {', '.join(SESSIONS)} (default: all)")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="where to write them (default: chapters/sessions)")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.name if name not in SESSIONS]:
        parser.error(f"unknown session {unknown[0]!r}; there are {', '.join(SESSIONS)}")
    folder = options.to or course_workspace().parent / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    for name in options.name or SESSIONS:
        session, played = SESSIONS[name]()
        if not played.answered:
            raise ValueError(f"{name}: only {played.done} of {played.asked} turns did their work; nothing was written")
        save(session, folder / f"{name}.jsonl")
        prompt = played.bills[-1].usage.prompt if played.bills[-1].usage else 0
        print(f"{folder / name}.jsonl: {session.calls} requests, {prompt:,} prompt tokens in the last one")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
