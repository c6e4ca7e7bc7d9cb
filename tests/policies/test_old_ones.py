"""2023 and 2024: AutoGPT, MemGPT, SWE-agent. The numbers are those of their sources."""

from __future__ import annotations

import json

import pytest
from fakes import DOWN, Scripted

from agentkit.log import Log
from agentkit.messages import Message, ToolCall, assistant, system, tool_result, user
from agentkit.policies.autogpt import AutoGpt
from agentkit.policies.autogpt import Quirks as MemoryQuirks
from agentkit.policies.autogpt_as_told import AutoGptAsTold
from agentkit.policies.autogpt_summary import AutoGptBatches, AutoGptEveryStep, Quirks
from agentkit.policies.filling import clock
from agentkit.policies.memgpt import PRESSURE, MemGpt
from agentkit.policies.memgpt_code import MemGptCode
from agentkit.policies.ranking import Bm25, WordOverlap, ranker
from agentkit.policies.swe_agent import LATER_WORDING, SweAgent
from agentkit.tools.base import ToolError
from policies.support import SMALL, Words, compactor, log_of, situation, step, texts, worked

# ------------------------------------------------------------------------------------------------------------- SWE-agent


def folded(policy: SweAgent, steps: int) -> list[int]:
    view = policy.view(log_of(worked(steps)))
    outputs = [m.content for m in view if m.role == "tool"]
    return [i for i, text in enumerate(outputs, 1) if "omitted" in text]


def test_swe_agent_folds_what_is_older_than_the_last_five() -> None:
    assert [folded(SweAgent(), n) for n in (1, 5, 6, 7)] == [[], [], [1], [1, 2]]


def test_swe_agent_polling_folds_five_at_a_time() -> None:
    counts = [len(folded(SweAgent(polling=5), n)) for n in range(5, 19)]
    assert counts == [0] * 4 + [4] * 5 + [9] * 5


def test_swe_agent_says_how_many_lines_and_touches_nothing_else() -> None:
    log = log_of(worked(6, lines=7))
    view, messages = SweAgent().view(log), log.messages()
    assert view[3].content == "Old output omitted (7 lines)" and view[3].tool_call_id == messages[3].tool_call_id
    assert view[:3] + view[4:] == messages[:3] + messages[4:]
    assert SweAgent(wording=LATER_WORDING).view(log)[3].content == "Old environment output: (7 lines omitted)"
    with pytest.raises(ValueError, match="1 or more"):
        SweAgent(polling=0)


# ------------------------------------------------------------------------------------------------------ AutoGPT, as told


class Positions:
    """Ranks by what the test says, and keeps what it was asked."""

    name = "given"

    def __init__(self, *best: int) -> None:
        self.answer, self.asked = list(best), list[tuple[str, list[str], int]]()

    def best(self, query: str, texts: list[str], k: int) -> list[int]:
        self.asked.append((query, list(texts), k))
        return self.answer[:k]


def chat(turns: int) -> list[Message]:
    return [m for n in range(turns) for m in (user(f"question {n}"), assistant(f"answer {n}"))][:-1]


def test_as_told_the_last_nine_and_ten_memories_in_the_head() -> None:
    ranking = Positions(4, 0)
    log = Log([system("rules"), *chat(10)])
    view = AutoGptAsTold(ranking=ranking).view(log)
    assert view[2:] == log.messages()[-9:]
    assert view[1].role == "system" and view[1].content.endswith("user: question 2\nuser: question 0")
    (query, earlier, k) = ranking.asked[0]
    assert (len(earlier), k) == (10, 10) and query.startswith("user: question 5") and query.endswith("question 9")


def test_as_told_a_short_history_is_sent_as_it_is() -> None:
    log = Log([system("rules"), *chat(5)])
    assert AutoGptAsTold(ranking=Positions()).view(log) == log.messages()


@pytest.mark.parametrize("ranking", [Bm25(), WordOverlap()])
def test_a_ranking_finds_the_text_with_the_words(ranking: Bm25 | WordOverlap) -> None:
    texts = [f"about {word} and more" for word in ("apples", "pears", "数据库连接", "plums")] * 40
    assert {texts[i] for i in ranking.best("which pears?", texts, 40)} == {"about pears and more"}
    assert texts[ranking.best("数据库", texts, 1)[0]].startswith("about 数据库")
    assert ranking.best("nothing of it", [], 3) == []


