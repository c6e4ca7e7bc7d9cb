"""Sweep: every cell is what a replay of its own would give, on any executor, with progress."""

from __future__ import annotations

import argparse
import json
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from session_support import made_up

from agentkit import replay_cli
from agentkit.compaction import Keep
from agentkit.figures.sweep import in_words, sweep_map
from agentkit.pricing import prices
from agentkit.replay import CACHES, OPEN_LOOP, Counted, Middle, cache_for, count, replay
from agentkit.replay.run import replay_sums
from agentkit.sessions import save
from agentkit.sweep import Cell, Job, cuts, sweep

KEEPS, THRESHOLDS = range(2, 14, 3), range(4_000, 16_000, 3_000)
JOB = Job(made_up(30), prices("gpt-5.4"), Middle(1, boundary="pair"))


@pytest.fixture(scope="module")
def counted() -> Counted:
    return count(JOB.session)


@pytest.fixture(scope="module")
def cells(counted: Counted) -> list[Cell]:
    return sweep(JOB, KEEPS, THRESHOLDS, counted=counted, executor=None)


@pytest.mark.parametrize("model", ["gpt-5.4", "claude-opus-5", "deepseek-flash", "gpt-6.1-sol"])
@pytest.mark.parametrize("call", ["flatten", "shared"])
def test_sums_are_the_sums_of_the_rows(counted: Counted, model: str, call: Any) -> None:
    listed = prices(model)
    for schedule in (Middle(5_000, Keep(4, "messages"), "pair", call=call), Middle(9_000, summary=9_000)):
        rows, sums = replay(counted, schedule, listed), replay_sums(counted, schedule, listed)
        assert (sums.usd, sums.summaries_usd) == (pytest.approx(rows.usd), pytest.approx(rows.summaries.total))
        assert (sums.sent, sums.compactions, sums.recall) == (rows.sent, rows.compactions, rows.recall)


RULES = [(model, None) for model in ("gpt-5.4", "gpt-6.1-sol", "claude-opus-5", "deepseek-flash")]
RULES += [("gpt-5.4", kind) for kind in CACHES]


@pytest.fixture(scope="module")
def paused(counted: Counted) -> Counted:
    """Return the session with two pauses, of ten minutes and of two days."""
    shifts = [(i > 25) * 600 + (i > 45) * 2 * 86_400 for i in range(len(JOB.session.items))]
    items = [replace(item, at=(item.at or 0) + more) for item, more in zip(JOB.session.items, shifts, strict=True)]
    return count(replace(JOB.session, items=tuple(items)))


@pytest.mark.parametrize(("model", "kind"), RULES)
@pytest.mark.parametrize("call", ["flatten", "shared"])
def test_every_cell_is_a_replay_of_its_own(paused: Counted, model: str, kind: str | None, call: Any) -> None:
    """Though cells that cut alike are one replay. Pauses end entries, and some compactions fail."""
    policy = Middle(1, boundary="pair", call=call, summary=4_500)
    job = replace(JOB, session=paused.session, prices=prices(model), cache=kind, policy=policy)
    cells, events = sweep(job, KEEPS, THRESHOLDS, counted=paused), ""
    assert [(c.keep, c.threshold) for c in cells] == [(k, t) for k in KEEPS for t in THRESHOLDS]
    for cell in cells:
        result = replay(paused, job.policy_at(cell.keep, cell.threshold), job.prices, cache_for(job.prices, kind))
        assert (cell.usd, cell.summaries_usd) == (pytest.approx(result.usd), pytest.approx(result.summaries.total))
        assert (cell.compactions, cell.sent, cell.recall) == (result.compactions, result.sent, result.recall)
        assert cell.read_share == result.read_share
        events += " ".join(event for row in result.rows for event in row.events)
    assert len({cell.usd for cell in cells}) > 5
    assert all(word in events for word in ("compacted", "failed", "pause"))


def test_cells_that_cut_alike_are_one_replay(counted: Counted) -> None:
    done: list[int] = []
    sweep(JOB, [4], [10**8, 2 * 10**8, 3 * 10**8], counted=counted, progress=done.append)
    assert done == [1]
    assert cuts(JOB.policy_at(4, 10**8), counted) == () != cuts(JOB.policy_at(4, 5_000), counted)


