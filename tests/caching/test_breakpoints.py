"""Where marks go, and that the recommended placement beats the naive ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.caching import PLACEMENTS, AnthropicCache, Segment, add_marks, place
from agentkit.caching.anthropic import LOOK_BACK, MOST_MARKS
from agentkit.caching.breakpoints import EVERY, last_message_only, no_marks, system_only
from agentkit.caching.prefix import Kind

KINDS: dict[str, Kind] = {
    "p": "parameter", "t": "tools", "s": "system", "u": "user", "a": "assistant", "h": "thinking", "-": "empty"
}  # fmt: skip


def request(letters: str) -> list[Segment]:
    """Return a block for each letter; a capital letter is a block that has a mark already."""
    return [
        Segment(f"{i}{letter}".encode(), (i,), KINDS[letter.lower()], "5m" if letter.isupper() else None)
        for i, letter in enumerate(letters)
    ]


def shown(letters: str, places: list[int]) -> str:
    assert places == sorted(set(places))
    return "".join("^" if i in places else letter for i, letter in enumerate(letters))


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("ttssu", "tts^^"),  # the system prompt and the newest message; the mark on the former covers the tools
        ("ttu", "t^^"),
        ("u", "^"),
        ("", ""),
        ("tsuauau", "t^ua^a^"),  # and the message before
        ("tsuaauuau", "t^uaau^a^"),  # the results of parallel calls are one message, marked at its end
        ("tsu-", "t^^-"),
        ("tsu--a-", "t^^--a-"),
        ("ts-", "t^-"),
        ("tspu", "t^p^"),
        ("tsuhau", "t^^ha^"),
        ("tsusau", "t^^sa^"),  # a system note among the messages is no stable head
        ("--", "--"),
        ("h", "h"),
    ],
)
def test_where_marks_go(letters: str, expected: str) -> None:
    assert shown(letters, place(request(letters))) == expected


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("ts" + "u" + "a" * 30 + "u", "t^^" + "a" * 15 + "^" + "a" * 14 + "^"),
        ("ts" + "u" + "a" * 12 + "u" * 12, "t^^" + "a" * 8 + "^" + "a" * 3 + "u" * 11 + "^"),
        ("ts" + "u" + "a" * 14 + "u", "t^^" + "a" * 14 + "^"),
        ("ts" + "ua" * 20 + "u", "t^" + "ua" * 11 + "u^" + "ua" * 7 + "^a^"),
        ("ts" + "u" + "a" * 14 + "hh" + "a" * 14 + "u", "t^^" + "a" * 13 + "^hh" + "a" * 14 + "^"),
        ("ts" + "u" + "a" * 20 + "-pp-" + "a" * 10 + "u", "t^^" + "a" * 15 + "^aaaa-pp-" + "a" * 10 + "^"),
    ],
)
def test_a_long_turn_gets_a_mark_in_between(letters: str, expected: str) -> None:
    assert shown(letters, place(request(letters))) == expected


def test_no_head_leaves_two_marks_for_a_long_turn() -> None:
    letters = "u" + "a" * 50 + "u"
    assert place(request(letters)) == [0, 51 - 2 * EVERY, 51 - EVERY, 51]


def test_the_last_tool_gets_a_mark_of_its_own_on_request() -> None:
    assert shown("ttssuau", place(request("ttssuau"), tools_too=True)) == "t^s^^a^"


@pytest.mark.parametrize(
    ("letters", "expected"),
    [("tsUau", "t^Ua^"), ("tSuau", "tS^a^"), ("TSuaUau", "TSuaUa^"), ("TSUaUu", "TSUaUu"), ("TTTTTu", "TTTTTu")],
)
def test_marks_that_are_there_count(letters: str, expected: str) -> None:
    assert shown(letters, place(request(letters))) == expected


def test_the_naive_placements() -> None:
    prompt = request("ttsuaau-")
    assert [no_marks(prompt), system_only(prompt), last_message_only(prompt)] == [[], [2], [6]]
    assert list(PLACEMENTS.values())[:3] == [no_marks, system_only, last_message_only]
    assert PLACEMENTS["recommended"] is place


@settings(max_examples=200)
@given(st.text("tsuahp-UAS", max_size=60), st.booleans(), st.sampled_from(list(PLACEMENTS)))
def test_no_placement_is_ever_refused(letters: str, tools_too: bool, name: str) -> None:
    prompt = request(letters)
    present = sum(part.mark is not None for part in prompt)
    places = place(prompt, tools_too=tools_too) if name == "recommended" else PLACEMENTS[name](prompt)
    assert places == sorted(set(places))
    assert all(prompt[i].kind in ("tools", "system", "user", "assistant") for i in places)
    if name == "recommended":
        assert len(places) + present <= max(MOST_MARKS, present)
        assert not any(prompt[i].mark for i in places)
    if present == 0:
        AnthropicCache().observe(add_marks(prompt, places))


def test_marks_are_put_on_a_copy_and_the_head_may_live_longer() -> None:
    prompt = request("tsuau")
    marked = add_marks(prompt, place(prompt), "5m", head="1h")
    assert [part.mark for part in marked] == [None, "1h", "5m", None, "5m"]
    assert all(part.mark is None for part in prompt)
    assert marked == prompt  # a mark is no part of the prompt
    AnthropicCache().observe(marked)
    assert [part.mark for part in add_marks(prompt, [1, 4], "1h")] == [None, "1h", None, None, "1h"]


# ---------------------------------------------------------------------------------------------------------- what they save


def session(calls: list[int]) -> list[list[Segment]]:
    """Return the requests of one turn: each round adds an answer with so many calls, and their results."""
    letters, requests = "ttsu", []
    for count in [0, *calls]:
        letters += "a" * count + "u" * count
        requests.append(request(letters))
    return requests


def reads(calls: list[int], name: str) -> list[int]:
    model = AnthropicCache(minimum=1)
    return [model.observe(add_marks(prompt, PLACEMENTS[name](prompt))).read for prompt in session(calls)]


@settings(max_examples=50)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_the_recommended_placement_always_reads_all_of_the_request_before(calls: list[int]) -> None:
    sizes = [len(prompt) for prompt in session(calls)]
    assert reads(calls, "recommended")[1:] == sizes[:-1]
    assert reads(calls, "recommended") >= reads(calls, "last message only")


def test_a_wide_round_breaks_a_single_moving_mark_silently() -> None:
    assert reads([3, 12, 3], "last message only") == [0, 4, 0, 34]
    assert reads([3, 12, 3], "system only") == [0, 3, 3, 3]
    assert reads([3, 12, 3], "none") == [0, 0, 0, 0]
    assert reads([3, 12, 3], "recommended") == [0, 4, 10, 34]


@pytest.mark.parametrize("rounds", [9, 12, 20])
def test_marks_in_between_reach_an_entry_several_rounds_back(rounds: int) -> None:
    """Requests that another process sent are in no cache here: the entry of the first one is many blocks away."""
    first, last = request("tsu"), request("tsu" + "au" * rounds)
    model = AnthropicCache(minimum=1)
    model.observe(add_marks(first, place(first)))
    found = model.observe(add_marks(last, place(last)))
    assert found.read == (3 if 2 * rounds < EVERY + LOOK_BACK else 2)