def test_without_bm25s_words_are_counted_and_the_name_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ranker().name == "BM25 (bm25s)"
    monkeypatch.setattr("agentkit.policies.ranking.find_spec", lambda name: None)
    assert ranker().name == "word overlap (bm25s is not installed)"


# ---------------------------------------------------------------------------------------------- AutoGPT, as in its source


def test_the_window_is_filled_newest_first_to_the_limit_minus_a_thousand() -> None:
    history = [m for n in range(30) for m in (assistant(f"a{n} " + "w " * 49), user(f"u{n} " + "w " * 49))]
    log = Log([system("rules"), *history])
    plain = MemoryQuirks(priming=False, time=False)
    view = AutoGpt(2_000, Positions(), plain, estimator=Words()).view(log)
    # 1,000 tokens of room: 1 + 3 for the base, then messages of 50 tokens each.
    assert len(view) == 1 + 19 and view[1:] == log.messages()[-19:]
    primed = AutoGpt(2_000, Positions(), MemoryQuirks(time=False), estimator=Words()).view(log)
    assert len(primed) == 1 + 18, "each message is counted with 3 tokens more"


def test_the_first_that_does_not_fit_ends_the_filling() -> None:
    history = [user("small 1"), assistant("w " * 2_000), user("small 2"), assistant("fine"), user("now")]
    log = Log([system("rules"), *history])
    assert texts(AutoGpt(1_500, Positions(), MemoryQuirks(time=False), estimator=Words()).view(log))[1:] == [
        "small 2",
        "fine",
        "now",
    ]
    goes_on = AutoGpt(1_500, Positions(), MemoryQuirks(time=False, stops=False), estimator=Words()).view(log)
    assert texts(goes_on)[1:] == ["small 1", "small 2", "fine", "now"]


def test_clock_and_memories_stand_in_the_head_and_change_each_time() -> None:
    log = log_of(worked(3))
    policy = AutoGpt(8_000, Positions(1, 0))
    first = policy.view(log)
    assert first[1].content == f"The current time and date is {clock(7)}"
    assert first[2].content.startswith("This reminds you of these events from your past:\n['Assistant Reply: step 1")
    log.append(assistant("step 3"))
    log.append(user("go on"))
    assert policy.view(log)[0] == first[0] and policy.view(log)[1] != first[1]


def test_errors_are_never_remembered() -> None:
    call = ToolCall("c", "sh")
    log = log_of(
        [user("try"), assistant("broken", call), tool_result("c", "no", is_error=True), assistant("fine"), user("go")]
    )
    ranking = Positions()
    AutoGpt(8_000, ranking).view(log)
    assert [text.split("\n")[0] for text in ranking.asked[-1][1]] == ["Assistant Reply: fine"]
    AutoGpt(8_000, ranking, MemoryQuirks(no_errors=False)).view(log)
    assert len(ranking.asked[-1][1]) == 2


def test_above_2500_tokens_the_least_similar_memories_go() -> None:
    log = log_of(worked(4, lines=1, text="w " * 998), [user("now")])
    view = AutoGpt(9_000, Positions(2, 1, 0), MemoryQuirks(time=False), estimator=Words()).view(log)
    assert "step 2" in view[1].content and "step 1" in view[1].content and "step 0" not in view[1].content
    huge = Log([system("w " * 3_000), *worked(2)])
    assert [m.role for m in AutoGpt(4_000, Positions(0), estimator=Words()).view(huge)].count("system") == 2, (
        "no memory, and no endless loop"
    )


# ------------------------------------------------------------------------------------------------- AutoGPT, running summary


def test_in_may_every_step_asks_also_when_nothing_left() -> None:
    provider, log = Scripted("I read a file."), log_of(worked(2))
    policy = AutoGptEveryStep(compactor(provider))
    for _ in range(3):
        record = step(policy, log)
        assert record is not None and record.messages == 0 and record.reason == "step"
    assert len(provider.requests) == 3 and "Nothing new happened." in provider.asked()
    assert policy.view(log)[2].content == "This reminds you of these events from your past: \nI read a file."
    quiet = AutoGptEveryStep(compactor(provider), quirks=Quirks(every_step=False))
    assert step(quiet, log_of(worked(2))) is None


def long_log() -> Log:
    return log_of(worked(10, lines=1, text="w " * 300))


