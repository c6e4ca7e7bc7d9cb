"""Cost-aware: due when carrying has cost as much as compacting will; tail by references; a receipt, and originals back."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes import FAILURES, SUMMARY, Scripted
from hypothesis import given, settings
from hypothesis import strategies as st
from session_support import made_up
from strategies import TOOLS, conversations, histories

from agentkit.budget import Budget
from agentkit.compaction import Compactor, Outcome
from agentkit.log import Compaction, Log, project
from agentkit.messages import Message, Request, ToolCall, assistant, system, tool_result, user
from agentkit.policies import Situation
from agentkit.policies.cost_aware import USUAL, CostAware, Terms
from agentkit.policies.receipt import OPENING, make_receipt, recall_tool, without_receipt
from agentkit.policies.trail import LATELY, Trail
from agentkit.pricing import plain, prices
from agentkit.protocol import DIALECTS, violations
from agentkit.providers.base import Provider
from agentkit.replay import Replay, cache_for, count, replay_policy
from agentkit.replay.exact import Exact
from agentkit.replay.optimum import optimum
from agentkit.replay.planned import lately_cuts
from agentkit.tokens import TextEstimator
from agentkit.tools.base import Toolbox

LISTED = plain("plain", fresh=1.0, read=0.1, write=1.25, output=5.0)
NO_CACHE = Terms(1.0, 1.0, 1.0, 5.0)
FREE = Terms(1.0, 0.0, 1.0, 5.0)
WIDE = Budget(10**6, 10**6, "for the test")


class Letters(TextEstimator):
    """One token a letter: sizes that one can add up by hand."""

    def _plain(self, text: str) -> int:
        return len(text)


def policy(provider: Provider, terms: Terms = USUAL, **options: float) -> CostAware:
    return CostAware(Compactor(provider, estimator=Letters(), max_summary=200), terms, **options)  # type: ignore[arg-type]


def rounds(number: int, letters: int = 300, start: int = 0) -> list[Message]:
    """Return rounds that read one file each and go back to the one before."""
    messages: list[Message] = []
    for n in range(start, start + number):
        call = ToolCall(f"c{n}", "read_file", json.dumps({"path": f"src/f{max(0, n - 1)}.py"}))
        messages += [assistant("", call), tool_result(call.id, f"src/f{n}.py ".ljust(letters, "x"))]
    return messages


def ask_at(log: Log, made: CostAware, budget: Budget = WIDE, tools: Sequence = TOOLS) -> Compaction | None:
    """Let the policy decide with the estimate that its own estimator has of the view."""
    size = Letters().request(Request(made.view(log), tuple(tools)))
    return made.decide(log, Situation(size, 10, budget, tuple(tools), lambda news: None))


# ----------------------------------------------------------------------------------------------------------- when it is due


def run(made: CostAware, messages: Sequence[Message], log: Log, budget: Budget = WIDE) -> list[int]:
    """Feed `messages` request by request, as an agent would; return the places at which the policy compacted."""
    places = []
    for i, message in enumerate(messages):
        if message.role == "assistant" and (record := ask_at(log, made, budget)):
            log.compact(record)
            places.append(i)
        log.append(message)
    return places


def test_it_waits_until_carrying_has_cost_as_much_as_compacting_will() -> None:
    """The rule once more, from the sizes of the prompts alone, without the policy's own sums."""
    provider, log = Scripted("s" * 100), Log([system("r" * 500), user("do it")])
    made, sizes, letters = policy(provider, receipt=0), [], Letters()
    for message in rounds(60):
        if message.role == "assistant":
            view = made.view(log)
            size, tail = letters.messages(view), project(log).tail
            cut = made.cut(tail, Situation(size, 10, WIDE, TOOLS, lambda news: None)) if sizes else 0
            record = ask_at(log, made)
            instruction = letters.text(made._instruction())
            left = 100 + letters.messages([tail[0], *tail[cut:]]) if cut else 0
            fixed = (
                size
                - letters.messages(tail)
                - (letters.text(project(log).compaction.summary) if len(log.compactions()) else 0)
            )
            paid = 0.1 * sum(max(0, s - fixed - left) for s in sizes)
            price = 0.1 * fixed + 1.25 * left + 5.0 * 100 + 1.25 * instruction
            assert (record is not None) == (cut > 1 and paid >= price), (len(log), paid, price)
            if record:
                log.compact(record)
                sizes.clear()
                size = letters.messages(made.view(log))
            sizes.append(size)
        log.append(message)
    assert len(log.compactions()) >= 3


