"""Random histories × policies × dialects × faults × recoveries: no invalid request ever goes out.

`pytest -m bench tests/bench/test_bench_recovery.py` runs ten thousand of them.
"""

from __future__ import annotations

import pytest

from recovery.histories import run_many

MANY, PARTS = 300, 6


@pytest.mark.parametrize("part", range(PARTS))
def test_no_request_is_ever_invalid(part: int) -> None:
    each = MANY // PARTS
    seen = run_many(range(part * each, (part + 1) * each))
    assert seen["invalid"] == 0
    # They must not all take the same way, or the test shows nothing.
    assert min(seen["answered"], seen["ended in an error"], seen["compactions"], seen["recovered"]) >= 3, seen
