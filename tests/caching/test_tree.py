"""The token tree against a reference that starts from the root each time and looks at every token and every leaf."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.caching import CacheResult, Segment, TokenTree
from agentkit.caching.parts import parameter

from .caching_support import Prompt, Request, common, flat, letters, longest, looks, traffic


@dataclass(eq=False)
class Leaf:
    """A run of tokens in the reference, a leaf as long as it has no children."""

    tokens: list[object]
    used: int
    children: list[Leaf] = field(default_factory=list)


class EveryToken:
    """The reference: walk from the root, note the time on every run that is passed, look through all leaves to evict."""

    def __init__(self, capacity: int, page: int) -> None:
        self.capacity, self.page, self.clock = capacity, page, 0
        self.root = Leaf([], 0)

    def observe(self, prompt: Prompt, output: Segment | None) -> CacheResult:
        """Account for `prompt`, then put it in, then with `output` but for its last token."""
        tokens, whole = flat(prompt), flat(prompt if output is None else [*prompt, output])
        kept = whole[: max(len(tokens), len(whole) - 1)] if output is not None else tokens
        if self._pages(len(kept)) > self.capacity:
            raise ValueError("too small")
        read = sum(len(run.tokens) for run in self._walk(tokens[: self._pages(max(len(tokens) - 1, 0))]))
        self._insert(tokens)
        self._insert(kept)
        return CacheResult(read, 0, len(tokens) - read)

    def _pages(self, length: int) -> int:
        return length - length % self.page

    def _walk(self, tokens: list[object]) -> list[Leaf]:
        self.clock += 1
        path = [self.root]
        while tokens:
            child = next((c for c in path[-1].children if c.tokens[: self.page] == tokens[: self.page]), None)
            if child is None:
                break
            child.used = self.clock
            shared = self._pages(common(child.tokens, tokens))
            if shared < len(child.tokens):
                child = self._split(path[-1], child, shared)
                path.append(child)
                break
            path.append(child)
            tokens = tokens[shared:]
        return path

    def _split(self, parent: Leaf, child: Leaf, shared: int) -> Leaf:
        upper = Leaf(child.tokens[:shared], child.used, [child])
        parent.children[parent.children.index(child)] = upper
        child.tokens = child.tokens[shared:]
        return upper

    def _insert(self, tokens: list[object]) -> None:
        tokens = tokens[: self._pages(len(tokens))]
        path = self._walk(tokens)
        rest = tokens[sum(len(run.tokens) for run in path) :]
        if rest:
            while self._size(self.root) + len(rest) > self.capacity:
                self._evict(path)
            path[-1].children.append(Leaf(rest, self.clock))

    def _size(self, run: Leaf) -> int:
        return len(run.tokens) + sum(map(self._size, run.children))

    def _evict(self, locked: list[Leaf]) -> None:
        pairs, waiting = [], [self.root]
        while waiting:
            run = waiting.pop()
            waiting += run.children
            pairs += [(run, child) for child in run.children if not child.children and child not in locked]
        parent, oldest = min(pairs, key=lambda pair: pair[1].used)
        parent.children.remove(oldest)


def result(cache: TokenTree | EveryToken, request: Request) -> CacheResult | str:
    prompt, output = request
    try:
        return cache.observe(prompt, output=output) if isinstance(cache, TokenTree) else cache.observe(prompt, output)
    except ValueError:
        return "does not fit"


@settings(max_examples=250)
@given(traffic(), st.integers(1, 4), st.integers(-2, 12))
def test_reads_what_the_reference_reads(requests: list[Request], page: int, spare: int) -> None:
    """With room for the longest request and little more (or less), so that every other request gives something up."""
    capacity = max(1, longest(requests) + spare)
    cache, reference = TokenTree(capacity, page), EveryToken(capacity, page)
    for request in requests:
        assert result(cache, request) == result(reference, request)


@settings(max_examples=60)
@given(traffic(), st.integers(1, 4))
def test_without_a_limit_the_longest_prefix_is_read(requests: list[Request], page: int) -> None:
    cache, seen = TokenTree(None, page), list[list[object]]()
    for prompt, output in requests:
        tokens = flat(prompt)
        shared = max((common(old, tokens[:-1]) for old in seen), default=0)
        assert cache.observe(prompt, output=output).read == shared - shared % page
        whole = flat(prompt if output is None else [*prompt, output])
        kept = whole[: max(len(tokens), len(whole) - 1)] if output is not None else tokens
        seen.append(kept[: len(kept) // page * page])


def prompt(start: int, tokens: int) -> Prompt:
    return [Segment(f"{start}+{tokens}".encode(), tuple(range(start, start + tokens)))]


@pytest.mark.parametrize(("page", "read"), [(1, 99), (16, 96), (99, 99), (100, 0)])
def test_the_same_prompt_again_computes_at_least_the_last_token(page: int, read: int) -> None:
    cache = TokenTree(page=page)
    assert cache.observe(prompt(0, 100)) == CacheResult(0, 0, 100)
    assert cache.observe(prompt(0, 100)) == CacheResult(read, 0, 100 - read)


def test_a_changed_token_loses_itself_and_all_behind_it() -> None:
    for place in (0, 1, 50, 98):
        cache, tokens = TokenTree(), list(range(100))
        cache.observe([Segment(b"before", tuple(tokens))])
        tokens[place] = -1
        assert cache.observe([Segment(b"after", tuple(tokens))]).read == place


def test_tokens_decide_however_they_are_cut_into_segments() -> None:
    cache = TokenTree()
    cache.observe([letters("abcde"), letters("fgh")])
    assert cache.observe([letters("ab"), letters("cdefghi")]).read == 8


def test_a_parameter_makes_what_follows_another_text() -> None:
    cache, text = TokenTree(), letters("abcdefgh")
    for before in ([], [parameter("model", "m")], [parameter("model", "n")]):
        assert [cache.observe([*before, text]).read for _ in range(2)] == [0, 7]


def test_the_output_is_kept_but_for_its_last_token() -> None:
    cache = TokenTree()
    question, answer, more = letters("abc"), letters("defgh"), letters("i")
    cache.observe([question], output=answer)
    assert cache.observe([question, answer, more]).read == 7


def test_a_whole_run_is_given_up_and_the_shared_start_stays() -> None:
    cache = TokenTree(capacity=2_000)
    reads = [cache.observe([*prompt(0, 300), *prompt(1_000 * n, 500)]).read for n in range(1, 8)]
    assert reads == [0] + [300] * 6
    assert cache.observe([*prompt(0, 300), *prompt(1_000, 500), *prompt(5, 1)]).read == 300
    assert cache.observe([*prompt(0, 300), *prompt(7_000, 500), *prompt(5, 1)]).read == 800


def test_a_request_larger_than_the_tree_says_so() -> None:
    cache = TokenTree(capacity=32)
    cache.observe(prompt(0, 32))
    with pytest.raises(ValueError, match="33 tokens does not fit into a tree of 32"):
        cache.observe(prompt(0, 33))
    assert cache.observe(prompt(0, 32)).read == 31


@pytest.mark.parametrize("capacity", [None, 8_000])
def test_work_is_for_what_is_new(capacity: int | None) -> None:
    once, twice = (looks(lambda: TokenTree(capacity), requests)[0] for requests in (100, 200))
    assert 0 < once <= 100 * 40 * 4
    assert twice <= 2.1 * once