def test_what_left_the_window_goes_into_the_summary_without_the_user_s_words() -> None:
    provider, log = Scripted("S1", "S2"), long_log()
    policy = AutoGptEveryStep(compactor(provider, estimator=Words()), quirks=Quirks(first_never=False))
    record = step(policy, log)
    assert record is not None and record.messages == 4
    assert "I was created." in provider.asked() and "step 1" in provider.asked() and "[user]" not in provider.asked()
    before = provider.asked()
    step(policy, log)
    assert "Nothing new happened." in provider.asked() and "step 1" not in provider.asked() != before


def test_the_first_message_is_never_summarised() -> None:
    def events(quirks: Quirks) -> str:
        turn = worked(10, lines=1, text="w " * 300)
        provider, log = Scripted("S"), Log([system("rules"), assistant("FIRST"), *turn])
        step(AutoGptEveryStep(compactor(provider, estimator=Words()), quirks=quirks), log)
        return provider.asked()

    assert "FIRST" not in events(Quirks()) and "FIRST" in events(Quirks(first_never=False))


def test_the_summary_so_far_is_handed_on_as_a_whole_dict() -> None:
    def second(quirks: Quirks) -> str:
        provider, log = Scripted("S1"), long_log()
        policy = AutoGptEveryStep(compactor(provider, estimator=Words()), quirks=quirks)
        step(policy, log)
        step(policy, log)
        return provider.asked()

    assert "{'role': 'system', 'content': 'This reminds you" in second(Quirks())
    assert "{'role'" not in second(Quirks(whole_message=False))


def test_a_text_that_is_still_in_the_window_hides_the_one_that_left() -> None:
    def events(quirks: Quirks) -> str:
        log = long_log()
        for message in (assistant("TWICE"), user("x"), *long_log().messages()[2:8], assistant("TWICE"), user("y")):
            renamed = tuple(ToolCall(f"2{c.id}", c.name, c.arguments) for c in message.tool_calls)
            answered = f"2{message.tool_call_id}" if message.tool_call_id else ""
            log.append(Message(message.role, message.content, tool_calls=renamed, tool_call_id=answered))
        provider = Scripted("S")
        step(AutoGptEveryStep(compactor(provider, estimator=Words()), 2_400, quirks=quirks), log)
        return provider.asked()

    assert "TWICE" not in events(Quirks()) and "TWICE" in events(Quirks(by_equality=False))


def test_in_june_only_what_left_is_summarised_in_batches_and_in_order() -> None:
    provider, log = Scripted("S1", "S2", "S3", "S4"), log_of(worked(20, lines=1, text="w " * 500))
    policy = AutoGptBatches(compactor(provider, estimator=Words()))
    assert step(policy, log_of(worked(2))) is None and provider.requests == []
    record = step(policy, log)
    assert record is not None and record.summary == f"S{len(provider.requests)}" and len(provider.requests) >= 3
    sizes = [Words().text(provider.asked(i)) for i in range(len(provider.requests))]
    assert max(sizes) < 4_000 + 150 and all(f"S{i}" in provider.asked(i) for i in range(1, len(sizes)))
    seen = [provider.asked(i).find("step 0") > 0 for i in range(len(sizes))]
    assert seen == [True] + [False] * (len(sizes) - 1)


def test_in_june_an_oversize_event_has_an_empty_batch_in_front() -> None:
    def asked(empty_batch: bool) -> list[str]:
        history = [user("the task"), assistant("w " * 1_990), user("and now"), *worked(2)[1:]]
        provider = Scripted("S")
        policy = AutoGptBatches(compactor(provider, estimator=Words(), clip=10**6), token_limit=2_000)
        policy.empty_batch = empty_batch
        assert step(policy, log_of(history)) is not None
        return [provider.asked(i) for i in range(len(provider.requests))]

    assert ["Nothing new happened." in text for text in asked(True)] == [True, False, False]
    assert ["Nothing new happened." in text for text in asked(False)] == [False, False]


# ----------------------------------------------------------------------------------------------------------------- MemGPT


def test_memgpt_warns_once_above_seventy_percent() -> None:
    log, policy = log_of(worked(3)), MemGpt(compactor(Scripted()))
    step(policy, log, situation(700))
    assert PRESSURE not in texts(policy.view(log))
    for _ in range(3):
        assert step(policy, log, situation(701)) is None
    assert texts(policy.view(log)).count(PRESSURE) == 1 and policy.view(log)[-1].content == PRESSURE
    before = policy.view(log)
    log.append(assistant("noted"))
    assert policy.view(log)[: len(before)] == before, "the warning stays where it was given"


