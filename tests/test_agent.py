"""The loop: bounded, checked before every request, and never without an answer to every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentkit import events
from agentkit.agent import NOT_RUN, SYSTEM_PROMPT, Agent
from agentkit.budget import Budget, BudgetError
from agentkit.calibration import SelfCalibrating
from agentkit.connect import simulated
from agentkit.messages import Message, Reply, Request, ToolCall, ToolSpec, Usage, assistant
from agentkit.protocol import DIALECTS, violations
from agentkit.providers.base import Done, ProviderError
from agentkit.scenarios import FOUR_QUESTIONS, Settings, ask, four_questions, start
from agentkit.simulator import Fault
from agentkit.tools import Tool, Toolbox


class Scripted:
    """A provider that gives the answers of a list, one after the other."""

    name, model = "scripted", "list"

    def __init__(self, *replies: Reply | Message | Exception) -> None:
        self.replies, self.requests = list(replies), []

    def stream(self, request: Request) -> Any:
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        yield Done(reply if isinstance(reply, Reply) else Reply(reply, Usage(fresh=10, output=2)))


def box(run: Callable[..., str] = lambda arguments: "done") -> Toolbox:
    return Toolbox([Tool(ToolSpec("work", "Work.", {"type": "object", "properties": {}}), run)])


def call(n: int) -> ToolCall:
    return ToolCall(f"c{n}", "work", "{}")


def assert_valid(agent: Agent) -> None:
    for dialect in DIALECTS:
        request = Request((*agent.request().messages, Message("user", "next")), agent.tools.specs)
        assert violations(request, dialect) == ()


def test_a_turn_ends_with_the_models_answer_and_counts_its_rounds() -> None:
    agent = Agent(Scripted(assistant("", call(1)), assistant("", call(2)), assistant("all done")), tools=box())
    assert agent.run("go") == events.TurnEnded("all done", 3, "answered")
    assert [m.role for m in agent.log.messages()] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]


def test_a_turn_is_bounded_and_the_next_one_is_valid() -> None:
    agent = Agent(Scripted(*(assistant("", call(n)) for n in range(3)), assistant("ok")), tools=box(), max_rounds=3)
    assert agent.run("go").reason == "too many rounds"
    assert_valid(agent)
    assert agent.run("and now?").text == "ok"


def test_parallel_calls_are_all_answered_in_the_order_of_the_calls() -> None:
    agent = Agent(Scripted(assistant("", call(1), call(2), call(3)), assistant("ok")), tools=box())
    agent.run("go")
    assert [m.tool_call_id for m in agent.log.messages() if m.role == "tool"] == ["c1", "c2", "c3"]


def test_an_answer_that_was_cut_off_runs_no_tool_and_leaves_no_call_open() -> None:
    ran: list[Any] = []
    cut = Reply(assistant("I will", call(1)), Usage(fresh=5), "length")
    agent = Agent(Scripted(cut), tools=box(lambda arguments: ran.append(1) or "x"))
    assert agent.run("go").reason == "cut off"
    assert ran == []
    assert agent.log.messages()[-1].content == NOT_RUN
    assert_valid(agent)


def test_ctrl_c_in_a_tool_answers_every_call_and_passes_on() -> None:
    def stop(arguments: Any) -> str:
        raise KeyboardInterrupt

    agent = Agent(Scripted(assistant("", call(1), call(2)), assistant("fine")), tools=box(stop))
    with pytest.raises(KeyboardInterrupt):
        agent.run("go")
    assert [m.tool_call_id for m in agent.log.messages() if m.role == "tool"] == ["c1", "c2"]
    assert_valid(agent)
    assert agent.run("go on").text == "fine"


def test_a19_a_failed_request_leaves_a_log_that_can_go_on() -> None:
    agent = Agent(Scripted(ProviderError("down; try again", kind="server"), assistant("back")), tools=box())
    with pytest.raises(ProviderError):
        agent.run("go")
    assert agent.log.messages()[-1].content == "go"
    assert_valid(agent)
    assert agent.run("still there?").text == "back"


def test_a04_both_calls_are_answered_whatever_the_request_asked_for() -> None:
    agent = Agent(Scripted(assistant("", ToolCall("b0", "work"), ToolCall("b1", "nothing")), assistant("ok")), tools=box())
    agent.run("go")
    results = {m.tool_call_id: m.is_error for m in agent.log.messages() if m.role == "tool"}
    assert results == {"b0": False, "b1": True}


def test_a16_arguments_that_are_not_json_are_refused_and_stay_as_they_came() -> None:
    broken = ToolCall("c1", "work", '{"path":"x')
    agent = Agent(Scripted(assistant("", broken), assistant("ok")), tools=box())
    agent.run("go")
    result = next(m for m in agent.log.messages() if m.role == "tool")
    assert result.is_error and "JSON" in result.content and "\n" not in result.content
    assert agent.log.messages()[2].tool_calls == (broken,)


def test_the_budget_is_checked_before_every_request_not_once_a_turn() -> None:
    seen: list[int] = []
    agent = Agent(
        Scripted(assistant("", call(1)), assistant("", call(2)), assistant("ok")),
        tools=box(lambda arguments: "word " * 500),
        on_context_usage=lambda estimate, limit, last: seen.append(estimate),
    )
    agent.run("one question")
    assert len(seen) == 3
    assert seen[1] - seen[0] > 500 and seen[2] - seen[1] > 500


def test_an_estimate_is_compared_with_the_bill_of_the_same_request_only() -> None:
    run = four_questions()
    sent = [e for e in run.events if isinstance(e, events.Sent)]
    assert [b.estimate for b in run.bills] == [s.estimate for s in sent]
    assert [b.request for b in run.bills] == [s.request for s in sent]
    assert all(abs(b.error or 0) < 400 for b in run.bills)


def test_three_callbacks_and_the_stream_tell_the_same() -> None:
    usage, lines, done = [], [], []
    provider = simulated()
    settings = Settings()
    agent = Agent(
        provider,
        tools=start().agent.tools,
        policy=settings.policy(provider),
        budget=Budget.ratio(4_000),
        on_context_usage=lambda *a: usage.append(a),
        on_compaction_log=lines.append,
        on_compacted=done.append,
    )
    stream: list[events.Event] = []
    agent.listeners.append(stream.append)
    for question in FOUR_QUESTIONS:
        agent.run(question)
    assert len(usage) == sum(isinstance(e, events.ContextUsage) for e in stream) == len(agent.bills)
    assert lines == [e.text for e in stream if isinstance(e, events.CompactionLog)]
    assert done == [e.compaction for e in stream if isinstance(e, events.Compacted)]
    assert len(done) == 1


def test_a_budget_smaller_than_the_fixed_prefix_is_refused_at_once_with_what_to_do() -> None:
    with pytest.raises(BudgetError, match="use a budget of at least"):
        start(Settings(budget=1_000))
    needed = int(
        str(pytest.raises(BudgetError, start, Settings(budget=1_000)).value)
        .split("at least ")[1]
        .split(" ")[0]
        .replace(",", "")
    )
    assert four_questions(Settings(budget=needed)).answers[0]


def test_the_system_prompt_holds_nothing_that_changes() -> None:
    import re

    assert not re.search(r"\d|date|time", SYSTEM_PROMPT)


# --- the M4 conversation ----------------------------------------------------------------------------------------------


def test_the_m4_run_compacts_once_and_the_first_wording_is_gone() -> None:
    run = four_questions(Settings(budget=4_000, keep=4))
    assert len(run.compactions) == 1
    before, after = run.bills[-2].usage, run.bills[-1].usage
    assert before is not None and after is not None
    assert after.prompt < before.prompt / 2
    assert after.cache_read < before.cache_read / 2
    assert run.compactions[0].compaction.messages == 6
    assert "40 methods" in run.answers[0]
    assert "91" in run.answers[1]
    assert "285" in run.answers[2]
    assert "no longer in my context" in run.answers[3]
    assert FOUR_QUESTIONS[0] not in run.answers[3]
    assert "big_service.py" in run.answers[3]


def test_nothing_leaves_the_log_by_a_compaction() -> None:
    kept, lossy = four_questions(Settings(compact=False)), four_questions(Settings())
    assert [m.content for m in lossy.agent.log.messages()][:-1] == [m.content for m in kept.agent.log.messages()][:-1]


def test_with_keep_1_the_file_is_read_again() -> None:
    def reads(keep: int) -> int:
        called = [e for e in four_questions(Settings(keep=keep)).events if isinstance(e, events.ToolCalled)]
        return sum(e.call.name == "read_file" for e in called)

    assert reads(4) == 1
    assert reads(1) == 2


def test_with_a_large_budget_nothing_is_compacted_and_the_wording_is_there() -> None:
    run = four_questions(Settings(budget=40_000))
    assert run.compactions == []
    assert FOUR_QUESTIONS[0] in run.answers[3]


def test_with_only_open_tasks_on_the_list_it_no_longer_knows_which_files_it_read() -> None:
    from agentkit.compaction.prompts import ONLY_OPEN_TASKS

    question = "Which files have you read?"
    full = ask(four_questions(Settings()), [question])
    poor = ask(four_questions(Settings(keep_list=ONLY_OPEN_TASKS)), [question])
    assert "big_service.py" in full.answers[-1]
    assert "big_service.py" not in poor.answers[-1]


@pytest.mark.parametrize("kind", ["empty_summary", "long_summary", "tool_call_summary"])
def test_a_bad_summary_changes_nothing_and_the_event_says_why(kind: Any) -> None:
    # A summary that is too long is cut off and asked for again, terser; so that one has to go wrong twice.
    run = four_questions(provider=simulated(faults=[Fault(kind, times=2 if kind == "long_summary" else 1)]))
    outcomes = [e.outcome for e in run.events if isinstance(e, events.CompactionLog) and e.outcome]
    failed = [o for o in outcomes if o.status == "failed"]
    assert len(failed) == 1 and failed[0].reason
    assert run.agent.log.compactions() == ()
    assert FOUR_QUESTIONS[0] in run.answers[3]


def test_a_second_compaction_folds_the_first_and_system_text_survives_both() -> None:
    more = [
        *FOUR_QUESTIONS,
        "Read stats.py and config.json.",
        "Read build.log.",
        "How many lines is stats.py?",
        "Which files have you read?",
    ]
    run = ask(start(Settings(keep=2)), more)
    assert len(run.compactions) >= 2
    view = run.agent.request().messages
    assert view[0].content == SYSTEM_PROMPT
    assert sum(m.content.startswith("[Summary of the earlier") for m in view) == 1
    assert "big_service.py" in run.answers[-1]


def test_the_placement_as_a_user_message_works_as_well() -> None:
    run = four_questions(Settings(placement="user"))
    assert len(run.compactions) == 1
    roles = [m.role for m in run.agent.request().messages]
    assert "user user" not in " ".join(roles)
    assert "no longer in my context" in run.answers[3]


def test_a_learning_estimator_gets_closer_as_the_rounds_go_by() -> None:
    run = four_questions(Settings(compact=False), estimator=SelfCalibrating())
    errors = [abs(b.error or 0) / (b.usage.prompt if b.usage else 1) for b in run.bills]
    assert errors[-1] < 0.02 < errors[0]
