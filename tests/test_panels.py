"""Panels without a browser: set a value, read the sentence and the picture."""

from __future__ import annotations

import re
import statistics
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html import unescape
from typing import Any

import ipywidgets as widgets
import pytest

from agentkit import panels, u_curve
from agentkit.compaction import KEEP_LIST
from agentkit.panels import costs, cutting, growth, paste, player
from agentkit.panels.common import Panel
from agentkit.scenarios import Settings, four_questions

MAKERS: dict[str, Callable[[], Panel]] = {
    "strip_player": panels.strip_player,
    "loop_growth": panels.loop_growth,
    "estimators": panels.estimators,
    "budget": panels.budget,
    "compactor": panels.compactor,
    "kv_edit": panels.kv_edit,
    "fault_picker": panels.fault_picker,
    "bill": panels.bill,
    "strategies": panels.strategies,
    "ledger_scrubber": panels.ledger_scrubber,
    "dialects": panels.dialects,
}


@pytest.fixture(params=MAKERS, name="panel")
def any_panel(request: pytest.FixtureRequest) -> Panel:
    """Every panel, fresh."""
    return MAKERS[request.param]()


def sentence(panel: Panel) -> str:
    """Return the sentence as it stands in the widget."""
    return unescape(re.sub(r"<[^>]+>", "", panel.sentence.value))


def svg_texts(panel: Panel) -> list[str]:
    """Return the texts in the picture as it stands in the widget."""
    return ["".join(e.itertext()) for e in ET.fromstring(panel.picture.value).iter() if e.tag.endswith("text")]


def steps(control: Any) -> list[Any]:
    """Return some values that a reader can give a control, the present one last."""
    if isinstance(control, widgets.Dropdown):
        values = [value[1] if isinstance(value, tuple) else value for value in control.options]
    elif isinstance(control, widgets.Checkbox):
        values = [True, False]
    elif isinstance(control, widgets.Textarea):
        values = ["", "one word", "第一个问题 " * 50]
    else:
        values = [control.min, control.value + control.step, control.max]
    return [*(v for v in values if v != control.value), control.value]


# -------------------------------------------------------------------------------------------------------- what all have


def test_a_panel_is_a_box_with_a_picture_and_a_sentence(panel: Panel) -> None:
    assert isinstance(panel, widgets.VBox)
    assert {panel.picture, panel.sentence, *panel.controls.values()} <= set(panel.children)
    assert 'aria-live="polite"' in panel.sentence.value and sentence(panel).endswith(".")
    assert ET.fromstring(panel.picture.value).get("aria-label")
    assert repr(panel) == f"Panel: {sentence(panel)}"


def test_every_control_has_its_whole_label(panel: Panel) -> None:
    assert panel.controls
    for label, control in panel.controls.items():
        assert re.fullmatch(r"[A-Z][\w ,:-]{3,}", control.description), label
        if isinstance(control, widgets.Checkbox):
            assert control.layout.width == "auto"
        else:
            assert (control.description, control.style.description_width) == (label, "initial")


def test_the_sentence_comes_after_the_controls_and_the_picture(panel: Panel) -> None:
    order = list(panel.children)
    assert max(order.index(c) for c in panel.controls.values()) < order.index(panel.picture) < order.index(panel.sentence)


def test_every_control_changes_something_and_back_again(panel: Panel, capsys: pytest.CaptureFixture[str]) -> None:
    start = panel.picture.value, panel.sentence.value, panel.more.value
    for label, control in panel.controls.items():
        seen = []
        for value in steps(control):
            control.value = value
            ET.fromstring(panel.picture.value or "<none/>")
            seen.append((panel.picture.value, panel.sentence.value, panel.more.value))
        if not control.disabled:
            assert len(set(seen)) > 1, label
        assert seen[-1] == start, label
    assert capsys.readouterr() == ("", "")


