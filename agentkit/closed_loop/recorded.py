"""The live comparison and the survival of facts as data: recorded once, because all of it takes many minutes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentkit.closed_loop.against import Replayed
from agentkit.closed_loop.cells import Row
from agentkit.closed_loop.survival import Survived

RECORDED = Path(__file__).with_name("recorded_live.json")
COMMAND = "python -m agentkit.closed_loop.record"
"""What makes the record again."""

_MARKS = {"b": (True, True), "v": (True, False), "a": (False, True), "-": (False, False)}
"""Of a fact: in view and answered, only in view, only answered, neither; a space where nobody looked."""


@dataclass(frozen=True)
class Recorded:
    """Everything that was recorded: with which versions, the live rows, the replayed ones, what survived."""

    versions: Mapping[str, str]
    rows: tuple[Row, ...]
    replayed: tuple[Replayed, ...]
    survival: tuple[Survived, ...]

    def rows_of(self, scenario: str, model: str | None = None, window: int = 0) -> list[Row]:
        """Return the live rows of one scenario: of one price list (None: the first), in one window (0: the wide one)."""
        wanted = model or self.rows[0].model
        return [r for r in self.rows if (r.scenario, r.model, r.window) == (scenario, wanted, window)]

    def replayed_of(self, scenario: str) -> list[Replayed]:
        """Return the replayed rows of one scenario."""
        return [one for one in self.replayed if one.scenario == scenario]


def load_recorded(path: Path = RECORDED) -> Recorded:
    """Read the record. Raises `FileNotFoundError` when there is none."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return Recorded(
        data["versions"],
        tuple(Row(**{**row, "failed": tuple(row["failed"])}) for row in _unfolded(data["rows"])),
        tuple(Replayed(**row) for row in _unfolded(data["replayed"])),
        tuple(one for line in data["survival"] for one in _survived(*line)),
    )


def as_text(recorded: Recorded) -> str:
    """Return the record as JSON, one row a line: small, and readable in a diff."""
    parts = {
        "versions": json.dumps(recorded.versions),
        "rows": _folded([vars(row) for row in recorded.rows]),
        "replayed": _folded([vars(one) for one in recorded.replayed]),
        "survival": _lines(_marked(recorded.survival)),
    }
    return "{" + ",\n".join(f"{json.dumps(name)}: {text}" for name, text in parts.items()) + "}\n"


def _folded(rows: list[dict[str, object]]) -> str:
    """Write the names of the fields once, above their values."""
    return _lines([list(rows[0]) if rows else [], *(list(row.values()) for row in rows)])


def _unfolded(lines: list[list[object]]) -> list[dict[str, object]]:
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]  # type: ignore[arg-type]


def _lines(rows: list[list[object]]) -> str:
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"


def _marked(survival: tuple[Survived, ...]) -> list[list[object]]:
    names = {seen: mark for mark, seen in _MARKS.items()}
    found: dict[tuple[str, str, str], dict[int, str]] = {}
    for one in survival:
        key = one.policy, one.keep_list, one.kind
        found.setdefault(key, {})[one.compactions] = names[one.in_view, one.answered]
    return [[*key, "".join(marks.get(n, " ") for n in range(max(marks) + 1))] for key, marks in found.items()]


def _survived(policy: str, keep_list: str, kind: str, marks: str) -> list[Survived]:
    return [Survived(policy, keep_list, kind, n, *_MARKS[mark]) for n, mark in enumerate(marks) if mark != " "]
