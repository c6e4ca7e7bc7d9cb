"""The optimum is the cheapest of all schedules: every one of them is priced by the real replay, on short sessions."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import time

import pytest
from session_support import made_up

from agentkit.budget import Budget
from agentkit.compaction import Compactor, Keep
from agentkit.messages import Message, ToolCall, assistant, system, tool_result, user
from agentkit.policies import Situation
from agentkit.policies.branch import Branch
from agentkit.policies.cost_aware import CostAware
from agentkit.pricing import Peak, Prices, Rates, Tier, plain, prices
from agentkit.replay import CACHES, Counted, KeepAll, Middle, cache_for, count, replay, replay_policy
from agentkit.replay.exact import Exact
from agentkit.replay.optimum import Optimum, optimum
from agentkit.replay.planned import Planned, keep_cuts, lately_cuts
from agentkit.replay.run import Replay
from agentkit.replay.summaries import SummaryCall, flattened, instruction, question_before, stand_in, summary_segment
from agentkit.sessions import Item, Session

SUMMARY = 60
DEAR = plain("dear reads", fresh=1.0, read=0.4, write=1.25, output=1.0)
DEEPSEEK = replace(DEAR, provider="deepseek")
TIERS = replace(
    DEAR,
    tiers=(*DEAR.tiers, Tier(2_500, Rates(2.0, 0.9, 2.5, 4.0, 2.0))),
    peaks=(Peak(time(1), time(13), (Tier(-1, Rates(3.0, 1.0, 3.0, 3.0, 3.0)),)),),
)
CHARGED = replace(prices("gpt-6.1-sol"), tiers=(Tier(-1, Rates(1.0, 0.4, 1.25, 1.25, 1.0)),))

RULES: dict[str, tuple[Prices, str | None, dict[str, str]]] = {
    "no cache": (DEAR, "none", {}),
    "openai": (DEAR, "openai", {}),
    "openai, storing is charged": (CHARGED, None, {}),
    "openai, tiers and peak hours": (TIERS, "openai", {}),
    "deepseek": (DEEPSEEK, None, {}),
    "anthropic, 5 minutes": (DEAR, "anthropic", {}),
    "anthropic, an hour": (DEAR, "anthropic", {"life": "1h"}),
    "anthropic, minimum 512": (replace(DEAR, provider="anthropic", model="claude-opus-5"), None, {}),
}


def short(seed: int, rounds: int = 7) -> Counted:
    """Return a session of a few calls with messages of all lengths, pauses of all lengths, and turns of all lengths."""
    draw = random.Random(seed)
    messages: list[Message] = [system("You are a coding agent. " * draw.choice([4, 60, 260]))]
    at, items = 1_780_279_000.0, [Item(messages[0], 1_780_279_000.0)]

    def add(message: Message) -> None:
        nonlocal at
        at += draw.choice([1, 5, 20, 20, 20, 280, 400, 700, 90_000 if seed % 3 == 0 else 20])
        items.append(Item(message, at))

    add(user(" ".join(f"task_{seed}_{i}" for i in range(draw.choice([5, 150])))))
    for n in range(rounds):
        calls = [ToolCall(f"c{n}-{k}", "read_file", json.dumps({"path": f"src/f{n}.py"})) for k in range(draw.randint(0, 2))]
        add(assistant("" if calls else f"Done with {n}.", *calls))
        for call in calls:
            add(tool_result(call.id, " ".join(f"v_{n}_{i}" for i in range(draw.choice([3, 40, 120, 300])))))
        if draw.random() < 0.3:
            add(user(f"And now {n}, please: " + "carefully " * draw.choice([1, 30])))
    return count(Session(f"short {seed}", tuple(items)))


def priced(counted: Counted, plan: Planned, rule: str) -> Replay:
    listed, cache, options = RULES[rule]
    return replay(counted, plan, listed, cache_for(listed, cache, **options))  # type: ignore[arg-type]


def schedules(counted: Counted, cuts: Sequence[int], calls: Sequence[SummaryCall]) -> Iterator[Planned]:
    """Yield every schedule there is."""
    places = [request for request, cut in enumerate(cuts) if cut > 0]
    for chosen in itertools.product((None, *calls), repeat=len(places)):
        pairs = zip(places, chosen, strict=True)
        yield Planned({request: call for request, call in pairs if call}, cuts, SUMMARY)


def found(counted: Counted, cuts: Sequence[int], rule: str, call: str, window: int | None = None) -> Optimum:
    listed, cache, options = RULES[rule]
    return optimum(counted, listed, cuts, call=call, window=window, summary=SUMMARY, cache=cache, **options)  # type: ignore[arg-type]


def some_cuts(counted: Counted, seed: int) -> Sequence[int]:
    rules: list[Callable[[], Sequence[int]]] = [
        lambda: keep_cuts(counted, Middle(1, Keep(1, "messages"), "pair")),
        lambda: keep_cuts(counted, Middle(1, Keep(300, "tokens"), "pair")),
        lambda: lately_cuts(counted, 0.5),
    ]
    return rules[seed % 3]()


@pytest.mark.parametrize("call", ["flatten", "shared"])
@pytest.mark.parametrize("rule", RULES)
def test_no_schedule_is_cheaper_and_the_price_is_exact(rule: str, call: SummaryCall) -> None:
    compactions = []
    for seed in range(9):
        counted = short(seed)
        cuts = some_cuts(counted, seed)
        best = min(priced(counted, plan, rule).usd for plan in schedules(counted, cuts, [call]))
        result = found(counted, cuts, rule, call)
        assert result.usd == pytest.approx(best, rel=1e-9), seed
        assert priced(counted, result.schedule, rule).usd == pytest.approx(result.usd, rel=1e-9), seed
        compactions.append(result.compactions)
    assert sum(c > 0 for c in compactions) >= 4 and max(compactions) >= 2, compactions


@pytest.mark.parametrize("rule", RULES)
def test_either_call_each_time_as_is_cheaper(rule: str) -> None:
    """With DeepSeek a flattened call is assumed not to read its own instructions back: too dear by that at the most."""
    for seed in range(4):
        counted = short(seed, rounds=5)
        cuts = some_cuts(counted, seed)
        best = min(priced(counted, plan, rule).usd for plan in schedules(counted, cuts, ["flatten", "shared"]))
        result = found(counted, cuts, rule, "either")
        slack = 400 * result.compactions * 0.6e-6 if rule == "deepseek" else 0.0
        assert best * (1 - 1e-9) <= result.usd <= best * (1 + 1e-9) + slack, seed
        assert priced(counted, result.schedule, rule).usd <= result.usd * (1 + 1e-9)


@pytest.mark.parametrize("call", ["flatten", "shared"])
def test_the_window_holds_as_far_as_it_can(call: SummaryCall) -> None:
    """Fewest requests over the window first, then the price; a summary call over the window cannot be made."""
    over = []
    for seed in range(9):
        counted, window = short(seed), 1_900
        cuts = some_cuts(counted, seed)
        runs = [priced(counted, plan, "openai") for plan in schedules(counted, cuts, [call])]
        fits = [run for run in runs if all(row.sent <= window for row in run.rows if row.kind == "summary")]
        best = min((sum(row.sent > window for row in run.requests), run.usd) for run in fits)
        result = found(counted, cuts, "openai", call, window)
        assert (result.over, result.usd) == (best[0], pytest.approx(best[1], rel=1e-7)), seed
        over.append(result.over)
    free = [found(short(seed), some_cuts(short(seed), seed), "openai", call).usd for seed in range(9)]
    assert 0 in over and any(over) and all(usd > 0 for usd in free)


def test_what_is_not_worked_out_is_refused_in_one_line() -> None:
    counted = short(1)
    for cache in set(CACHES) - {"anthropic", "openai", "deepseek", "none"}:
        with pytest.raises(ValueError, match=f"no optimum for the cache model '{cache}'"):
            optimum(counted, DEAR, lately_cuts(counted), cache=cache)


def test_a_longer_session_is_priced_exactly_and_beats_every_threshold() -> None:
    counted = count(made_up(60, words=900, pause=40))
    keep = Middle(1, Keep(6, "messages"), "pair", summary=SUMMARY)
    cuts = keep_cuts(counted, keep)
    for rule in RULES:
        result = found(counted, cuts, rule, "either")
        run = priced(counted, result.schedule, rule)
        assert run.usd == pytest.approx(result.usd, rel=1e-6) and run.compactions == result.compactions > 1
        kept = priced(counted, KeepAll(), rule).usd  # type: ignore[arg-type]
        assert result.usd < kept


# --------------------------------------------------------------------------------------------------------- planned schedules


def test_a_plan_compacts_where_it_says_and_the_question_stays() -> None:
    counted = count(made_up(12, every=6, words=600))
    cuts = keep_cuts(counted, Middle(1, Keep(1, "messages"), "pair"))
    places = [question_before(counted, cut, point.end) for cut, point in zip(cuts, counted.points, strict=True)]
    request = next(r for r, place in enumerate(places) if place is not None and cuts[r] - place > 4)
    place, point = places[request], counted.points[request]
    assert place is not None and counted.body[place].role == "user"
    assert all(m.role != "user" for m in counted.body[place + 1 : point.end])
    run = priced(counted, Planned({request: "flatten"}, cuts, SUMMARY), "openai")
    assert [row.number for row in run.rows if row.kind == "summary"] == [request + 1]
    left = counted.sums[point.end] - counted.sums[cuts[request]] + len(counted.segments[place].tokens)
    shown = len(summary_segment(counted, stand_in(1, SUMMARY)).tokens)
    assert run.requests[request].sent == counted.head_tokens + shown + left
    asked = [len(s.tokens) for s in flattened(counted, 0, cuts[request], "")]
    assert next(row.sent for row in run.rows if row.kind == "summary") == sum(asked)


def test_a_shared_call_sends_the_view_and_the_instruction() -> None:
    counted = short(2)
    cuts = keep_cuts(counted, Middle(1, Keep(1, "messages"), "pair"))
    request = max(r for r, cut in enumerate(cuts) if cut)
    run = priced(counted, Planned({request: "shared"}, cuts, SUMMARY), "openai")
    call = next(row for row in run.rows if row.kind == "summary")
    whole = counted.head_tokens + counted.sums[counted.points[request].end]
    assert (call.number, call.sent) == (request + 1, whole + len(instruction(counted).tokens))


def test_the_tails_are_those_of_the_cost_aware_policy() -> None:
    counted = count(made_up(30, words=600))
    budget, seen = Budget(10**6, 4_000, ""), []

    class Watched(CostAware):
        def cut(self, tail: Sequence[Message], situation: Situation) -> int:
            place = super().cut(tail, situation)
            seen.append((len(self._trail.messages), len(self._trail.messages) - len(tail) + place))
            return place

        def is_due(self, branch: Branch, situation: Situation) -> bool:
            super().is_due(branch, situation)
            return False

    replay_policy(counted, lambda provider: Watched(Compactor(provider, estimator=Exact(counted))), budget, DEAR)
    wanted = lately_cuts(counted, most=1_000)
    assert seen == [(point.end, cut) for point, cut in zip(counted.points, wanted, strict=True)]
