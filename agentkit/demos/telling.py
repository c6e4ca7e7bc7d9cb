"""Tell runs side by side: on one step counter that keeps both at the same question, each step in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agentkit.cache_rules import table as rules_table
from agentkit.demos.plans import SCENARIOS
from agentkit.demos.running import Demo, Turn
from agentkit.figures.played import Said, Side
from agentkit.figures.tables import Table, Value, table
from agentkit.messages import Usage
from agentkit.policies.registry import WITHOUT_BUDGET
from agentkit.pricing import Bill, Prices, UnknownModel, prices

REFUSED = "summary refused"
"""The mark of a request before which a summary was paid for and not used."""


def price_lists() -> dict[str, Prices]:
    """Return the example prices to choose from; none when no price data is installed."""
    found = {}
    for model in rules_table()["examples"]:
        try:
            found[model] = prices(model)
        except UnknownModel:
            continue
    return found


@dataclass(frozen=True)
class Tally:
    """What the first requests of a run came to, and the summary calls among them. `cost` is None without prices."""

    requests: Usage
    summaries: Usage
    calls: int
    refused: int
    cost: Bill | None

    @property
    def carried(self) -> int:
        """Return all prompt tokens: of the requests and of the summary calls."""
        return self.requests.prompt + self.summaries.prompt


def tally(demo: Demo, shown: int, rates: Prices | None = None) -> Tally:
    """Add up the first `shown` requests of a run and the summary calls before them (all, when all are shown)."""
    bills = [b.usage or Usage(fresh=b.estimate) for b in demo.bills[:shown]]
    calls = [call for call in demo.summary_calls if call.before <= shown or shown == len(demo.bills)]
    paid = [call.usage for call in calls]
    cost = sum((rates.bill(usage) for usage in (*bills, *paid)), Bill()) if rates else None
    return Tally(sum(bills, Usage()), sum(paid, Usage()), len(calls), sum(call.refused for call in calls), cost)


def tell(demos: Sequence[Demo], rates: Prices | None = None) -> list[Side]:
    """Return the sides of a player. Where one run needs more requests for a question, the other waits."""
    clock = list(_clock(demos))
    return [_side(demo, [at[i] for at in clock], rates) for i, demo in enumerate(demos)]


def _clock(demos: Sequence[Demo]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield for every step, from step 0 on, the (question, requests sent) of each run."""
    done = [0] * len(demos)
    yield tuple((0, 0) for _ in demos)
    for number in range(max((len(demo.turns) for demo in demos), default=0)):
        needs = [demo.turns[number].requests if number < len(demo.turns) else 0 for demo in demos]
        for sent in range(1, max(needs) + 1):
            yield tuple((number + 1, done[i] + min(sent, need)) for i, need in enumerate(needs))
        done = [before + need for before, need in zip(done, needs, strict=True)]


def _side(demo: Demo, clock: Sequence[tuple[int, int]], rates: Prices | None) -> Side:
    said = [_said(demo, number, shown, rates) for number, shown in clock]
    budget = {"threshold": int(demo.plan.budget * demo.plan.threshold), "budget": demo.plan.budget}
    lines = {} if demo.plan.policy in WITHOUT_BUDGET else budget
    refused = {call.before for call in demo.summary_calls if call.refused}
    rows = [replace(row, marks=(*row.marks, REFUSED)) if row.number in refused else row for row in demo.rows]
    return Side(demo.plan.policy, rows, demo.bills, [shown for _, shown in clock], said, lines, demo.compactions)


def _said(demo: Demo, number: int, shown: int, rates: Prices | None) -> Said:
    if not demo.bills:
        return Said(f"There is no run to show: {demo.problem}.")
    if not number:
        return Said("Nothing has been sent yet.", (("First question", demo.questions[0]),))
    turn = demo.turns[min(number, len(demo.turns)) - 1]
    over = shown == sum(t.requests for t in demo.turns[: turn.number])
    sentences = [_carried(demo, shown), _so_far(tally(demo, shown, rates)), _question(demo, turn, over)]
    return Said(" ".join(sentences), (("You", turn.question), *_reply(demo, shown)))


def _carried(demo: Demo, shown: int) -> str:
    usage = demo.bills[shown - 1].usage or Usage(fresh=demo.bills[shown - 1].estimate)
    read = share_read(usage)
    return f"Request {shown} of {len(demo.bills)}: {usage.prompt:,} tokens carried, {read} read from the cache."


def _so_far(sums: Tally) -> str:
    calls = "no summary call"
    if sums.calls:
        refused = f" ({sums.refused} refused)" if sums.refused else ""
        calls = f"{plural(sums.calls, 'summary call')}{refused} with {sums.summaries.prompt:,} tokens more"
    cost = f", ${sums.cost.total:.5f} in all" if sums.cost else ""
    return f"So far {sums.requests.prompt:,} prompt tokens ({share_read(sums.requests)} read), {calls}{cost}."


def _question(demo: Demo, turn: Turn, over: bool) -> str:
    place = f"Question {turn.number} of {len(demo.turns)}"
    if not over:
        return f"{place}: not answered yet."
    why = f" {demo.problem}." if demo.problem and turn.ended != "answered" else ""
    return f"{place}: {turn.outcome}.{why}"


def _reply(demo: Demo, shown: int) -> Iterator[tuple[str, str]]:
    message = demo.bills[shown - 1].message
    if message.tool_calls:
        yield "Agent calls", ", ".join(f"{call.name}({call.arguments})" for call in message.tool_calls)
    elif message.content:
        yield "Agent", message.content


def share_read(usage: Usage) -> str:
    """Return the share of the prompt that was read from the cache. Rounded, but 100% means all of it."""
    part = usage.cache_read / usage.prompt if usage.prompt else 0.0
    return f"{part if part == 1 else min(part, 0.99):.0%}"


def plural(count: int, noun: str) -> str:
    """Return "1 request", "2 requests"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


# ------------------------------------------------------------------------------------------------------------- the numbers


def results(demos: Sequence[Demo], rates: Prices | None = None) -> Table:
    """Return one line for each run: what an instructor expects to see at its end."""
    names = ["scenario", "policy", "requests", "prompt tokens", "read", "summary calls", "their tokens", "answered"]
    rows = [_result(demo, rates) for demo in demos]
    return table(rows, names + (["USD"] if rates else []), caption=rates.label() if rates else "")


def _result(demo: Demo, rates: Prices | None) -> list[Value]:
    sums = tally(demo, len(demo.bills), rates)
    start: list[Value] = [demo.plan.scenario, demo.plan.policy, len(demo.bills)]
    if not demo.bills:
        return [*start, *[None] * (5 + bool(rates))]
    answered = sum(turn.outcome == "answered" for turn in demo.turns)
    counted = [
        sums.requests.prompt,
        share_read(sums.requests),
        sums.calls,
        sums.summaries.prompt,
        f"{answered} of {len(demo.turns)}",
    ]
    return [*start, *counted, *([f"{sums.cost.total:.5f}"] if sums.cost else [])]


def about(scenario: str) -> str:
    """Return the sentence that says what a scenario shows."""
    return SCENARIOS[scenario].about
