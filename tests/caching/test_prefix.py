"""The cache models against a reference that keeps every prompt in a list and compares token by token."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.caching import CacheResult, DeepSeekCache, OpenAICache, PrefixCache, Segment
from agentkit.caching.prefix import PrefixTree, alike

END = "<end>"
Prompt = list[Segment]


def segment(text: str) -> Segment:
    """Return a segment with a token for each character and an end, as chat formats have one: none begins another."""
    return Segment(text.encode(), (*text, END))


def flat(prompt: Prompt) -> list[object]:
    return [token for part in prompt for token in part.tokens]


def common(one: list[object], two: list[object]) -> int:
    size = 0
    while size < min(len(one), len(two)) and one[size] == two[size]:
        size += 1
    return size


class ListOfPrompts:
    """The reference of OpenAI's cache: every prompt ever sent, compared from the start."""

    def __init__(self, minimum: int, step: int) -> None:
        self.minimum, self.step = minimum, step
        self.seen: list[list[object]] = []

    def observe(self, prompt: Prompt, output: Segment | None) -> CacheResult:
        """Account for `prompt`."""
        tokens = flat(prompt)
        longest = max((common(old, tokens) for old in self.seen), default=0)
        self.seen.append(tokens)
        read = longest - longest % self.step if longest >= self.minimum else 0
        return CacheResult(read, 0, len(tokens) - read)


class ListOfUnits:
    """The reference of DeepSeek's cache: every stored unit is a list of tokens, read whole or not at all."""

    def __init__(self, step: int, minimum: int) -> None:
        self.step, self.minimum = step, minimum
        self.seen: list[list[object]] = []
        self.units: list[list[object]] = []

    def observe(self, prompt: Prompt, output: Segment | None) -> CacheResult:
        """Account for `prompt`, then store its units and those of `output`."""
        tokens = flat(prompt)
        read = max((len(u) for u in self.units if tokens[: len(u)] == u and len(u) >= self.minimum), default=0)
        shared = max((common(old, tokens) for old in self.seen), default=0)
        self.units.append(tokens[:shared])
        for whole in (tokens, *([tokens + list(output.tokens)] if output else [])):
            self.seen.append(whole)
            self.units += [whole[:n] for n in range(self.step, len(whole), self.step)] if self.step else []
            self.units.append(whole)
        return CacheResult(read, 0, len(tokens) - read)


texts = st.text("ab", min_size=0, max_size=9)
segments = texts.map(segment)
prompts = st.lists(segments, max_size=6)


@st.composite
def traffic(draw: st.DrawFn) -> list[tuple[Prompt, Segment | None]]:
    """Return requests in order; most of them go on from an earlier one, or change it somewhere."""
    sent: list[tuple[Prompt, Segment | None]] = []
    for _ in range(draw(st.integers(1, 8))):
        base = list(sent[draw(st.integers(0, len(sent) - 1))][0]) if sent and draw(st.booleans()) else []
        if base and draw(st.booleans()):
            base[draw(st.integers(0, len(base) - 1))] = draw(segments)
        sent.append((base + draw(prompts), draw(st.none() | segments)))
    return sent


SIZES = st.tuples(st.integers(1, 6), st.integers(0, 12))


@settings(max_examples=120)
@given(traffic(), SIZES)
def test_openai_reads_what_the_reference_reads(
    requests: list[tuple[Prompt, Segment | None]], sizes: tuple[int, int]
) -> None:
    step, minimum = sizes
    cache, reference = OpenAICache(minimum, step), ListOfPrompts(minimum, step)
    for prompt, output in requests:
        assert cache.observe(prompt, 0.0, output) == reference.observe(prompt, output)


@settings(max_examples=120)
@given(traffic(), SIZES, st.booleans())
def test_deepseek_reads_what_the_reference_reads(
    requests: list[tuple[Prompt, Segment | None]], sizes: tuple[int, int], stepping: bool
) -> None:
    step, minimum = sizes if stepping else (0, sizes[1])
    cache, reference = DeepSeekCache(step, minimum), ListOfUnits(step, minimum)
    for prompt, output in requests:
        assert cache.observe(prompt, 0.0, output) == reference.observe(prompt, output)


MODELS: dict[str, Callable[[], PrefixCache]] = {
    "openai": OpenAICache,
    "openai, small": lambda: OpenAICache(8, 4),
    "deepseek": DeepSeekCache,
    "deepseek, small": lambda: DeepSeekCache(4, 8),
    "deepseek, whole units only": lambda: DeepSeekCache(0, 1),
}
every_model = st.sampled_from(sorted(MODELS)).map(MODELS.__getitem__)
many = settings(max_examples=120)


@many
@given(make=every_model, requests=traffic())
def test_the_parts_of_a_bill_add_up(make: Callable[[], PrefixCache], requests: list[tuple[Prompt, Segment | None]]) -> None:
    cache = make()
    for prompt, output in requests:
        bill = cache.observe(prompt, 0.0, output)
        assert bill.read + bill.written + bill.fresh == len(flat(prompt))
        assert min(bill.read, bill.written, bill.fresh) >= 0


