"""Figures: the data is exact, the picture survives JupyterLab's sanitiser, and the result is there in words."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import figures
from agentkit.budget import Budget
from agentkit.compaction.compactor import assemble, summary_message
from agentkit.events import Billed, ContextUsage
from agentkit.figures.context_strip import strip
from agentkit.figures.cut import NAMES, refusals, trial_in_words
from agentkit.figures.growth import growth_of, in_words
from agentkit.figures.palette import LOOKS
from agentkit.figures.picture import Picture, columns, flow, nice_step
from agentkit.figures.rows import MOST_ROWS, apportion, groups, strip_rows
from agentkit.figures.tables import percent
from agentkit.figures.thresholds import Plan
from agentkit.log import Compaction, Log, project
from agentkit.messages import Message, Request, ToolCall, ToolSpec, Usage, assistant, system, tool_result, user
from agentkit.protocol import violations
from agentkit.scenarios import Run, Settings, four_questions
from agentkit.tokens import CharsPerFour, PerScript

SPEC = ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def history(rounds: int = 1) -> list[Message]:
    """Return a system prompt, a question and `rounds` reads, with ids."""
    messages = [system("You are a coding agent. " * 6), user("Read the files.")]
    for n in range(rounds):
        messages += [assistant("", ToolCall(f"c{n}", "read_file", "{}")), tool_result(f"c{n}", f"line {n}\n" * 40)]
    return [replace(m, id=f"m{i}") for i, m in enumerate(messages)]


def bill(number: int = 1, usage: Usage | None = None, messages: list[Message] | None = None) -> Billed:
    """Return a bill for a request with one tool."""
    request = Request(tuple(messages or history()), (SPEC,))
    return Billed(number, request, 500, usage, assistant("done"), "stop")


def bills(*reads: int, prompt: int = 1_000) -> list[Billed]:
    """Return one bill for each number of tokens read from the cache."""
    return [bill(n, Usage(fresh=prompt - read, cache_read=read, output=7)) for n, read in enumerate(reads, 1)]


@pytest.fixture(scope="module")
def run() -> Run:
    """The four questions: six requests, one compaction before the last."""
    return four_questions()


# ------------------------------------------------------------------------------------------------------- rows: the data


@given(st.integers(0, 10**7), st.lists(st.integers(0, 10**6), min_size=1, max_size=60))
def test_shares_are_exact_and_fair(total: int, weights: list[int]) -> None:
    shares = apportion(total, weights)
    assert sum(shares) == total
    if whole := sum(weights):
        assert all(abs(share - total * weight / whole) < 1 for share, weight in zip(shares, weights, strict=True))


def test_no_parts_have_no_shares() -> None:
    assert apportion(5, []) == []


@given(st.integers(0, 5_000), st.integers(0, 5_000), st.integers(0, 5_000), st.integers(1, 6))
def test_blocks_sum_to_the_bill_and_the_cache_is_a_prefix(read: int, written: int, fresh: int, rounds: int) -> None:
    usage = Usage(fresh=fresh, cache_read=read, cache_write=written, output=3)
    row = strip_rows([bill(usage=usage, messages=history(rounds))])[0]
    assert sum(b.tokens for b in row.blocks) == row.prompt == usage.prompt
    assert (sum(b.read for b in row.blocks), sum(b.written for b in row.blocks)) == (read, written)
    order = [state for block in row.blocks for state, _ in block.pieces()]
    assert order == sorted(order, key=["read", "written", "fresh"].index)


def test_parts_come_in_the_order_in_which_they_are_sent() -> None:
    row = strip_rows([bill(usage=Usage(fresh=900))])[0]
    assert [b.part for b in row.blocks] == ["tools", "system", "user", "assistant", "tool"]
    assert [b.index for b in row.blocks] == [None, 0, 1, 2, 3]


def test_a_request_without_tools_has_no_block_for_them() -> None:
    made = bill(usage=Usage(fresh=90))
    row = strip_rows([replace(made, request=Request(made.request.messages))])[0]
    assert row.blocks[0].part == "system"


def test_shares_follow_the_estimator() -> None:
    made = bill(usage=Usage(fresh=10_000))
    sizes = [CharsPerFour().tools((SPEC,)), *(CharsPerFour().message(m) for m in made.request.messages)]
    row = strip_rows([made], estimator=CharsPerFour())[0]
    assert [b.tokens for b in row.blocks] == apportion(10_000, sizes)
    assert [b.tokens for b in row.blocks] != [b.tokens for b in strip_rows([made])[0].blocks]


@pytest.mark.parametrize("placement", ["system", "user"])
def test_a_summary_is_a_block_of_its_own(placement: str) -> None:
    log = Log(history(2))
    log.append(user("And now?"))
    last = log.messages()[-1]
    record = Compaction("facts: a.py has 40 lines", last.id, 5, placement=placement)  # type: ignore[arg-type]
    log.compact(record)
    view = list(assemble(project(log)))
    rows = strip_rows([bill(1, Usage(fresh=900), history(2)), bill(2, Usage(fresh=300), view)], [record])
    assert [b.part for b in rows[1].blocks] == ["tools", "system", "summary", "user"]
    assert rows[1].marks == ("compaction",)
    assert sum(b.tokens for b in rows[1].blocks) == 300
    summary = summary_message(record)
    whole = PerScript().request(Request(tuple(view), (SPEC,)))
    # Merged into the question's message, the summary has no structure of its own around it.
    own = PerScript().message(summary) if placement == "system" else PerScript().text(summary.content)
    assert rows[1].blocks[2].tokens == pytest.approx(300 * own / whole, abs=1)


def test_a_summary_placed_as_system_needs_no_record() -> None:
    log = Log([*history(2), user("And now?")])
    log.compact(Compaction("facts: none", log.messages()[-1].id, 5))
    view = list(assemble(project(log)))
    assert [b.part for b in strip_rows([bill(1, Usage(fresh=300), view)])[0].blocks][2] == "summary"


def test_only_the_first_request_after_a_compaction_is_marked(run: Run) -> None:
    rows = strip_rows([*run.bills, replace(run.bills[-1], number=7)], run.compactions)
    assert [r.number for r in rows if "compaction" in r.marks] == [6]


def test_a_miss_is_a_read_that_fell_by_more_than_half() -> None:
    marks = [row.marks for row in strip_rows(bills(0, 800, 400, 199, 900))]
    assert marks == [(), (), (), ("cache miss",), ()]


def test_without_a_bill_the_estimate_is_shown_and_said() -> None:
    row = strip_rows([bill(usage=None)])[0]
    assert (row.prompt, row.marks, sum(b.tokens for b in row.blocks)) == (500, ("no bill",), 500)


def test_every_message_is_measured_once() -> None:
    class Counting(PerScript):
        measured = 0

        def message(self, message: Message) -> int:
            self.measured += 1
            return super().message(message)

    estimator, messages = Counting(), history(3)
    strip_rows([bill(n, Usage(fresh=900), messages) for n in range(1, 11)], estimator=estimator)
    assert estimator.measured == len(messages)


def test_rows_of_real_runs_sum_to_their_bills(run: Run) -> None:
    for row, billed in zip(strip_rows(run.bills, run.compactions), run.bills, strict=True):
        assert billed.usage is not None
        assert sum(b.tokens for b in row.blocks) == billed.usage.prompt
        assert row.cache_read == billed.usage.cache_read
    assert [b.part for b in row.blocks][:3] == ["tools", "system", "summary"]


# ---------------------------------------------------------------------------------------------------- strip: the picture


class Tags(HTMLParser):
    """The tags of a piece of HTML, the attributes of its images, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "img":
            self.images.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


