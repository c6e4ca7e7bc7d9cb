"""Fifty kills; the ordinary suite does ten of them."""

from __future__ import annotations

import time
from pathlib import Path

from ledger.test_kills import ALL, kill_many


def test_fifty_of_fifty_kills_are_survived(tmp_path: Path) -> None:
    start = time.perf_counter()
    compactions, entries = kill_many(tmp_path, ALL)
    assert compactions > 20 and entries > 300
    took = time.perf_counter() - start
    print(
        f"\n{ALL} of {ALL} kills survived: {entries} reported entries all there, {compactions} compactions, {took:.0f} s",
        end="",
    )