def test_dear_reading_compacts_often_and_free_reading_only_at_the_threshold() -> None:
    often, usual, never = (
        run(policy(Scripted("s" * 100), terms), rounds(60), Log([user("do it")])) for terms in (NO_CACHE, USUAL, FREE)
    )
    assert len(often) > len(usual) > 0 and never == []


def test_it_is_never_later_than_the_window_needs() -> None:
    budget, log = Budget(6_000, 5_000, "for the test"), Log([user("do it")])
    made, sizes = policy(Scripted("s" * 100), FREE), []
    for message in rounds(60):
        if message.role == "assistant":
            if record := ask_at(log, made, budget):
                log.compact(record)
            sizes.append(Letters().messages(made.view(log)))
        log.append(message)
    assert len(log.compactions()) >= 2 and max(sizes) < budget.threshold


def test_after_a_compaction_it_is_not_due_again_at_once() -> None:
    log = Log([user("do it")])
    made = policy(Scripted("s" * 100))
    places = run(made, rounds(60), log)
    assert len(places) >= 2 and all(b - a >= 6 for a, b in zip(places, places[1:], strict=False)), places
    if record := ask_at(log, made):
        log.compact(record)
    assert ask_at(log, made) is None


def test_a_turn_that_keeps_growing_keeps_its_question() -> None:
    log = Log([user("do it, and mind the comma")])
    made = policy(Scripted("s" * 100))
    assert run(made, rounds(40), log)
    assert sum(m.content == "do it, and mind the comma" for m in made.view(log)) == 1


def test_another_policy_that_was_given_the_same_log_goes_on_in_the_same_way() -> None:
    whole, parts = Log([user("do it")]), Log([user("do it")])
    messages = rounds(60)
    places = run(policy(Scripted("s" * 100)), messages, whole)
    again = [i for n in range(0, len(messages), 10) for i in run(policy(Scripted("s" * 100)), messages[n : n + 10], parts)]
    assert [p % 10 for p in places] == again and len(again) >= 2
    assert policy(Scripted()).view(parts) == policy(Scripted()).view(whole)


def test_terms_come_from_prices_and_cache_rule() -> None:
    opus, gpt, flash, charged = (prices(m) for m in ("claude-opus-4-5", "gpt-5.4", "deepseek-flash", "gpt-6.1-sol"))
    assert Terms.of(opus).write == opus.rates.write > Terms.of(opus).fresh
    assert Terms.of(gpt).write == Terms.of(gpt).fresh and Terms.of(flash).read < Terms.of(flash).fresh
    assert Terms.of(charged).write == charged.rates.write
    assert Terms.of(opus, "none") == Terms(5.0, 5.0, 5.0, 25.0) and not Terms.of(opus, "none").shares
    made = policy(Scripted(), share=0.5, receipt=70).priced(gpt)
    assert (made.terms, made.share, made.receipt) == (Terms.of(gpt), 0.5, 70)


# --------------------------------------------------------------------------------------------------------- the summary call


def compacted(terms: Terms = USUAL, *answers: str, budget: Budget = WIDE) -> tuple[Scripted, CostAware, Log]:
    provider, log = Scripted(*(answers or ("s" * 100,))), Log([system("rules"), user("do it")])
    made = policy(provider, terms)
    run(made, rounds(40), log, budget)
    assert log.compactions()
    return provider, made, log


def test_with_a_cache_the_call_goes_out_behind_the_view_with_its_tools() -> None:
    provider, log = Scripted("s" * 100), Log([system("rules"), user("do it")])
    made, seen = policy(provider), []
    for message in rounds(40):
        if message.role == "assistant":
            view = made.view(log)
            if record := ask_at(log, made):
                log.compact(record)
                seen.append(view)
        log.append(message)
    assert len(seen) == len(provider.requests) >= 2
    for request, view in zip(provider.requests, seen, strict=True):
        assert request.messages[:-1] == view and request.messages[-1].role == "user" and request.tools == TOOLS
        assert request.thinking and [v for d in DIALECTS for v in violations(request, d)] == []


def test_without_a_cache_the_call_shows_the_history_as_text_and_no_receipt_of_before() -> None:
    provider, _, log = compacted(NO_CACHE)
    assert len(log.compactions()) >= 2
    assert all(len(r.messages) == 1 and not r.tools for r in provider.requests)
    assert "<earlier-summary>" in provider.asked(1) and OPENING not in provider.asked(1)