def svg_in(picture: Picture) -> ET.Element:
    """Return the SVG inside the data address of a picture's HTML."""
    source = Tags(picture.html).images[0]["src"] or ""
    kind, data = source.split(",", 1)
    assert kind == "data:image/svg+xml;base64"
    return ET.fromstring(base64.b64decode(data))


def svg_texts(svg: str) -> list[str]:
    return ["".join(e.itertext()) for e in ET.fromstring(svg).iter() if e.tag.endswith("text")]


def pictures(run: Run) -> Iterator[Picture]:
    yield strip(run, title="Four <questions>", lines={"threshold": 2_400, "budget": 4_000})
    yield figures.growth_picture(figures.reading_loop(5, 40))
    yield figures.estimates_picture("ab<c", figures.compare("ab<c", [CharsPerFour()], PerScript()))
    yield figures.plan_picture(Plan(Budget.ratio(4_000), (1_000, 3_000), 900))
    yield figures.cut_picture(naive_trial())


def test_html_survives_the_sanitiser(run: Run) -> None:
    for picture in pictures(run):
        seen = Tags(picture.html)
        assert set(seen.tags) == {"figure", "img", "figcaption"}
        assert seen.images[0]["alt"] == picture.alt
        assert len(picture.alt) > 40
        assert svg_in(picture).get("aria-label") == picture.alt
        assert picture._repr_mimebundle_() == {"text/html": picture.html, "text/plain": picture.text}
        assert repr(picture) == picture.text