def test_the_still_picture_is_the_one_in_the_panel(panel: Panel) -> None:
    still = panel.still()
    assert still.svg == panel.picture.value
    assert still.text and "<svg" not in still.html


def test_redraw_times(panel: Panel) -> None:
    """Print how long a redraw takes; the target of 100 ms is for a quiet machine and not asserted."""
    for cached in (player._run, growth._growth, cutting._try, costs._curve, costs._point):
        cached.cache_clear()
    for round_ in ("first", "again"):
        times = []
        for control in panel.controls.values():
            for value in steps(control):
                start = time.perf_counter()
                control.value = value
                times.append(1000 * (time.perf_counter() - start))
        ends = f"median {statistics.median(times):.1f}, max {max(times):.1f} ms"
        print(f"\n{repr(panel)[:40]}… {round_}: {ends} in {len(times)} redraws", end="")


# ------------------------------------------------------------------------------------------------------------ chapter 00


def test_the_player_shows_the_run() -> None:
    panel, run = panels.strip_player(), four_questions()
    assert panel.controls["Requests shown"].value == panel.controls["Requests shown"].max == len(run.bills) == 6
    before, after = run.compactions[0].tokens_before, run.compactions[0].tokens_after
    assert f"Before request 6, 6 messages became a summary: {before:,} → {after:,} tokens" in sentence(panel)
    assert run.answers[-1] in unescape(panel.more.value)
    assert "▼ compaction · cache miss" in svg_texts(panel)


def test_the_player_plays_request_by_request() -> None:
    panel = panels.strip_player()
    panel.controls["Requests shown"].value = 1
    assert "1 of 6 requests shown" in sentence(panel)
    assert "The model calls" in panel.more.value and "Answer" not in panel.more.value
    assert "▼ compaction · cache miss" not in svg_texts(panel)
    panel.controls["Requests shown"].value = 3
    assert "40 methods" in panel.more.value


def test_more_requests_are_shown_to_who_saw_all() -> None:
    panel = panels.strip_player()
    panel.controls["Messages kept"].value = 1
    longer = len(four_questions(Settings(keep=1)).bills)
    assert longer > 6 and f"{longer} of {longer} requests shown" in sentence(panel)
    panel.controls["Requests shown"].value = 2
    panel.controls["Messages kept"].value = 4
    assert "2 of 6 requests shown" in sentence(panel)


def test_a_large_budget_is_never_due() -> None:
    panel = panels.strip_player()
    panel.controls["Budget in tokens"].value = 8_000
    assert "No compaction was due." in sentence(panel)
    panel.controls["Budget in tokens"].value = 4_000
    panel.controls["Messages kept"].value = 12
    assert "Due first before request 3" in sentence(panel)


def test_a_budget_that_cannot_work_is_a_sentence() -> None:
    panel = panels.strip_player(Settings(budget=1_000))
    assert panel.picture.value == "" and "system prompt and tools alone need" in sentence(panel)
    with pytest.raises(ValueError, match="system prompt and tools alone"):
        panel.still()
    panel.controls["Budget in tokens"].value = 4_000
    assert "6 of 6 requests shown" in sentence(panel) and panel.picture.value


def test_the_player_starts_from_the_settings_given() -> None:
    panel = panels.strip_player(Settings(keep=3, keep_list=[KEEP_LIST[-1]], placement="user"))
    assert panel["Messages kept"] == 3 and "Before request 5" in sentence(panel)
    assert sentence(panel) != sentence(panels.strip_player(Settings(keep=3)))


# ------------------------------------------------------------------------------------------------------------ chapter 01


def test_twice_the_rounds_send_about_four_times_as_much() -> None:
    panel = panels.loop_growth()
    panel.controls["Lines per file"].value = 400
    panel.controls["Rounds"].value = 30
    factor = re.search(r"the sum grows (\d\.\d) times", sentence(panel))
    assert factor and 3.8 < float(factor[1]) < 4.3
    assert {"n² curve, fitted", "estimated"} <= set(svg_texts(panel))


