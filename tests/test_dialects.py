"""The dialect switch: what it shows is what goes out, and what it says is what the APIs answer."""

from __future__ import annotations

import pytest

from agentkit import panels
from agentkit.figures.dialects import ACCEPTED, dialects_picture, side, wire_of
from agentkit.messages import Request
from agentkit.panels.dialects import STORIES
from agentkit.protocol import DIALECTS, Dialect, violations
from agentkit.settle import settle


def shown(**values: object) -> panels.Panel:
    panel = panels.dialects()
    for label, value in values.items():
        panel.controls[label.replace("_", " ")].value = value
    return panel


def test_the_first_state_is_refused_by_both_at_different_places() -> None:
    picture = panels.dialects().still()
    assert picture.text.count("  400 ") == 2
    assert "  400 1 tool" in picture.text and "  400 0 user" in picture.text
    assert "messages.0: unexpected `tool_use_id`" in picture.alt


def test_a_note_between_results_is_refused_by_two_and_after_settling_by_none() -> None:
    answers = {d: side(Request(STORIES["a note between them"]), d) for d in DIALECTS}
    assert {d for d, one in answers.items() if one.accepted} == set()  # calls without a definition: Anthropic minds that
    panel = shown(History="a note between them", Messages_cut_off=0)
    assert "OpenAI gets 8 messages and answers 400" in panel.view.sentence
    assert "Anthropic gets 5 messages and accepts them" in panel.view.sentence
    panel.controls["Left dialect"].value = "deepseek"
    assert "DeepSeek gets 8 messages and answers 400" in panel.view.sentence
    panel.controls["Settled before sending"].value = True
    assert "400" not in panel.view.sentence


def test_foreign_ids_stay_on_the_left_and_get_stand_ins_on_the_right() -> None:
    panel = shown(History="ids of another server", Messages_cut_off=0)
    left, right = panel.still().text.split("Anthropic\n", 1)
    assert "read_file:0" in left and "read_file:0" not in right
    panel.controls["Settled before sending"].value = True
    assert "read_file:0" not in panel.still().text


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("story", STORIES)
def test_every_cut_is_answered_as_the_rules_say(story: str, dialect: Dialect) -> None:
    tools = panels.dialects.__globals__["_READ"]
    messages = STORIES[story]
    for cut in range(1, len(messages)):
        request = Request((messages[0], *messages[cut:]), (tools,))
        one = side(request, dialect)
        if dialect != "anthropic":
            assert one.accepted == (not violations(request, dialect))
        assert (one.wrong is None) is one.accepted and one.answer[:3] in ("200", "400")
        assert one.messages == len(wire_of(request, dialect)["messages"])
        assert side(Request(settle(request.messages), (tools,)), dialect).answer == ACCEPTED


def test_every_mark_and_every_message_is_in_the_picture() -> None:
    tools = panels.dialects.__globals__["_READ"]
    request = Request(STORIES["two results"], (tools,))
    sides = [side(request, d) for d in DIALECTS]
    picture = dialects_picture(sides)
    assert picture.text.count("[M]") == str(wire_of(request, "anthropic")).count("cache_control") == 3
    assert picture.svg.count(">M</text>") == 3
    for one in sides:
        assert all(f"{box.index} {box.name}" in picture.text for box in one.boxes if box.index is not None)
