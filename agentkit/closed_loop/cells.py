"""One cell of the live comparison: one scenario, played by the agent under one policy, judged and billed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agentkit.compaction import Compactor, Keep
from agentkit.connect import simulated
from agentkit.messages import Usage
from agentkit.policies.base import Policy
from agentkit.policies.registry import make_policy
from agentkit.pricing import Prices, prices
from agentkit.providers.base import Provider
from agentkit.scenarios.library import scenario as find_scenario
from agentkit.scenarios.playing import Played, Remembering, play

SCENARIOS = ("big file", "fix the bug", "needle", "long refactor")
"""The scenarios of the comparison, by names of `scenarios.library`, the quickest first."""

MODEL = "claude-sonnet-4-5"
"""Whose example prices are used where nobody says others. Its cache rule (1,024 tokens at least) is the simulator's."""

CLOSED_LOOP = "closed loop: the agent works on a simulated model, a program; what a policy forgets changes what it does"
"""To show beside every figure of a live run."""


@dataclass(frozen=True)
class Row:
    """What came of one scenario under one policy. Tokens, and USD by the price list of `model`.

    `done` of `asked` turns did their work; `failed` are the numbers of the others, from 1. `rounds` are requests of the
    agent, `read_again` files that it read again although nothing had changed, `extra` the calls of the policy (summaries).
    The tokens are sums over both: `prompt` = `read` from the cache + `written` to it + `fresh`. `largest` is the longest
    prompt. `window` is the server's (0: the profile's own, which is never reached). `problem` says why a run ended early.
    """

    scenario: str
    policy: str
    model: str
    window: int
    done: int
    asked: int
    failed: tuple[int, ...]
    rounds: int
    read_again: int
    extra: int
    compactions: int
    prompt: int
    read: int
    written: int
    fresh: int
    output: int
    largest: int
    usd: float
    problem: str = ""

    @property
    def answered(self) -> bool:
        """Say whether the work of every turn was done."""
        return self.done == self.asked

    @property
    def unanswered(self) -> int:
        """Return the number of turns whose work was not done."""
        return self.asked - self.done


def provider_for(found: Prices, window: int = 0) -> Provider:
    """Return the simulator with the cache rule of a price list. No time passes in it, so no cache entry grows old.

    Raises `ValueError` for a maker whose rule the simulator does not have.
    """
    if found.provider not in ("anthropic", "deepseek", "openai"):
        known = "openai, deepseek and anthropic"
        raise ValueError(
            f"{found.model} is a model of {found.provider}; the simulator has the rules of {known}: name one of theirs"
        )
    provider = simulated(found.provider, window=window or None, clock=lambda: 0.0)
    # Several calls at the same time would reach the cache in another order each time.
    provider.one_at_a_time = True  # type: ignore[attr-defined]
    return provider


def run_cell(scenario: str, policy: str, model: str = MODEL, window: int = 0) -> Row:
    """Play `scenario` under `policy` with the scenario's own budget, and return what came of it: the same row every time.

    Raises `ValueError` for a name that does not exist, `UnknownModel` for a model without prices.
    """
    found = prices(model)
    provider = provider_for(found, window)
    played = play_cell(scenario, policy, provider, found)
    return _row(played, provider, found, model, window)


def play_cell(scenario: str, policy: str, provider: Provider, found: Prices) -> Played:
    """Play `scenario` under `policy`; a policy that decides by prices is told them."""
    chosen = find_scenario(scenario)
    estimator = Remembering()

    def make(provider: Provider) -> Policy:
        made = make_policy(policy, Compactor(provider, Keep(chosen.keep, "messages"), estimator=estimator))
        priced: Callable[[Prices], Policy] | None = getattr(made, "priced", None)
        return priced(found) if priced else made

    return play(chosen, make, provider=provider, estimator=estimator)


def _row(played: Played, provider: Provider, found: Prices, model: str, window: int) -> Row:
    calls: list[Usage] = [usage for _, usage in provider.simulator.calls]  # type: ignore[attr-defined]
    whole = sum(calls, Usage())
    return Row(
        scenario=played.scenario,
        policy=played.policy,
        model=model,
        window=window,
        done=played.done,
        asked=played.asked,
        failed=tuple(n for n in range(1, played.asked + 1) if n > len(played.turns) or not played.turns[n - 1].done),
        rounds=len(played.bills),
        read_again=played.read_again,
        extra=len(calls) - len(played.bills),
        compactions=len(played.compactions),
        prompt=whole.prompt,
        read=whole.cache_read,
        written=whole.cache_write,
        fresh=whole.fresh,
        output=whole.output,
        largest=max((usage.prompt for usage in calls), default=0),
        usd=round(sum(found.bill(usage).total for usage in calls), 6),
        problem=played.problem,
    )