def test_memgpt_evicts_the_oldest_half_of_a_window_and_it_can_be_searched() -> None:
    log = log_of(worked(10, lines=1, text="w " * 98 + "needle"), [user("now")])
    provider, reports = Scripted("S1"), []
    policy = MemGpt(compactor(provider, estimator=Words()))
    assert policy.decide(log, situation(1_000, reports=reports)) is None
    record = step(policy, log, situation(1_001))
    assert record is not None
    kept = next(i for i, m in enumerate(log.messages()) if m.id == record.first_kept)
    evicted = Words().messages(log.messages()[1:kept])
    assert 500 <= evicted <= 620 and "S1" in policy.view(log)[1].content and policy.view(log)[1].role == "system"
    search, remember = sorted(policy.tools(log), key=lambda t: t.spec.name, reverse=True)
    assert (search.spec.name, remember.spec.name) == ("search_conversation", "remember")
    assert "needle 0.0" in search.run({"query": "needle 0.0"}) and "no earlier message" in search.run({"query": "zebra"})
    with pytest.raises(ToolError, match="counted from 1"):
        search.run({"query": "needle", "page": 0})
    assert "page 2 of" in search.run({"query": "needle", "page": 2})


def test_memgpt_folds_its_summary_and_keeps_saved_facts_in_view() -> None:
    log, provider = log_of(worked(10, lines=1, text="w " * 100), [user("now")]), Scripted("S1", "S2")
    policy = MemGpt(compactor(provider, estimator=Words()))
    step(policy, log)
    next(t for t in policy.tools(log) if t.spec.name == "remember").run({"text": "the port is  8080"})
    step(policy, log)
    assert "<earlier-summary>\nS1" in provider.asked() and "less than 100 words" in provider.asked()
    assert texts(policy.view(log))[1:3] == ["Saved facts:\n- the port is 8080", policy.view(log)[2].content]
    assert "S2" in policy.view(log)[2].content


def test_memgpt_s_code_warns_at_7000_and_keeps_a_fifth_of_it() -> None:
    log, provider = log_of(worked(20, lines=1, text="w " * 398), [user("now")]), Scripted("S1", "S2")
    policy = MemGptCode(compactor(provider, estimator=Words()))
    assert step(policy, log, situation(7_000, window=200_000)) is None and PRESSURE not in texts(policy.view(log))
    step(policy, log, situation(7_001, window=200_000))
    assert PRESSURE in texts(policy.view(log))
    assert step(policy, log, situation(8_192, window=200_000)) is None, "it waits for the refusal"
    record = step(policy, log, situation(8_193, window=200_000))
    assert record is not None
    kept = log.messages()[next(i for i, m in enumerate(log.messages()) if m.id == record.first_kept) :]
    assert 900 < Words().messages(kept) <= 1_400 and len(kept) >= 3
    alert = json.loads(policy.view(log)[1].content)
    assert alert["type"] == "system_alert" and alert["message"].endswith("S1") and policy.view(log)[1].role == "user"


def test_memgpt_s_code_summarises_its_own_summary_by_position() -> None:
    def second(by_position: bool) -> str:
        log, provider = log_of(worked(20, lines=1, text="w " * 398), [user("now")]), Scripted("S1", "S2")
        policy = MemGptCode(compactor(provider, estimator=Words()), by_position=by_position)
        step(policy, log, situation(9_000, window=8_192))
        for message in [assistant("ok"), *worked(8, lines=1, text="w " * 398, question="t1")]:
            log.append(message)
        step(policy, log, situation(9_000, window=8_192))
        return provider.asked()

    assert "system_alert" in second(True) and "<earlier-summary>" not in second(True)
    assert "system_alert" not in second(False) and "<earlier-summary>\nS1" in second(False)


def test_memgpt_waits_after_a_failure_and_says_so() -> None:
    provider, log, reports = Scripted(DOWN), log_of(worked(10), [user("now")]), []
    policy = SMALL["MemGPT"](provider)
    for _ in range(3):
        step(policy, log, situation(reports=reports))
    assert len(provider.requests) == 1 and "overloaded" in str(reports)
