"""Where to cut: never between a call and a result, never behind the last message, as near as possible to what was asked."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import conversations, histories

from agentkit.compaction.cut import Boundary, Keep, find_cut, is_safe_cut
from agentkit.messages import Message, ToolCall, assistant, system, tool_result, user

many = settings(max_examples=150)
BOUNDARIES: tuple[Boundary, ...] = ("user", "pair")
boundaries = st.sampled_from(BOUNDARIES)
keeps = st.builds(
    Keep, st.integers(1, 6), st.sampled_from(["messages", "turns"]), max_tokens=st.integers(0, 400)
) | st.builds(lambda tokens: Keep(tokens, "tokens"), st.integers(1, 400))
lists = histories() | conversations()


def size(message: Message) -> int:
    return len(message.content) + 1


def call(*ids: str) -> Message:
    return assistant("", *(ToolCall(i, "f") for i in ids))


def caller_of(messages: list[Message], result: int) -> int | None:
    """Return where the call stands that the result answers: in the newest assistant message before it, or nowhere."""
    before = [i for i in range(result) if messages[i].role == "assistant"]
    if not before or messages[result].tool_call_id not in [c.id for c in messages[before[-1]].tool_calls]:
        return None
    return before[-1]


def separates(messages: list[Message], cut: int) -> bool:
    """Say whether a call lies before `cut` and one of its results behind it."""
    results = (i for i in range(cut, len(messages)) if messages[i].role == "tool")
    return any(start is not None and start < cut for start in (caller_of(messages, i) for i in results))


def starts(message: Message, boundary: Boundary) -> bool:
    return message.role in (("user",) if boundary == "user" else ("user", "assistant"))


def wanted(messages: list[Message], keep: Keep, count: Callable[[Message], int]) -> int:
    """Return the cut that was asked for, slowly: try every tail, and take the longest that is not too long."""
    sizes = [sum(map(count, messages[i:])) for i in range(len(messages) + 1)]
    if keep.unit == "messages":
        return max(0, len(messages) - keep.amount)
    if keep.unit == "tokens":
        return next(i for i, tokens in enumerate(sizes) if tokens <= keep.amount)
    turns = [i for i, m in enumerate(messages) if m.role == "user"]
    if not turns or (len(turns) < keep.amount and sizes[0] <= keep.max_tokens):
        return 0
    return next((i for i in turns[-keep.amount :] if sizes[i] <= keep.max_tokens), turns[-1])


@many
@given(lists, boundaries)
def test_a_cut_is_safe_exactly_when_it_separates_nothing(messages: list[Message], boundary: Boundary) -> None:
    for cut in range(len(messages)):
        expected = starts(messages[cut], boundary) and not separates(messages, cut)
        assert is_safe_cut(messages, cut, boundary) is expected
    assert not is_safe_cut(messages, len(messages), boundary)
    assert not is_safe_cut(messages, -1, boundary)


@many
@given(lists, keeps, boundaries)
def test_the_cut_is_the_last_safe_one_up_to_what_was_asked_for(
    messages: list[Message], keep: Keep, boundary: Boundary
) -> None:
    latest = min(wanted(messages, keep, size), max(len(messages) - 1, 0))
    safe = [c for c in range(1, latest + 1) if starts(messages[c], boundary) and not separates(messages, c)]
    assert find_cut(messages, keep, boundary, size) == max(safe, default=0)


@many
@given(lists, keeps, boundaries)
def test_the_last_message_is_never_cut_off(messages: list[Message], keep: Keep, boundary: Boundary) -> None:
    cut = find_cut(messages, keep, boundary, size)
    assert 0 <= cut < max(len(messages), 1)
    assert cut == 0 or not separates(messages, cut)


@many
@given(lists, st.integers(1, 6), boundaries)
def test_the_tail_is_never_shorter_than_asked_for(messages: list[Message], amount: int, boundary: Boundary) -> None:
    cut = find_cut(messages, Keep(amount, "messages"), boundary)
    assert len(messages) - cut >= min(amount, len(messages))


BATCH = [user("q"), call("a", "b", "c"), *(tool_result(i, i) for i in "abc"), user("go on")]


@pytest.mark.parametrize(("cut", "safe"), [(0, True), (1, True), (2, False), (3, False), (4, False), (5, True), (6, False)])
def test_a_batch_is_one_unit(cut: int, safe: bool) -> None:
    assert is_safe_cut(BATCH, cut) is safe


def test_a_batch_stays_whole_when_somebody_spoke_in_between() -> None:
    messages = [user("q"), call("a", "b"), tool_result("a", "1"), user("hurry"), tool_result("b", "2"), user("r")]
    assert [c for c in range(6) if is_safe_cut(messages, c)] == [0, 1, 5]
    assert [c for c in range(6) if is_safe_cut(messages, c, "user")] == [0, 5]
    assert find_cut(messages, Keep(3, "messages"), "pair") == 1


def test_the_boundary_of_whole_turns() -> None:
    messages = [user("1"), assistant("a"), user("2"), call("a"), tool_result("a", "x"), assistant("b")]
    assert [find_cut(messages, Keep(n, "messages"), "user") for n in (1, 3, 4, 5, 6, 9)] == [2, 2, 2, 0, 0, 0]
    assert [find_cut(messages, Keep(n, "messages"), "pair") for n in (1, 2, 3, 4, 5, 6)] == [5, 3, 3, 2, 1, 0]


def test_the_tail_never_starts_with_a_system_note() -> None:
    """The log would refuse such a record, and the note would move up to the system prompt."""
    messages = [user("1"), assistant("a"), system("note"), user("2")]
    assert find_cut(messages, Keep(2, "messages"), "pair") == 1


TURNS = [m for n in range(5) for m in (user(f"{n}" * 9), assistant("x" * 9))]  # 20 tokens each


@pytest.mark.parametrize(
    ("amount", "most", "cut"),
    [(2, 1_000, 6), (2, 40, 6), (2, 39, 8), (2, 20, 8), (2, 0, 8), (5, 1_000, 0), (5, 60, 4), (9, 1_000, 0), (9, 60, 4)],
)
def test_whole_turns_but_only_as_many_as_fit(amount: int, most: int, cut: int) -> None:
    assert find_cut(TURNS, Keep(amount, "turns", most), "user", size) == cut


@pytest.mark.parametrize(("tokens", "cut"), [(1, 9), (10, 9), (19, 9), (20, 8), (30, 7), (1_000, 0)])
def test_as_many_messages_as_fit_into_the_tokens(tokens: int, cut: int) -> None:
    assert find_cut(TURNS, Keep(tokens, "tokens"), "pair", size) == cut


@pytest.mark.parametrize("messages", [[], [user("q")], [assistant("a")], [tool_result("x", "1")]])
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_where_nothing_can_be_cut_the_cut_is_nought(messages: list[Message], boundary: Boundary) -> None:
    for unit in ("messages", "turns", "tokens"):
        assert find_cut(messages, Keep(1, unit), boundary, size) == 0  # type: ignore[arg-type]


def test_a_tail_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="keep must be at least 1 messages, not 0"):
        Keep(0, "messages")
    with pytest.raises(ValueError, match="keep counts messages, turns or tokens, not 'lines'"):
        Keep(1, "lines")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keep", "text"),
    [
        (Keep(), "2 turns, at most 8,000 tokens"),
        (Keep(1, "messages"), "1 message"),
        (Keep(2_000, "tokens"), "2,000 tokens"),
    ],
)
def test_how_a_keep_reads(keep: Keep, text: str) -> None:
    assert str(keep) == text


def test_one_turn_of_ten_thousand_rounds_takes_no_quadratic_time() -> None:
    messages = [user("q"), *(m for n in range(10_000) for m in (call(f"c{n}"), tool_result(f"c{n}", "x")))]
    start = time.perf_counter()
    assert find_cut(messages, Keep(1, "messages"), "user") == 0
    assert find_cut(messages, Keep(100, "tokens"), "pair", size) == len(messages) - 66
    assert time.perf_counter() - start < 2
