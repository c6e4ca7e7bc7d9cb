"""The live strip without a browser: what is sent to it, and that the browser's half is whole."""

from __future__ import annotations

import json
import re
from importlib import resources

import pytest

from agentkit import panels
from agentkit.events import Billed
from agentkit.figures import strip_rows
from agentkit.figures.palette import LOOKS, STATES
from agentkit.figures.played import MOST_PIECES, PREVIEW, Said, Side, as_data, preview, sentence, shown, stops
from agentkit.figures.rows import MOST_ROWS
from agentkit.messages import Message, Request, ToolCall, ToolSpec, Usage, assistant, system, tool_result, user
from agentkit.panels.strip_widget import StripWidget
from agentkit.scenarios import Run, Settings, four_questions

PARTS = tuple(LOOKS)


@pytest.fixture(scope="module", name="run")
def the_run() -> Run:
    """The four questions, with one compaction before request 6."""
    return four_questions()


def session(count: int, each: int = 2, write: int = 0) -> list[Billed]:
    """Return the bills of `count` requests, each with `each` messages more than the one before."""
    messages: list[Message] = [system("You are an agent.")]
    bills = []
    for number in range(1, count + 1):
        messages += [user(f"question {number} {i}") if i % 2 == 0 else assistant(f"answer {i} " * 9) for i in range(each)]
        read = 0 if number == 1 or number % 100 == 0 else 150 * (number - 1)
        usage = Usage(200 * number - read - write, read, write, 7)
        bills.append(Billed(number, Request(tuple(messages)), 200 * number, usage, assistant("x"), "stop"))
    return bills


def side(bills: list[Billed], **more: object) -> Side:
    return Side("a side", strip_rows(bills), bills, **more)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------- what is sent


def test_every_row_says_its_bill_and_its_pieces_sum_to_it(run: Run) -> None:
    data = as_data([Side("s", strip_rows(run.bills, run.compactions), run.bills, compactions=run.compactions)])
    rows = data["sides"][0]["rows"]
    assert len(rows) == len(run.bills) == data["steps"]
    for row, bill in zip(rows, run.bills, strict=True):
        usage = bill.usage
        assert usage
        assert row["values"] == [usage.prompt, usage.cache_read, usage.cache_write, usage.fresh, usage.output]
        tokens = {state: sum(p[2] for p in row["pieces"] if p[1] == state) for state in STATES}
        assert sum(tokens.values()) == usage.prompt
        # A narrow piece is drawn with its neighbours, in the state of most of them: never off by more than a few pixels.
        assert abs(tokens["read"] - usage.cache_read) < 0.03 * data["top"]
    assert rows[5]["marks"] == ["compaction", "cache miss"] and data["stops"] == [6]


def test_what_is_sent_is_plain_json_and_small(run: Run) -> None:
    text = json.dumps(as_data([side(list(run.bills)), side(list(run.bills))]), allow_nan=False)
    assert len(text) < 30_000


def test_a_block_is_explained_by_its_message(run: Run) -> None:
    data = as_data([Side("s", strip_rows(run.bills, run.compactions), run.bills, compactions=run.compactions)])
    notes = data["sides"][0]["notes"]
    texts = {
        part: [notes[p[3]] for row in data["sides"][0]["rows"] for p in row["pieces"] if p[0] == part] for part in PARTS
    }
    assert texts["tools"][0].startswith("6 tools: ") and "read_file" in texts["tools"][0]
    assert any(t.startswith("result m") and "parcel tariff" in t for t in texts["tool"])
    assert any(t.startswith("summary: “[Summary of the earlier conversation") for t in texts["summary"])
    assert len(notes) == len(set(notes))


def test_a_preview_is_one_short_line() -> None:
    long = assistant("first\nsecond " * 50, ToolCall("c", "read_file", '{"path": "a.py"}'))
    assert "\n" not in preview(long) and len(preview(long)) == PREVIEW + 3
    assert preview(assistant("", ToolCall("c", "grep", "{}"))) == "“calls grep({})”"
    assert preview(tool_result("c", "")) == "“”"