def test_pictures_are_the_same_every_time_and_small_print_is_not_small(run: Run) -> None:
    for one, two in zip(pictures(run), pictures(run), strict=True):
        assert one.svg == two.svg
        assert not re.search(r"\d\.\d\d", re.sub(r'(?:stroke|fill)-\w+="[^"]*"', "", one.svg.split("<defs>")[0]))
        assert {int(size) for size in re.findall(r'font-size="(\d+)', one.svg)} == {12}


def test_the_words_say_the_result(run: Run) -> None:
    made = strip(run)
    first, before, last = run.bills[0].usage, run.bills[-2].usage, run.bills[-1].usage
    assert first and before and last
    assert f"6 requests. The prompt has {first.prompt:,} tokens in request 1, {last.prompt:,} in request 6" in made.alt
    assert f"compaction before request 6 takes the prompt from {before.prompt:,} to {last.prompt:,} tokens" in made.alt
    assert "Cache miss at request 6." in made.alt
    total = sum(b.usage.prompt for b in run.bills if b.usage)
    assert f"6 requests: {total:,} prompt tokens" in made.caption
    assert strip(run, title="First run.").caption.startswith("First run. 6 requests")


def test_letters_show_role_and_cache() -> None:
    lines = strip(bills(0, 1_000)).text.splitlines()
    assert re.match(r"1  T+S+U*A*R+ +1,000 +0 +1,000 +7$", lines[1])
    assert re.match(r"2  t+s+u*a*r+ +1,000 +1,000 +0 +7$", lines[2])


def test_a_row_is_as_long_as_its_tokens() -> None:
    short, long = strip([bill(1, Usage(fresh=500)), bill(2, Usage(fresh=1_000))]).text.splitlines()[1:3]
    assert 2 * len(re.findall("[A-Z]+", short)[0]) == len(re.findall("[A-Z]+", long)[0]) == 40


def test_text_fits_into_100_columns(run: Run) -> None:
    many = [bill(n, Usage(5_000_000, 400_000, 300_000, 99_999)) for n in range(95, 250)]
    for made in (strip(run), strip(many, title="long " * 30), strip(bills(900, 0, 900, 0))):
        assert max(columns(line) for line in made.text.splitlines()) <= 100


def test_playing_does_not_change_the_scale(run: Run) -> None:
    whole, part = strip(run), strip(run, upto=2)
    assert part.text.splitlines()[:3] == whole.text.splitlines()[:3]
    assert len(part.rows) == 2 and "Context strip of 2 requests" in part.alt


def test_the_legend_names_what_is_there_and_nothing_else() -> None:
    texts = svg_texts(strip(bills(0, 900)).svg)
    assert {"cache read", "fresh", "system"} <= set(texts)
    assert not {"summary", "cache write"} & set(texts)
    assert "cache write" in svg_texts(strip([bill(usage=Usage(5, 0, 5))]).svg)


def test_all_fills_are_defined(run: Run) -> None:
    for made in (strip(run), strip([bill(usage=Usage(500, 300, 200))])):
        used, defined = set(re.findall(r"url\(#([\w-]+)\)", made.svg)), set(re.findall(r'id="([\w-]+)"', made.svg))
        assert used and used <= defined


def test_lines_are_drawn_where_the_rows_reach() -> None:
    texts = svg_texts(strip(bills(0, 900), lines={"threshold": 600, "budget": 90_000}).svg)
    assert "threshold" in texts and "budget" not in texts


