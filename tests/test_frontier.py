"""Every policy on the same sessions: scores add up, the frontier is what no policy beats, the command prints it."""

from __future__ import annotations

import json
import random
from dataclasses import fields, replace
from pathlib import Path

import pytest
from session_support import ASKED, line, made_up

from agentkit import compare_cli
from agentkit.budget import Budget
from agentkit.cli import main
from agentkit.figures.frontier import frontier_chart, in_words
from agentkit.policies.cost_aware import WIDEST
from agentkit.policies.registry import POLICIES
from agentkit.pricing import plain
from agentkit.replay import OPEN_LOOP, KeepAll, NothingToReplay, cache_for, count, replay
from agentkit.replay.frontier import Score, Settings, as_table, compare_policies, frontier
from agentkit.replay.optimum import optimum
from agentkit.replay.planned import lately_cuts
from agentkit.sessions import loads, save

LISTED = plain("plain", fresh=1.0, read=0.1, write=1.25, output=5.0)
SETTINGS = Settings(LISTED, Budget.share(30_000), "openai")
SOME = ("keep everything", "summarise the middle", "jai", "cost-aware")


def score(policy: str, usd: float, in_view: int, **more: float) -> Score:
    return replace(Score(policy, usd, 2.0, 10, in_view, 1, 100, 50, 40, 1, 0), **more)


SCORES = [score("a", 5.0, 10), score("b", 3.0, 8), score("c", 4.0, 7), score("d", 2.0, 4), score("e", 5.0, 9)]


def test_the_frontier_is_what_no_other_policy_beats() -> None:
    assert [s.policy for s in frontier(SCORES)] == ["d", "b", "a"]
    draw = random.Random(5)
    many = [score(str(n), draw.randint(1, 9), draw.randint(0, 10)) for n in range(60)]
    best = frontier(many)
    for one in many:
        beaten = any(
            o.usd <= one.usd and o.in_view >= one.in_view and (o.usd, o.in_view) != (one.usd, one.in_view) for o in many
        )
        same = any((o.usd, o.in_view) == (one.usd, one.in_view) for o in best)
        assert same == (not beaten)


def test_scores_add_up_and_the_largest_request_is_the_largest() -> None:
    both = score("a", 1.0, 3, largest=90, sent=300) + score("a", 2.0, 4, largest=70)
    assert (both.usd, both.in_view, both.used, both.largest, both.sent, both.optimum) == (3.0, 7, 20, 90, 400, 4.0)
    assert (both.ratio, both.recall, both.read_share) == (0.75, 0.35, 0.25)
    assert score("a", 1.0, 0, used=0).recall is None


@pytest.fixture(scope="module")
def compared() -> list[Score]:
    sessions = [(made_up(90, words=900), SETTINGS), (made_up(12, words=300), SETTINGS)]
    return compare_policies(sessions, SOME, processes=1)


