"""`agentkit compare --live`, and the pictures of a live comparison."""

from __future__ import annotations

import json

import pytest

from agentkit.cli import main
from agentkit.closed_loop.against import Disagreement
from agentkit.closed_loop.cells import CLOSED_LOOP, run_cell
from agentkit.closed_loop.survival import FACTS, Survived
from agentkit.figures.live import (
    disagreement_table,
    live_chart,
    live_table,
    share_left,
    survival_chart,
    survival_table,
)

QUICK = ["--policy", "keep everything", "--policy", "jai", "--processes", "1", "--no-progress"]


def test_the_table_says_what_was_done_and_how_to_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--live", "big file", *QUICK]) == 0
    out = capsys.readouterr().out
    assert CLOSED_LOOP in out and "example prices: anthropic" in out
    lines = [line.split("  ")[0] for line in out.splitlines()]
    assert lines.index("keep everything") < lines.index("jai")  # it was dearer, and left nothing undone


def test_json_has_one_line_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--live", "big file", "fix the bug", *QUICK, "--json", "--prices", "deepseek-flash"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(r["scenario"], r["policy"]) for r in rows[:2]] == [("big file", "keep everything"), ("big file", "jai")]
    assert len(rows) == 4 and [r["answered"] for r in rows] == [True, False, True, True]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--live", "nothing"], "unknown scenario 'nothing'"),
        (["a.jsonl", "--live", "needle"], "--live runs scenarios and reads no session"),
        (["--live", "needle", "--policy", "nobody"], "unknown policy 'nobody'"),
        (["--live", "needle", "--window", "-1"], "--window is a number of tokens"),
        (["--live", "needle", "--processes", "0"], "--processes is 1 or more"),
        ([], "name at least one session, or run scenarios with --live"),
    ],
)
def test_bad_input_gives_one_clear_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *arguments]) == 1
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_figures_say_the_same_in_words() -> None:
    rows = [run_cell("big file", policy) for policy in ("keep everything", "jai")]
    shown = live_table(rows)
    assert [line[:2] for line in shown.rows] == [("keep everything", "4/4"), ("jai", "3/4")]
    assert shown.rows[1][-1] == "turn 4"
    chart = live_chart(rows)
    assert chart.png.startswith(b"\x89PNG") and "1 of 2 policies did all of the work" in chart.alt
    assert "left some undone: jai (3 of 4)" in chart.alt
    found = [Disagreement("needle", "jai", 1, 5, 0.1, 0.2, ("2 files read again", "3 rounds more"))]
    assert disagreement_table(found).rows == (("jai", "1", "5", "0.1000", "0.2000", "2 files read again; 3 rounds more"),)
    with pytest.raises(ValueError, match="nothing|no run"):
        live_chart([])


def test_the_survival_curve_counts_what_is_left() -> None:
    seen = [
        Survived("jai", "full list", fact.kind, n, in_view=n == 0, answered=n == 0 or fact.kind == "wish")
        for fact in FACTS
        for n in range(3)
    ]
    assert share_left(seen, "jai", "full list") == {0: 1.0, 1: 0.2, 2: 0.2}
    assert share_left(seen, "jai", "full list", seen="in_view") == {0: 1.0, 1: 0.0, 2: 0.0}
    assert survival_table(seen, "full list").rows == (("jai", "0 of 2", "0 of 2", "0 of 2", "0 of 2", "2 of 2"),)
    chart = survival_chart(seen, "full list")
    assert chart.png.startswith(b"\x89PNG") and "jai 20% after 2 compactions" in chart.alt
    with pytest.raises(ValueError, match="nothing to draw for the list 'other'"):
        survival_chart(seen, "other")
