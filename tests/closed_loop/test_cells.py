"""One run of the live comparison: judged by the truth, billed as the simulator billed it, the same every time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.closed_loop.cells import MODEL, Row, play_cell, provider_for, run_cell
from agentkit.closed_loop.live import COLUMNS, as_table, compare_live, ranked
from agentkit.messages import Usage
from agentkit.pricing import UnknownModel, prices
from agentkit.scenarios.library import NEEDLE_SCENARIO


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return compare_live(["big file"], ["keep everything", "jai", "Codex", "cost-aware"], processes=1)


def test_a_run_is_the_same_every_time_and_also_in_another_process(rows: list[Row]) -> None:
    assert compare_live(["big file"], ["jai", "cost-aware"], processes=2) == [rows[1], rows[3]]


def test_what_a_policy_forgets_costs_an_answer_and_recall_gets_it_back(rows: list[Row]) -> None:
    """The first question: word for word in view, in a summary that keeps topics only, in user messages, called back."""
    assert [row.failed for row in rows] == [(), (4,), (), ()]
    assert rows[1].compactions and rows[3].compactions
    assert rows[3].rounds > rows[0].rounds


def test_tokens_and_usd_are_those_of_every_answered_request() -> None:
    found = prices(MODEL)
    provider = provider_for(found)
    played = play_cell("fix the bug", "jai", provider, found)
    calls = [usage for _, usage in provider.simulator.calls]  # type: ignore[attr-defined]
    row, whole = run_cell("fix the bug", "jai"), sum(calls, Usage())
    assert (row.read, row.written, row.fresh, row.output) == (
        whole.cache_read,
        whole.cache_write,
        whole.fresh,
        whole.output,
    )
    assert row.prompt == row.read + row.written + row.fresh and row.extra == len(calls) - len(played.bills) == 1
    by_hand = sum(3.0 * u.fresh + 0.3 * u.cache_read + 3.75 * u.cache_write + 15.0 * u.output for u in calls) / 1e6
    assert row.usd == pytest.approx(by_hand, abs=1e-6)


def test_a_window_that_ends_is_a_row_with_its_reason() -> None:
    row = run_cell("needle", "keep everything", window=NEEDLE_SCENARIO.budget)
    assert not row.answered and "prompt is too long" in row.problem and row.failed[-1] == row.asked == 10
    assert row.largest <= NEEDLE_SCENARIO.budget and row.unanswered == len(row.failed)


def test_the_rules_are_those_of_the_price_list() -> None:
    marked, automatic = (run_cell("big file", "keep everything", model) for model in ("claude-opus-5", "deepseek-flash"))
    assert marked.written and not automatic.written
    assert automatic.usd < marked.usd and marked.rounds == automatic.rounds


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((["nothing"], ["jai"]), "unknown scenario 'nothing'; there are short chat"),
        ((["big file"], ["nobody"]), "unknown policy 'nobody'; there are keep everything"),
        ((["big file"], ["jai"], "gemini-2.5-pro"), "name one of theirs"),
    ],
)
def test_what_does_not_exist_is_said_before_anything_runs(arguments: tuple[object, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        compare_live(*arguments)  # type: ignore[arg-type]
    with pytest.raises(UnknownModel):
        compare_live(["big file"], ["jai"], "no such model")


def test_the_table_puts_work_done_before_money(rows: list[Row]) -> None:
    cheap = replace(rows[1], usd=0.0001, problem="it stopped", failed=(3, 4), done=2)
    assert ranked([cheap, *rows])[-1] is cheap and ranked(rows)[0].usd == min(r.usd for r in rows if r.answered)
    lines = as_table([cheap, *rows]).split("\n")
    assert lines[0] == "big file" and len(lines) == 2 + 5 and lines[-1].endswith("turn 3, 4: it stopped")
    assert all(name in lines[1] for name in COLUMNS)
