"""Anthropic's cache: marks, look-back, minimum, life, what is written, what a change loses, and why nothing was read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.caching import CHANGES, AnthropicCache, CacheResult, Life, Segment, arrange
from agentkit.caching.anthropic import LIVES, MOST_MARKS
from agentkit.caching.parts import PARAMETERS, PARTS, parameter

from .caching_support import CountedBytes, Prompt, counted, size

Marks = dict[int, Life]


def block(name: object, tokens: int = 1) -> Segment:
    return Segment(str(name).encode(), tuple(range(tokens)))


def blocks(count: int, *marks: int, start: int = 1, life: Life = "5m") -> Prompt:
    """Return blocks numbered from `start`, of one token each, with marks on the given numbers."""
    return [replace(block(n), mark=life) if n in marks else block(n) for n in range(start, start + count)]


def marked(prompt: Prompt, marks: Marks) -> Prompt:
    return [replace(part, mark=marks.get(i)) for i, part in enumerate(prompt)]


def cache(minimum: int = 1, **options: float) -> AnthropicCache:
    return AnthropicCache(minimum, **options)


# ---------------------------------------------------------------------------------------- the examples of the vendor's page


def test_ten_blocks_are_written_fifteen_read_ten_and_thirty_five_miss() -> None:
    """Block 10 is marked and written; a mark on block 15 finds it; one on block 35 looks at 35 … 16 and misses block 15."""
    model = cache()
    assert model.observe(blocks(10, 10)) == CacheResult(0, 10, 0)
    assert model.observe(blocks(15, 15)) == CacheResult(10, 5, 0)
    missed = model.observe(blocks(35, 35))
    assert (missed, missed.cause) == (CacheResult(0, 35, 0), "out of reach")


@pytest.mark.parametrize(("added", "read"), [(1, 15), (18, 15), (19, 15), (20, 0), (21, 0)])
def test_the_mark_itself_counts_as_one_of_the_twenty(added: int, read: int) -> None:
    model = cache()
    model.observe(blocks(15, 15))
    assert model.observe(blocks(15 + added, 15 + added)).read == read


def test_a_second_mark_closer_to_the_old_entry_reads_it() -> None:
    model = cache()
    model.observe(blocks(15, 15))
    assert model.observe(blocks(35, 34, 35)) == CacheResult(15, 20, 0)


def test_a_clock_in_the_marked_block_is_written_every_time_and_never_read() -> None:
    model = cache()
    for minute in range(3):
        assert model.observe([*blocks(9), replace(block(f"12:0{minute}"), mark="5m")]) == CacheResult(0, 10, 0)


def test_blocks_between_marks_are_no_entries() -> None:
    model = cache()
    model.observe(blocks(10, 10))
    assert model.observe(blocks(9, 9)).read == 0


def test_what_follows_the_last_mark_is_fresh() -> None:
    model = cache()
    assert model.observe(blocks(10, 4)) == CacheResult(0, 4, 6)
    assert model.observe(blocks(12, 4)) == CacheResult(4, 0, 8)


def test_parameters_are_no_blocks() -> None:
    model = cache()
    setting = [parameter("tool_choice", "auto"), parameter("images", 0)]
    model.observe(arrange([block("t"), replace(block("t2"), mark="5m")], messages=blocks(1), parameters={"images": 0}))
    model.observe([*blocks(1, 1), *setting, *blocks(1, start=2)])
    assert model.observe([*blocks(1), *setting, *blocks(19, 20, start=2)]).read == 1
    assert model.observe([*blocks(1), *setting, *blocks(20, 21, start=2)]).cause == ""


# ------------------------------------------------------------------------------------------------------- minimum and marks


@pytest.mark.parametrize(("tokens", "written"), [(1_023, 0), (1_024, 1_024), (5_000, 5_000)])
def test_a_short_prompt_is_silently_not_cached(tokens: int, written: int) -> None:
    model, prompt = AnthropicCache(), [replace(block("a", tokens), mark="5m")]
    first, second = model.observe(prompt), model.observe(prompt)
    assert (first, second) == (CacheResult(0, written, tokens - written), CacheResult(written, 0, tokens - written))
    assert (first.cause, second.cause) == (("", "") if written else ("below minimum", "below minimum"))


def test_the_minimum_counts_from_the_start_of_the_prompt() -> None:
    """The system prompt alone is too short for an entry; with the messages the prompt is not."""
    model = AnthropicCache(minimum=100)
    prompt = [replace(block("system", 60), mark="5m"), replace(block("user", 60), mark="5m")]
    assert model.observe(prompt) == CacheResult(0, 120, 0)
    assert model.observe([prompt[0], replace(block("other", 60), mark="5m")]) == CacheResult(0, 120, 0)


def test_no_mark_no_cache() -> None:
    model = cache()
    for _ in range(2):
        found = model.observe(blocks(10))
        assert (found, found.cause) == (CacheResult(0, 0, 10), "no mark")


def test_five_marks_are_refused_in_the_api_s_words_and_change_nothing() -> None:
    model = cache()
    with pytest.raises(ValueError, match=r"A maximum of 4 blocks with cache_control may be provided\. Found 5\."):
        model.observe(blocks(10, 1, 2, 3, 4, 5))
    assert model.observe(blocks(10, 1, 2, 3, 4)) == CacheResult(0, 4, 6)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("empty", "cache_control cannot be set for empty text blocks"), ("thinking", "thinking.cache_control: Extra inputs")],
)
def test_a_mark_on_empty_text_or_thinking_is_refused(kind: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cache().observe([Segment(b"x", (), kind, "5m")])  # type: ignore[arg-type]


def test_the_longer_life_comes_first() -> None:
    prompt = blocks(4)
    cache().observe(marked(prompt, {0: "1h", 1: "1h", 2: "5m", 3: "5m"}))
    with pytest.raises(
        ValueError, match="a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    ):
        cache().observe(marked(prompt, {0: "1h", 1: "5m", 2: "1h"}))


# -------------------------------------------------------------------------------------------------------------------- life


@pytest.mark.parametrize(("life", "seconds"), [("5m", 300), ("1h", 3_600)])
def test_an_entry_lives_from_the_start_of_the_request_that_wrote_or_last_read_it(life: Life, seconds: int) -> None:
    model, prompt = cache(), blocks(5, 5, life=life)
    times = [0, seconds - 1, 2 * seconds - 2, 3 * seconds - 2, 3 * seconds - 1]
    assert [model.observe(prompt, float(at)).read for at in times] == [0, 5, 5, 0, 5]
    assert model.observe(prompt, 20_000.0).cause == "expired"


def test_every_mark_refreshes_what_it_finds() -> None:
    """The mark on the system prompt keeps its entry alive although the one behind it is read."""
    model = cache()
    for n, at in enumerate((0.0, 200.0, 400.0, 600.0)):
        assert model.observe(blocks(2 + n, 1, 2 + n), at).read == (1 + n if n else 0)
    assert model.observe([*blocks(1, 1), block("another conversation")], 899.0).read == 1
    assert model.observe([*blocks(1, 1), block("a third")], 1_199.0).read == 0


def test_a_mark_inside_what_is_read_leaves_an_entry_and_costs_nothing() -> None:
    model = cache()
    model.observe(blocks(10, 10))
    assert model.observe(blocks(10, 3, 10)) == CacheResult(10, 0, 0)
    assert model.observe(blocks(4, 4)) == CacheResult(3, 1, 0)


def test_a_living_entry_keeps_the_life_that_it_was_written_with() -> None:
    model = cache()
    model.observe(blocks(5, 5, life="1h"))
    model.observe(blocks(5, 5, life="5m"), 100.0)
    assert model.observe(blocks(5, 5), 3_699.0).read == 5
    model.observe(blocks(6, 6, life="5m"))
    assert model.observe(blocks(6, 6, life="1h"), 299.0) == CacheResult(6, 0, 0)
    assert model.observe(blocks(6, 6), 700.0).read == 5


def test_parallel_requests_miss_until_the_first_answer_begins() -> None:
    model, prompt = cache(delay=2.0), blocks(5, 5)
    first, second, third = (model.observe(prompt, at) for at in (0.0, 1.0, 2.0))
    assert (first, second, third) == (CacheResult(0, 5, 0), CacheResult(0, 5, 0), CacheResult(5, 0, 0))
    assert second.cause == "not ready"


def test_written_tokens_are_split_by_life() -> None:
    """Up to the highest hit: read; from there to the last mark of an hour: written for an hour; the rest: 5 minutes."""
    model, prompt = cache(), [block(n, 10) for n in range(6)]
    assert model.observe(marked(prompt[:2], {0: "1h"})) == CacheResult(0, 10, 10, 10)
    assert model.observe(marked(prompt, {0: "1h", 2: "1h", 4: "5m"})) == CacheResult(10, 40, 10, 20)
    assert model.observe(marked(prompt, {0: "1h", 2: "1h", 4: "5m"})) == CacheResult(50, 0, 10)


# ------------------------------------------------------------------------------------------------------ what a change loses

TOOLS = [block("read_file", 10), block("run_tests", 10)]
SYSTEM = [block("You are careful.", 10)]
MESSAGES = [block("question", 10), block("answer", 10), block("next", 10)]
SETTINGS: dict[str, object] = {"model": "m", "features": "", "tool_choice": "auto", "thinking": "off", "images": 0}


def whole(**changed: object) -> Prompt:
    """Return a prompt with a mark at the end of the tools, of the system prompt and of the messages."""
    parts: dict[str, Prompt] = {"tools": TOOLS, "system": SYSTEM, "messages": MESSAGES}
    parts.update((name, changed.pop(name)) for name in PARTS if name in changed)  # type: ignore[misc]
    ends = {name: [*part[:-1], replace(part[-1], mark="5m")] for name, part in parts.items()}
    return arrange(ends["tools"], ends["system"], ends["messages"], {**SETTINGS, **changed})


EDITS: dict[str, Prompt] = {
    "model": whole(model="n"),
    "features": whole(features="web search"),
    "tool_choice": whole(tool_choice="any"),
    "thinking": whole(thinking="4,000 tokens"),
    "images": whole(images=1),
    "tools": whole(tools=TOOLS[::-1]),
    "system": whole(system=[block("You are quick.", 10)]),
    "message": whole(messages=[block("question!", 10), *MESSAGES[1:]]),
    "stripped thinking": whole(messages=MESSAGES[1:]),
}
FACTS = {
    "tools": (False, False, False),
    "features": (True, False, False),
    "system": (True, False, False),
    "tool_choice": (True, True, False),
    "images": (True, True, False),
    "thinking": (True, True, False),
    "message": (True, True, False),
    "model": (False, False, False),
    "stripped thinking": (True, True, False),
}
"""What is kept of tools, system and messages, copied by hand from the vendor's page."""