@settings(max_examples=60)
@given(history=histories() | conversations(), failure=st.sampled_from(list(FAILURES.values())))
def test_a_failed_summary_changes_nothing(history: list[Message], failure: str) -> None:
    log, reports = Log([*history, user("go on")]), list[str | Outcome]()
    made = policy(Scripted(failure), NO_CACHE)
    before, entries = made.view(log), tuple(log)
    full = Situation(10**6, 10, Budget(10**9, 100, ""), TOOLS, reports.append)
    assert made.decide(log, full) is None
    assert (made.view(log), tuple(log)) == (before, entries)


@settings(max_examples=100)
@given(history=histories(), terms=st.sampled_from([USUAL, NO_CACHE]), harsher=st.integers(0, 2))
def test_any_history_gives_a_view_that_every_api_takes(history: list[Message], terms: Terms, harsher: int) -> None:
    log = Log([*history, user("go on")])
    made = policy(Scripted("kept"), terms)
    record = made.decide(log, Situation(10**6, 10, Budget(10**9, 100, ""), TOOLS, lambda news: None, True, harsher))
    if record is not None:
        log.compact(record)
    assert [v for d in DIALECTS for v in violations(Request(made.view(log), TOOLS), d)] == []
    assert policy(Scripted("other")).view(log) == made.view(log)


# --------------------------------------------------------------------------------------------------------------- the tail


def test_the_tail_goes_back_as_far_as_the_agent_lately_did() -> None:
    sizes = dict.fromkeys("abcdefgh", 100)

    def message(number: int, names: str, call: str = "") -> Message:
        calls = (ToolCall(f"c{number}", "read", json.dumps({"path": f"src/{call}.py"})),) if call else ()
        text = " ".join(f"src/{name}.py" for name in names)
        return Message("assistant" if call else "user", text, f"m{number}", calls)

    messages = [message(0, "a"), message(1, "b"), message(2, "c"), message(3, "", "c"), message(4, "", "a")]
    trail = Trail(lambda m: 100).follow(messages)
    assert trail.reaches == [100, 400] and sizes
    assert (trail.reach(0.4), trail.reach(0.8)) == (100, 400)
    assert trail.follow([*messages, message(5, "", "b")]).reaches == [100, 400, 400]
    # A name counts from where it was last said: the call in message 4 said "a" too.
    assert trail.follow([*messages, message(5, "", "a")]).reaches == [100, 400, 100]
    assert Trail(lambda m: 1).reach(0.9) == 0


@settings(max_examples=50)
@given(conversations(min_turns=2), st.integers(0, 20))
def test_a_trail_that_grows_is_the_trail_of_the_whole(conversation: list[Message], cut: int) -> None:
    sizes = Letters().message
    grown = Trail(sizes).follow(conversation[:cut]).follow(conversation)
    fresh = Trail(sizes).follow(conversation)
    assert vars(grown) == vars(fresh) | {"_sizes": grown._sizes}
    assert grown.tokens(len(conversation)) == Letters().messages(conversation)


def test_lately_is_the_newest_references_only() -> None:
    far, near = rounds(3, 5_000), [m for n in range(3, 4 + LATELY) for m in rounds(1, 100, n)]
    trail = Trail(Letters().message).follow([user("do it"), *far, *near])
    assert len(trail.reaches) > LATELY and max(trail.reaches) > 4_000 > trail.reach(1.0)


# ------------------------------------------------------------------------------------------------------ receipt and recall


def test_the_receipt_says_what_was_dropped_how_many_tokens_and_under_which_ids() -> None:
    _, made, log = compacted()
    record = log.compactions()[0]
    summary, receipt = record.summary.split("\n\n")
    assert summary == "s" * 100 and without_receipt(record.summary) == summary
    body = [m for m in log.messages() if m.role != "system"]
    gone = body[: next(i for i, m in enumerate(body) if m.id == record.first_kept)]
    assert receipt.startswith(f"{OPENING} {len(gone)} messages, {Letters().messages(gone):,} tokens,")
    listed = re.findall(r"^(m\d+) \(([\d,]+)\): (.+)$", receipt, re.MULTILINE)
    by_id = {m.id: m for m in gone}
    assert len(listed) >= 2 and Letters().text(receipt) <= made.receipt + 5
    for number, tokens, names in listed:
        assert int(tokens.replace(",", "")) == Letters().message(by_id[number])
        calls = {c.id: c for m in gone for c in m.tool_calls}
        assert all(name in calls[by_id[number].tool_call_id].arguments for name in names.split(", "))


