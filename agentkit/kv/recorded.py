"""A run of chapter 05 on a real model, as data: what was measured once, for those who have not installed it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_name("recorded_run.json")


@dataclass(frozen=True)
class Ratio:
    """A time as a share of the time for the cold prompt: the median of the repeats, the smallest, the largest."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class ChangeRow:
    """One change of the prompt: its tokens, those that prefix and law promise, and what two programs did with it."""

    name: str
    prompt: int
    promised: int
    server_cached: int
    server_time: Ratio
    numpy_kept: int
    numpy_time: Ratio


@dataclass(frozen=True)
class LayerRow:
    """One layer after a token was changed: of `later` tokens, those whose key differs, and the largest difference."""

    layer: int
    later: int
    keys: int
    values: int
    largest: float


@dataclass(frozen=True)
class Editing:
    """What was done to the cache, and the likely next tokens after it, with their probabilities."""

    name: str
    likely: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class RecordedRun:
    """Everything that was measured in one run, and where."""

    date: str
    machine: str
    model: str
    packages: dict[str, str]
    repeats: int
    changes: tuple[ChangeRow, ...]
    layers: tuple[LayerRow, ...]
    editing: tuple[Editing, ...]
    same_tokens: tuple[int, int]

    @property
    def label(self) -> str:
        """Return when, where and with what this was measured."""
        packages = ", ".join(f"{name} {version}" for name, version in self.packages.items())
        return f"Recorded on {self.date}, {self.machine}: {self.model}; {packages}"

    def save(self, path: Path) -> None:
        """Write the run as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def recorded_run(path: Path = RECORDED) -> RecordedRun:
    """Read a run. Raises `ValueError` when the file is not one."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        changes = tuple(_change(row) for row in data.pop("changes"))
        layers = tuple(LayerRow(**row) for row in data.pop("layers"))
        editing = tuple(Editing(e["name"], tuple((w, p) for w, p in e["likely"])) for e in data.pop("editing"))
        same = data.pop("same_tokens")
        return RecordedRun(**data, changes=changes, layers=layers, editing=editing, same_tokens=(same[0], same[1]))
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(
            f"{path.name} is not a recorded run ({error}); make one with python -m agentkit.kv.record"
        ) from None


def _change(row: dict[str, Any]) -> ChangeRow:
    return ChangeRow(**{**row, "server_time": Ratio(**row["server_time"]), "numpy_time": Ratio(**row["numpy_time"])})
