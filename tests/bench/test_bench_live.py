"""The live comparison, whole: every scenario under every policy, and what survives, held against the record."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agentkit.closed_loop.record import main
from agentkit.closed_loop.recorded import RECORDED


def test_the_live_runs_are_recorded_again_byte_for_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = time.perf_counter()
    again = tmp_path / RECORDED.name
    main(["--to", str(again)])
    with capsys.disabled():
        print(f"\nevery live run again: {time.perf_counter() - start:.0f} s", end="")
    assert again.read_text(encoding="utf-8") == RECORDED.read_text(encoding="utf-8")
