"""The compactor: it changes nothing unless everything is right with the summary."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import DOWN, FAILURES, SUMMARY, Echo, Scripted
from hypothesis import given, settings
from strategies import PICTURE, conversations, histories

from agentkit.compaction import Compactor, Keep, Outcome
from agentkit.compaction.compactor import assemble, summary_message
from agentkit.log import Compaction, Log, Placement, Projection, project
from agentkit.messages import Message, Reply, ToolCall, Usage, assistant, system, tool_result, user
from agentkit.tokens import CharsPerFour, PerScript

LONG = "the module reads its settings from a file " * 20


def view(previous: str = "") -> Projection:
    record = Compaction(previous, "m1") if previous else None
    messages = [user(LONG), assistant(LONG), user("second question"), assistant("second answer"), user("now do Y in b.py")]
    return Projection((system("rules"),), record, tuple(replace(m, id=f"m{i}") for i, m in enumerate(messages, 1)))


def one_turn(provider: Scripted, **options: object) -> Compactor:
    return Compactor(provider, keep=Keep(1), **options)  # type: ignore[arg-type]


def test_a_good_summary_makes_a_record() -> None:
    provider = Scripted(f"  {SUMMARY}\n")
    outcome = one_turn(provider).compact(view(), reason="manual")
    assert outcome.status == "done" and outcome.reason == "manual" and outcome.compaction
    made = outcome.compaction
    assert (made.summary, made.first_kept, made.messages, made.status) == (SUMMARY, "m5", 4, "done")
    assert (made.reason, made.placement, made.policy) == ("manual", "system", "")
    assert outcome.usage == made.usage == Usage(fresh=100, output=20)
    assert outcome.request is provider.requests[0]


def test_before_and_after_are_measured_with_one_function_on_what_is_sent() -> None:
    made = one_turn(Scripted()).compact(view()).compaction
    assert made is not None
    count = PerScript().messages
    assert made.tokens_before == count(assemble(view()))
    after = Projection(view().head, made, view().tail[4:])
    assert made.tokens_after == count(assemble(after)) < made.tokens_before


def test_the_summary_call_is_plain_text_without_tools_and_thinking() -> None:
    provider = Scripted()
    one_turn(provider, max_summary=700).compact(view())
    (request,) = provider.requests
    assert (request.tools, request.thinking, request.max_output) == ((), False, 700)
    assert [(m.role, m.tool_calls) for m in request.messages] == [("user", ())]
    assert all(text in provider.asked() for text in (LONG, "second question", "second answer"))
    assert "now do Y" not in provider.asked() and "rules" not in provider.asked()


def test_the_earlier_summary_is_folded_in_exactly_once() -> None:
    provider = Scripted()
    assert one_turn(provider).compact(view("S1: db is sqlite")).status == "done"
    assert provider.asked().count("S1: db is sqlite") == 1


@pytest.mark.parametrize("failure", FAILURES)
def test_whatever_goes_wrong_nothing_is_recorded_and_the_reason_is_one_line(failure: str) -> None:
    provider = Scripted(FAILURES[failure])
    outcome = one_turn(provider).compact(view())
    assert (outcome.status, outcome.compaction) == ("failed", None)
    assert outcome.reason and "\n" not in outcome.reason
    assert len(provider.requests) == 1
    assert outcome.request is provider.requests[0]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ("provider error", "the summary call failed: the server is overloaded; try again"),
        ("broken connection", "the summary call failed: peer closed"),
        ("empty", "the summary is empty"),
        ("tool call", "the model called a tool instead of writing a summary"),
        ("tool call and text", "the model called a tool instead of writing a summary"),
        ("cut off", "the summary was cut off before its end"),
        ("refused", "the model refused to write a summary"),
        ("overflow", "what is to be summarised does not fit into the summariser's window"),
    ],
)
def test_the_reason_says_what_went_wrong(failure: str, reason: str) -> None:
    assert one_turn(Scripted(FAILURES[failure])).compact(view()).reason == reason


def test_a_refused_summary_is_paid_all_the_same() -> None:
    assert one_turn(Scripted(FAILURES["tool call"])).compact(view()).usage == Usage(fresh=10, output=5)
    assert one_turn(Scripted(DOWN)).compact(view()).usage is None


def test_other_errors_are_defects_and_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        one_turn(Scripted(ZeroDivisionError())).compact(view())


def test_a_summary_longer_than_what_it_replaces_is_refused_before_it_is_clipped() -> None:
    outcome = one_turn(Scripted(LONG * 9), max_summary=20).compact(view())
    assert outcome.status == "failed"
    assert outcome.reason.startswith("the summary is longer than what it replaces: ")


def test_a_summary_has_to_save_a_token_at_least() -> None:
    options = {"estimator": CharsPerFour(), "max_summary": 10_000}
    made = one_turn(Scripted("x" * 4), **options).compact(view()).compaction
    assert made is not None
    as_long = "x" * (4 + 4 * (made.tokens_before - made.tokens_after))
    assert one_turn(Scripted(as_long), **options).compact(view()).status == "failed"
    assert one_turn(Scripted(as_long[4:]), **options).compact(view()).status == "done"


def test_still_over_the_limit_is_a_failure_with_both_numbers() -> None:
    done = one_turn(Scripted()).compact(view(), fixed=50)
    assert done.compaction is not None
    after = done.compaction.tokens_after
    assert one_turn(Scripted()).compact(view(), fixed=50, limit=after + 50).status == "done"
    failed = one_turn(Scripted()).compact(view(), fixed=50, limit=after + 49)
    assert failed.reason == f"still over the limit: {after + 50:,} tokens after compaction, limit {after + 49:,}"


def test_with_nothing_to_summarise_no_call_is_made() -> None:
    provider = Scripted()
    outcome = Compactor(provider, keep=Keep(9)).compact(view())
    assert (outcome.status, outcome.compaction, provider.requests) == ("skipped", None, [])
    assert "9 turns" in outcome.reason


@pytest.mark.parametrize("text", ["测试" * 2_000, "word " * 2_000, "测" * 1_000 + "w" * 9_000, "0a" * 3_000])
@pytest.mark.parametrize("most", [50, 200, 800])
def test_a_long_summary_is_clipped_to_its_limit_with_a_note(text: str, most: int) -> None:
    long = Projection((), None, tuple(replace(m, id=m.id + "x") for m in (user(text * 3), *view().tail)))
    made = Compactor(Scripted(text), keep=Keep(1), max_summary=most).compact(long).compaction
    assert made is not None
    assert most / 3 <= PerScript().text(made.summary) <= most
    assert "characters left out) …" in made.summary
    assert made.summary[0] == text[0] and made.summary[-1] == text.strip()[-1]


def test_even_an_absurd_limit_ends() -> None:
    assert len(Compactor(Scripted(), max_summary=0)._shorten("many words " * 50)) < 60


def test_an_echo_of_the_history_is_refused() -> None:
    assert one_turn(Echo()).compact(view()).status == "failed"


@pytest.mark.parametrize("placement", ["system", "user"])
def test_the_summary_stands_between_head_and_tail(placement: Placement) -> None:
    record = Compaction("SUM", "m1", placement=placement)
    tail = (assistant("answer"), user("next"))
    messages = assemble(Projection((system("rules"),), record, tail))
    assert messages == (system("rules"), summary_message(record), *tail)
    assert messages[1].role == placement and messages[1].content.count("SUM") == 1


def test_a_user_summary_is_merged_into_a_tail_that_starts_with_a_user() -> None:
    first = replace(user("next", PICTURE), id="m7", reasoning="r")
    record = Compaction("SUM", "m7", placement="user")
    merged, answer = assemble(Projection((), record, (first, assistant("ok"))))
    assert (merged.role, merged.id, merged.images, merged.reasoning) == ("user", "m7", (PICTURE,), "r")
    assert merged.content == f"{summary_message(record).content}\n\nnext"
    assert answer == assistant("ok")


def test_without_a_compaction_the_messages_are_just_joined() -> None:
    assert assemble(Projection((system("a"),), None, (user("q"),))) == (system("a"), user("q"))


@settings(max_examples=150)
@given(conversations(min_turns=2) | histories())
def test_everything_that_leaves_the_view_was_in_the_request(history: list[Message]) -> None:
    log, provider = Log([*history, user("go on")]), Scripted("S")
    projection = project(log)
    compactor = Compactor(provider, keep=Keep(1, "messages"), boundary="pair")
    outcome = compactor.compact(projection)
    if outcome.compaction is None:
        return
    gone = projection.tail[: compactor.plan(projection)]
    assert outcome.compaction.messages == len(gone)
    assert all(m.content in provider.asked() for m in gone)
    assert projection.tail[len(gone)].id == outcome.compaction.first_kept


def test_a_reply_with_thinking_and_text_is_a_summary() -> None:
    thinking = Reply(replace(assistant(SUMMARY), reasoning="LONG THOUGHTS"), finish="other")
    made = one_turn(Scripted(thinking)).compact(view()).compaction
    assert made is not None and made.summary == SUMMARY


def test_an_open_batch_at_the_end_stays_in_the_tail() -> None:
    tail = (user(LONG), assistant("", ToolCall("a", "f"), ToolCall("b", "f")), tool_result("a", "1"))
    ided = tuple(replace(m, id=str(i)) for i, m in enumerate(tail))
    outcome: Outcome = Compactor(Scripted(), keep=Keep(1, "messages"), boundary="pair").compact(Projection((), None, ided))
    assert outcome.compaction is not None and outcome.compaction.first_kept == "1"
