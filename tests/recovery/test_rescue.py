"""After an overflow: every fault at every provider under every recovery policy, and each promise by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentkit import events
from agentkit.budget import Budget
from agentkit.compaction.compactor import assemble
from agentkit.console import describe, to_json
from agentkit.ledger import Ledger
from agentkit.log import Compaction, Log, project
from agentkit.messages import Message, Request, ToolCall, assistant, tool_result, user
from agentkit.policies import KeepEverything, Situation
from agentkit.recovery.steps import GOOSE, RECOVERIES, make_recovery
from agentkit.recovery.truncation import TRUNCATION, shown
from agentkit.settle import settle
from agentkit.simulator import KINDS, PROFILES, Fault
from recovery.support import LINE, ask, assert_sound, keeping, read_tool, start, summarising

QUESTIONS = ("Read a.py.", "How many lines is a.py?", "Thanks.", "What was the very first question I asked you?")


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_ends_in_answers_or_in_one_clear_error(kind: Any, profile: str, recovery: str) -> None:
    for policy in (summarising, keeping):
        ran = start(profile, recovery, [Fault(kind, seconds=0.001, after=1)], policy=policy, budget=Budget.ratio(3_000))
        assert_sound(ask(ran, *QUESTIONS), len(QUESTIONS))


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_that_never_ends_is_bounded_too(kind: Any, profile: str, recovery: str) -> None:
    ran = start(profile, recovery, [Fault(kind, times=500, seconds=0.001)], budget=Budget.ratio(3_000))
    ask(ran, *QUESTIONS)
    assert_sound(ran, len(QUESTIONS))
    assert len(ran.answered) <= 40


HISTORY = [m for n in range(12) for m in (user(f"{n} {LINE * 12}"), assistant(f"answer {n}"))]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ["overflow", "overflow_in_stream", "overflow_stop"])
def test_once_compacts_once_and_asks_once_more(profile: str, kind: Any) -> None:
    ran = start(profile, "once", [Fault(kind)], history=HISTORY, budget=Budget.ratio(9_000, 0.9))
    ask(ran, "Thanks.")
    assert_sound(ran, 1, HISTORY)
    assert ran.ended[0].reason == "answered"
    (compacted,) = ran.of(events.Compacted)
    assert compacted.compaction.reason == "overflow" and compacted.tokens_after < compacted.tokens_before
    assert ran.count(events.Sent) == 2 and len(ran.answered) == 3
    (told,) = ran.of(events.Recovered)
    assert describe(told).startswith("[recovery] a forced compaction: ") and '"Recovered"' in to_json(told)


@pytest.mark.parametrize("profile", PROFILES)
def test_once_means_once(profile: str) -> None:
    ran = start(profile, "once", [Fault("overflow", times=9, hits="turn")], history=HISTORY, budget=Budget.ratio(9_000, 0.9))
    ask(ran, "Thanks.")
    assert ran.error is not None and ran.error.kind == "overflow"
    assert ran.count(events.Sent) == 2 and ran.count(events.Compacted) == 1
    assert "recovery 'once' did not help" in str(ran.error) and "the largest:" in str(ran.error)


@pytest.mark.parametrize("profile", PROFILES)
def test_goose_takes_two_compactions_and_then_leaves_the_oldest_out(profile: str) -> None:
    faults = [Fault("overflow", hits="turn", window=window) for window in (2_500, 1_100, 800)]
    ran = start(
        profile,
        "goose",
        faults,
        history=HISTORY,
        budget=Budget.ratio(9_000, 0.9),
        policy=lambda provider: summarising(provider, keep=10),
    )
    ask(ran, "Thanks.")
    steps = [e.step for e in ran.of(events.Recovered)]
    assert ran.error is None or "thrashing" in str(ran.error)
    assert steps[:2] == ["a forced compaction, 2 messages fewer kept", "a forced compaction, 4 messages fewer kept"]
    assert steps[2].startswith("truncation") and len(steps) == 3
    records = ran.agent.log.compactions()
    kept = [len(project(ran.agent.log.at(e.seq)).tail) for e in ran.agent.log if e.compaction]
    assert kept == [9, 7, 4]  # 8 and 6 messages, moved back to the start of a turn
    assert records[-1].policy == TRUNCATION


def test_a_terser_summary_is_asked_for() -> None:
    asked: list[str] = []
    ran = start("openai", "goose", [Fault("overflow", hits="turn")], history=HISTORY, budget=Budget.ratio(9_000, 0.9))
    simulator = ran.provider.simulator  # type: ignore[attr-defined]
    reader = simulator._reader
    simulator._reader = lambda request: asked.append(request.messages[-1].content) or reader(request)
    ask(ran, "Thanks.")
    summaries = [text for text in asked if "<history>" in text]
    assert len(summaries) == 1 and "Write at most 666 words" in summaries[0]


def test_none_reports_and_changes_nothing() -> None:
    ran = start("openai", "none", [Fault("overflow")], history=HISTORY, budget=Budget.ratio(9_000, 0.9))
    ask(ran, "Thanks.")
    assert ran.error is not None and ran.error.status == 400
    assert len(ran.answered) == 1 and ran.agent.log.compactions() == ()


@pytest.mark.parametrize("recovery", ["once", "goose"])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_policy_that_cannot_compact_is_truncated_and_the_log_says_so(profile: str, recovery: str) -> None:
    ran = start(profile, recovery, [Fault("overflow")], history=HISTORY, policy=keeping, budget=Budget.ratio(90_000))
    ask(ran, "Thanks.", "Hello.")
    assert_sound(ran, 2, HISTORY)
    (record,) = ran.agent.log.compactions()
    assert record.policy == TRUNCATION and record.messages == 21 and "21 more messages were left out" in record.summary
    view = ran.agent.request().messages
    assert len(view) < 10 and "21 more messages were left out" in view[0].content
    assert describe(ran.of(events.Compacted)[0]).startswith("[compaction] 21 messages left out")
    assert len(ran.agent.log.messages()) == len(HISTORY) + 4


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("policy", [summarising, keeping])
def test_an_answer_cut_off_by_the_window_forces_a_compaction_before_the_next_request(profile: str, policy: Any) -> None:
    ran = start(profile, "once", [Fault("cut_by_window")], history=HISTORY, policy=policy, budget=Budget.ratio(90_000))
    ask(ran, "Thanks.")
    assert ran.ended[0].reason == "cut off" and ran.agent.log.compactions() == ()
    ask(ran, "Hello.")
    assert ran.ended[1].reason == "answered"
    order = [type(e).__name__ for e in ran.events if isinstance(e, events.Sent | events.Compacted)]
    assert order == ["Sent", "Compacted", "Sent"]
    assert_sound(ran, 2, HISTORY)


def test_after_a_refused_compaction_an_oversized_request_is_not_sent() -> None:
    faults = [Fault("empty_summary", times=9)]
    ran = start("openai", "once", faults, history=HISTORY, budget=Budget.ratio(2_000))
    ask(ran, "Thanks.")
    assert ran.error is not None and "the summary is empty" in str(ran.error) and "2,000" in str(ran.error)
    assert ran.count(events.Sent) == 0
    rescued = start("openai", "goose", faults, history=HISTORY, budget=Budget.ratio(2_000))
    ask(rescued, "Thanks.")
    assert rescued.ended[0].reason == "answered"
    assert rescued.agent.log.compactions()[-1].policy == TRUNCATION


# --- one message that is larger than everything -------------------------------------------------------------------------


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("profile", PROFILES)
def test_one_question_larger_than_the_window_ends_after_at_most_two_compactions(profile: str, recovery: str) -> None:
    window = {"simulator": {"window": 24_000}, "budget": Budget.ratio(24_000)}
    ran = start(profile, recovery, history=HISTORY, **window)
    ask(ran, LINE * 2_000)
    assert ran.error is not None and ran.error.kind == "overflow"
    tries = sum(o.outcome.calls for o in ran.of(events.CompactionLog) if o.outcome)
    assert tries <= 2 and ran.count(events.Compacted) <= 2
    assert len(ran.answered) <= 3 and ran.refused == []
    if recovery != "none":
        assert "shorten the question or put it into a file" in str(ran.error) and "a user message" in str(ran.error)
    assert ran.agent.log.messages()[-1].content == LINE * 2_000


@pytest.mark.parametrize("profile", PROFILES)
def test_results_that_are_larger_than_the_window_are_shown_by_their_start(profile: str) -> None:
    calls = [ToolCall(f"c{n}", "read_file", '{"path": "a.py"}') for n in range(8)]

    def reader(request: Request) -> Message:
        return assistant("Done.") if request.messages[-1].role == "tool" else assistant("", *calls)

    window = {"simulator": {"window": 24_000, "reader": reader}, "budget": Budget.ratio(24_000)}
    ran = start(profile, "goose", history=HISTORY, tools=read_tool(LINE * 3_000), **window)
    ask(ran, "Read a.py, eight times.")
    assert_sound(ran, 1, HISTORY)
    assert ran.ended[0].text == "Done."
    assert sum(o.outcome.calls for o in ran.of(events.CompactionLog) if o.outcome) <= 2
    results = [m for m in ran.agent.request().messages if m.role == "tool"]
    assert [m.tool_call_id for m in results] == [c.id for c in calls]
    assert all(m.content.startswith(LINE) and "left out to save context" in m.content for m in results)
    whole = [m for m in ran.agent.log.messages() if m.role == "tool"]
    assert all(len(m.content) > 15_000 for m in whole)


class Useless:
    """A policy that compacts before every request and gains next to nothing."""

    name = "useless"

    def decide(self, log: Log, situation: Situation) -> Compaction:
        first = project(log).tail[1 if log.compactions() else 2]
        return Compaction("the first question was about compute " * 14, first.id, 1, policy=self.name)

    def view(self, log: Log) -> tuple[Message, ...]:
        return settle(assemble(project(log)))


def test_the_guard_stops_compactions_that_gain_nothing_and_says_so_once() -> None:
    ran = start("openai", "once", history=HISTORY, budget=Budget(90_000, 1_000, "for the test"))
    ran.agent.policy = Useless()
    ask(ran, *["Thanks."] * 6)
    assert_sound(ran, 6, HISTORY)
    assert ran.count(events.Compacted) == 1
    (notice,) = ran.of(events.Notice)
    assert "compaction no longer helps" in notice.text and "starts at 1,000" in notice.text
    assert "the budget is 90,000" in notice.text and "Raise the budget" in notice.text
    ask(ran, LINE * 2, LINE * 2)
    assert ran.count(events.Compacted) > 1  # it has grown by a twentieth


# --- what is learned ----------------------------------------------------------------------------------------------------


def test_the_window_of_an_error_is_the_budget_from_then_on() -> None:
    ran = start("openai", "once", history=HISTORY, budget=Budget.ratio(90_000), simulator={"window": 2_500})
    ask(ran, "Thanks.", "Hello.")
    assert_sound(ran, 2, HISTORY)
    assert ran.agent.budget.limit < 4_000 and ran.agent.budget.threshold < ran.agent.budget.limit
    assert ran.agent.rescue.window is not None


def test_with_a_known_window_nothing_too_long_is_sent() -> None:
    ran = start("openai", "once", history=HISTORY, budget=Budget.ratio(90_000), simulator={"window": 2_500}, window=2_500)
    ask(ran, "Thanks.")
    assert_sound(ran, 1, HISTORY)
    # The summariser did not know it; its call was refused once and then fitted.
    assert ran.count(events.Sent) == 1 and ran.answered.count(400) == 1


def test_a_recovery_can_be_made_of_other_steps_and_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(ValueError, match="none, once, goose"):
        make_recovery("twice")
    twice = replace(GOOSE, name="two compactions", steps=GOOSE.steps[:2])
    assert make_recovery(twice) is twice and twice.most_requests == 6


def test_an_agent_takes_up_another_recovery_in_the_middle_of_a_conversation() -> None:
    ran = start("openai", "none", [Fault("overflow"), Fault("overflow")], history=HISTORY, budget=Budget.ratio(9_000, 0.9))
    ask(ran, "Thanks.")
    assert ran.error is not None and ran.ended == []
    ran.agent.use_recovery("once")
    assert ran.agent.run("Thanks.").reason == "answered"


def test_a_ledger_is_rescued_like_a_log_and_shows_the_same_when_it_is_opened_again(tmp_path: Path) -> None:
    file = tmp_path / "run.db"
    with Ledger(file) as ledger:
        for message in (user("read"), assistant("", ToolCall("c1", "read_file")), tool_result("c1", LINE * 900), *HISTORY):
            ledger.append(message)
        ran = start("openai", "goose", [Fault("overflow")], policy=keeping, log=ledger, budget=Budget.ratio(90_000))
        ask(ran, "Thanks.")
        assert ran.ended[0].reason == "answered"
        view = ran.agent.request().messages
    with Ledger(file) as again:
        assert again.compactions()[0].policy == TRUNCATION
        assert shown(KeepEverything().view(again), again) == view