def test_longer_files_cost_more() -> None:
    panel = panels.loop_growth()

    def total() -> int:
        return int(re.findall(r"all together ([\d,]+)", sentence(panel))[0].replace(",", ""))

    short = total()
    panel.controls["Lines per file"].value = 240
    assert 1.7 * short < total() < 2.1 * short


# ------------------------------------------------------------------------------------------------------------ chapter 02


def test_chinese_is_far_too_low_with_four_characters_a_token() -> None:
    panel = panels.estimators()
    panel.controls["Your text"].value = "日志是事实,模型看到的只是它的一个视图。" * 5
    low = re.search(r"characters / 4 says \d+ \((\d+)% too low\)", sentence(panel))
    assert low and int(low[1]) > 40
    assert panel["Example"] == "your own"


def test_examples_fill_the_field_and_one_can_come_back_to_them() -> None:
    panel = panels.estimators()
    for name in ("base64", "Chinese prose"):
        panel.controls["Example"].value = name
        assert panel["Your text"] == paste.EXAMPLES[name]
    panel.controls["Your text"].value = "x"
    panel.controls["Example"].value = "Chinese prose"
    assert panel["Your text"] == paste.EXAMPLES["Chinese prose"]


def test_an_empty_field_is_no_error() -> None:
    panel = panels.estimators()
    panel.controls["Your text"].value = ""
    assert "no text" in sentence(panel)


def test_what_is_too_long_is_cut_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paste, "MOST", 10)
    panel = panels.estimators()
    panel.controls["Your text"].value = "a" * 11
    assert sentence(panel).startswith("10 characters") and "Only the first 10 characters" in sentence(panel)


# ------------------------------------------------------------------------------------------------------------ chapter 03


def test_the_three_forms_use_their_own_controls() -> None:
    panel = panels.budget()
    used = {}
    for form in ("ratio", "reserve", "share"):
        panel.controls["Form"].value = form
        used[form] = [label for label, control in panel.controls.items() if not control.disabled][1:]
    assert used == {
        "ratio": ["Budget in tokens", "Threshold"],
        "reserve": ["Window in tokens", "Longest output in tokens"],
        "share": ["Window in tokens"],
    }


def test_the_threshold_decides_at_which_request_it_starts() -> None:
    panel = panels.budget()
    estimates = [b.estimate for b in four_questions(Settings(compact=False)).bills]
    assert f"at request 3, with {estimates[2]:,} tokens" in sentence(panel)
    panel.controls["Threshold"].value = 0.9
    assert f"at request 5, with {estimates[4]:,} tokens" in sentence(panel)
    panel.controls["Budget in tokens"].value = 6_000
    assert "never reaches it" in sentence(panel)
    panel.controls["Budget in tokens"].value = 1_000
    assert "This cannot work" in sentence(panel)


def test_the_reserve_is_never_more_than_half_the_window() -> None:
    panel = panels.budget()
    panel.controls["Form"].value = "reserve"
    panel.controls["Window in tokens"].value = 8_192
    assert "starts at 4,096 tokens" in sentence(panel)
    panel.controls["Window in tokens"].value = 128_000
    assert f"starts at {128_000 - 12_288:,} tokens" in sentence(panel)


# ------------------------------------------------------------------------------------------------------------ chapter 04


def test_a_cut_by_position_is_refused_and_a_rule_moves_it() -> None:
    panel = panels.compactor()
    panel.controls["Boundary"].value = "none"
    assert "before message 11 (result)" in sentence(panel)
    assert "OpenAI, DeepSeek and Anthropic would refuse" in sentence(panel)
    assert "400" in svg_texts(panel) and "messages with role &#x27;tool&#x27;" in panel.more.value
    panel.controls["Boundary"].value = "pair"
    assert "before message 10 (assistant)" in sentence(panel) and "All three APIs accept" in sentence(panel)
    assert "400" not in svg_texts(panel) and panel.more.value.count("accepted") == 3