@pytest.mark.parametrize("make", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor_gives_the_same_cells(make: Any, cells: list[Cell]) -> None:
    with make(2) as pool:
        assert sweep(JOB, KEEPS, THRESHOLDS, executor=pool) == cells


class OtherFuture:
    """What a cluster's client gives back: no `concurrent.futures.Future`, but with a result."""

    def __init__(self, value: Any) -> None:
        self.result = lambda timeout=None: value


class Cluster(Executor):
    """An executor that pickles what it is given, as every cluster does."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        import pickle

        fn, args, kwargs = pickle.loads(pickle.dumps((fn, args, kwargs)))
        return OtherFuture(fn(*args, **kwargs))


def test_an_executor_with_futures_of_its_own(cells: list[Cell]) -> None:
    assert not issubclass(OtherFuture, Future)
    assert sweep(JOB, KEEPS, THRESHOLDS, executor=Cluster()) == cells


def test_dask_can_be_handed_in(cells: list[Cell]) -> None:
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    # In this process: no port is opened, and nothing is started that could be left behind.
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        assert sweep(JOB, KEEPS, THRESHOLDS, executor=client.get_executor(), chunks=3) == cells


def test_a_worker_that_fails_is_heard_of() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="unknown cache model"):
        sweep(replace(JOB, cache="no such cache"), [4], [5_000], executor=pool)


def test_the_progress_ends_at_the_number_of_replays(counted: Counted, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []
    sweep(JOB, KEEPS, THRESHOLDS, counted=counted, progress=seen.append)
    assert seen == sorted(seen) and seen[-1] == len(
        set(cuts(JOB.policy_at(k, t), counted) for k in KEEPS for t in THRESHOLDS)
    )
    sweep(JOB, [2, 4], [5_000], counted=counted, progress=True)
    assert "2/2" in capsys.readouterr().err


@pytest.mark.parametrize(("keeps", "thresholds"), [([], [5_000]), ([4], []), ([0], [5_000]), ([4], [0])])
def test_a_grid_that_makes_no_sense(keeps: list[int], thresholds: list[int], counted: Counted) -> None:
    with pytest.raises(ValueError, match="empty|at least 1|1 or more"):
        sweep(JOB, keeps, thresholds, counted=counted)


# -------------------------------------------------------------------------------------------------------- picture and words


def test_the_picture_is_a_png_and_says_the_result_in_words(cells: list[Cell]) -> None:
    chart = sweep_map(cells, JOB.prices.label(), title="made up")
    assert chart.png.startswith(b"\x89PNG") and len(chart.png) > 5_000
    best = min(cells, key=lambda c: c.usd)
    words = in_words(cells, JOB.prices.label())
    assert chart.alt == words and f"keep {best.keep}, threshold {best.threshold:,}" in words
    assert "example prices" in words and OPEN_LOOP in words
    with pytest.raises(ValueError, match="no cells"):
        sweep_map([], "")


def cli(*arguments: str) -> int:
    parser = argparse.ArgumentParser(prog="agentkit")
    replay_cli.add_parsers(parser.add_subparsers(required=True))
    options = parser.parse_args(list(arguments))
    return options.handler(options)


@pytest.fixture
def file(tmp_path: Path) -> str:
    save(replace(made_up(16), model="gpt-5.4"), tmp_path / "made-up.jsonl")
    return str(tmp_path / "made-up.jsonl")


def test_the_command_line_sweeps(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "map.png"
    grid = ["--keep", "2:6:2", "--threshold", "2000:4000:1000", "--boundary", "pair"]
    assert cli("sweep", file, *grid, "--png", str(picture)) == 0
    out = capsys.readouterr().out
    assert "9 cells" in out and "example prices" in out and OPEN_LOOP in out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert cli("sweep", file, *grid, "--json") == 0
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert len(lines) == 9 and {"keep", "threshold", "usd", "recall"} <= lines[0].keys()


@pytest.mark.parametrize(
    ("text", "whole", "wanted"),
    [
        ("4:7", True, [4, 5, 6, 7]),
        ("4", True, [4]),
        ("2:10:4", True, [2, 6, 10]),
        ("0.5:0.5", False, [0.5]),
        ("0.1:0.9", False, [0.1 + 0.04 * i for i in range(21)]),
        ("10:110", True, list(range(10, 111, 5))),
    ],
)
def test_a_range(text: str, whole: bool, wanted: list[float]) -> None:
    assert replay_cli.numbers(text, whole=whole) == pytest.approx(wanted)


@pytest.mark.parametrize(
    "text", ["", "a:b", "4:x", "9:4", "0:4", "-1:3", "1:2:0", "1:2:-1", "1:2:3:4", "nan:5", "1:inf", "1:9:0.001"]
)
def test_a_range_that_is_none_is_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="range") as caught:
        replay_cli.numbers(text)
    assert "\n" not in str(caught.value)


def test_a_picture_that_cannot_be_written_is_one_line(file: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--png"):
        cli("sweep", file, "--keep", "4", "--threshold", "4000", "--png", str(tmp_path / "no" / "folder.png"))
