"""The record is what a run gives today: the quickest cells are run again and held against it."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from agentkit.closed_loop.against import disagreements
from agentkit.closed_loop.cells import MODEL, SCENARIOS, Row, run_cell
from agentkit.closed_loop.record import LONG, SECOND, SLOW, main
from agentkit.closed_loop.recorded import RECORDED, Recorded, as_text, load_recorded
from agentkit.closed_loop.survival import LISTS, POLICY_NAMES, WITHOUT_RECALL, survival
from agentkit.policies.registry import POLICIES


@pytest.fixture(scope="module")
def recorded() -> Recorded:
    return load_recorded()


@pytest.mark.parametrize(
    ("scenario", "policy", "model"),
    [
        ("big file", "keep everything", MODEL),
        ("big file", "cost-aware", MODEL),
        ("fix the bug", "jai", MODEL),
        ("needle", "notes file", SECOND),
    ],
)
def test_a_cell_run_again_is_the_recorded_one(recorded: Recorded, scenario: str, policy: str, model: str) -> None:
    (kept,) = [row for row in recorded.rows_of(scenario, model) if row.policy == policy]
    again = run_cell(scenario, policy, model)
    if recorded.versions["genai-prices"] != version("genai-prices"):  # other prices: all but the money must be the same
        again = Row(**{**vars(again), "usd": kept.usd})
    assert again == kept


def test_what_survives_again_is_the_recorded(recorded: Recorded) -> None:
    again = survival(("pi",), ("full list",), most=2, processes=1)
    kept = [s for s in recorded.survival if (s.policy, s.keep_list) == ("pi", "full list") and s.compactions <= 2]
    assert set(again) == set(kept) and len(again) == len(kept)


def test_the_record_is_whole_and_small(recorded: Recorded) -> None:
    for scenario in SCENARIOS:
        left_out = SLOW if scenario == LONG else ()
        assert [row.policy for row in recorded.rows_of(scenario)] == [name for name in POLICIES if name not in left_out]
        assert [one.policy for one in recorded.replayed_of(scenario)] == list(POLICIES)
        replayed = [one for one in recorded.replayed_of(scenario) if one.policy not in left_out]
        assert disagreements(replayed, recorded.rows_of(scenario), apart=1)
    assert {s.policy for s in recorded.survival} == {*POLICY_NAMES, WITHOUT_RECALL}
    assert {s.keep_list for s in recorded.survival} == set(LISTS)
    assert RECORDED.stat().st_size < 150_000


def test_reading_and_writing_are_inverse(recorded: Recorded, tmp_path: Path) -> None:
    text = RECORDED.read_text(encoding="utf-8")
    assert as_text(recorded) == text
    copy = tmp_path / "copy.json"
    copy.write_text(text, encoding="utf-8")
    assert load_recorded(copy) == recorded


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "unknown part 'nothing'; there are short, long, replayed, survival" in capsys.readouterr().err
