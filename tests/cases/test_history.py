"""Public bug reports about message histories and compaction (groups A and B), as small inputs with the right result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agentkit.budget import Budget
from agentkit.compaction import Compactor, Keep, find_cut, flatten, is_safe_cut
from agentkit.compaction.compactor import assemble
from agentkit.compaction.prompts import KEEP_LIST, summary_prompt
from agentkit.log import Compaction, Log, Projection, project
from agentkit.messages import Message, Reply, Request, ToolCall, ToolSpec, Usage, assistant, system, tool_result, user
from agentkit.policies import Situation, SummariseMiddle
from agentkit.protocol import DIALECTS, violations
from agentkit.providers.base import Done, ProviderError
from agentkit.settle import NO_OUTPUT, settle

TOOLS = (ToolSpec("f", "Do."),)


def calls(*ids: str) -> Message:
    return assistant("", *(ToolCall(i, "f", "{}") for i in ids))


def valid(messages: Sequence[Message]) -> bool:
    request = Request((*messages, user("next")), TOOLS)
    return all(violations(request, dialect) == () for dialect in DIALECTS)


def shape(messages: Sequence[Message]) -> list[str]:
    return [m.tool_call_id or (m.content if m.role != "assistant" or not m.tool_calls else "call") for m in messages]


class Answers:
    """A summariser with one answer for every call, or one error; it remembers what it was asked."""

    name, model = "answers", "one"

    def __init__(self, reply: Message | Exception | Reply) -> None:
        self.reply, self.requests = reply, []

    def stream(self, request: Request) -> Any:
        self.requests.append(request)
        if isinstance(self.reply, Exception):
            raise self.reply
        yield Done(self.reply if isinstance(self.reply, Reply) else Reply(self.reply, Usage(fresh=9, output=1)))


LONG = "a long answer with many words " * 30


def decide(log: Log, provider: Any, **options: Any) -> tuple[Compaction | None, list[Any]]:
    """Do what the agent does before a request: decide, and append what was decided."""
    reports: list[Any] = []
    options = {"keep": Keep(2, "messages"), "boundary": "pair", **options}
    policy = SummariseMiddle(Compactor(provider, **options))
    record = policy.decide(log, Situation(10**6, 0, Budget(10**9, 10, "test"), TOOLS, reports.append))
    if record:
        log.compact(record)
    return record, reports


# --- A: message protocol and pairing ----------------------------------------------------------------------------------


def test_a01_an_interrupted_call_gets_an_error_result_with_its_batch_and_the_rest_is_untouched() -> None:
    history = [user("run both"), calls("c1", "c2"), tool_result("c1", "a.py"), user("stop, do X")]
    sent = settle(history)
    assert shape(sent) == ["run both", "call", "c1", "c2", "stop, do X"]
    assert sent[2] == history[2]
    assert sent[3].is_error and "interrupted" in sent[3].content
    assert settle(sent) == sent and valid(sent)
    log = Log([system("s"), *history, assistant(LONG), user("more"), assistant("ok"), user("and?")])
    assert decide(log, Answers(assistant("goal: run both")))[0] is not None
    assert valid(SummariseMiddle(Compactor(Answers(assistant("x")))).view(log))


def test_a02_a_result_without_a_call_is_not_sent_and_the_user_turns_stay_in_order() -> None:
    sent = settle([user("hi"), tool_result("x9", "stale output"), user("continue")])
    assert shape(sent) == ["hi", "continue"] and valid(sent)


def test_a03_results_of_a_batch_stand_in_the_order_of_the_calls_whatever_came_first() -> None:
    arrived = [user("q"), calls("c1", "c2", "c3"), *(tool_result(i, i) for i in ("c3", "c1", "c2"))]
    assert shape(settle(arrived)) == ["q", "call", "c1", "c2", "c3"]
    assert len(Log(arrived).messages()) == 5


def test_a05_a_note_before_the_results_moves_behind_them() -> None:
    sent = settle([user("q"), calls("c1"), user("note"), tool_result("c1", "42")])
    assert shape(sent) == ["q", "call", "c1", "note"]


def test_a06_extra_user_content_never_stands_between_two_results() -> None:
    history = [user("q"), calls("c1", "c2"), tool_result("c1", "ok"), user("[picture]"), tool_result("c2", "a.py")]
    assert shape(settle(history)) == ["q", "call", "c1", "c2", "[picture]"]


def test_a07_an_empty_answer_is_never_sent_as_empty_and_the_log_keeps_the_original() -> None:
    log = Log([user("q"), assistant("  \n", ToolCall("c1", "f")), tool_result("c1", "x"), assistant("  "), user("go")])
    sent = settle(log.messages())
    assert valid(sent) and sent[3].content.strip()
    assert log.messages()[3].content == "  "


def test_a08_silent_results_get_one_marker_and_keep_their_ids() -> None:
    sent = settle([user("q"), calls("c1", "c2"), tool_result("c1", ""), tool_result("c2", "\n\n")])
    assert [(m.tool_call_id, m.content) for m in sent[2:]] == [("c1", NO_OUTPUT), ("c2", NO_OUTPUT)]


def test_a13_empty_and_repeated_ids_are_matched_by_position_and_made_distinct() -> None:
    reply = assistant("", *(ToolCall(i, "f", f'{{"n":{n}}}') for n, i in enumerate(["", "", "k", "k"])))
    history = [user("q"), reply, *(tool_result(i, f"result {n}") for n, i in enumerate(["", "", "k", "k"]))]
    sent = settle(history)
    ids = [c.id for c in sent[1].tool_calls]
    assert len(set(ids)) == 4 and all(ids)
    assert [(m.tool_call_id, m.content) for m in sent[2:]] == [(i, f"result {n}") for n, i in enumerate(ids)]
    assert settle(history) == sent and valid(sent)


def test_a16_what_was_not_json_goes_back_as_it_came() -> None:
    broken = ToolCall("c1", "f", '{"path":"x')
    with pytest.raises(ValueError):
        broken.parsed()
    assert settle([user("q"), assistant("", broken), tool_result("c1", "refused")])[1].tool_calls == (broken,)


def test_a17_system_text_between_two_user_turns_is_kept_in_order_and_adds_no_filler() -> None:
    sent = settle([system("A"), system("B"), user("one"), system("C"), user("two")])
    text = " ".join(m.content for m in sent)
    assert [m.role for m in sent] == ["system", "system", "user", "user", "user"]
    assert text.index("A") < text.index("B") < text.index("one") < text.index("C") < text.index("two")
    assert len(sent) == 5 and valid(sent)


def test_a18_a_summary_placed_as_a_user_message_never_makes_two_user_turns_in_a_row() -> None:
    record = Compaction("SUM", "m1", placement="user")
    ahead_of_user = assemble(Projection((system("sys"),), record, (Message("user", "next", "m1"), assistant("ok"))))
    ahead_of_assistant = assemble(Projection((system("sys"),), record, (Message("assistant", "ok", "m1"), user("next"))))
    assert [m.role for m in ahead_of_user] == ["system", "user", "assistant"]
    assert [m.role for m in ahead_of_assistant] == ["system", "user", "assistant", "user"]
    text = ahead_of_user[1].content
    assert text.count("SUM") == text.count("next") == 1 and text.index("SUM") < text.index("next")


# --- B: cut point and compaction --------------------------------------------------------------------------------------

LOOP = [
    user("q"), calls("c1"), tool_result("c1", "1"), calls("c2"), tool_result("c2", "2"),
    calls("c3"), tool_result("c3", "3"), assistant("done"),
]  # fmt: skip


def test_b01_the_tail_never_starts_with_a_result_whatever_is_kept() -> None:
    assert not is_safe_cut(LOOP, 4)
    assert find_cut(LOOP, Keep(4, "messages"), "pair") == 3
    for keep in range(1, 9):
        assert valid(settle(LOOP)[find_cut(LOOP, Keep(keep, "messages"), "pair") :])


def test_b02_a_result_whose_call_was_summarised_is_never_in_the_view() -> None:
    history = [user("q"), calls("c2"), tool_result("c2", "ok"), tool_result("c1", "summarised earlier"), assistant("fin")]
    assert not is_safe_cut(history, 2)
    assert "c1" not in [m.tool_call_id for m in settle(history)]


def test_b03_a_batch_in_flight_is_not_cut_off_and_the_boundary_is_an_id() -> None:
    history = [user("q"), calls("c1", "c2"), tool_result("c1", "1")]
    assert not any(is_safe_cut(history, cut) for cut in (2, 3))
    log = Log([*LOOP, user("on")])
    record, _ = decide(log, Answers(assistant("s")))
    assert record is not None and record.first_kept in {m.id for m in log.messages()}
    log.append(assistant("later"))
    assert project(log).tail[0].id == record.first_kept


def test_b05_an_unanswered_call_in_the_tail_is_answered_in_the_view() -> None:
    history = [user("q1"), assistant("r1"), user("q2"), calls("c9")]
    log = Log(history)
    decide(log, Answers(assistant("s")))
    sent = SummariseMiddle(Compactor(Answers(assistant("x")))).view(log)
    assert sent[-1].tool_call_id == "c9" and sent[-1].is_error and valid(sent)


def test_b06_b08_the_summary_call_is_plain_text_with_no_tool_roles_and_still_names_call_and_result() -> None:
    provider = Answers(assistant("s"))
    log = Log([user("q"), calls("c1"), tool_result("c1", "12:31"), assistant(LONG), user("go"), assistant("ok")])
    decide(log, provider)
    request = provider.requests[0]
    assert request.tools == () and [m.role for m in request.messages] == ["user"]
    assert "<call f({})>" in request.messages[0].content and "12:31" in request.messages[0].content


def test_b07_a_parallel_batch_is_one_unit() -> None:
    history = [user("q"), calls("c1", "c2", "c3"), *(tool_result(f"c{n}", str(n)) for n in (1, 2, 3)), user("go on")]
    assert [is_safe_cut(history, cut) for cut in (1, 2, 3, 4, 5)] == [True, False, False, False, True]


@pytest.mark.parametrize(
    "reply",
    [
        assistant("", ToolCall("z", "sh")),  # B09
        assistant(""),  # B10
        assistant("   \n\t"),  # B10, B11
        ProviderError("peer closed", kind="broken_stream"),  # B12, B25
        Reply(assistant("half a sum"), Usage(fresh=9), "length"),
    ],
)
def test_b09_b10_b11_b12_b25_a_bad_summary_changes_nothing_and_is_called_failed(reply: Any) -> None:
    log = Log([user("q"), assistant("OLD ANSWER " + LONG), user("2"), assistant("3"), user("4")])
    before, size = project(log), len(log)
    record, reports = decide(log, Answers(reply))
    assert record is None and reports[-1].status == "failed"
    assert len(log) == size and project(log) == before
    assert not any("peer closed" in m.content or "Keep:" in m.content for m in log.messages())


def test_b14_a_failed_record_is_as_if_it_were_absent() -> None:
    log = Log([user("m1"), assistant("m2"), user("m3")])
    log.compact(Compaction("part", log.messages()[2].id, status="failed"))
    log.append(assistant("m4"))
    assert shape(assemble(project(log))) == ["m1", "m2", "m3", "m4"]


def test_b17_an_echoing_summariser_never_makes_the_summary_grow_and_there_is_one_header() -> None:
    class Echo(Answers):
        def stream(self, request: Request) -> Any:
            yield Done(Reply(assistant(request.messages[0].content), Usage(fresh=1)))

    log = Log([system("s"), user("start")])
    for n in range(5):
        log.append(assistant(f"{n} {LONG}"))
        log.append(user(f"question {n}"))
        record, _ = decide(log, Echo(assistant("")), max_summary=800)
        assert record is None or Compactor(Echo(assistant(""))).estimator.text(record.summary) <= 900
    text = "\n".join(m.content for m in assemble(project(log)))
    assert text.count("[Summary of the earlier conversation.") <= 1


def test_b18_b19_b24_the_newest_summary_counts_and_is_folded_into_the_next_exactly_once() -> None:
    provider = Answers(assistant("S2"))
    log = Log([user("one"), assistant(LONG), user("add index"), assistant("added " + LONG), user("next"), assistant("ok")])
    ids = [m.id for m in log.messages()]
    log.compact(Compaction("S0 oldest", ids[1]))
    log.compact(Compaction("S1: db is sqlite", ids[2]))
    assert decide(log, provider)[0] is not None
    asked = provider.requests[0].messages[0].content
    assert asked.count("db is sqlite") == 1 and "S0 oldest" not in asked
    assert "S2" in assemble(project(log))[0].content and "sqlite" not in assemble(project(log))[0].content
    again, reports = decide(log, provider, keep=Keep(99, "messages"))
    assert again is None and reports[-1].status == "skipped" and len(provider.requests) == 1


def test_b20_the_pending_question_is_sent_word_for_word_and_last() -> None:
    log = Log([user("do X"), assistant("X done " + LONG), user("now do Y in b.py")])
    for unit in ("messages", "turns", "tokens"):
        decide(log, Answers(assistant("X is done")), keep=Keep(1, unit))  # type: ignore[arg-type]
        assert assemble(project(log))[-1].content == "now do Y in b.py"


def test_b21_work_that_was_done_is_only_in_the_summary_and_the_list_asks_for_it_as_done() -> None:
    log = Log([user("delete build/"), calls("c1"), tool_result("c1", "ok"), assistant("deleted " + LONG),
               user("run tests"), calls("c2"), tool_result("c2", "3 passed")])  # fmt: skip
    decide(log, Answers(assistant("done: deleted build/")), keep=Keep(1, "turns"), boundary="user")
    assert shape(assemble(project(log)))[1:] == ["run tests", "call", "c2"]
    assert {"done", "in progress", "open tasks"} <= {item.split(":")[0] for item in KEEP_LIST}


def test_b22_the_system_prompt_is_the_same_to_the_byte_after_three_compactions() -> None:
    log = Log([system("RULE: tabs only"), user("start")])
    for n in range(3):
        log.append(assistant(f"{n} {LONG}"))
        log.append(user(str(n)))
        provider = Answers(assistant(f"summary {n}"))
        assert decide(log, provider, keep=Keep(1, "messages"))[0] is not None
        assert "tabs only" not in provider.requests[0].messages[0].content
    assert assemble(project(log))[0] == log.messages()[0]


def test_b23_a_long_tool_run_without_a_user_turn_is_summarised_for_real() -> None:
    provider = Answers(assistant("read x and y"))
    log = Log([calls("c1"), tool_result("c1", "x " + LONG), calls("c2"), tool_result("c2", "y"), assistant("so"), user("?")])
    record, _ = decide(log, provider)
    assert record is not None and record.summary == "read x and y" and "x a long" in provider.requests[0].messages[0].content


def test_b12_the_next_turn_may_try_again_but_not_the_next_request() -> None:
    provider = Answers(ProviderError("down", kind="server"))
    log = Log([user("1"), assistant(LONG), user("2"), assistant(LONG), user("3")])
    policy = SummariseMiddle(Compactor(provider, Keep(1, "messages"), "pair"))
    situation = Situation(10**6, 0, Budget(10**9, 10, "test"), TOOLS, lambda report: None)
    policy.decide(log, situation)
    policy.decide(log, situation)
    assert len(provider.requests) == 1
    log.append(assistant("answer"))
    log.append(user("4"))
    policy.decide(log, situation)
    assert len(provider.requests) == 2


def test_the_prompt_holds_the_transcript_and_every_item_of_the_list() -> None:
    prompt = summary_prompt(flatten([user("hello")]), ("goal: g", "mine: m"), "before")
    assert all(part in prompt for part in ("[user] hello", "- goal: g", "- mine: m", "before"))