def test_every_change_has_a_fact_and_an_edit() -> None:
    assert CHANGES.keys() == FACTS.keys() == EDITS.keys()


@pytest.mark.parametrize("change", CHANGES)
def test_the_table_and_the_model_both_say_what_the_vendor_says(change: str) -> None:
    assert tuple(part not in CHANGES[change].lost for part in PARTS) == FACTS[change]
    kept = sum(size(part) for part, stays in zip((TOOLS, SYSTEM, MESSAGES), FACTS[change], strict=True) if stays)
    model = cache()
    model.observe(whole())
    found = model.observe(EDITS[change])
    assert found.read == kept
    assert found.cause == {"message": "messages", "stripped thinking": "messages"}.get(change, change) + " changed"
    assert model.observe(whole()).read == size(whole())


@pytest.mark.parametrize("name", PARAMETERS)
def test_giving_a_parameter_at_all_is_a_change_of_it(name: str) -> None:
    without = {key: value for key, value in SETTINGS.items() if key != name}
    marks = [replace(part[-1], mark="5m") for part in (TOOLS, SYSTEM, MESSAGES)]
    prompt = arrange([TOOLS[0], marks[0]], [marks[1]], [*MESSAGES[:-1], marks[2]], without)
    for first, second in ((whole(), prompt), (prompt, whole())):
        model = cache()
        model.observe(first)
        assert model.observe(second).cause == f"{name} changed"