def test_more_than_forty_requests_are_grouped_and_it_says_so() -> None:
    forty, more = (bills(*[900] * count) for count in (MOST_ROWS, MOST_ROWS + 1))
    assert len(groups(strip_rows(forty))) == MOST_ROWS and "Each row stands" not in strip(forty).caption
    made = strip(more)
    assert "Each row stands for up to 2 requests" in made.caption and "1–2" in svg_texts(made.svg)
    assert f"{MOST_ROWS + 1} requests" in made.caption


def test_a_group_keeps_the_marks_of_all_its_requests() -> None:
    made = groups(strip_rows(bills(*[900] * 50, 0, *[900] * 30)))
    assert [g.label for g in made if "cache miss" in g.row.marks] == ["49–51"]


def test_many_messages_make_no_large_picture() -> None:
    long = history(150)
    made = strip([bill(n, Usage(fresh=900, cache_read=90_000), long) for n in range(1, 41)])
    assert len(made.svg) < 250_000


def test_no_request_is_a_clear_error() -> None:
    with pytest.raises(ValueError, match="no request to draw"):
        strip([])


def test_looks_differ_in_colour_pattern_and_letter() -> None:
    for attribute in ("colour", "hatch", "letter", "name"):
        assert len({getattr(look, attribute) for look in LOOKS.values()}) == len(LOOKS)


def test_labels_can_be_read_on_their_blocks() -> None:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for look in LOOKS.values():
        dark, bright = sorted((light(look.colour), light(look.on_solid)))
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, look.name


# ----------------------------------------------------------------------------------------------------------------- tables


def test_a_table_aligns_numbers_right_and_wide_characters_too() -> None:
    made = figures.table([["早上好", 3, 0.25, None], ["abc", 12_345, 2.5, 7]], ["text", "n", "share", "maybe"])
    assert made.right == (False, True, True, True)
    assert made.text.splitlines() == [
        "text         n  share  maybe",
        "------  ------  -----  -----",
        "早上好       3    0.2      –",
        "abc     12,345    2.5      7",
    ]
    assert made.html.count("text-align:right") == 9
    assert figures.table([[-4, -0.5]], ["n", "share"]).rows == (("−4", "−0.5"),)


def test_a_table_escapes_what_it_shows() -> None:
    seen = Tags(figures.table([["<b>"]], ["<i>"], caption="a & b").html)
    assert "b" not in seen.tags and "i" not in seen.tags
    assert "<b>" in seen.text and "a & b" in seen.text


def test_a_row_of_the_wrong_length_is_a_clear_error() -> None:
    with pytest.raises(ValueError, match="row 1 has 1 values, there are 2 columns"):
        figures.table([[1, 2], [3]], ["a", "b"])


def test_the_bill_table_has_estimates_bills_and_sums(run: Run) -> None:
    made = figures.bill_table(run)
    assert made.columns == ("request", "estimate", "bill", "error", "cache read", "fresh", "output")
    first = run.bills[0]
    assert first.usage
    error = percent(first.estimate / first.usage.prompt - 1)
    assert made.rows[0][:4] == ("1", f"{first.estimate:,}", f"{first.usage.prompt:,}", error)
    assert made.rows[-1][2] == f"{sum(b.usage.prompt for b in run.bills if b.usage):,}"
    assert all(made.right) and made.rows[-1][0] == "sum"


def test_a_request_without_a_bill_stays_out_of_the_sum() -> None:
    made = figures.bill_table([*bills(0, 900), bill(3)])
    assert made.rows[2] == ("3", "500", "–", "–", "–", "–", "–")
    assert made.rows[3][:4] == ("sum", "1,000", "2,000", "−50%")


def test_cache_writes_have_a_column_when_there_are_any() -> None:
    assert "cache write" in figures.bill_table([bill(usage=Usage(1, 2, 3))]).columns
    assert "cache write" not in figures.bill_table([bill(usage=Usage(1, 2))]).columns


@pytest.mark.parametrize(("share", "text"), [(0.124, "+12%"), (-0.5, "−50%"), (0.001, "0%"), (-0.001, "0%"), (3, "+300%")])
def test_percent(share: float, text: str) -> None:
    assert percent(share) == text


# ----------------------------------------------------------------------------------------------------------------- charts


