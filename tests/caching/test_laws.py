"""The law that every cache model keeps: only an unchanged prefix is read, to the model's own granularity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.caching import (
    AnthropicCache,
    BlockCache,
    CacheResult,
    DeepSeekCache,
    OpenAICache,
    PrefixCache,
    Segment,
    TokenTree,
    add_marks,
    place,
)

from .caching_support import Prompt, Request, common, flat, letters, looks, size, traffic


class Marked:
    """Anthropic's model behind the recommended marks."""

    def __init__(self, minimum: int) -> None:
        self.model = AnthropicCache(minimum)

    def observe(self, prompt: Prompt, at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Account for `prompt` with marks."""
        return self.model.observe(add_marks(prompt, place(prompt)), at, output)


MODELS: dict[str, Callable[[], PrefixCache]] = {
    "anthropic": lambda: Marked(1),
    "anthropic, minimum 8": lambda: Marked(8),
    "openai": lambda: OpenAICache(8, 4),
    "deepseek": lambda: DeepSeekCache(4, 8),
    "deepseek, whole units only": lambda: DeepSeekCache(0, 8),
    "blocks": lambda: BlockCache(size=4),
    "blocks, limited": lambda: BlockCache(capacity=60, size=4),
    "tree": lambda: TokenTree(),
    "tree, limited": lambda: TokenTree(capacity=220, page=2),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
some = settings(max_examples=50)


@every_model
@some
@given(requests=traffic())
def test_no_more_is_read_than_some_earlier_request_shares(make: Callable[[], PrefixCache], requests: list[Request]) -> None:
    model, seen = make(), list[list[object]]()
    for prompt, output in requests:
        read = model.observe(prompt, output=output).read
        assert 0 <= read <= max((common(old, flat(prompt)) for old in seen), default=0)
        seen.append(flat(prompt if output is None else [*prompt, output]))


@every_model
@some
@given(requests=traffic())
def test_the_parts_of_a_bill_add_up_to_the_tokens_sent(make: Callable[[], PrefixCache], requests: list[Request]) -> None:
    model = make()
    for prompt, output in requests:
        bill = model.observe(prompt, output=output)
        assert bill.read + bill.written + bill.fresh == size(prompt)
        assert min(bill.read, bill.written - bill.written_1h, bill.written_1h, bill.fresh) >= 0


_LETTERS = st.text("ab", max_size=6).map(letters)
_ROUND = st.tuples(st.lists(_LETTERS, max_size=8), st.lists(_LETTERS, min_size=1, max_size=8))


@every_model
@some
@given(rounds=st.lists(_ROUND, min_size=1, max_size=6), before=traffic())
def test_appending_never_lowers_what_is_read(
    make: Callable[[], PrefixCache], rounds: list[tuple[Prompt, Prompt]], before: list[Request]
) -> None:
    """In rounds, as an agent appends: an answer of any number of blocks, then the results."""
    model, prompt, reads = make(), list[Segment](), [0]
    for earlier, output in before:
        model.observe(earlier, output=output)
    for answer, results in rounds:
        prompt += [replace(part, kind="assistant") for part in answer] + results
        reads.append(model.observe(prompt).read if size(prompt) < 200 else reads[-1])
    assert reads == sorted(reads)


def least(name: str, before: int, in_edited: int) -> int:
    """Return what a model must read of `before` unchanged tokens in whole segments, and a few more in the edited one."""
    unchanged = before + in_edited
    if name.startswith("anthropic"):  # the last mark before the edit is on a message, and one token of an answer follows it
        entry = max(0, before - 1)
        return entry if name == "anthropic" or entry >= 8 else 0
    if name == "deepseek, whole units only":  # the last one ends with the answer before the edit
        return before if before >= 8 else 0
    if name in ("openai", "deepseek"):
        return unchanged - unchanged % 4 if unchanged >= 8 else 0
    return unchanged - unchanged % {"tree": 1, "tree, limited": 2}.get(name, 4)


@pytest.mark.parametrize("name", MODELS)
@some
@given(texts=st.lists(st.text("ab", min_size=1, max_size=9), min_size=1, max_size=18), data=st.data())
def test_an_edit_keeps_everything_before_it_and_nothing_behind(name: str, texts: list[str], data: st.DataObject) -> None:
    edited, model = data.draw(st.integers(0, len(texts) - 1)), MODELS[name]()
    letter = data.draw(st.integers(0, len(texts[edited]) - 1))
    prompt = [letters(text) for text in texts]
    changed = letters(texts[edited][:letter] + "!" + texts[edited][letter + 1 :])
    # An entry is only where a mark was: the session sent its messages one after the other, a mark on each.
    for end in range(1, len(prompt) + 1):
        model.observe(with_answers(prompt[:end]))
    found = model.observe(with_answers([*prompt[:edited], changed, *prompt[edited + 1 :]]))
    before = size(with_answers(prompt[:edited]))
    assert least(name, before, letter) <= found.read <= before + letter


def with_answers(messages: Prompt) -> Prompt:
    """Return the messages with an answer of one token after each."""
    return [part for message in messages for part in (message, Segment(b"ok", ("ok",), "assistant"))]


@every_model
def test_an_empty_prompt_costs_nothing(make: Callable[[], PrefixCache]) -> None:
    model = make()
    assert model.observe([]) == CacheResult(0, 0, 0)
    assert model.observe([], output=letters("ab")) == CacheResult(0, 0, 0)
    assert model.observe([letters("")]) == CacheResult(0, 0, 0)


@every_model
def test_work_is_for_what_is_new(make: Callable[[], PrefixCache]) -> None:
    once, twice = looks(make, 100, tokens=1), looks(make, 200, tokens=1)
    assert 0 < once[1] <= 100 * 8 and once[0] <= 100 * 8
    assert twice[0] <= 2.1 * once[0] + 1 and twice[1] <= 2.1 * once[1]
