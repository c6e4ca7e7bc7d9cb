"""The long refactor, whole: how long it takes, whether it is recorded again byte for byte, and what forgetting costs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agentkit.compaction import Compactor, Keep
from agentkit.policies import SummariseMiddle
from agentkit.scenarios.library import LONG_REFACTOR
from agentkit.scenarios.playing import play
from agentkit.scenarios.record import main

COMMITTED = Path(__file__).resolve().parents[2] / "chapters" / "sessions"


def test_the_sessions_are_recorded_again_byte_for_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = time.perf_counter()
    main(["--to", str(tmp_path)])
    with capsys.disabled():
        print(f"\nrecording both sessions: {time.perf_counter() - start:.1f} s", end="")
    for kept in sorted(COMMITTED.glob("*.jsonl")):
        assert (tmp_path / kept.name).read_bytes() == kept.read_bytes(), kept.name


def test_the_long_refactor_is_done_with_summaries(capsys: pytest.CaptureFixture[str]) -> None:
    start = time.perf_counter()
    keep = Keep(LONG_REFACTOR.keep, "messages")
    played = play(LONG_REFACTOR, lambda provider: SummariseMiddle(Compactor(provider, keep)))
    with capsys.disabled():
        said = f"{len(played.bills)} requests, {played.read_again} files read again, {len(played.compactions)} compactions"
        print(f"\nlong refactor with summaries: {time.perf_counter() - start:.1f} s, {said}", end="")
    assert played.answered and played.compactions and played.read_again > 0