def charts(run: Run) -> Iterator[figures.Chart]:
    yield figures.tokens_per_round(run, title="Four questions")
    texts = {"Chinese": "上下文管理" * 9, "English": "context management " * 9}
    yield figures.error_bars(figures.estimator_errors(texts, [CharsPerFour(), PerScript()], PerScript()), title="Errors")
    yield figures.threshold_chart(run)


def test_charts_are_pictures_with_their_result_in_words(run: Run) -> None:
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = list(charts(run))
    assert plt.get_fignums() == before
    for chart in made:
        data, metadata = chart._repr_mimebundle_()
        assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
        assert set(data) == {"image/png", "text/plain"}
        assert data["text/plain"] == metadata["image/png"]["alt"] == repr(chart) == chart.alt
        assert len(chart.alt) > 40


def test_the_chart_of_errors_names_the_ends() -> None:
    errors = {"a": {"code": -0.2, "prose": 0.3}, "b": {"code": 0.0, "prose": 0.0}}
    words = figures.error_bars(errors, reference="the bill").alt
    assert words == "Error against the bill. a: from −20% (code) to +30% (prose); b: 0%."


def test_errors_are_shares_of_the_reference() -> None:
    errors = figures.estimator_errors({"four": "abcd" * 100}, [CharsPerFour()], PerScript())
    assert errors == {"characters / 4": {"four": pytest.approx(100 / 120 - 1)}}


def test_the_threshold_chart_sees_the_estimate_before_the_compaction(run: Run) -> None:
    before = [e.estimate for e in run.events if isinstance(e, ContextUsage)]
    assert figures.threshold_rows(run.events)[-1] == (6, before[-1], run.bills[-1].estimate)
    words = figures.threshold_chart(run).alt
    assert f"{before[-1]:,} → {run.bills[-1].estimate:,} before request 6" in words
    assert "reaches the threshold at request 3" in words


def test_the_threshold_chart_of_bills_needs_a_budget() -> None:
    with pytest.raises(ValueError, match="a list of bills and a budget"):
        figures.threshold_chart(bills(0))
    made = figures.threshold_chart(bills(0, 900), Budget.ratio(4_000))
    assert made.alt.startswith("No estimate reaches the threshold: 500 at most (threshold 2,400")
    reached = figures.threshold_chart(bills(0, 900), Budget.ratio(500, 0.5)).alt
    assert "at request 1" in reached and "nothing was compacted" in reached


def test_charts_of_nothing_are_clear_errors() -> None:
    with pytest.raises(ValueError, match="run the loop first"):
        figures.tokens_per_round([])
    with pytest.raises(ValueError, match="no error to draw"):
        figures.error_bars({})


# ----------------------------------------------------------------------------------------------- growth, estimates, plan


@given(st.integers(1, 900), st.integers(0, 900), st.integers(2, 40))
def test_the_fit_finds_a_square_that_is_there(square: int, linear: int, count: int) -> None:
    sums = [2 * square * n * n + linear * n for n in range(count + 1)]
    made = growth_of([b - a for a, b in zip(sums, sums[1:], strict=False)])
    assert made.square == pytest.approx(2 * square)
    assert made.linear == pytest.approx(linear, abs=1e-5 * (square + linear))
    assert made.curve(count) == pytest.approx(sums[-1])
    assert made.sums[-1] == sums[-1]


def test_one_request_fits_a_line() -> None:
    assert growth_of([70]).curve(1) == 70


def test_the_loop_is_measured_as_the_requests_that_it_sends() -> None:
    made = figures.reading_loop(3, 50, head="be brief", tools=(SPEC,))
    opening = [system("be brief"), user("Read the files one by one and tell me what they do.")]
    assert made.prompts[0] == PerScript().request(Request(tuple(opening), (SPEC,)))
    grown = [b - a for a, b in zip(made.prompts, made.prompts[1:], strict=False)]
    assert grown[0] == grown[1] > 50 * 5
    assert figures.reading_loop(3, 100, tools=(SPEC,)).prompts[2] > made.prompts[2]


def test_growth_in_words_compares_with_half_the_rounds() -> None:
    assert in_words(growth_of([100, 200, 300, 400])) == (
        "4 requests: the last one sends 400 tokens, all together 1,000, 2.5 times the last. "
        "From 2 requests to 4, 2.0 times as many, the sum grows 3.3 times."
    )
    assert in_words(growth_of([100])) == "1 request: the last one sends 100 tokens, all together 100."


