"""Chapter 07: choose what goes wrong and what the agent does about it; the conversation is run, and its events are shown."""

from __future__ import annotations

import functools

from agentkit.agent import Agent
from agentkit.budget import Budget
from agentkit.compaction import Compactor, Keep
from agentkit.connect import simulated
from agentkit.events import Event
from agentkit.figures.troubles import Trouble, trouble_in_words, trouble_of, trouble_picture
from agentkit.log import Log
from agentkit.messages import Message, assistant, system, user
from agentkit.panels.common import Panel, View, dropdown, slider
from agentkit.policies import KeepEverything, SummariseMiddle
from agentkit.providers.base import ProviderError
from agentkit.recovery.steps import RECOVERIES
from agentkit.simulator import PROFILES, Fault
from agentkit.simulator.faults import ABOUT

_FAULT, _TIMES, _RULES = "What goes wrong", "How many times", "Whose rules"
_RECOVERY, _POLICY = "Recovery", "Policy"
_POLICIES = (SummariseMiddle.name, KeepEverything.name)

_NOTE = "The tariff has forty steps, each in whole cents; step 7 doubles what is over the limit. "
HISTORY: tuple[Message, ...] = (
    system("You are a coding agent."),
    *(m for n in range(1, 11) for m in (user(f"Note {n}: {_NOTE * 15}"), assistant(f"Noted, {n}."))),
)
"""Ten turns of notes, so that there is something to compact."""


def fault_picker() -> Panel:
    """Return the panel: a question to an agent with a history, and one fault on the way."""
    faults = [(f"{kind.replace('_', ' ')}: {about}", kind) for kind, about in ABOUT.items()]
    controls = {
        _FAULT: dropdown(_FAULT, faults, "overflow"),
        _TIMES: slider(_TIMES, 1, 1, 5),
        _RULES: dropdown(_RULES, list(PROFILES), "deepseek"),
        _RECOVERY: dropdown(_RECOVERY, list(RECOVERIES), "once"),
        _POLICY: dropdown(_POLICY, _POLICIES, SummariseMiddle.name),
    }
    return Panel("Something goes wrong", controls, _draw)


@functools.lru_cache(maxsize=512)
def play(fault: str, times: int, profile: str, recovery: str, policy: str = SummariseMiddle.name) -> Trouble:
    """Run the conversation and return what happened. The same choice always gives the same; nothing waits."""
    wait = 2.0 if fault == "rate_limit" else 0.0
    provider = simulated(profile, faults=[Fault(fault, times, wait, hits="turn")])  # type: ignore[arg-type]
    summarise = fault.endswith("_summary")  # such a fault shows itself only when there is a summary call
    seen: list[Event] = []
    agent = Agent(
        provider,
        policy=SummariseMiddle(Compactor(provider, Keep(6, "messages"))) if policy == _POLICIES[0] else KeepEverything(),
        budget=Budget.ratio(9_000, 0.3 if summarise else 0.9),
        log=Log(HISTORY),
        recovery=recovery,
        sleep=lambda seconds: None,
        seed=1,
        on_event=seen.append,
    )
    error = ""
    try:
        agent.run("Thanks.")
        agent.run("Hello.")
    except ProviderError as caught:
        error = str(caught)
    return trouble_of(f"{fault.replace('_', ' ')}, {times} ×, recovery {recovery!r}", seen, error)


def _draw(panel: Panel) -> View:
    trouble = play(panel[_FAULT], panel[_TIMES], panel[_RULES], panel[_RECOVERY], panel[_POLICY])
    return View(trouble_picture(trouble), trouble_in_words(trouble))
