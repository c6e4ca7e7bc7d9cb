"""Ten thousand random histories × policies × dialects × faults × recoveries, and how many requests are invalid."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from recovery.histories import run_many

RUNS, EACH = 10_000, 250


def test_no_invalid_request_in_ten_thousand_runs() -> None:
    parts = [range(start, start + EACH) for start in range(0, RUNS, EACH)]
    seen: Counter[str] = Counter()
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for part in pool.map(run_many, parts):
            seen += part
    print(", ".join(f"{seen[name]:,} {name}" for name in ("runs", "requests", "compactions", "recovered", "invalid")))
    assert seen["runs"] + seen["refused at the start"] == RUNS and seen["invalid"] == 0