def test_a_score_is_the_replay_it_comes_from_and_the_optimum_that_of_all_sessions(compared: list[Score]) -> None:
    counted = [count(made_up(90, words=900)), count(made_up(12, words=300))]
    kept = [replay(c, KeepAll(), LISTED, cache_for(LISTED, "openai")) for c in counted]
    best = [optimum(c, LISTED, lately_cuts(c, most=24_000 // WIDEST), window=24_000, cache="openai").usd for c in counted]
    first = compared[0]
    assert [s.policy for s in compared] == list(SOME)
    assert (first.usd, first.sent) == (pytest.approx(sum(r.usd for r in kept)), sum(r.sent for r in kept))
    assert (first.recall, first.largest) == (1.0, max(row.sent for r in kept for row in r.rows))
    assert all(s.optimum == pytest.approx(sum(best)) for s in compared)
    assert (
        compared[3].compactions > 1
        and 1.0 < compared[3].ratio < first.ratio
        and compared[3].extra == compared[3].compactions
    )


def test_every_policy_of_the_registry_can_be_compared() -> None:
    scores = compare_policies([(made_up(8, words=300), SETTINGS)], processes=1)
    assert [s.policy for s in scores] == list(POLICIES)
    assert all(s.usd > 0 and 0 <= (s.recall or 0) <= 1 and s.largest > 0 for s in scores)


def test_with_several_processes_it_is_the_same(compared: list[Score]) -> None:
    done: list[int] = []
    sessions = [(made_up(12, words=300), SETTINGS), (made_up(90, words=900), SETTINGS)]
    again = compare_policies(sessions, SOME, processes=2, progress=done.append)
    assert done[-1] == 8
    for one, other in zip(compared, again, strict=True):
        for field in fields(Score):
            assert getattr(one, field.name) == pytest.approx(getattr(other, field.name)), (one.policy, field.name)


def test_a_long_session_is_given_out_in_parts() -> None:
    long = made_up(110, words=60)
    one, two = (compare_policies([(long, SETTINGS)], SOME[:3], processes=n) for n in (1, 2))
    assert one == two and [s.policy for s in one] == list(SOME[:3])


def test_what_cannot_be_compared_is_one_line() -> None:
    with pytest.raises(ValueError, match="unknown policy 'best'; there are keep everything"):
        compare_policies([(made_up(2), SETTINGS)], ["best"])
    with pytest.raises(ValueError, match="at least one session"):
        compare_policies([], SOME)
    with pytest.raises(NothingToReplay):
        compare_policies([(loads(line(ASKED)), SETTINGS)], SOME, processes=1)


# ------------------------------------------------------------------------------------------------ table, picture, command


def test_the_table_has_every_policy_once_and_marks_the_frontier() -> None:
    lines = as_table(SCORES).splitlines()
    assert [row.split()[-8] for row in lines[1:]] == ["d", "b", "c", "a", "e"]
    assert [row.startswith("*") for row in lines[1:]] == [True, True, False, True, False]
    assert lines[2].split() == ["*", "b", "3.000", "1.50", "80.0%", "1", "50.0%", "40", "1"]
    assert "–" in as_table([score("f", 1.0, 0, used=0)])


def test_the_picture_says_the_same_in_words() -> None:
    chart = frontier_chart(SCORES, LISTED.label(), title="made up")
    assert chart.png.startswith(b"\x89PNG") and len(chart.png) > 10_000
    assert "cheapest first: d (2 USD, recall 40%), b (3 USD, recall 80%), a (5 USD, recall 100%)" in chart.alt
    assert OPEN_LOOP in chart.alt and "example prices" in chart.alt and "2.50 x the optimum" in in_words(SCORES, "")
    with pytest.raises(ValueError, match="no point to draw"):
        frontier_chart([score("f", 1.0, 0, used=0)], "")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sessions") / "made-up.jsonl"
    save(made_up(12, words=300), path)
    return path


def run(*arguments: str | Path) -> int:
    return main(["compare", *map(str, arguments), "--no-progress", "--processes", "1"])


def test_the_command_prints_the_table_and_how_to_read_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = [word for name in SOME for word in ("--policy", name)]
    assert run(file, file, "--prices", "gpt-5.4", *few) == 0
    out = capsys.readouterr().out
    assert (
        out.startswith("2 sessions, 26 calls, 4 policies") and OPEN_LOOP in out and "example prices: openai gpt-5.4" in out
    )
    assert all(f"  {name}  " in out for name in SOME) and all(note in out for note in compare_cli.NOTES)


def test_the_command_gives_json_and_a_picture(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "frontier.png"
    few = ("--policy", "keep everything", "--policy", "M4")
    assert run(file, "--prices", "deepseek-flash", *few, "--json", "--png", picture) == 0
    rows = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [row["policy"] for row in rows] == ["keep everything", "M4"]
    assert rows[0]["recall"] == 1.0 and rows[0]["ratio"] == pytest.approx(rows[0]["usd"] / rows[0]["optimum"])
    assert {"on_frontier", "read_share", "largest", "extra", "compactions", "failed"} <= rows[0].keys()
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.jsonl",), "nowhere.jsonl"),
        (("FILE",), "name a model with --prices"),
        (("FILE", "--prices", "gpt-5.4", "--policy", "best"), "unknown policy 'best'"),
        (("FILE", "--prices", "gpt-5.4", "--budget", "0"), "the budget must be at least 1 token"),
        (("FILE", "--prices", "gpt-5.4", "--policy", "M4", "--png", "/nowhere/x.png"), "--png /nowhere/x.png"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: tuple[str, ...], words: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*(str(file) if a == "FILE" else a for a in arguments)) == 1
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_no_workers_and_no_calls_are_one_line_too(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(file), "--prices", "gpt-5.4", "--processes", "0"]) == 1
    assert "--processes is 1 or more" in capsys.readouterr().err
    empty = file.parent / "empty.jsonl"
    empty.write_text(line(ASKED), encoding="utf-8")
    assert run(empty, "--prices", "gpt-5.4") == 1
    assert "no model calls in this session" in capsys.readouterr().err