def test_estimates_are_compared_with_the_reference() -> None:
    text = "上下文" * 100
    found = figures.compare(text, [CharsPerFour()], PerScript())
    assert [(e.name, e.tokens, e.error) for e in found] == [
        ("characters / 4", 75, pytest.approx(75 / 180 - 1)),
        ("per script", 180, None),
    ]
    assert "characters / 4 says 75 (58% too low)" in figures.estimates_picture(text, found).alt


def test_no_text_is_said_to_be_none() -> None:
    picture = figures.estimates_picture("", figures.compare("", [CharsPerFour()], PerScript()))
    assert "no text" in picture.alt


def test_a_plan_says_when_compaction_starts() -> None:
    estimates = (1_000, 2_400, 3_000)
    words = {limit: figures.plan_picture(Plan(Budget.ratio(limit), estimates, 900)).alt for limit in (4_000, 9_000, 1_000)}
    assert "starts at 2,400 tokens" in words[4_000] and "at request 2, with 2,400 tokens" in words[4_000]
    assert "never reaches it: its largest request has 3,000" in words[9_000]
    assert "This cannot work" in words[1_000] and "900" in words[1_000]


# -------------------------------------------------------------------------------------------------------------------- cut


def naive_trial() -> figures.Trial:
    """Return a conversation cut between a call and its result."""
    before = tuple(history(2))
    summary = system("facts: one file was read")
    after = (before[0], summary, *before[5:])
    refused = violations(Request(after, (SPEC,)), "openai") + violations(Request(after, (SPEC,)), "anthropic")
    return figures.Trial(before, after, 1, 5, summary.content, 400, 300, refused)


def test_a_refused_cut_is_named_and_marked() -> None:
    trial = naive_trial()
    assert trial_in_words(trial) == (
        "The cut is before message 5 (result): 4 messages become one summary, 400 → 300 tokens (estimate). "
        "OpenAI and Anthropic would refuse what is sent then, with a 400."
    )
    picture = figures.cut_picture(trial)
    assert svg_texts(picture.svg).count("400") == 1
    assert picture.text.splitlines()[:2] == ["log   S U A R A | R", "sent  S C R!"]
    assert refusals(trial)[1] == f"{NAMES['deepseek']}: accepted"
    assert refusals(trial)[0].startswith("OpenAI: 400, messages with role 'tool'")


def test_a_merged_summary_spans_the_question() -> None:
    before = (*history(1), replace(user("And now?"), id="m9"))
    merged = user("<summary>\nfacts\n</summary>\n\nAnd now?")
    trial = figures.Trial(before, (before[0], merged), 1, 4, "facts", 400, 100)
    assert trial.merged and "summary + question" in svg_texts(figures.cut_picture(trial).svg)
    assert "sent  S C+U" in figures.cut_picture(trial).text
    apart = figures.Trial(before, (before[0], system("facts"), before[4]), 1, 4, "facts", 400, 100)
    assert not apart.merged and "sent  S C U" in figures.cut_picture(apart).text


def test_nothing_changed_is_said() -> None:
    before = tuple(history())
    words = figures.cut_picture(figures.Trial(before, before, 1, 1, "", 9, 9, reason="the summary is empty")).alt
    assert words == "Nothing is changed: the summary is empty."


# -------------------------------------------------------------------------------------------------------------- odds, ends


@given(st.floats(0, 1e7), st.integers(1, 9))
def test_steps_are_round_and_few(top: float, most: int) -> None:
    step = nice_step(top, most)
    assert step * most >= top and str(step).rstrip("0") in ("1", "2", "5")


def test_flow_starts_a_new_line_where_one_is_full() -> None:
    assert list(flow([50, 50, 200, 10], 120, 10)) == [(0, 0), (60, 0), (0, 1), (0, 2)]


def test_figures_load_no_third_party_package() -> None:
    foreign = ("matplotlib", "ipywidgets", "tiktoken", "httpx")
    code = f"import sys, agentkit.figures; print([m for m in {foreign} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, encoding="utf-8", errors="replace")
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_settings_change_the_strip() -> None:
    assert strip(four_questions(Settings(compact=False))).svg != strip(four_questions()).svg