def test_a_removed_system_prompt_or_tool_is_named() -> None:
    for change, fewer in (("tools", whole(tools=TOOLS[:1])), ("system", arrange(TOOLS, (), MESSAGES, SETTINGS))):
        model = cache()
        model.observe(whole())
        assert model.observe([*fewer[:-1], replace(fewer[-1], mark="5m")]).cause == f"{change} changed"


def test_an_unknown_parameter_says_which_there_are() -> None:
    with pytest.raises(ValueError, match=r"unknown parameter 'toolchoice'; there are model, features, tool_choice"):
        arrange(parameters={"toolchoice": "auto"})


def test_arrange_orders_and_names_the_parts() -> None:
    prompt = arrange(system=SYSTEM, messages=MESSAGES, tools=TOOLS, parameters={"images": 2, "model": "m"})
    assert [part.data for part in prompt] == [
        b"model=m", b"read_file", b"run_tests", b"You are careful.", b"images=2", b"question", b"answer", b"next"
    ]  # fmt: skip
    assert [part.kind for part in prompt] == ["parameter", "tools", "tools", "system", "parameter", "user", "user", "user"]


# ----------------------------------------------------------------------------------------------- against a plain reference


class EveryEntry:
    """The reference: each entry under the names of all blocks up to it, with its life and its last use."""

    def __init__(self, minimum: int, look_back: int) -> None:
        self.minimum, self.look_back = minimum, look_back
        self.entries: dict[tuple[bytes, ...], tuple[Life, float]] = {}

    def observe(self, prompt: Prompt, at: float) -> CacheResult:
        """Account for `prompt`."""
        names = tuple(part.data for part in prompt)
        numbers = [i for i, part in enumerate(prompt) if part.kind != "parameter"]
        marks = [i for i in numbers if prompt[i].mark]
        alive = {name for name, (life, since) in self.entries.items() if at < since + LIVES[life]}
        hits = []
        for mark in marks:
            window = numbers[: numbers.index(mark) + 1][-self.look_back :]
            hits += [max((i for i in window if names[: i + 1] in alive), default=-1)]
        for hit in hits:
            if hit >= 0:
                self.entries[names[: hit + 1]] = (self.entries[names[: hit + 1]][0], at)
        read = size(prompt[: max(hits, default=-1) + 1])
        ends: dict[Life, int] = {"5m": read, "1h": read}
        for mark in marks:
            life, end = prompt[mark].mark, size(prompt[: mark + 1])
            if life and end >= self.minimum:
                ends[life] = max(ends[life], end)
                if names[: mark + 1] not in alive:
                    self.entries[names[: mark + 1]] = (life, at)
        written = max(ends.values()) - read
        return CacheResult(read, written, size(prompt) - read - written, ends["1h"] - read)