def test_a_receipt_has_no_more_than_its_tokens_and_the_newest_names_first() -> None:
    messages = [user("do it"), *rounds(40, 50)]
    named = [replace(m, id=f"m{i}") for i, m in enumerate(messages)]
    trail = Trail(Letters().message).follow([*named, user("and now"), assistant("well")])
    short, long = (make_receipt(named, trail, len, limit) for limit in (250, 10_000))
    assert len(short) <= 250 and "src/f38.py" in short and "src/f3.py" not in short
    assert all(f"src/f{n}.py" in long for n in range(39))
    assert make_receipt(named[:3], trail, len, 0).count("\n") == 0


def test_what_the_tail_still_says_is_not_on_the_receipt() -> None:
    messages = [replace(m, id=f"m{i}") for i, m in enumerate([user("do it"), *rounds(6, 50), user("look at src/f2.py")])]
    trail = Trail(Letters().message).follow(messages)
    receipt = make_receipt(messages[:-1], trail, len, 10_000)
    assert "src/f1.py" in receipt and "src/f2.py" not in receipt


def test_recall_gives_an_original_back_word_for_word_and_explains_a_wrong_id() -> None:
    _, made, log = compacted()
    box = Toolbox(made.tools(log))
    record = log.compactions()[-1]
    number = re.findall(r"^(m\d+) \(", record.summary, re.MULTILINE)[0]
    original = next(m for m in log.messages() if m.id == number)
    assert original not in made.view(log)
    answer = box.run(ToolCall("r1", "recall", json.dumps({"id": number})))
    assert not answer.is_error and answer.content == f"[tool {number}]\n{original.content}"
    wrong = box.run(ToolCall("r2", "recall", '{"id": "m9999"}'))
    assert wrong.is_error and "'m9999'" in wrong.content or '"m9999"' in wrong.content
    called = next(m for m in log.messages() if m.tool_calls)
    assert "read_file" in recall_tool(log).run({"id": called.id})


def test_what_was_recalled_is_in_the_log_and_in_view() -> None:
    _, made, log = compacted()
    number = re.findall(r"^(m\d+) \(", log.compactions()[-1].summary, re.MULTILINE)[0]
    call = ToolCall("r1", "recall", json.dumps({"id": number}))
    log.append(assistant("", call))
    log.append(Toolbox(made.tools(log)).run(call))
    original = next(m for m in log.messages() if m.id == number)
    assert any(original.content in m.content for m in made.view(log))


# ------------------------------------------------------------------------------------------------------------- in a replay


def replayed(terms: Terms, cache: str, **options: float) -> Replay:
    counted = count(made_up(120, words=1_200))

    def make(provider: Provider) -> CostAware:
        return CostAware(Compactor(provider, estimator=Exact(counted)), terms, **options)  # type: ignore[arg-type]

    return replay_policy(counted, make, Budget.share(200_000), LISTED, cache_for(LISTED, cache))


@pytest.mark.parametrize(("cache", "terms"), [("anthropic", USUAL), ("openai", USUAL), ("none", NO_CACHE)])
def test_in_a_replay_it_is_near_the_optimum(cache: str, terms: Terms) -> None:
    counted = count(made_up(120, words=1_200))
    run_, best = replayed(terms, cache), optimum(counted, LISTED, lately_cuts(counted), cache=cache)
    assert run_.compactions > 1 and not any("failed" in event for row in run_.rows for event in row.events)
    assert 0.95 <= run_.usd / best.usd <= 1.25


def test_a_receipt_saves_references_and_costs_little() -> None:
    bare, with_receipt = (replayed(USUAL, "openai", receipt=receipt, share=0.3) for receipt in (0, 600))
    assert (with_receipt.recall or 0) > (bare.recall or 0) + 0.05
    assert with_receipt.usd < 1.1 * bare.usd


def test_the_shared_call_reads_the_prefix_in_a_replay() -> None:
    calls = [row for row in replayed(USUAL, "openai").rows if row.kind == "summary"]
    assert calls and all(row.read > 0.8 * row.sent for row in calls)
    flat = [row for row in replayed(NO_CACHE, "openai").rows if row.kind == "summary"]
    assert flat and all(row.read < 0.2 * row.sent for row in flat)


def test_the_text_before_the_receipt_is_the_summariser_s() -> None:
    _, _, log = compacted(USUAL, SUMMARY)
    assert all(without_receipt(c.summary) == SUMMARY and c.policy == "cost-aware" for c in log.compactions())
