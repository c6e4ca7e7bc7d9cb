"""The cache of whole blocks against a reference that keeps every place, every hash and the queue of free blocks."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.caching import BlockCache, CacheResult, Segment
from agentkit.caching.parts import parameter

from .caching_support import Prompt, Request, flat, letters, longest, looks, traffic


class EveryPlace:
    """The reference: places with a number, a queue of those that are free, oldest release first, and who is where.

    A block is named by all tokens up to its end. A request takes the blocks that it finds out of the queue, allocates the
    others from the head of the queue, and releases all of them, the last one first.
    """

    def __init__(self, capacity: int, size: int) -> None:
        self.size, self.capacity = size, capacity
        self.queue: OrderedDict[int, None] = OrderedDict.fromkeys(range(capacity))
        self.holds: dict[int, tuple[object, ...]] = {}
        self.places: dict[tuple[object, ...], int] = {}

    def observe(self, prompt: Prompt, output: Segment | None) -> CacheResult:
        """Account for `prompt`, then keep it and `output` but for the last token."""
        total, tokens = len(flat(prompt)), flat(prompt if output is None else [*prompt, output])
        tokens = tokens[: max(total, len(tokens) - 1)] if output is not None else tokens
        names = [tuple(tokens[:end]) for end in range(self.size, len(tokens) + 1, self.size)]
        if -(-len(tokens) // self.size) > self.capacity:
            raise ValueError("too small")
        table = self._find(names)
        read = min(len([p for p in table if len(self.holds[p]) <= total]), max(total - 1, 0) // self.size) * self.size
        for name in names[len(table) :]:
            table.append(self._allocate(name))
        if len(tokens) % self.size:
            table.append(self._allocate(None))
        for place in reversed(table):
            self.queue[place] = None
        return CacheResult(read, 0, total - read)

    def _find(self, names: list[tuple[object, ...]]) -> list[int]:
        table = []
        for name in names:
            if name not in self.places:
                break
            table.append(self.places[name])
            del self.queue[self.places[name]]
        return table

    def _allocate(self, name: tuple[object, ...] | None) -> int:
        place, _ = self.queue.popitem(last=False)
        if place in self.holds:
            del self.places[self.holds.pop(place)]
        if name is not None:
            self.holds[place], self.places[name] = name, place
        return place


def result(cache: BlockCache | EveryPlace, request: Request) -> CacheResult | str:
    prompt, output = request
    try:
        return cache.observe(prompt, output=output) if isinstance(cache, BlockCache) else cache.observe(prompt, output)
    except ValueError:
        return "does not fit"


@settings(max_examples=250)
@given(traffic(), st.integers(1, 5), st.integers(-2, 4))
def test_reads_what_the_reference_reads(requests: list[Request], size: int, spare: int) -> None:
    """With room for the largest request and little more (or less), so that every other request gives something up."""
    capacity = max(1, -(-longest(requests) // size) + spare)
    cache, reference = BlockCache(capacity, size), EveryPlace(capacity, size)
    for request in requests:
        assert result(cache, request) == result(reference, request)


@settings(max_examples=60)
@given(traffic(), st.integers(1, 5))
def test_without_a_limit_nothing_is_given_up(requests: list[Request], size: int) -> None:
    cache, reference = BlockCache(None, size), EveryPlace(10_000, size)
    for request in requests:
        assert result(cache, request) == result(reference, request)


def test_the_reference_runs_full() -> None:
    """Else the comparison above would say nothing about eviction."""
    reference = EveryPlace(4, 2)
    for text in ("aaaa", "bbbb", "abab"):
        reference.observe([letters(text)], None)
    assert reference.observe([letters("aaaaa")], None).read == 0


def prompt(start: int, tokens: int) -> Prompt:
    return [Segment(f"{start}+{tokens}".encode(), tuple(range(start, start + tokens)))]


@pytest.mark.parametrize(("tokens", "read"), [(1, 0), (16, 0), (17, 16), (64, 48), (65, 64), (100, 96)])
def test_the_same_prompt_again_reads_whole_blocks_but_never_the_last_token(tokens: int, read: int) -> None:
    cache = BlockCache()
    assert cache.observe(prompt(0, tokens)) == CacheResult(0, 0, tokens)
    assert cache.observe(prompt(0, tokens)) == CacheResult(read, 0, tokens - read)


def test_a_changed_token_loses_its_block_and_all_behind_it() -> None:
    for place in (0, 15, 16, 40, 99):
        cache, tokens = BlockCache(), list(range(100))
        cache.observe([Segment(b"before", tuple(tokens))])
        tokens[place] = -1
        assert cache.observe([Segment(b"after", tuple(tokens))]).read == place // 16 * 16


def test_tokens_decide_however_they_are_cut_into_segments() -> None:
    cache = BlockCache(size=4)
    cache.observe([letters("abcde"), letters("fgh"), letters("ijklm")])
    assert cache.observe([letters("ab"), letters("cdefghijklmn")]).read == 12


def test_a_parameter_makes_what_follows_another_text() -> None:
    cache, text = BlockCache(size=2), letters("abcdefgh")
    for before in ([], [parameter("model", "m")], [parameter("model", "n")]):
        assert [cache.observe([*before, text]).read for _ in range(2)] == [0, 6]


def test_the_output_is_kept_but_for_its_last_token() -> None:
    cache = BlockCache(size=4)
    question, answer, more = letters("abc"), letters("defgh"), letters("i")
    cache.observe([question], output=answer)
    assert cache.observe([question, answer, more]).read == 4
    cache.observe([question], output=letters("defghi"))
    assert cache.observe([question, letters("defghi"), more]).read == 8


def test_the_end_of_a_prompt_is_given_up_before_its_start() -> None:
    cache = BlockCache(capacity=10, size=1)
    cache.observe(prompt(0, 6))
    cache.observe(prompt(100, 7))
    assert cache.observe(prompt(0, 7)).read == 3


def test_the_shared_start_outlives_many_sessions() -> None:
    cache = BlockCache(capacity=125)
    reads = [cache.observe([*prompt(0, 304), *prompt(1_000 * n, 500)]).read for n in range(1, 8)]
    assert reads == [0] + [304] * 6


def test_a_request_larger_than_the_cache_says_so() -> None:
    cache = BlockCache(capacity=2)
    cache.observe(prompt(0, 32))
    with pytest.raises(ValueError, match="33 tokens needs 3 blocks and the cache has 2"):
        cache.observe(prompt(0, 33))
    assert cache.observe(prompt(0, 32)).read == 16


@pytest.mark.parametrize("capacity", [None, 5_000])
def test_work_is_for_what_is_new(capacity: int | None) -> None:
    once, twice = (looks(lambda: BlockCache(capacity), requests)[0] for requests in (100, 200))
    assert 0 < once <= 100 * 40 * 4
    assert twice <= 2.1 * once