_PARTS = st.builds(block, st.sampled_from("abc"), st.integers(0, 3)).map(lambda s: block(s.data.decode(), s.data[0] % 4))
_ANY_PART = _PARTS | _PARTS | _PARTS | st.sampled_from([parameter("images", 0), parameter("images", 1)])


@st.composite
def marked_traffic(draw: st.DrawFn) -> list[tuple[Prompt, float]]:
    """Return requests with marks, at growing times; most go on from an earlier one, whole or altered."""
    sent: list[tuple[Prompt, float]] = []
    at = 0.0
    for _ in range(draw(st.integers(1, 8))):
        prompt = list(sent[draw(st.integers(0, len(sent) - 1))][0]) if sent and draw(st.integers(0, 3)) else []
        if prompt and not draw(st.integers(0, 3)):
            prompt[draw(st.integers(0, len(prompt) - 1))] = draw(_ANY_PART)
        prompt += draw(st.lists(_ANY_PART, max_size=6))
        places = [i for i, part in enumerate(prompt) if part.kind != "parameter"]
        chosen = sorted(draw(st.sets(st.sampled_from(places), max_size=MOST_MARKS))) if places else []
        hours = draw(st.integers(0, len(chosen)))
        at += draw(st.sampled_from([0, 10, 299, 300, 3_599, 3_600]))
        sent.append((marked(prompt, {place: "1h" if n < hours else "5m" for n, place in enumerate(chosen)}), at))
    return sent


@settings(max_examples=200)
@given(marked_traffic(), st.integers(0, 8), st.integers(1, 6))
def test_reads_and_writes_what_the_reference_does(requests: list[tuple[Prompt, float]], minimum: int, window: int) -> None:
    model, reference = AnthropicCache(minimum, window), EveryEntry(minimum, window)
    for prompt, at in requests:
        assert model.observe(prompt, at) == reference.observe(prompt, at)


# -------------------------------------------------------------------------------------------------------------------- work


def test_work_is_for_what_is_new() -> None:
    """The bytes of segments that were sent before are neither hashed nor compared again."""

    def looks(requests: int) -> int:
        model, session = cache(), list[Segment]()
        CountedBytes.looks = 0
        for n in range(requests):
            session.append(counted(n, 10))
            model.observe([*session[:-1], replace(session[-1], mark="5m")])
        return CountedBytes.looks

    assert 0 < looks(100) <= 100 * 8
    assert looks(200) <= 2.1 * looks(100)