def test_no_rule_of_the_package_is_ever_refused() -> None:
    panel = panels.compactor()
    for boundary in ("user", "pair"):
        panel.controls["Boundary"].value = boundary
        for placement in ("system", "user"):
            panel.controls["Summary placed as"].value = placement
            for keep in range(1, panel.controls["Messages kept"].max + 1):
                panel.controls["Messages kept"].value = keep
                assert "would refuse" not in sentence(panel), (boundary, placement, keep)


def test_what_is_off_the_list_is_gone_from_the_summary() -> None:
    panel = panels.compactor()
    facts = next(item for item in KEEP_LIST if item.startswith("facts"))
    assert "facts: big_service.py (285 lines)" in panel.more.value
    panel.controls[facts].value = False
    assert "facts:" not in panel.more.value and "done:" in panel.more.value
    assert "in progress" in panel.more.value.partition("not in the history")[2]


def test_a_summary_as_user_message_is_merged_with_the_question() -> None:
    panel = panels.compactor()
    panel.controls["Summary placed as"].value = "user"
    assert "summary + question" in svg_texts(panel)
    panel.controls["Summary placed as"].value = "system"
    assert "summary (system)" in svg_texts(panel)


def test_keeping_all_changes_nothing() -> None:
    panel = panels.compactor()
    panel.controls["Messages kept"].value = panel.controls["Messages kept"].max
    for boundary in ("user", "pair", "none"):
        panel.controls["Boundary"].value = boundary
        assert "Nothing is changed: nothing to summarise" in sentence(panel)
        assert re.findall(r"\(boundary: (\w+)\)", sentence(panel)) == [boundary]
        assert "The summary" not in panel.more.value


# ------------------------------------------------------------------------------------------------------------ chapter 06


def test_the_bill_shows_minimum_and_law_for_the_default() -> None:
    panel = panels.bill()
    assert "Anthropic, 5 minutes, keep 8, threshold 32,000 tokens" in sentence(panel)
    assert "The square-root law says" in sentence(panel)
    assert "example prices" in sentence(panel) and "open loop" in sentence(panel)
    assert {"◆", "○", "✕"} <= set(svg_texts(panel))


def test_the_cheapest_threshold_of_the_curve_costs_nothing_more() -> None:
    panel = panels.bill()
    panel.controls["Threshold in tokens"].value = 10_000_000
    assert "it never compacts" in sentence(panel)
    panel.controls["Threshold in tokens"].value = 14_000
    found = re.search(r"this setting costs (\d+)% more", sentence(panel))
    assert found and int(found.group(1)) <= 3


def test_without_a_cache_it_pays_to_compact_early() -> None:
    panel = panels.bill()
    panel.controls["Price list"].value = next(p for p in u_curve.PROFILES if p.name == "no cache")
    low = panel.controls["Threshold in tokens"].min
    assert f"The cheapest threshold replayed is {low:,} " in sentence(panel)


# ------------------------------------------------------------------------------------------------------------ chapter 10


def test_every_policy_has_its_strip_and_its_point() -> None:
    panel = panels.strategies()
    assert "2% of all prompt tokens are read" in sentence(panel) and "2023-04, as told of AutoGPT" in sentence(panel)
    assert "example prices; open loop" in sentence(panel).lower()
    panel.controls["Policy"].value = "cost-aware"
    assert "On the whole session: cost-aware:" in sentence(panel) and "◆" in panel.more.value
    ET.fromstring(panel.more.value)
    with pytest.raises(ValueError, match="unknown policy 'magic'"):
        panels.strategies("magic")


def test_without_a_cache_nothing_is_read() -> None:
    panel = panels.strategies("keep everything")
    panel.controls["Price list"].value = next(p for p in u_curve.PROFILES if p.name == "no cache")
    assert " 0% of all prompt tokens are read" in sentence(panel)