@pytest.mark.parametrize("count", [1, 2, 40, 41, 500])
def test_one_to_five_hundred_requests(count: int) -> None:
    data = as_data([side(session(count))])
    group = data["group"]
    assert group == max(1, -(-count // MOST_ROWS)) and -(-count // group) <= MOST_ROWS
    pieces = [p for row in data["sides"][0]["rows"] for p in row["pieces"]]
    assert len(pieces) <= MOST_PIECES and len(data["sides"][0]["rows"]) == data["steps"] == count
    assert all(tokens > 0 for _, _, tokens, _ in pieces)


def test_narrow_blocks_are_drawn_together_and_say_so() -> None:
    data = as_data([side(session(60, each=40))])
    notes = data["sides"][0]["notes"]
    last = data["sides"][0]["rows"][-1]
    assert len(last["pieces"]) < 320 and sum(p[2] for p in last["pieces"]) == last["values"][0]
    assert any(re.match(r"\d+ blocks too narrow to draw alone, from \w+", note) for note in notes)


def test_two_sides_share_the_scale_and_the_steps() -> None:
    data = as_data([side(session(3)), side(session(5))])
    assert (data["steps"], data["top"]) == (5, 1_000)
    assert [s["shown"] for s in data["sides"]] == [[0, 1, 2, 3, 3, 3], [0, 1, 2, 3, 4, 5]]


def test_a_side_may_wait_for_the_other() -> None:
    waits = side(session(2), shown=[0, 1, 1, 2], said=[Said(str(i), (("You", "?"),)) for i in range(4)])
    data = as_data([waits, side(session(3))])
    assert data["sides"][0]["shown"] == [0, 1, 1, 2]
    assert data["sides"][0]["said"][2] == ["2", ["You", "?"]] and data["sides"][1]["said"] == []


def test_an_event_is_a_step_at_which_a_marked_row_appears() -> None:
    bills = session(3)
    marked = Side("", [*strip_rows(bills)[:2], strip_rows(bills)[2].__class__(3, 9, 0, 0, 9, 1, (), ("compaction",))], bills)
    assert stops([marked]) == [3] and stops([Side("", marked.rows, bills, shown=[0, 1, 1, 1, 2, 3])]) == [5]
    assert stops([side(session(2)), Side("")]) == []


def test_lines_far_to_the_right_are_left_out() -> None:
    data = as_data([side(session(2), lines={"threshold": 450, "budget": 5_000})])
    assert data["sides"][0]["lines"] == [["threshold", 450]] and data["top"] == 450


def test_the_sentence_of_a_row_names_what_happened() -> None:
    row = strip_rows(session(100, write=10))[-1]
    assert sentence(row) == (
        "Request 100: 20,000 prompt tokens: 0 read from the cache, 10 written to it, 19,990 fresh; 7 output tokens."
        " The cache was missed."
    )


def test_nothing_to_show_is_no_error() -> None:
    assert as_data([]) == {**as_data([]), "sides": [], "steps": 0, "stops": [], "top": 1}
    empty = as_data([Side("")])["sides"][0]
    assert (empty["rows"], empty["shown"], empty["said"]) == ([], [0], [])
    assert list(shown(Side(""))) == [0]


# ------------------------------------------------------------------------------------------------------------ the widget


def test_the_widget_starts_with_everything_shown(run: Run) -> None:
    widget = panels.live_strip(run, title="The four questions", lines={"threshold": 2_400})
    assert (widget.step, widget.data["steps"], widget.large) == (6, 6, False)
    assert repr(widget) == "StripWidget: The four questions, step 6 of 6"
    assert widget.data["sides"][0]["alt"].startswith("Context strip of 6 requests")


def test_the_still_picture_follows_the_step(run: Run) -> None:
    widget = panels.live_strip(run)
    assert "compaction before request 6" in widget.still().alt
    widget.step = 2
    assert widget.still().alt.startswith("Context strip of 2 requests")
    widget.step = 0
    with pytest.raises(ValueError, match="set step to 1 or more"):
        widget.still()


def test_other_data_keep_the_place() -> None:
    widget = StripWidget([side(session(5))])
    widget.step = 3
    widget.show([side(session(9))])
    assert widget.step == 3
    widget.show([side(session(2))])
    assert widget.step == 2
    widget.show([side(session(9))])
    assert widget.step == 9, "who had seen all sees all"


def test_a_run_without_requests_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no request to draw"):
        panels.live_strip([])


def test_a_budget_that_is_never_due_has_no_event() -> None:
    assert panels.live_strip(four_questions(Settings(compact=False))).data["stops"] == []


# ----------------------------------------------------------------------------------------------------- the browser's half


def source(ending: str) -> str:
    return (resources.files("agentkit.panels") / f"strip_widget{ending}").read_text(encoding="utf-8")


def test_the_module_and_its_styles_are_in_the_package() -> None:
    assert StripWidget._esm and "export default { render }" in source(".js")
    assert ".ak-piece" in source(".css")


def test_every_part_has_a_pattern_of_its_own_in_the_styles() -> None:
    """Literal addresses, so that a browser loads one picture for each part and not one for each block."""
    rules = dict(re.findall(r"\.ak-(\w+)\.ak-is-read \{ background-image: url\(\"(data:[^\"]+)\"\)", StripWidget._css))
    assert rules.keys() == LOOKS.keys() and len(set(rules.values())) == len(LOOKS)
    for part, look in LOOKS.items():
        assert f".ak-{part} {{ --colour: {look.colour}; --on: {look.on_solid}; }}" in StripWidget._css


def test_nothing_is_fetched() -> None:
    for text in (source(".js"), StripWidget._css):
        assert set(re.findall(r"https?://[^\s'\"`]+", text)) <= {"http://www.w3.org/2000/svg"}
        assert not re.search(r"^\s*import\b|@import|\bfetch\(", text, re.MULTILINE)


def test_every_class_that_is_styled_is_used_and_the_other_way_round() -> None:
    script = source(".js") + " ak-is-read ak-is-written " + "ak-lab-settings ak-projector ak-line-threshold"
    styled = set(re.findall(r"\.(ak-[\w-]+)", source(".css")))
    unused = {name for name in styled if name not in script}
    assert unused - {f"ak-{value}" for value in ("fresh", "output", "written")} == set()


def test_whatever_takes_the_keyboard_keeps_its_keys() -> None:
    """JupyterLab's command mode takes the arrow keys away from an element that does not say otherwise."""
    script = source(".js")
    for made in ('make("input"', 'make("button"', 'make("div", "ak-rows"'):
        assert f"keepsKeys({made}" in script


def test_marks_have_a_sign_each() -> None:
    signs = re.search(r"const MARKS = \{(.*)\}", source(".js"))
    assert signs
    for mark in ("compaction", "cache miss", "summary refused", "no bill"):
        assert mark in signs[1]


def test_tools_without_a_message_are_explained() -> None:
    spec = ToolSpec("look", "Look at something.")
    bill = Billed(1, Request((system("s"), user("q")), (spec,)), 90, Usage(90), assistant("a"), "stop")
    assert as_data([side([bill])])["sides"][0]["notes"][0] == "1 tool: look"
