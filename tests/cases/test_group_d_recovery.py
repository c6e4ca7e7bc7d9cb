"""Public bug reports about overflow, retries and loops (group D, B15, C13), as small inputs with the right result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import httpx
import pytest
from fakes import SUMMARY, Scripted
from strategies import PICTURE, TOOLS

from agentkit import events
from agentkit.agent import Agent
from agentkit.budget import Budget
from agentkit.calibration import LastBill
from agentkit.compaction import Compactor, Keep
from agentkit.compaction.calls import MOST_CALLS
from agentkit.log import Compaction, Log, project
from agentkit.messages import Message, Reply, Request, ToolCall, Usage, assistant, system, tool_result, user
from agentkit.policies import KeepEverything, SummariseMiddle
from agentkit.protocol import batches
from agentkit.providers.base import ProviderError, StreamEvent, complete
from agentkit.providers.errors import Caller, server_error
from agentkit.providers.openai import OpenAI
from agentkit.recovery.guard import Guard
from agentkit.recovery.overflow import Sizes, sizes_in
from agentkit.recovery.retry import worth_retrying
from agentkit.recovery.steps import ONCE, Recovery
from agentkit.recovery.truncation import TRUNCATION
from agentkit.tokens import CharsPerFour
from agentkit.tools import Tool, Toolbox

HELLO = Request((user("hello"),))


class Word(CharsPerFour):
    """One token a word and nothing around it, so that the numbers are those of the report."""

    def _plain(self, text: str) -> int:
        return len(text.split())


def words(n: int) -> str:
    return "w " * n


class Window(Scripted):
    """A server with a window: a prompt of more words than it holds is refused in the words of `says`."""

    def __init__(
        self, window: int, *answers: Reply | str, says: str = "prompt is too long: {used} tokens > {limit}"
    ) -> None:
        super().__init__(*answers)
        self.window, self.says = window, says
        self.refused = 0

    def stream(self, request: Request) -> Iterator[StreamEvent]:
        used = Word().request(Request(request.messages))
        if used > self.window:
            self.refused += 1
            self.requests.append(request)
            text = self.says.format(used=used, limit=self.window)
            raise ProviderError(text, kind="overflow", status=400)
        yield from super().stream(request)


def agent(
    provider: Scripted, history: Sequence[Message] = (), recovery: str | Recovery = "once", **options: object
) -> Agent:
    """Return an agent that counts words and never waits."""
    policy = SummariseMiddle(Compactor(provider, Keep(1), estimator=Word()))
    settings = {"policy": policy, "budget": Budget.ratio(1_000_000), "estimator": Word(), **options}
    return Agent(provider, log=Log([system("rules"), *history]), recovery=recovery, sleep=lambda s: None, **settings)  # type: ignore[arg-type]


def listen(made: Agent) -> list[events.Event]:
    seen: list[events.Event] = []
    made.listeners.append(seen.append)
    return seen


def of(seen: Sequence[events.Event], kind: type) -> list[events.Event]:
    return [e for e in seen if isinstance(e, kind)]


TURNS = [m for n in range(8) for m in (user(f"question {n} {words(800)}"), assistant(f"answer {n} {words(200)}"))]
CALLER = Caller("a server", {})


def refused(status: int, text: str) -> ProviderError:
    return server_error({"message": text}, CALLER, status=status)


def test_b15_every_message_that_left_was_in_a_good_summary_request() -> None:
    provider = Window(2_300, "S1", "S2", "S3", "S4", "S5", "S6")
    log = Log([system("rules"), *TURNS[:6], user("next")])
    made = Compactor(provider, Keep(1), estimator=Word(), clip=100_000, max_summary=100, fold=True)
    outcome = made.compact(project(log))
    assert outcome.compaction is not None and outcome.compaction.messages == 6
    good = [r for r in provider.requests if Word().request(r) <= 2_300]
    shown = "\n".join(m.content for r in good for m in r.messages)
    assert all(m.content.strip() in shown for m in TURNS[:6])
    # Folded: the summary of the first part is in the request for the second.
    assert "<earlier-summary>\nS" in good[-1].messages[0].content


def test_c13_after_a_typed_overflow_the_next_chunk_fits_by_the_servers_count() -> None:
    asked: list[int] = []

    class Foreign(Scripted):
        def stream(self, request: Request) -> Iterator[StreamEvent]:
            estimate = Word().request(request)
            asked.append(estimate)
            if estimate * 1.632 > 167_232:
                text = f"prompt is too long: {int(estimate * 1.632)} tokens > 167232 maximum"
                raise ProviderError(text, kind="overflow", status=400)
            yield from super().stream(request)

    log = Log([user(words(1_570)), *(assistant(words(1_570)) for _ in range(99)), user("next")])
    made = Compactor(Foreign("S"), Keep(1), estimator=Word(), clip=10**6, fold=True)
    outcome = made.compact(project(log))
    assert outcome.status == "done" and outcome.calls == len(asked) <= 4
    assert asked[0] > 157_000 and max(asked[1:]) <= 167_232 / 1.63
    assert made.learned.of("scripted").factor == pytest.approx(1.632, rel=0.01)
    assert made.learned.of("another model").room is None
    asked.clear()
    made.compact(project(log))
    assert max(asked) <= 167_232 / 1.63  # it is known from then on


# --- loops --------------------------------------------------------------------------------------------------------------


def test_d02_a_pass_that_frees_nothing_is_not_repeated_and_said_once() -> None:
    guard, passes, notices, size = Guard(0.05), 0, [], 60_000
    for request in range(3):
        if guard.allows(size):
            passes += 1
            notices.append(guard.saw(size, 59_900, 50_000, 64_000, request, "a result").notice)
            size = 59_900
    assert passes <= 2
    (notice,) = [n for n in notices if n]
    assert all(number in notice for number in ("59,900", "50,000", "64,000"))
    assert guard.allows(62_900)


def test_d03_refilled_at_once_three_times_is_thrashing() -> None:
    def run(gap: int, times: int) -> list[tuple[str, bool]]:
        guard = Guard(stop=True)
        told = "a result of read_file (m9) 30,000 tokens"
        verdicts = [guard.saw(95_000, 5_000, 90_000, 100_000, gap * n, told) for n in range(1, times + 1)]
        return [(v.notice, v.stop) for v in verdicts]

    thrashing = run(3, 3)
    assert [stop for _, stop in thrashing] == [False, False, True]
    assert "thrashing" in thrashing[-1][0] and "read_file (m9) 30,000" in thrashing[-1][0]
    assert run(20, 10) == [("", False)] * 10


def test_d03_the_turn_of_an_agent_ends_in_that_error() -> None:
    box = Toolbox([Tool(TOOLS[0], lambda arguments: words(3_500))])
    calls = [assistant("", ToolCall(f"c{n}", "read_file", '{"path": "a"}')) for n in range(20)]
    provider = Scripted(*(Reply(call, Usage(fresh=10), "tool_calls") for call in calls))
    policy = SummariseMiddle(Compactor(Scripted(SUMMARY), Keep(1, "messages"), "pair", estimator=Word()))
    made = agent(provider, recovery=replace(ONCE, stop=True), tools=box, policy=policy, budget=Budget.ratio(10_000, 0.9))
    with pytest.raises(ProviderError, match="thrashing.*read_file"):
        made.run("go")
    assert len(made.log.compactions()) == 3


def test_d05_checked_before_every_request() -> None:
    budget = Budget.share(49_152, 0.35)
    assert budget.threshold == 17_203
    box = Toolbox([Tool(TOOLS[0], lambda arguments: words(7_000))], limit=100_000)
    calls = [assistant("", ToolCall(f"c{n}", "read_file", '{"path": "a"}')) for n in range(4)]
    provider = Scripted(*(Reply(call, None, "tool_calls") for call in calls), "done")
    policy = SummariseMiddle(Compactor(Scripted(SUMMARY), Keep(1, "messages"), "pair", estimator=Word()))
    made = agent(provider, [user(words(9_000)), assistant("ok")], tools=box, policy=policy, budget=budget)
    seen = listen(made)
    made.run("go")
    order = [e for e in seen if isinstance(e, events.Sent | events.Compacted)]
    first = next(i for i, e in enumerate(order) if isinstance(e, events.Compacted))
    assert first > 0 and isinstance(order[first], events.Compacted) and order[first].tokens_before >= 17_203
    assert all(e.estimate < 17_203 for e in order if isinstance(e, events.Sent))


def test_d06_a_large_window_keeps_its_whole_reserve() -> None:
    assert Budget.reserve(200_000, 16_384 - 4_096).threshold == 183_616
    small = Budget.reserve(8_192, 16_384)
    assert small.threshold >= 8_192 // 2 and not small.should_compact(500)


def test_d07_the_output_allowance_is_not_part_of_the_window() -> None:
    budget = Budget.share(131_072 - 65_536, 0.85)
    assert budget.threshold == 55_705 and budget.should_compact(60_000)


def test_d08_an_output_allowance_larger_than_the_window_is_cut_down() -> None:
    provider = Scripted("fine")
    made = agent(provider, window=31_129, max_output=32_000)
    made.run(words(1_200))
    assert provider.requests[0].max_output == 31_129 // 2
    for window in (2_048, 4_096, 31_129):
        assert 0 < (agent(provider, window=window, max_output=32_000).request().max_output or 0) < window


def test_d10_the_limit_in_the_error_counts_for_the_rest_of_the_session() -> None:
    found = refused(400, "too long: 205000 tokens, maximum 200000")
    assert found.kind == "overflow" and sizes_in(str(found)) == Sizes(205_000, None, 200_000)
    provider = Window(20_000, SUMMARY, "fine", "fine", says="too long: {used} tokens, maximum {limit}")
    made = agent(provider, [*TURNS, *TURNS, *TURNS], budget=Budget.ratio(1_000_000))
    made.run("go on")
    assert made.budget.limit <= 20_000 and made.budget.threshold < 20_000


def test_d11_a_bill_far_below_the_estimate_is_no_anchor() -> None:
    provider = Scripted(Reply(assistant("fine"), Usage(fresh=985, output=10)))
    made = agent(provider, [user(words(70_788))], estimator=LastBill(Word()))
    made.run("and now?")
    assert made.estimate() > 70_000


def test_d12_the_sum_of_a_turn_is_not_what_the_context_holds() -> None:
    box = Toolbox([Tool(TOOLS[0], lambda arguments: "ok")])
    calls = [Reply(assistant("", ToolCall(f"c{n}", "read_file", "{}")), Usage(51_000, 500), "tool_calls") for n in range(7)]
    provider = Scripted(*calls, Reply(assistant("done"), Usage(51_000, 500)))
    made = agent(provider, [user(words(51_400))], tools=box, estimator=LastBill(Word()), budget=Budget.ratio(370_000))
    made.run("go")
    assert sum(b.usage.prompt for b in made.bills if b.usage) == 412_000
    assert 51_500 <= made.estimate() < 52_000 and made.log.compactions() == ()


def test_d13_a_run_that_fails_before_a_bill_compacts_on_nothing() -> None:
    provider = Scripted(Reply(assistant("ok"), Usage(fresh=900)), ProviderError("no network", kind="unreachable"), "fine")
    made = agent(provider, recovery="none", budget=Budget(1_000, 990, "for the test"), estimator=LastBill(Word()))
    made.run("go")
    kept = made.log.messages()[-1].id
    made.log.compact(Compaction("S", kept))
    with pytest.raises(ProviderError):
        made.run("again")
    assert len(made.log.compactions()) == 1 and made.estimate() < 200


def test_d14_a_failed_compaction_leaves_the_bill_and_the_trigger() -> None:
    provider = Scripted(Reply(assistant("ok"), Usage(fresh=180_000)), "", "fine")
    policy = SummariseMiddle(Compactor(provider, Keep(1), estimator=Word()))
    made = agent(provider, TURNS, policy=policy, estimator=LastBill(Word()), budget=Budget(200_000, 170_000, "x"))
    made.log.append(user("go"))
    made._ask()
    before = made.estimate()
    made._maybe_compact()
    assert len(provider.requests) == 2 and made.log.compactions() == ()
    assert made.estimate() == before >= 180_000 and made.budget.should_compact(before)


def test_d15_a_summary_call_that_always_fails_is_made_three_times_in_twenty_turns() -> None:
    summariser = Scripted(ProviderError("400: bad request", kind="bad_request", status=400))
    policy = SummariseMiddle(Compactor(summariser, Keep(1), estimator=Word()))
    provider = Scripted(Reply(assistant("fine")))
    made = agent(provider, TURNS, policy=policy, budget=Budget.ratio(1_000_000, 0.001))
    seen = listen(made)
    for n in range(20):
        made.run(f"question {n}")
    assert len(summariser.requests) == 3
    (notice,) = of(seen, events.Notice)
    assert isinstance(notice, events.Notice) and "compaction unavailable" in notice.text and "400" in notice.text


# --- what kind of error -------------------------------------------------------------------------------------------------


def test_d16_a_known_code_wins_over_the_text_and_an_integer_code_is_none() -> None:
    bodies = [
        {"code": "context_length_exceeded", "message": "上下文过长"},
        {"code": 400, "message": "prompt length exceeds maximum context length"},
        {"code": "invalid_value", "message": "bad temperature"},
    ]
    kinds = [server_error(body, CALLER, status=400).kind for body in bodies]
    assert kinds == ["overflow", "overflow", "bad_request"]


def test_d17_an_overflow_wrapped_in_a_503_is_one_and_a_plain_503_is_not() -> None:
    wrapped = "ServiceUnavailable: wrapped: requested tokens exceed the model's maximum context length of 131072 tokens"
    found = refused(503, wrapped)
    assert found.kind == "overflow" and not worth_retrying(found)
    assert sizes_in(str(found)).limit == 131_072
    plain = refused(503, "Service unavailable")
    assert plain.kind == "overloaded" and worth_retrying(plain)


WORDINGS = [
    (400, "input length 140000 exceeds the maximum allowed input length of 131040 tokens", (140_000, 131_040)),
    (400, "Input length (300001) exceeds model's maximum context length (262144)", (300_001, 262_144)),
    (400, "maximum context length is 32768 tokens; prompt has at least 32801 input tokens", (32_801, 32_768)),
    (
        400,
        "The input token count (1050000) exceeds the maximum number of tokens allowed (1048576)",
        (1_050_000, 1_048_576),
    ),
    (400, "prompt is too long: 210500 tokens > 200000 maximum", (210_500, 200_000)),
    (400, "Input is too long for requested model", (None, None)),
    (500, "the request exceeds the available context size", (None, None)),
    (400, "context shift is disabled", (None, None)),
]


@pytest.mark.parametrize(("status", "text", "numbers"), WORDINGS)
def test_d18_many_wordings_for_one_condition(status: int, text: str, numbers: tuple[int | None, int | None]) -> None:
    found = refused(status, text)
    sizes = sizes_in(str(found))
    assert found.kind == "overflow" and (sizes.used, sizes.limit) == numbers


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "file name is too long"),
        (400, "max_tokens must be at most 8192"),
        (401, "invalid key"),
        (404, "model not found"),
    ],
)
def test_d18_what_is_none_and_not_tried_again(status: int, text: str) -> None:
    found = refused(status, text)
    assert found.kind != "overflow" and not worth_retrying(found)


def over_http(body: bytes) -> ProviderError:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=body))
    with pytest.raises(ProviderError) as caught:
        complete(OpenAI("m", "http://127.0.0.1/v1", transport=transport), HELLO)
    return caught.value


def test_d19_an_error_object_with_status_200() -> None:
    body = b'{"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 14429, "n_ctx": 8192}}'
    found = over_http(body)
    assert found.kind == "overflow" and sizes_in(str(found)) == Sizes(14_429, None, 8_192)


def test_d20_an_overflow_as_an_event_after_status_200() -> None:
    error = b'{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"m"}}'
    assert over_http(b"event: error\ndata: " + error + b"\n\n").kind == "overflow"


def test_d21_prompt_and_output_together_are_too_large() -> None:
    text = "input length and max_tokens exceed context limit: 196000 + 8192 > 200000"
    found = refused(400, text)
    assert found.kind == "overflow" and sizes_in(str(found)) == Sizes(196_000, 8_192, 200_000)
    provider = Scripted(found, "fine", SUMMARY, "fine")
    made = agent(provider, [user(words(100_000)), assistant(words(96_000))], max_output=8_192)
    assert made.run("go").text == "fine"
    # The first remedy: a shorter answer; then a compaction before the next request.
    assert [r.max_output for r in provider.requests] == [8_192, 4_000]
    assert made.log.compactions() == ()
    made.run("on")
    assert len(made.log.compactions()) == 1


def test_d21_with_too_little_room_for_an_answer_it_is_compacted_instead() -> None:
    found = refused(400, "input length and max_tokens exceed context limit: 199500 + 8192 > 200000")
    provider = Scripted(found, SUMMARY, "fine")
    made = agent(provider, [user(words(100_000)), assistant(words(99_000))], max_output=8_192)
    assert made.run("go").text == "fine" and len(made.log.compactions()) == 1


def test_d23_too_many_bytes_are_not_too_many_tokens() -> None:
    found = server_error({"type": "request_too_large", "message": "Request exceeds the maximum size"}, CALLER, status=413)
    provider = Scripted(found)
    picture = replace(PICTURE, data="A" * 4_000_000)
    made = agent(provider, [user("look", picture), assistant("a cat")], budget=Budget.ratio(200_000))
    with pytest.raises(ProviderError) as caught:
        made.run("and now?")
    assert caught.value.kind == "too_large" and len(provider.requests) == 1
    assert "m1" in str(caught.value) and "4,000,004 bytes" in str(caught.value)


def test_d24_a_server_that_drops_the_head_is_suspected() -> None:
    provider = Scripted(Reply(assistant("invented"), Usage(fresh=16_387)), SUMMARY, "fine")
    made = agent(provider, [*TURNS] * 1 + [user(words(152_000))], estimator=LastBill(Word()))
    seen = listen(made)
    made.run("what did I ask?")
    (notice,) = of(seen, events.Notice)
    assert isinstance(notice, events.Notice) and "suspected silent truncation" in notice.text
    assert made.estimate() > 150_000  # the bill taught nothing
    made.run("go on")
    assert len(made.log.compactions()) == 1
    careful = agent(Scripted(SUMMARY, "fine"), [*TURNS, *TURNS, *TURNS, *TURNS], window=32_000)
    careful.run("go on")
    assert len(careful.log.compactions()) == 1 and careful.bills[0].estimate <= 32_000


# --- compactions that do not help ---------------------------------------------------------------------------------------


def test_d25_a_compaction_that_makes_it_larger_is_discarded_and_there_is_no_retry() -> None:
    provider = Scripted(ProviderError("prompt is too long", kind="overflow", status=400), words(1_752))
    made = agent(provider, [user(words(330)), assistant(words(331)), user("b"), assistant("c")])
    entries = len(made.log)
    with pytest.raises(ProviderError, match="recovery 'once' did not help"):
        made.run("go")
    assert len(provider.requests) == 2 and len(made.log) == entries + 1 and made.log.compactions() == ()


def test_d26_before_and_after_are_measured_with_one_function() -> None:
    box = Toolbox([Tool(replace(TOOLS[0], description=words(16_450)), lambda arguments: "ok")])
    policy = SummariseMiddle(Compactor(Scripted(words(600)), Keep(1), estimator=Word()))
    made = agent(Scripted("fine"), [user(words(4_000)), assistant(words(4_900))], tools=box, policy=policy)
    made.budget = Budget(40_000, 25_000, "for the test")
    seen = listen(made)
    made.run("go")
    (done,) = of(seen, events.Compacted)
    assert isinstance(done, events.Compacted)
    fixed = made.estimator.request(Request((), box.specs))
    assert done.tokens_before > 8_900 + fixed and fixed < done.tokens_after < fixed + 700


def test_d27_with_nothing_to_remove_the_error_is_shown_after_two_calls_at_most() -> None:
    always = ProviderError("prompt is too long", kind="overflow", status=400)
    for policy in (None, KeepEverything()):
        provider = Scripted(always)
        made = agent(provider, **({"policy": policy} if policy else {}))
        with pytest.raises(ProviderError, match="prompt is too long"):
            made.run("go")
        assert len(provider.requests) <= 2


def test_d28_every_summary_request_fits_into_its_own_window() -> None:
    provider = Window(8_192 - 2_048, "S")
    log = Log([*(m for _ in range(6) for m in TURNS), *(m for _ in range(6) for m in TURNS), user("next")])
    assert Word().messages(log.messages()) > 90_000
    made = Compactor(provider, Keep(1), estimator=Word(), fold=True)
    outcome = made.compact(project(log))
    assert outcome.status == "done" and outcome.calls == len(provider.requests) <= MOST_CALLS
    assert provider.refused <= 3
    assert all(Word().request(r) <= 8_192 - 2_048 for r in provider.requests[provider.refused :])


def test_d29_an_error_result_is_capped_too_and_begins_with_the_error() -> None:
    def fail(arguments: object) -> str:
        raise ValueError("no such table: users\n" + "x" * 733_000)

    result = Toolbox([Tool(TOOLS[0], fail)]).run(ToolCall("c1", "read_file", '{"path": "a"}'))
    assert result.is_error and len(result.content) <= 16_000 and "no such table: users" in result.content[:200]


# --- messages that are too large by themselves --------------------------------------------------------------------------


def test_d30_one_giant_result_is_shortened_without_a_summary_call() -> None:
    provider = Window(500_000 - 16_384, "fine")
    giant = [user(words(50)), assistant("", ToolCall("c1", "read_file")), tool_result("c1", words(490_000))]
    made = agent(provider, giant, "goose", policy=KeepEverything())
    made.log.append(assistant("I have read it."))
    assert made.run("and?").text == "fine"
    assert len(provider.requests) == 2  # the refused one, and the one after it
    (shown,) = [m for m in made.request().messages if m.role == "tool"]
    assert (shown.tool_call_id, shown.role) == ("c1", "tool") and "left out to save context" in shown.content
    assert not any(b.unanswered for b in batches(made.request().messages))
    assert made.log.messages()[3].content == words(490_000)
    assert made.log.compactions()[0].policy == TRUNCATION


def test_d31_a_batch_that_is_too_large_together_keeps_all_its_results() -> None:
    provider = Window(128_000, "fine")
    ids = [f"c{n}" for n in range(10)]
    sizes = [20_000] * 9 + [10]
    batch = [assistant("", *(ToolCall(i, "read_file") for i in ids))]
    batch += [tool_result(i, words(n)) for i, n in zip(ids, sizes, strict=True)]
    made = agent(provider, [user("read them all"), *batch], "goose", budget=Budget.ratio(128_000))
    made.rescue.start()
    made.rescue.recover(ProviderError("prompt is too long: 180010 tokens > 128000", kind="overflow", status=400))
    results = [m for m in made.request().messages if m.role == "tool"]
    assert [m.tool_call_id for m in results] == ids and made.estimate() <= 128_000
    assert results[-1].content == words(10)  # the small one is whole


def test_d32_the_output_of_a_summary_call_does_not_depend_on_the_history() -> None:
    provider = Scripted(SUMMARY)
    made = Compactor(provider, Keep(1), estimator=Word(), max_summary=2_000)
    made.compact(project(Log([user(words(339_835)), assistant("ok"), user("next")])))
    assert provider.requests[0].max_output == 2_000
