"""Every policy, on any history: its view is accepted everywhere, its tail is the log's, and nothing is ever lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from fakes import DOWN, FAILURES, SUMMARY, Scripted
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import TOOLS, conversations, histories

from agentkit.budget import Budget
from agentkit.compaction import Compactor, Keep, Outcome
from agentkit.compaction.compactor import summary_message
from agentkit.log import Compaction, Log, project
from agentkit.messages import Message, Request, assistant, system, user
from agentkit.policies import KeepEverything, Policy, Situation, SummariseMiddle
from agentkit.protocol import DIALECTS, violations
from agentkit.settle import settle

BUDGET = Budget(10**9, 100, "for the test")

CONFIGURATIONS = {
    f"{unit}-{boundary}-{placement}": {"keep": Keep(amount, unit), "boundary": boundary, "placement": placement}  # type: ignore[arg-type]
    for unit, amount in (("messages", 2), ("turns", 1), ("tokens", 60))
    for boundary in ("user", "pair")
    for placement in ("system", "user")
}

Maker = Callable[[Scripted], Policy]


def maker(options: dict[str, object]) -> Maker:
    return lambda provider: SummariseMiddle(Compactor(provider, **options))  # type: ignore[arg-type]


SUMMARISING: dict[str, Maker] = {name: maker(options) for name, options in CONFIGURATIONS.items()}
POLICIES: dict[str, Maker] = {"keep everything": lambda provider: KeepEverything(), **SUMMARISING}
# Drawn, not parametrised: a history in a hundred finds a fault in any of them, and the tests take a tenth of the time.
every_policy = st.sampled_from(sorted(POLICIES))
every_summariser = st.sampled_from(sorted(SUMMARISING))

ANSWERS = st.sampled_from([SUMMARY, SUMMARY, SUMMARY, *FAILURES.values()])
many = settings(max_examples=300)
some = settings(max_examples=100)
few = settings(max_examples=25)  # for each of the twelve ways to summarise


def situation(reports: list[str | Outcome], estimate: int = 10**6) -> Situation:
    return Situation(estimate, 10, BUDGET, TOOLS, reports.append)


def step(policy: Policy, log: Log, reports: list[str | Outcome] | None = None) -> Compaction | None:
    """Do what the agent does before a request: let the policy decide, and append what it decided."""
    record = policy.decide(log, situation([] if reports is None else reports))
    if record is not None:
        log.compact(record)
    return record


def refused(policy: Policy, log: Log) -> list[str]:
    request = Request(policy.view(log), TOOLS)
    return [f"{d}: {v.text}" for d in DIALECTS for v in violations(request, d)]


@many
@given(name=every_policy, history=histories(), more=histories(), answers=st.lists(ANSWERS, min_size=2, max_size=2))
def test_any_history_gives_a_view_that_every_api_takes(
    name: str, history: list[Message], more: list[Message], answers: list[str]
) -> None:
    """Also after a second compaction, and also with messages that came in between."""
    policy, log = POLICIES[name](Scripted(*answers)), Log([*history, user("first question")])
    for addition in ([], [*more, user("second question")]):
        for message in addition:
            log.append(message if not message.id else Message(**{**message.__dict__, "id": ""}))
        step(policy, log)
        assert refused(policy, log) == []


@many
@given(name=every_policy, history=histories(), answer=ANSWERS)
def test_the_same_log_gives_the_same_view_in_a_fresh_policy_too(name: str, history: list[Message], answer: str) -> None:
    policy, log = POLICIES[name](Scripted(answer)), Log([*history, user("go on")])
    step(policy, log)
    entries = tuple(log)
    seen = policy.view(log)
    assert policy.view(log) == seen == POLICIES[name](Scripted("another summary")).view(log)
    assert tuple(log) == entries


@many
@given(name=every_policy, history=histories(), answer=ANSWERS)
def test_deciding_appends_nothing_by_itself_and_nothing_leaves_the_log(
    name: str, history: list[Message], answer: str
) -> None:
    policy, log = POLICIES[name](Scripted(answer)), Log([*history, user("go on")])
    entries, messages = tuple(log), log.messages()
    record = policy.decide(log, situation([]))
    assert tuple(log) == entries
    if record is not None:
        log.compact(record)
    assert tuple(log)[: len(entries)] == entries
    assert log.messages() == messages


@many
@given(name=every_policy, conversation=conversations(), answer=ANSWERS)
def test_the_system_prompt_is_never_touched(name: str, conversation: list[Message], answer: str) -> None:
    provider = Scripted(answer)
    policy, log = POLICIES[name](provider), Log([system("RULE: tabs only"), *conversation, user("go on")])
    step(policy, log)
    head = project(log).head
    assert policy.view(log)[: len(head)] == head == log.messages()[: len(head)]
    assert all("RULE: tabs only" not in provider.asked(i) for i in range(len(provider.requests)))


@many
@given(name=every_summariser, history=histories() | conversations(), failure=st.sampled_from(list(FAILURES.values())))
def test_a_failed_summary_changes_nothing(name: str, history: list[Message], failure: str) -> None:
    policy, log = POLICIES[name](Scripted(failure)), Log([*history, user("go on")])
    before, entries = policy.view(log), tuple(log)
    reports: list[str | Outcome] = []
    assert step(policy, log, reports) is None
    assert (policy.view(log), tuple(log)) == (before, entries)
    assert [r.status for r in reports if isinstance(r, Outcome)] in (["failed"], ["skipped"])


def test_the_tail_is_the_log_s_to_the_byte() -> None:
    seen: Counter[str] = Counter()

    @few
    @given(conversation=conversations(min_turns=2))
    def check(name: str, conversation: list[Message]) -> None:
        log = Log([*conversation, user("go on")])
        policy = SUMMARISING[name](Scripted())
        record = step(policy, log)
        seen[name] += record is not None
        messages, view = log.messages(), policy.view(log)
        if record is None:
            assert view == messages
            return
        size = len(project(log).head)
        start = next(i for i, m in enumerate(messages) if m.id == record.first_kept)
        tail = messages[start:]
        summary = summary_message(record)
        if record.placement == "user" and tail[0].role == "user":
            assert view[size] == Message(**{**tail[0].__dict__, "content": f"{summary.content}\n\n{tail[0].content}"})
            assert view[:size] + view[size + 1 :] == messages[:size] + tail[1:]
        else:
            assert view == (*messages[:size], summary, *tail)
        assert start - size == record.messages > 0
        assert view[-1].content.endswith("go on")

    for name in SUMMARISING:
        check(name)
    assert min(seen[name] for name in SUMMARISING) >= 3, seen


def test_each_compaction_folds_the_one_before() -> None:
    seen: Counter[str] = Counter()

    @few
    @given(rounds=st.lists(conversations(min_turns=2, max_turns=2), min_size=3, max_size=3))
    def check(name: str, rounds: list[list[Message]]) -> None:
        policy, log, done = SUMMARISING[name](provider := Scripted()), Log(), 0
        for conversation in rounds:
            for message in [*_renamed(conversation, len(log)), user("go on")]:
                log.append(message)
            provider.answers = (f"SUMMARY-{done}",)
            if not step(policy, log):
                continue
            # Every call whose answer counted was shown the summary in force, once, and no older one.
            if done:
                assert provider.asked().count(f"SUMMARY-{done - 1}") == 1
            assert all(f"SUMMARY-{n}" not in provider.asked() for n in range(done - 1))
            done += 1
            text = "\n".join(m.content for m in policy.view(log))
            assert text.count(f"SUMMARY-{done - 1}") == 1
            assert text.count("SUMMARY-") == 1
        seen[name] += done >= 2

    def _renamed(conversation: list[Message], number: int) -> list[Message]:
        """Give the calls of a later conversation ids of their own, and leave its system prompt out."""
        return [
            m if m.role != "tool" and not m.tool_calls else _with_ids(m, number) for m in conversation if _wanted(m, number)
        ]

    for name in SUMMARISING:
        check(name)
    assert min(seen[name] for name in SUMMARISING) >= 3, seen


def _wanted(message: Message, number: int) -> bool:
    return number == 0 or message.role != "system"


def _with_ids(message: Message, number: int) -> Message:
    calls = tuple(type(c)(f"r{number}-{c.id}", c.name, c.arguments) for c in message.tool_calls)
    answered = f"r{number}-{message.tool_call_id}" if message.tool_call_id else ""
    return Message(**{**message.__dict__, "tool_calls": calls, "tool_call_id": answered})


# ---------------------------------------------------------------------------------------------------------- one by one


@some
@given(histories())
def test_keep_everything_shows_the_whole_settled_branch(history: list[Message]) -> None:
    log = Log(history)
    assert KeepEverything().view(log) == settle(log.messages())
    assert KeepEverything().decide(log, situation([])) is None


LONG = "the module reads its settings from a file " * 20


def grown() -> Log:
    return Log([system("rules"), user(LONG), assistant(LONG), user("second"), assistant("ok"), user("third")])


def policy_with(provider: Scripted) -> SummariseMiddle:
    return SummariseMiddle(Compactor(provider, keep=Keep(1)))


def test_below_the_threshold_nothing_happens() -> None:
    provider, reports = Scripted(), list[str | Outcome]()
    assert policy_with(provider).decide(grown(), situation(reports, BUDGET.threshold - 1)) is None
    assert (provider.requests, reports) == ([], [])


def test_at_the_threshold_the_attempt_and_its_outcome_are_reported() -> None:
    provider, reports = Scripted(), list[str | Outcome]()
    record = policy_with(provider).decide(grown(), situation(reports, BUDGET.threshold))
    assert record is not None and record.policy == "summarise the middle"
    first, second = reports
    assert first == "summarising 4 messages …"
    assert isinstance(second, Outcome) and second.status == "done"


def test_the_limit_of_the_budget_holds_for_the_new_view_with_the_tools() -> None:
    reports = list[str | Outcome]()
    small = Situation(10**6, 10**9, BUDGET, TOOLS, reports.append)
    assert policy_with(Scripted()).decide(grown(), small) is None
    assert isinstance(reports[-1], Outcome) and reports[-1].reason.startswith("still over the limit")


def test_within_a_turn_a_failed_summary_is_not_tried_again() -> None:
    provider, log = Scripted(DOWN), grown()
    policy = policy_with(provider)
    for _ in range(20):
        step(policy, log)
        log.append(assistant("working on it"))
    assert len(provider.requests) == 1


def test_a_new_turn_tries_again_and_a_success_forgets_the_failures() -> None:
    provider, log = Scripted(DOWN, SUMMARY, DOWN, SUMMARY), grown()
    policy = policy_with(provider)
    results = []
    for n in range(4):
        results.append(step(policy, log) is not None)
        for message in (assistant(LONG), user(f"question {n}")):
            log.append(message)
    assert results == [False, True, False, True]


def test_after_three_failures_the_context_has_to_grow_by_a_fifth() -> None:
    provider, log = Scripted(DOWN), grown()
    policy = policy_with(provider)
    for n in range(20):
        policy.decide(log, situation([], 10_000))
        log.append(user(f"question {n}"))
    assert len(provider.requests) == 3
    policy.decide(log, situation([], 11_999))
    assert len(provider.requests) == 3
    policy.decide(log, situation([], 12_000))
    assert len(provider.requests) == 4


def test_nothing_to_summarise_is_a_skip_and_no_failure() -> None:
    provider, reports = Scripted(), list[str | Outcome]()
    log = Log([system("rules"), user(LONG)])
    policy = policy_with(provider)
    assert policy.decide(log, situation(reports)) is None
    assert [r.status for r in reports if isinstance(r, Outcome)] == ["skipped"]
    assert provider.requests == []


@some
@given(conversation=conversations(min_turns=2))
def test_a_rewind_to_before_a_compaction_shows_the_originals_again(conversation: list[Message]) -> None:
    log, policy = Log([*conversation, user("go on")]), policy_with(Scripted())
    before, size = policy.view(log), len(log)
    step(policy, log)
    log.append(assistant("done"))
    log.rewind(size - 1)
    assert policy.view(log) == before
