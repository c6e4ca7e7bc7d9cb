"""Public failures, group B: where a history is cut, and what becomes of it when a compaction goes wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import CALLED, DOWN, Echo, Scripted
from strategies import TOOLS

from agentkit.budget import Budget
from agentkit.compaction import KEEP_LIST, Compactor, Keep, Outcome, find_cut, is_safe_cut
from agentkit.compaction.compactor import assemble
from agentkit.log import Compaction, Log, Projection, project
from agentkit.messages import Message, Reply, Request, ToolCall, assistant, system, tool_result, user
from agentkit.policies import Situation, SummariseMiddle
from agentkit.protocol import DIALECTS, batches, violations
from agentkit.settle import INTERRUPTED, settle
from agentkit.tokens import PerScript

LONG = "the module reads its settings from a file " * 20


def calling(*ids: str, name: str = "f", arguments: str = "{}") -> Message:
    return assistant("", *(ToolCall(i, name, arguments) for i in ids))


def refused(messages: tuple[Message, ...]) -> list[str]:
    request = Request(messages, TOOLS)
    return [f"{d}: {v.text}" for d in DIALECTS for v in violations(request, d)]


def compactor(provider: Scripted | Echo, keep: Keep | None = None, **options: object) -> Compactor:
    return Compactor(provider, keep=keep or Keep(1), **options)  # type: ignore[arg-type]


def compacted(log: Log, made: Compactor) -> Outcome:
    """Compact `log` as the agent does: append the record if there is one."""
    outcome = made.compact(project(log))
    if outcome.compaction:
        log.compact(outcome.compaction)
    return outcome


def shown(log: Log) -> tuple[Message, ...]:
    return settle(assemble(project(log)))


def text_of(log: Log) -> str:
    return "\n".join(m.content for m in shown(log))


def situation(budget: Budget | None = None) -> Situation:
    return Situation(10**6, 0, budget or Budget(10**6, 1, "for the test"), TOOLS, lambda news: None)


ROUNDS = [
    user("q"),
    calling("c1"),
    tool_result("c1", "1"),
    calling("c2"),
    tool_result("c2", "2"),
    calling("c3"),
    tool_result("c3", "3"),
    assistant("done"),
]


def test_b01_the_tail_never_starts_with_a_result() -> None:
    assert not is_safe_cut(ROUNDS, 4)
    # The stated rule: backwards, never a shorter tail than was asked for.
    assert find_cut(ROUNDS, Keep(4, "messages"), "pair") == 3


@pytest.mark.parametrize("keep", range(1, 9))
@pytest.mark.parametrize("boundary", ["user", "pair"])
def test_b01_every_number_of_kept_messages_gives_a_valid_request(keep: int, boundary: str) -> None:
    cut = find_cut(ROUNDS, Keep(keep, "messages"), boundary)  # type: ignore[arg-type]
    tail = [replace(m, id=f"m{i}") for i, m in enumerate(ROUNDS)][cut:]
    view = assemble(Projection((), Compaction("S", tail[0].id) if cut else None, tuple(tail)))
    assert refused((*view, user("go on"))) == []  # not settled: the cut alone has to be right


def test_b01_keeping_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="keep must be at least 1"):
        Keep(0, "messages")


def test_b02_one_matching_id_does_not_make_a_cut_safe() -> None:
    messages = [user("q"), calling("c2"), tool_result("c2", "ok"), tool_result("c1", "summarised earlier"), assistant("fin")]
    assert not is_safe_cut(messages, 2) and not is_safe_cut(messages, 3)
    for keep in range(1, 6):
        tail = settle(messages[find_cut(messages, Keep(keep, "messages"), "pair") :])
        assert [m.tool_call_id for m in tail if m.role == "tool"] in ([], ["c2"])
        assert refused((*tail, user("go on"))) == []


def test_b03_a_batch_in_flight_is_never_cut_and_the_boundary_is_an_id() -> None:
    log = Log([user(LONG), assistant(LONG), user("go on"), calling("c1", "c2"), tool_result("c1", "1")])
    outcome = compacted(log, compactor(Scripted(), Keep(1, "messages"), boundary="pair"))
    assert outcome.compaction is not None and outcome.compaction.first_kept == "m3"
    log.append(tool_result("c2", "2"))
    log.append(assistant("ok"))
    assert [m.tool_call_id or m.role for m in shown(log)] == ["system", "user", "assistant", "c1", "c2", "assistant"]
    assert refused((*shown(log), user("go on"))) == []


def test_b04_the_words_of_a_kept_user_turn_stay_and_the_result_beside_them_does_not() -> None:
    """A turn with a result and a text is two messages here, so each goes its own way."""
    tail = [tool_result("c1", "7"), user("also rename it"), user("now")]
    assert [m.content for m in settle(tail)] == ["also rename it", "now"]
    older = [calling("c1"), *tail]
    assert find_cut(older, Keep(2, "messages"), "user") == 2


def test_b05_a_call_without_a_result_in_the_tail_is_answered() -> None:
    log = Log([user(LONG), assistant("r1"), user("q2"), calling("c9")])
    assert compacted(log, compactor(Scripted(), Keep(2, "messages"))).status == "done"
    assert shown(log)[-1] == replace(tool_result("c9", INTERRUPTED), is_error=True)
    log.append(user("continue"))
    assert refused(shown(log)) == []


PAIRS = [calling("c1"), tool_result("c1", "big" * 2_000), calling("c2"), tool_result("c2", "ok")]


def test_b06_the_summariser_sees_plain_text_and_no_pairs() -> None:
    provider = Scripted()
    compacted(Log([user("q"), *PAIRS, user("go on")]), compactor(provider))
    assert [(m.role, m.tool_calls) for m in provider.requests[0].messages] == [("user", ())]
    assert refused(provider.requests[0].messages) == []
    assert "characters left out" in provider.asked()


BATCH = [user("q"), calling("c1", "c2", "c3"), *(tool_result(f"c{n}", str(n)) for n in (1, 2, 3)), user("go on")]


@pytest.mark.parametrize(("cut", "safe"), [(1, True), (2, False), (3, False), (4, False), (5, True)])
def test_b07_a_batch_is_never_cut_in_two(cut: int, safe: bool) -> None:
    assert is_safe_cut(BATCH, cut) is safe
    for batch in batches(BATCH[find_cut(BATCH, Keep(6 - cut, "messages"), "pair") :]):
        assert batch.calls == batch.results


def test_b08_no_tool_blocks_without_definitions_but_their_content() -> None:
    provider = Scripted()
    clock = calling("c1", name="what_time")
    compacted(Log([user("q"), clock, tool_result("c1", "12:31"), user("go on")]), compactor(provider))
    (request,) = provider.requests
    assert request.tools == ()
    assert all(violations(request, d) == () for d in DIALECTS)
    assert "what_time" in provider.asked() and "12:31" in provider.asked()


def test_b09_a_tool_call_instead_of_a_summary_is_a_failure_after_one_call() -> None:
    provider, log = Scripted(CALLED), Log([user(LONG), assistant("a"), user("b")])
    entries = tuple(log)
    assert compacted(log, compactor(provider)).status == "failed"
    assert (tuple(log), len(provider.requests)) == (entries, 1)


HISTORY = [user("1"), assistant("2"), user("3"), assistant("4")]


@pytest.mark.parametrize("reply", ["", "   \n\t"])
def test_b10_an_empty_summary_changes_nothing(reply: str) -> None:
    log = Log(HISTORY)
    outcome = compacted(log, compactor(Scripted(reply)))
    assert (outcome.status, outcome.compaction) == ("failed", None)
    assert [e.kind for e in log] == ["message"] * 4
    assert [m.content for m in shown(log)] == ["1", "2", "3", "4"]


def test_b11_an_old_answer_never_stands_in_for_the_summary() -> None:
    log = Log([user("q"), assistant("OLD ANSWER"), user("next")])
    outcome = compacted(log, compactor(Scripted("  ")))
    assert outcome.status == "failed" and outcome.compaction is None
    assert log.compactions() == ()


@pytest.mark.parametrize("error", [ConnectionError("peer closed"), DOWN])
def test_b12_the_text_of_an_error_is_never_a_summary(error: Exception) -> None:
    log = Log([m for n in range(100) for m in (user(f"question {n}"), assistant(f"answer {n}"))])
    provider = Scripted(error)
    policy = SummariseMiddle(compactor(provider))
    for _ in range(3):
        assert policy.decide(log, situation()) is None
    assert len(log) == len(shown(log)) == 200
    assert str(error) not in repr(tuple(log))
    assert len(provider.requests) == 1  # within a turn it is not tried again
    log.append(user("next question"))
    policy.decide(log, situation())
    assert len(provider.requests) == 2


def test_b14_a_failed_record_is_never_a_checkpoint() -> None:
    log = Log([user("one"), assistant("two"), user("three")])
    log.compact(Compaction("part", "m2", status="failed"))
    log.append(assistant("four"))
    assert [m.content for m in shown(log)] == ["one", "two", "three", "four"]
    assert [e.kind for e in log] == ["message", "message", "message", "compaction", "message"]


def test_b15_everything_that_leaves_was_in_a_summary_request() -> None:
    """Folded in two steps: the second request holds the first summary, so it speaks for all six."""
    log, provider = Log([user(f"message {n} {LONG}") for n in range(1, 4)]), Scripted("S-one", "S-two")
    for _ in range(2):
        for n in range(len(log.messages()) + 1, len(log.messages()) + 4):
            log.append(user(f"message {n} {LONG}"))
        outcome = compacted(log, compactor(provider, Keep(1, "messages")))
        assert outcome.status == "done" and outcome.compaction
        gone = outcome.compaction.messages
        assert sum(f"message {n} " in provider.asked() for n in range(1, 10)) == gone
    assert "S-one" in provider.asked(1)
    asked = provider.asked(0) + provider.asked(1)
    assert all(f"message {n} " in asked or f"message {n} " in text_of(log) for n in range(1, 10))


@pytest.mark.parametrize("reply", ["an echo", "a very long summary " * 1_500])
def test_b17_five_rounds_with_a_bad_summariser_stay_bounded(reply: str) -> None:
    provider = Echo() if reply == "an echo" else Scripted(reply)
    log = Log([system("rules"), user("start")])
    sizes = []
    for n in range(5):
        log.append(assistant(f"{n} {LONG * 5}"))
        log.append(user(f"question {n}"))
        for _ in range(2):
            compacted(log, compactor(provider, max_summary=800, clip=10**6))
        for made in log.compactions():
            assert PerScript().text(made.summary) <= 800
            assert len(made.summary) < 1_000 or "characters left out" in made.summary
        summaries = [m for m in shown(log) if m.content.startswith("[Summary of the earlier conversation.")]
        assert len(summaries) <= 1
        assert text_of(log).count("[Summary of the earlier conversation.") == len(summaries)
        sizes.append(len(text_of(log)))
    if provider.requests and log.compactions():
        assert max(sizes) < 30_000


def test_b17_a_long_summary_that_still_saves_is_clipped_with_a_note() -> None:
    log = Log([user(LONG * 60), assistant("a"), user("b")])
    assert compacted(log, compactor(Scripted("long summary " * 1_000), max_summary=800)).status == "done"
    (made,) = log.compactions()
    assert PerScript().text(made.summary) <= 800 and "characters left out" in made.summary


@pytest.mark.parametrize("reason", ["threshold", "manual", "overflow"])
def test_b18_the_earlier_summary_is_in_the_next_request_once(reason: str) -> None:
    provider = Scripted("S1: db is sqlite", "S2")
    log = Log([user(LONG), assistant("a"), user(f"add index {LONG}"), assistant("added"), user("next")])
    made = compactor(provider, Keep(2))
    assert compacted(log, made).status == "done"
    log.append(assistant("fine"))
    log.append(user("last"))
    assert made.compact(project(log), reason=reason).status == "done"
    assert provider.asked().count("db is sqlite") == 1
    assert "add index" in provider.asked() and "added" in provider.asked()


def test_b19_the_newest_summary_counts() -> None:
    log = Log([user("m1"), user("m2")])
    log.compact(Compaction("OLD", "m0"))
    log.append(user("m3"))
    log.compact(Compaction("NEW", "m1", messages=7, tokens_before=900))
    log.append(user("m4"))
    assert "NEW" in text_of(log) and "OLD" not in text_of(log)
    view = project(log)
    assert [m.content for m in view.tail] == ["m2", "m3", "m4"]
    assert view.compaction is not None
    assert (view.compaction.summary, view.compaction.messages, view.compaction.tokens_before) == ("NEW", 7, 900)


QUESTION = "now do Y in b.py"


@pytest.mark.parametrize("keep", [Keep(1), Keep(1, "messages"), Keep(1, "tokens"), Keep(2, "turns", 1), Keep(2, "turns", 0)])
@pytest.mark.parametrize("boundary", ["user", "pair"])
def test_b20_the_pending_question_is_sent_word_for_word_and_last(keep: Keep, boundary: str) -> None:
    log = Log([user(f"do X {LONG}"), assistant("X done"), user(QUESTION)])
    assert compacted(log, compactor(Scripted(), keep, boundary=boundary)).status == "done"
    assert shown(log)[-1].content == QUESTION


def test_b20_a_question_larger_than_the_budget_is_an_error_and_not_folded() -> None:
    log = Log([user(f"do X {LONG}"), assistant("X done"), user(QUESTION * 100)])
    outcome = compactor(Scripted(), Keep(10, "tokens")).compact(project(log), limit=100)
    assert outcome.status == "failed" and outcome.reason.startswith("still over the limit")
    assert shown(log)[-1].content == QUESTION * 100


def test_b21_finished_work_is_only_in_the_summary() -> None:
    log = Log(
        [
            user(f"delete build/ {LONG}"),
            calling("c1", name="rm", arguments='{"p":"build"}'),
            tool_result("c1", "ok"),
            assistant("deleted"),
            user("run tests"),
            calling("c2", name="pytest"),
            tool_result("c2", "3 passed"),
        ]
    )
    provider = Scripted("done: build/ was deleted\nin progress: running the tests")
    assert compacted(log, compactor(provider)).status == "done"
    summary, *tail = shown(log)
    assert [m.content for m in tail] == ["run tests", "", "3 passed"]
    assert "delete build/" not in text_of(log) and "build/ was deleted" in summary.content
    items = [item.partition(":")[0] for item in KEEP_LIST]
    assert {"done", "in progress", "open tasks"} <= set(items)
    assert all(f"- {item}:" in provider.asked() for item in items)
    assert next(item for item in KEEP_LIST if item.startswith("done")).endswith("worded as finished")


def test_b22_the_system_prompt_survives_three_compactions_to_the_byte() -> None:
    rule = system("RULE: tabs only")
    log, provider = Log([rule, *(m for n in range(20) for m in (user(f"{n} {LONG}"), assistant("ok")))]), Scripted("S")
    for n in range(3):
        log.append(user(f"more {n} {LONG}"))
        assert compacted(log, compactor(provider)).status == "done"
        assert shown(log)[0] == replace(rule, id="m0")
        assert "tabs only" not in provider.asked()
        log.append(assistant(LONG))
    assert len(log.compactions()) == 3


def test_b23_a_run_of_tools_without_a_user_turn_is_really_summarised() -> None:
    tail = [calling("c1"), tool_result("c1", "x" * 900), calling("c2"), tool_result("c2", "y"), user("next")]
    provider = Scripted("facts: x and y")
    view = Projection((), None, tuple(replace(m, id=f"m{i}") for i, m in enumerate(tail)))
    outcome = compactor(provider).compact(view)
    assert outcome.compaction is not None and outcome.compaction.summary == "facts: x and y"
    assert "x" * 900 in provider.asked() and "[tool] y" in provider.asked()


def test_b24_with_nothing_new_the_summary_in_force_stays() -> None:
    log, provider = Log([user(LONG), assistant("a"), user("next")]), Scripted("S1", "no prior history")
    assert compacted(log, compactor(provider)).status == "done"
    size = len(log)
    assert compacted(log, compactor(provider)).status == "skipped"
    assert (len(provider.requests), len(log)) == (1, size)
    assert "S1" in text_of(log) and "no prior" not in text_of(log)


def test_b25_the_instruction_to_summarise_is_never_stored() -> None:
    log = Log([user(LONG), assistant("2"), user("3"), assistant("4"), user("5")])
    provider = Scripted(DOWN, "S")
    made = compactor(provider)
    assert compacted(log, made).status == "failed"
    assert len(log) == 5
    assert compacted(log, made).status == "done"
    assert len(log) == 6
    instruction = provider.asked(0).splitlines()[0]
    assert instruction.startswith("Below is the history")
    assert all(instruction not in m.content for m in (*log.messages(), *shown(log)))


def test_b25_a_reply_that_was_refused_leaves_no_trace_either() -> None:
    log = Log([user(LONG), assistant("2"), user("3")])
    half = Reply(assistant("goal: half a summ"), finish="length")
    assert compacted(log, compactor(Scripted(half))).status == "failed"
    assert "half a summ" not in repr(tuple(log))
