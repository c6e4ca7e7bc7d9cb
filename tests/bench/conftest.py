"""Benchmarks print figures and ratios; they take long and assert no times, so they run only when asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    asked = "bench" in (config.getoption("markexpr") or "")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("bench")
            if not asked:
                item.add_marker(pytest.mark.skip(reason="a benchmark: pytest -m bench tests/bench"))
