"""The small parts of a client: usage, waiting, ids and text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.messages import Usage
from agentkit.providers.base import ProviderError
from agentkit.providers.sse import Patience, payloads
from agentkit.providers.text import Pieces, one_line, paired, redact
from agentkit.providers.tool_calls import distinct_ids
from agentkit.providers.usage import settled, update


@pytest.mark.parametrize(
    ("fields", "right"),
    [
        ({}, None),
        ({"prompt_tokens": None, "completion_tokens": None}, None),
        ({"prompt_tokens": "many", "completion_tokens": True}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage()),
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(10, output=2)),
        ({"prompt_tokens": 10.0}, Usage(10)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}}, Usage(3, 4, 3)),
        ({"prompt_tokens": 10, "prompt_tokens_details": None, "prompt_cache_hit_tokens": 4}, Usage(6, 4)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 0}, "prompt_cache_hit_tokens": 4}, Usage(10)),
        ({"prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6}, Usage(6, 4)),
        ({"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(0, 4)),
        (
            {"prompt_tokens": 5, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}},
            Usage(5, output=9, reasoning=7),
        ),
        ({"completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 7}}, Usage(output=9, reasoning=7)),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 9,
                "total_tokens": 21,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(5, output=16, reasoning=7),
        ),
        (
            # xAI: thinking stands beside the completion, and the total shows it
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "total_tokens": 135,
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            Usage(32, output=103, reasoning=94),
        ),
    ],
)
def test_usage_is_settled_once(fields: dict[str, object], right: Usage | None) -> None:
    assert settled(fields) == right


def test_update_keeps_what_null_would_wipe() -> None:
    known = update({}, {"a": 1, "d": {"x": 5, "y": 6}})
    assert update(known, {"a": None, "b": 0, "d": {"x": None, "y": 7}}) == {"a": 1, "b": 0, "d": {"x": 5, "y": 7}}
    assert update(known, {"d": None}) == update(known, None) == update(known, 3) == known


class Clock:
    """A clock that moves only when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def after(self, seconds: float, chunk: bytes) -> bytes:
        self.now += seconds
        return chunk


PIECE, PING = b'data: {"a":1}\n\n', b": ping\n\n"


@pytest.mark.parametrize(
    ("arrivals", "limit"),
    [
        ([(9, PIECE), (9, PIECE), (9, PIECE)], None),
        ([(9, PING), (9, PING)], "max_silence"),
        ([(9, PIECE), (6, PING), (6, PING)], "max_silence"),
        ([(6, PING), (6, PIECE), (9, PING)], None),
        ([(11, PIECE), (1, PIECE)], None),
        ([(9, PIECE)] * 12, "deadline"),
        ([(9, b"\n")] * 2, "max_silence"),
    ],
)
def test_patience(arrivals: list[tuple[float, bytes]], limit: str | None) -> None:
    clock = Clock()
    chunks = (clock.after(seconds, chunk) for seconds, chunk in [*arrivals, (0, b"\n")])
    read = payloads(chunks, Patience(10, 100, clock))
    if limit is None:
        assert len(list(read)) == sum(chunk == PIECE for _, chunk in arrivals)
    else:
        with pytest.raises(ProviderError, match=limit) as caught:
            list(read)
        assert caught.value.kind == "timeout"


def test_patience_does_not_count_the_reader_own_time() -> None:
    clock = Clock()
    read = payloads((clock.after(1, chunk) for chunk in (PIECE, PING, PIECE)), Patience(10, 100, clock))
    next(read)
    clock.now += 1000  # a student looks at the first piece
    assert len(list(read)) == 1


@given(st.lists(st.sampled_from(["", "a", "a-2", "call_0", "call_1", "call_0-2"]), max_size=8))
def test_ids_become_distinct_and_stay_so(ids: list[str]) -> None:
    found = distinct_ids(ids)
    assert len(set(found)) == len(ids) and all(found)
    assert distinct_ids(ids) == found and distinct_ids(found) == found
    for place, wanted in enumerate(ids):
        if wanted and wanted not in ids[:place]:
            assert found[place] == wanted, "the first with a name keeps it"


@given(st.text(st.characters()), st.lists(st.integers(0, 20)))
def test_text_in_pieces_can_always_be_encoded(text: str, cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(text)]
    pieces = Pieces()
    seen = "".join(pieces.add(text[a:b]) for a, b in zip(edges, edges[1:], strict=False) if a < b)
    assert str(pieces) == paired(text)
    assert str(pieces).startswith(seen) and seen.encode("utf-8") is not None


def test_one_line() -> None:
    assert one_line(" a\n\tb\x00c\u2028d ") == "a b c d"
    assert one_line("x" * 500, 10) == "x" * 9 + "…"


@given(st.text("abcdefghij0123456789-", min_size=12, max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_no_part_of_a_key_gets_through(key: str, before: str, after: str) -> None:
    shown = redact(f"{before}{key}{after} {key[:7]}**** ****{key[-7:]}", key)
    assert not any(key[i : i + 6] in shown for i in range(len(key) - 5))


def test_ordinary_words_are_not_taken_for_a_key() -> None:
    text = "the model... said **no** and the key was not shown"
    assert redact(text, "sk-0123456789abcdef") == text
    assert redact(text, "") == redact(text, "no") == text