@many
@given(make=every_model, additions=st.lists(st.lists(segments, max_size=3), min_size=1, max_size=8), before=traffic())
def test_appending_never_lowers_what_is_read(
    make: Callable[[], PrefixCache], additions: list[Prompt], before: list[tuple[Prompt, Segment | None]]
) -> None:
    cache = make()
    for prompt, output in before:
        cache.observe(prompt, 0.0, output)
    prompt, reads = list[Segment](), [0]
    for addition in additions:
        prompt += addition
        reads.append(cache.observe(prompt).read)
    assert reads == sorted(reads)


def granularity(model: str, tokens: int) -> int:
    """Return the least that a model reads of `tokens` unchanged tokens, sent twice before."""
    minimum, step = {"openai": (1_024, 128), "openai, small": (8, 4), "deepseek": (64, 128), "deepseek, small": (8, 4)}[
        model
    ]
    return tokens - tokens % step if tokens >= minimum else 0


@many
@given(model=st.sampled_from([m for m in MODELS if m != "deepseek, whole units only"]), data=st.data())
def test_an_edit_keeps_everything_before_and_nothing_after(model: str, data: st.DataObject) -> None:
    scale = 1 if "small" in model else 300
    parts = data.draw(st.lists(texts, min_size=1, max_size=6))
    prompt = [segment(text * scale + str(i)) for i, text in enumerate(parts)]
    edited = data.draw(st.integers(0, len(prompt) - 1))
    cache = MODELS[model]()
    cache.observe(prompt)
    changed = [*prompt[:edited], segment("!" + parts[edited]), *prompt[edited + 1 :]]
    before = sum(len(s.tokens) for s in prompt[:edited])
    read = cache.observe(changed).read
    assert granularity(model, before) <= read <= before
    assert len(flat(changed)) - read >= len(flat(changed[edited:]))


def test_deepseek_reads_a_shared_part_from_the_third_request_on() -> None:
    """The server sees two requests part ways, stores what they share, and the third one reads it."""
    cache = DeepSeekCache(step=0, minimum=1)
    shared = segment("a long system prompt")
    reads = [cache.observe([shared, segment(text)]).read for text in ("one", "two", "three")]
    assert reads == [0, 0, len(shared.tokens)]


def test_deepseek_stores_the_output_and_openai_does_not() -> None:
    prompt, answer, question = [segment("q" * 99)], segment("a" * 49), segment("next")
    for cache, read in ((DeepSeekCache(step=0), 150), (OpenAICache(50, 1), 100)):
        cache.observe(prompt, 0.0, answer)
        assert cache.observe([*prompt, answer, question]).read == read


@pytest.mark.parametrize(("size", "read"), [(1_022, 0), (1_023, 1_024), (1_150, 1_024), (1_151, 1_152), (5_000, 4_992)])
def test_openai_s_minimum_and_step(size: int, read: int) -> None:
    cache = OpenAICache()
    prompt = [segment("x" * size)]
    assert cache.observe(prompt) == CacheResult(0, 0, size + 1)
    assert cache.observe(prompt) == CacheResult(read, 0, size + 1 - read)


@pytest.mark.parametrize(("size", "read"), [(62, 0), (63, 64), (100, 101), (500, 501)])
def test_deepseek_s_minimum(size: int, read: int) -> None:
    cache = DeepSeekCache()
    cache.observe([segment("x" * size)])
    assert cache.observe([segment("x" * size)]).read == read


def test_a_changed_first_byte_loses_everything() -> None:
    for make in MODELS.values():
        cache, tail = make(), [segment("x" * 3_000)]
        cache.observe([segment("clock 10:00"), *tail])
        assert cache.observe([segment("10:01 clock"), *tail]).read == 0


def test_the_bytes_decide_whether_two_segments_are_the_same() -> None:
    tree = PrefixTree()
    tree.follow([Segment(b"one", ("a", "b")), Segment(b"next", ("c",))])
    path, known = tree.follow([Segment(b"two", ("a", "b")), Segment(b"next", ("c",))])
    assert (known, tree.shared(path, known)) == (0, 2)


@many
@given(st.text("ab"), st.text("ab"), st.text("ab"))
def test_alike_counts_the_first_tokens_that_are_the_same(start: str, one: str, two: str) -> None:
    a, b = tuple(start + one), tuple(start + two)
    assert alike(a, b) == common(list(a), list(b)) == alike(b, a)


def test_an_empty_prompt_costs_nothing() -> None:
    for make in MODELS.values():
        assert make().observe([]) == CacheResult(0, 0, 0)


def test_a_long_session_takes_work_for_what_is_new_only() -> None:
    """Nodes are shared: 500 growing prompts leave 500 nodes, not 125,250."""
    tree, prompt = PrefixTree(), list[Segment]()
    for n in range(500):
        prompt.append(segment(f"message {n}"))
        tree.follow(prompt)
    count, waiting = 0, [tree.root]
    while waiting:
        node = waiting.pop()
        waiting += node.children.values()
        count += 1
    assert count == 501
