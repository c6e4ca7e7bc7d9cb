"""Public failures of group E that are about what a cache holds and where marks go. Numbers are those of the cases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from agentkit.caching import (
    AnthropicCache,
    CacheResult,
    DeepSeekCache,
    Life,
    OpenAICache,
    PrefixCache,
    Segment,
    TokenTree,
    add_marks,
    arrange,
    place,
)
from agentkit.caching.prefix import Kind
from agentkit.messages import ToolSpec

from .caching_support import Prompt, size

READ, WRITE, WRITE_1H = 0.1, 1.25, 2.0


def block(text: str, tokens: int = 10, kind: Kind = "user", mark: Life | None = None) -> Segment:
    return Segment(text.encode(), tuple((text, n) for n in range(tokens)), kind, mark)


def units(bill: CacheResult) -> float:
    """Return the cost of a prompt in fresh tokens."""
    written = (bill.written - bill.written_1h) * WRITE + bill.written_1h * WRITE_1H
    return round(bill.read * READ + written + bill.fresh, 6)


def sent(model: PrefixCache, prompt: Prompt, at: float = 0.0) -> CacheResult:
    """Send `prompt` with the recommended marks."""
    return model.observe(add_marks(prompt, place(prompt)), at)


def number_of_marks(prompt: Sequence[Segment]) -> int:
    return sum(part.mark is not None for part in prompt)


CLOCKS = ["2026-03-01T12:00:01Z", "2026-03-01T12:00:59Z", "2026-03-01T12:01:02Z", "2026-03-02T00:00:01Z"]


@pytest.mark.parametrize(
    "make", [lambda: AnthropicCache(1), lambda: OpenAICache(1, 1), lambda: DeepSeekCache(0, 1), TokenTree]
)
def test_e01_clock_in_the_system_prompt(make: type[TokenTree]) -> None:
    tools, question = [block("tools")], [block("question")]
    seconds, days, at_the_end = make(), make(), make()
    with_clock = [sent(seconds, arrange(tools, [block(f"It is {t}")], question)).read for t in CLOCKS]
    with_date = [sent(days, arrange(tools, [block(f"It is {t[:10]}")], question)).read for t in CLOCKS]
    assert max(with_clock) <= size(tools)
    assert [read > size(tools) for read in with_date] == [False, True, True, False]
    conversation, reads = arrange(tools, [block("Be careful")]), []
    for t in CLOCKS:  # in the newest turn, and an earlier turn keeps the time it had
        conversation.append(block(f"question at {t}"))
        reads.append(sent(at_the_end, conversation).read)
    assert reads[0] == 0 and all(read >= size(conversation[: 1 + n]) for n, read in enumerate(reads[1:], 1))


def test_e02_tool_order_changes_between_requests() -> None:
    orders = [["read", "edit", "sh"], ["sh", "read", "edit"]]
    prompts = [arrange([block(name) for name in order], [block("system")], [block("hi")]) for order in orders]
    in_order = [arrange([block(name) for name in sorted(order)], [block("system")], [block("hi")]) for order in orders]
    model = AnthropicCache(1)
    assert [sent(model, prompt).read for prompt in prompts] == [0, 0]
    assert sent(model, prompts[0]).read == size(prompts[0])
    model = AnthropicCache(1)
    assert [sent(model, prompt).read for prompt in in_order] == [0, size(prompts[0])]
    assert sent(AnthropicCache(1), prompts[0]).cause == ""


SCHEMA_A = '{"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}, "required": ["q", "a"]}'
SCHEMA_B = '{"required": ["q", "a"], "properties": {"n": {"type": "integer"}, "q": {"type": "string"}}, "type": "object"}'


def test_e03_key_order_inside_a_tool_s_schema() -> None:
    model, raw = AnthropicCache(1), AnthropicCache(1)
    canonical = [ToolSpec("search", "Search.", json.loads(schema)).canonical() for schema in (SCHEMA_A, SCHEMA_B)]
    assert canonical[0] == canonical[1]
    assert '"required": ["q", "a"]' in canonical[0]  # a list keeps its order
    assert [sent(model, arrange([block(tool)], messages=[block("hi")])).read for tool in canonical] == [0, 20]
    assert [sent(raw, arrange([block(tool)], messages=[block("hi")])).read for tool in (SCHEMA_A, SCHEMA_B)] == [0, 0]


def test_e05_a_tool_disappears_for_one_turn() -> None:
    model, messages, bills = AnthropicCache(1), list[Segment](), []
    for turn, tools in enumerate((["a", "b", "x"], ["a", "b"], ["a", "b", "x"])):
        messages += [block(f"question {turn}"), block(f"answer {turn}", kind="assistant")]
        bills.append(sent(model, arrange([block(t) for t in tools], [block("system")], messages), 20.0 * turn))
    assert [bill.read for bill in bills] == [0, 0, 3 * 10 + 10 + 10]  # turn 1 up to its mark on the question
    assert [bill.cause for bill in bills] == ["", "tools changed", ""]


def test_e06_five_marked_blocks() -> None:
    prompt = arrange(
        [block("t1"), block("t2")],
        [block("s1"), block("s2")],
        [block("u1"), block("a1", kind="assistant"), block("u2"), block("a2", kind="assistant"), block("u3")],
    )
    # By priority: last tool, last system block, newest turn, previous turn.
    assert place(prompt, tools_too=True) == [1, 3, 6, 8]
    by_caller = [*prompt[:4], replace(prompt[4], mark="5m"), *prompt[5:]]
    added = place(by_caller, tools_too=True)
    assert added == [1, 3, 8]
    assert number_of_marks(add_marks(by_caller, added)) == 4
    AnthropicCache(1).observe(add_marks(by_caller, added))
    with pytest.raises(ValueError, match="A maximum of 4 blocks"):
        AnthropicCache(1).observe(add_marks(by_caller, [1, 3, 6, 8]))


def turn(added: int) -> Prompt:
    """Return six blocks, the system prompt among them, and `added` more: calls, then their results in one message."""
    calls = [block(f"call {n}", kind="assistant") for n in range(added // 2)]
    results = [block(f"result {n}") for n in range(added - len(calls))]
    first = [block("question"), *(block(f"call {n}", kind="assistant") for n in "xy"), *(block(f"result {n}") for n in "xy")]
    return [block("system", kind="system"), *first, *calls, *results]


def last_and_system(prompt: Prompt, *more: int) -> Prompt:
    return add_marks(prompt, sorted({0, *more, len(prompt) - 1}))


def test_e07_more_than_twenty_blocks_since_the_last_mark() -> None:
    for more, read in (((), 10), ((24,), 60), ((6,), 60)):
        model = AnthropicCache(1)
        model.observe(last_and_system(turn(0)))
        assert model.observe(last_and_system(turn(24), *more)).read == read
    model = AnthropicCache(1)
    sent(model, turn(0))
    assert sent(model, turn(24)).read == 60


@pytest.mark.parametrize(("look_back", "hit", "miss"), [(20, 19, 20), (21, 20, 21)])
def test_e07_the_counting_rule(look_back: int, hit: int, miss: int) -> None:
    """The vendor's page counts the marked block as one of the twenty, so 20 added blocks miss.

    The case counts without it (20 hit, 21 miss); that is a look-back of 21 here.
    """
    for added, read in ((hit, 60), (miss, 10)):
        model = AnthropicCache(1, look_back)
        model.observe(last_and_system(turn(0)))
        assert model.observe(last_and_system(turn(added))).read == read


def test_e09_mark_put_on_an_empty_block() -> None:
    prompt = [block("call", kind="assistant"), block("ok"), block("", 0, kind="empty")]
    before = list(prompt)
    marked = add_marks(prompt, place(prompt))
    assert [part.mark for part in marked] == [None, "5m", None]
    assert prompt == before and number_of_marks(prompt) == 0
    with pytest.raises(ValueError, match="cache_control cannot be set for empty text blocks"):
        AnthropicCache(1).observe(add_marks(prompt, [2]))
    for kind in ("empty", "thinking"):
        assert place([block("x", kind=kind)]) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(("minimum", "cached"), [(512, True), (1_024, False), (4_096, False)])
def test_e10_prefix_under_the_minimum_size(minimum: int, cached: bool) -> None:
    model = AnthropicCache(minimum)
    prompt = [block("prefix", 600, kind="system", mark="5m"), block("question", 10)]
    first, second = model.observe(prompt), model.observe(prompt)
    assert (first, second) == (
        (CacheResult(0, 600, 10), CacheResult(600, 0, 10)) if cached else (CacheResult(0, 0, 610),) * 2
    )
    assert second.cause == ("" if cached else "below minimum")


def test_e14_one_hour_writes_are_counted_apart() -> None:
    prompt = [block("documents", 200_000, "system", "1h"), block("history", 300_000, "user", "5m")]
    bill = AnthropicCache().observe(prompt)
    assert (bill.written, bill.written_1h) == (500_000, 200_000)
    price = 3.0 / 1_000_000
    assert units(bill) * price == pytest.approx(2.325)


def test_e15_clearing_old_results_makes_the_next_request_dearer() -> None:
    start, old = block("start", 30_000, mark="5m"), block("old result", 20_000)
    rest, cleared = block("rest", 50_000, mark="5m"), block("", 0)

    def after(*times: float, clear: bool) -> list[float]:
        model, whole = AnthropicCache(), [start, old, rest]
        model.observe(whole)
        return [units(model.observe([start, cleared, rest] if clear else whole, at)) for at in times]

    kept, pruned = after(1, 2, 3, clear=False), after(1, 2, 3, clear=True)
    assert (kept, pruned) == ([10_000] * 3, [65_500, 8_000, 8_000])
    assert (pruned[0] - kept[0]) / (kept[1] - pruned[1]) == 27.75
    assert after(400, clear=True)[0] < after(400, clear=False)[0]  # expired in any case


def test_e16_per_turn_reminder_inserted_and_removed_again() -> None:
    system, answer = block("system", kind="system"), block("answer", kind="assistant")
    wrong, kept, apart = AnthropicCache(1), AnthropicCache(1), AnthropicCache(1)
    first = [system, block("q1 [list v1]")]
    for model in (wrong, kept):
        sent(model, first)
    found = sent(wrong, [system, block("q1"), answer, block("q2 [list v2]")])
    assert (found.read, found.cause) == (10, "messages changed")
    assert sent(kept, [*first, answer, block("q2 [list v2]")]).read == 20
    # Or as a block of its own behind the last mark, where it is never cached and never lost.
    apart.observe([*add_marks([system, block("q1")], [0, 1]), block("list v1")])
    assert apart.observe([*add_marks([system, block("q1"), answer, block("q2")], [0, 3]), block("list v2")]).read == 20


def test_e17_compaction_request_shares_nothing_with_the_session() -> None:
    tools, system, history = [block("tools", 3_000)], [block("system", 2_000)], [block("history", 40_000, mark="5m")]
    instruction = [block("summarise", 500)]
    for given, cost, read in (((tools, system), 5_000.0, 45_000), (([block("none", 3_000)], system), 45_500.0, 0)):
        model = AnthropicCache()
        model.observe(arrange(tools, system, history))
        plain = history if read else [replace(history[0], mark=None)]
        bill = model.observe([*arrange(*given, plain), *instruction])
        assert (units(bill), bill.read) == (cost, read)


def test_e18_idle_time_longer_than_the_lifetime() -> None:
    model = AnthropicCache(1)
    prompt = arrange([block("tools")], [block("system")], [block("hi", mark="5m")], {"model": "m"})
    bills = [model.observe(prompt, at) for at in (0.0, 299.0, 598.0, 1_000.0)]
    assert [(bill.read, bill.written) for bill in bills] == [(0, 30), (30, 0), (30, 0), (0, 30)]
    assert [bill.cause for bill in bills] == ["", "", "", "expired"]


@pytest.mark.parametrize("at", [0.0, 299.0, 598.0, 1_000.0])
def test_e18_another_model_is_a_miss(at: float) -> None:
    model = AnthropicCache(1)
    for name, cause in (("m", ""), ("n", "model changed")):
        bill = model.observe(arrange([block("tools")], (), [block("hi", mark="5m")], {"model": name}), at)
        assert (bill.read, bill.cause) == (0, cause)


@pytest.mark.parametrize("make", [TokenTree, lambda: OpenAICache(1, 1)])
def test_e19_unique_part_placed_before_the_shared_part(make: type[TokenTree]) -> None:
    shared, pictures = block("shared", 500), [block("img1", 1_200), block("img2", 1_200)]
    first, second = make(), make()
    assert [first.observe([picture, shared]).read for picture in pictures] == [0, 0]
    assert [second.observe([shared, picture]).read for picture in pictures] == [0, 500]


SCHEDULES = {"slow": [0, 60, 400, 460, 1_000], "fast": [0, 60, 120, 180, 240]}


COSTS = [("slow", "5m", 3.95), ("slow", "1h", 2.4), ("fast", "5m", 1.65), ("fast", "1h", 2.4)]


@pytest.mark.parametrize(("schedule", "life", "cost"), COSTS)
def test_e20_which_lifetime_is_cheaper_depends_on_the_gaps(schedule: str, life: Life, cost: float) -> None:
    model, prompt = AnthropicCache(), [block("prefix", 2_000, "system")]
    bills = [model.observe(add_marks(prompt, place(prompt), life), float(at)) for at in SCHEDULES[schedule]]
    assert sum(map(units, bills)) / 2_000 == pytest.approx(cost)


def test_e20_the_default_life_is_five_minutes() -> None:
    prompt = [block("prefix", 2_000, "system")]
    assert [part.mark for part in add_marks(prompt, [0])] == ["5m"]
