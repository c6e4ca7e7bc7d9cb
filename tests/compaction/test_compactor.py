"""The compactor: it changes nothing unless everything is right with the summary."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import CUT_OFF, DOWN, FAILURES, SUMMARY, Echo, Scripted
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
    # Cut off: once more, terser. Anything else: once.
    assert len(provider.requests) == outcome.calls <= (2 if failure == "cut off" else 1)
    assert outcome.request is provider.requests[-1]


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
    batch = (assistant("", ToolCall("a", "f"), ToolCall("b", "f")), tool_result("a", "1"))
    tail = (user(LONG), assistant(LONG), user("go on"), *batch)
    ided = tuple(replace(m, id=str(i)) for i, m in enumerate(tail))
    outcome: Outcome = Compactor(Scripted(), keep=Keep(1, "messages"), boundary="pair").compact(Projection((), None, ided))
    assert outcome.compaction is not None and outcome.compaction.first_kept == "3"


# --- more room, more pressure -------------------------------------------------------------------------------------------


def test_a_summary_that_was_cut_off_is_asked_for_once_more_terser_and_with_more_room() -> None:
    provider = Scripted(CUT_OFF, SUMMARY, SUMMARY)
    compactor = one_turn(provider, max_summary=600)
    outcome = compactor.compact(view())
    assert (outcome.status, outcome.calls) == ("done", 2)
    first, second = provider.requests
    assert (first.max_output, second.max_output) == (600, 1_200)
    assert "Write at most" not in provider.asked(0) and "Write at most 200 words" in provider.asked(1)
    assert outcome.usage == Usage(fresh=100, output=20)
    compactor.compact(view())
    assert "Write at most 200 words" in provider.asked(2)  # the model is known to be wordy


def test_a_model_that_is_cut_off_twice_is_given_up() -> None:
    outcome = one_turn(Scripted(CUT_OFF)).compact(view())
    assert (outcome.reason, outcome.calls) == ("the summary was cut off before its end", 2)


@pytest.mark.parametrize("keep", [Keep(1, "messages"), Keep(2, "messages"), Keep(60, "tokens")])
@pytest.mark.parametrize("placement", ["system", "user"])
def test_a_cut_inside_the_running_turn_keeps_its_question(keep: Keep, placement: Placement) -> None:
    batches = [
        m for n in range(4) for m in (assistant(LONG, ToolCall(f"c{n}", "f")), tool_result(f"c{n}", f"result {n} {LONG}"))
    ]
    log = Log([user(LONG), assistant(LONG), user("THE QUESTION"), *batches])
    compactor = Compactor(Scripted("S1"), keep, "pair", placement=placement)
    outcome = compactor.compact(project(log))
    assert outcome.compaction is not None and outcome.compaction.messages > 3
    log.compact(outcome.compaction)
    shown = [m.content for m in assemble(project(log)) if m.role == "user"]
    assert shown[-1].endswith("THE QUESTION") and sum("THE QUESTION" in text for text in shown) == 1
    log.append(assistant("done"))
    log.append(user("next"))
    assert project(log).tail[0].content == "THE QUESTION"  # it stays where it was: the prefix does not change


def test_the_question_alone_is_nothing_to_summarise() -> None:
    tail = (user("THE QUESTION"), assistant("", ToolCall("c", "f")), tool_result("c", LONG))
    log = Log(list(tail))
    outcome = Compactor(Scripted(), Keep(1, "messages"), "pair").compact(project(log))
    assert outcome.status == "skipped"


def test_less_is_two_messages_one_turn_or_half_of_the_tokens_and_never_nothing() -> None:
    assert Keep(8, "messages").less(2) == Keep(4, "messages")
    assert Keep(3, "turns", 8_000).less(1) == Keep(2, "turns", 4_000)
    assert Keep(8_000, "tokens").less(2) == Keep(2_000, "tokens")
    assert all(keep.less(99).amount == 1 for keep in (Keep(8, "messages"), Keep(3), Keep(8_000, "tokens")))


def test_under_pressure_the_cut_is_the_first_that_fits_and_none_is_paid_for_when_none_does() -> None:
    compactor = one_turn(Scripted(), boundary="user")
    whole = PerScript().messages(assemble(view()))
    roomy = compactor.pressed(view(), whole)
    assert roomy is not None and (roomy.keep, roomy.boundary, roomy.terse, roomy.fold) == (Keep(1), "user", 0, True)
    running = Projection((), None, tuple(replace(m, id=f"x{i}") for i, m in enumerate([*view().tail[:2], *RUNNING])))
    pressed = compactor.pressed(running, 400, harsher=1)
    assert pressed is not None and (pressed.boundary, pressed.terse) == ("pair", 1)
    assert compactor.pressed(running, 20) is None


RUNNING = [
    user("go"),
    assistant(LONG, ToolCall("a", "f")),
    tool_result("a", LONG),
    assistant("", ToolCall("b", "f")),
    tool_result("b", "ok"),
]
