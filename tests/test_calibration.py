"""Estimators that learn from bills: the arithmetic, the bounds, and their error on real sessions."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import conversations

from agentkit.calibration import LastBill, SelfCalibrating
from agentkit.messages import Message, Request, ToolCall, ToolSpec, Usage, assistant, system, tool_result, user
from agentkit.tokens import CharsPerFour, PerScript

SESSIONS = Path(__file__).resolve().parent.parent.parent / "shared" / "sessions"


def words(tokens: int) -> str:
    """Return a text of so many tokens for `CharsPerFour`."""
    return "abcd" * tokens


ASKED = Request((system("rules"), user(words(100))))


def then(*messages: Message) -> Request:
    return Request((*ASKED.messages, *messages))


# ----------------------------------------------------------------------------------------------------------- the last bill


def test_with_no_bill_everything_is_estimated() -> None:
    assert LastBill().request(ASKED) == PerScript().request(ASKED)
    assert LastBill().is_stale(ASKED)


def test_only_what_is_new_is_estimated() -> None:
    last = LastBill(CharsPerFour())
    last.observe(ASKED, Usage(fresh=9_000, cache_read=50_000, output=300))
    longer = then(assistant("done"), tool_result("c", words(500)), user(words(7)))
    assert last.request(longer) == 59_000 + 300 + 507
    assert last.request(ASKED) == 59_000
    assert last.request(then(user(words(7)))) == 59_000 + 7


def test_thinking_counts_only_where_it_is_sent_back() -> None:
    usage = Usage(fresh=20_000, output=55_000, reasoning=50_000)
    for sent_back, tokens in ((False, 25_000), (True, 75_000)):
        last = LastBill(reasoning_sent_back=sent_back)
        last.observe(ASKED, usage)
        assert last.request(then(assistant("thought about it"))) == tokens


@pytest.mark.parametrize(
    "request_",
    [
        Request((system("other rules"), *ASKED.messages[1:])),
        Request(ASKED.messages[:1]),
        Request((*ASKED.messages, user("more")), (ToolSpec("f", "new tool"),)),
        Request((ASKED.messages[0], system("summary"), *ASKED.messages[1:])),
    ],
)
def test_a_bill_is_stale_when_the_start_has_changed(request_: Request) -> None:
    last = LastBill()
    last.observe(ASKED, Usage(fresh=59_000))
    assert not last.is_stale(then(assistant("ok")))
    assert last.is_stale(request_)
    assert last.request(request_) == PerScript().request(request_)


def test_a_bill_of_nothing_is_no_bill() -> None:
    last = LastBill()
    last.observe(ASKED, Usage(output=5))
    assert last.is_stale(ASKED)
    last.observe(ASKED, Usage(fresh=500))
    last.observe(ASKED, Usage())
    assert last.request(ASKED) == 500


@settings(max_examples=100)
@given(conversations(max_turns=2), st.integers(1, 100_000))
def test_a_message_more_never_lowers_the_estimate(conversation: list[Message], bill: int) -> None:
    last, learning = LastBill(), SelfCalibrating()
    start = Request(tuple(conversation[:2]))
    last.observe(start, Usage(fresh=bill))
    learning.observe(start, Usage(fresh=bill))
    for estimator in (last, learning):
        sizes = [estimator.request(Request(tuple(conversation[:n]))) for n in range(2, len(conversation) + 1)]
        assert sizes == sorted(sizes)


# -------------------------------------------------------------------------------------------------------- self-calibrating


def test_the_ratio_of_the_bills_is_learnt() -> None:
    learning = SelfCalibrating(CharsPerFour())
    request = Request(())
    for n in range(30):
        request = Request((*request.messages, user(words(1_000))))
        learning.observe(request, Usage(fresh=1_500 * (n + 1)))
    assert learning.ratio == pytest.approx(1.5, abs=0.01)
    assert learning.text(words(100)) == 150
    assert learning.message(user(words(100))) == 150
    assert learning.request(Request((*request.messages, user(words(1_000))))) == pytest.approx(46_500, rel=0.001)


def test_a_bill_of_nothing_teaches_nothing() -> None:
    learning = SelfCalibrating()
    before = (learning.ratio, learning.request(ASKED), learning.upper(ASKED))
    learning.observe(ASKED, Usage())
    learning.observe(ASKED, Usage(output=900))
    assert (learning.ratio, learning.request(ASKED), learning.upper(ASKED)) == before


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 2_000_000)), max_size=30))
def test_no_bill_whatever_drives_the_ratio_out_of_its_bounds(rounds: list[tuple[int, int]]) -> None:
    learning, request = SelfCalibrating(CharsPerFour()), Request(())
    for tokens, bill in rounds:
        request = Request((*request.messages, user(words(tokens))))
        learning.observe(request, Usage(fresh=bill))
        assert 0.3 <= learning.ratio <= 4
        assert learning.upper(request) >= learning.request(request)


def test_an_odd_bill_does_not_spoil_the_ratio() -> None:
    learning = SelfCalibrating(CharsPerFour())
    before = learning.ratio
    for bill in (100 * 50, 1):  # fifty times too much; almost nothing
        learning.observe(ASKED, Usage(fresh=bill))
        assert learning.ratio == before


def test_the_bound_before_and_after_twenty_errors() -> None:
    """Bills that are always right make the bound close in on the estimate, as soon as there are enough of them."""
    learning, request, bill = SelfCalibrating(CharsPerFour()), Request(()), 0
    margins = []
    for _ in range(60):
        request = Request((*request.messages, user(words(1_000))))
        margins.append((learning.upper(request) - learning.request(request)) / 1_200)
        bill += 1_150
        learning.observe(request, Usage(fresh=bill))
    assert margins[:20] == pytest.approx([0.8] * 20, abs=0.01)
    assert margins[-1] < 0.01


# ----------------------------------------------------------------------------------------------------------- real sessions


@dataclass
class Figures:
    """What one session showed, call by call."""

    name: str
    ratio: float = 0.0
    errors: list[float] = field(default_factory=list)
    over: list[bool] = field(default_factory=list)
    short_tail: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        last = f"{statistics.median(self.short_tail):7.2%}" if self.short_tail else "      –"
        return (
            f"{self.name:28}{len(self.errors):5} calls, median error {statistics.median(self.errors):7.2%}, "
            f"over the bound {sum(self.over):3}, ratio {self.ratio:4.2f}; last bill + tail {last}"
        )


def recorded(entry: dict[str, Any], position: int) -> Message:
    """Return a message of a session file; there are no ids in it, so the position is the id."""
    calls = [
        ToolCall(c["id"], c["name"], c["arguments"] if isinstance(c["arguments"], str) else json.dumps(c["arguments"]))
        for c in entry.get("tool_calls") or ()
    ]
    texts = (entry.get("content") or "", f"p{position}", tuple(calls))
    return Message(entry["role"], *texts, entry.get("tool_call_id") or "", entry.get("reasoning") or "")


def bill_of(usage: dict[str, Any]) -> Usage:
    cached, written = usage["cached_tokens"] or 0, usage.get("cache_write_tokens") or 0
    fresh = usage["prompt_tokens"] - cached - written
    return Usage(fresh, cached, written, usage["completion_tokens"] or 0, usage.get("reasoning_tokens") or 0)


def measure(session: dict[str, Any]) -> Figures:
    """Estimate every call from the bills before it. Left out: the call after one without a bill, or after a compaction."""
    messages = tuple(recorded(m, i) for i, m in enumerate(session["messages"]))
    tools = tuple(ToolSpec(t.get("name", "?"), json.dumps(t)) for t in session["tools"] or ())
    learning, last, figures = SelfCalibrating(), LastBill(), Figures(session["id"])
    bills = iter(session["usage"])
    before: int | None = None
    for i, entry in enumerate(session["messages"]):
        if "compaction" in (entry.get("kind") or ""):
            before = None
        if entry["role"] != "assistant":
            continue
        usage = next(bills)
        if not usage:
            before = None
            continue
        request, bill = Request(messages[:i], tools), bill_of(usage)
        if before is not None:
            figures.errors.append(abs(learning.request(request) - bill.prompt) / bill.prompt)
            figures.over.append(bill.prompt > learning.upper(request))
            if last.request(request) - before <= 0.1 * bill.prompt:
                figures.short_tail.append(abs(last.request(request) - bill.prompt) / bill.prompt)
        learning.observe(request, bill)
        last.observe(request, bill)
        before = bill.prompt
    figures.ratio = learning.ratio
    return figures


@pytest.fixture(scope="module")
def figures() -> list[Figures]:
    if not SESSIONS.is_dir():
        pytest.skip("no recorded sessions beside the checkout (shared/sessions)")
    files = sorted(SESSIONS.glob("*.jsonl"))
    sessions = [json.loads(file.read_text(encoding="utf-8").splitlines()[0]) for file in files]
    measured = [measure(session) for session in sessions if any(session["usage"] or ())]
    found = [one for one in measured if one.errors]
    print("", *found, sep="\n")
    assert sum(len(one.errors) for one in found) > 200, "too few calls to say anything"
    return found


def test_one_call_ahead_the_median_error_is_small(figures: list[Figures]) -> None:
    errors = [error for one in figures for error in one.errors]
    print(f"\nself-calibrating: {len(errors)} calls, median error {statistics.median(errors):.2%}")
    assert statistics.median(errors) <= 0.03


def test_the_bill_seldom_exceeds_the_bound(figures: list[Figures]) -> None:
    over = [o for one in figures for o in one.over]
    print(f"\nover the bound: {sum(over)} of {len(over)}")
    assert sum(over) <= len(over) / 20


def test_the_bound_is_not_simply_far_too_high(figures: list[Figures]) -> None:
    """A bound that nothing ever exceeds would be easy: some bills do exceed this one."""
    assert any(o for one in figures for o in one.over)


def test_with_a_short_tail_the_last_bill_is_almost_exact(figures: list[Figures]) -> None:
    errors = [error for one in figures for error in one.short_tail]
    print(f"\nlast bill + tail: {len(errors)} calls, median error {statistics.median(errors):.2%}")
    assert statistics.median(errors) <= 0.02
