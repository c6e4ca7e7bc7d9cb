"""How each provider's prompt cache works, as far as it is published: read from `cache_rules.toml`, with source and date."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CacheRule:
    """One provider's rule.

    `kind` names the cache model. `minimum` and `step` are tokens; `life` and `life_long` seconds. `charged` says that what
    was not read is stored, and the storing paid for, although no mark asks for it.
    """

    kind: str
    minimum: int
    life: float
    step: int
    life_long: float | None
    marks: int
    look_back: int
    charged: bool
    source: str
    date: date


@functools.cache
def table() -> dict[str, Any]:
    """Return the whole file `cache_rules.toml`."""
    return tomllib.loads((Path(__file__).parent / "cache_rules.toml").read_text(encoding="utf-8"))


def rule_row(provider: str, model: str = "") -> dict[str, Any]:
    """Return the row of the file that a provider follows. A Claude model follows Anthropic's rule wherever it is sold."""
    rules, follows = table()["rules"], table()["follows"]
    return rules["anthropic" if "claude" in model else follows.get(provider, "other")]


def cache_rule(provider: str, model: str = "") -> CacheRule:
    """Return the cache rule of `model` at `provider` (the names that `Prices` gives)."""
    row = rule_row(provider, model)
    families = [name for name in row.get("minimum_by_model", ()) if name in model]
    minimum = row["minimum_by_model"][max(families, key=len)] if families else row["minimum"]
    return CacheRule(
        row["cache"],
        minimum,
        row["life"],
        row.get("step", 1),
        row.get("life_long"),
        row.get("marks", 0),
        row.get("look_back", 0),
        any(model.startswith(family) for family in row.get("charged_writes", ())),
        row["source"],
        row["date"],
    )


def storing_costs(rule: CacheRule, kind: str) -> bool:
    """Say whether storing has a price of its own under the cache model `kind`: at marks, or where writes are charged."""
    marked = {row["cache"] for row in table()["rules"].values() if row.get("marks")}
    return kind in marked or (rule.charged and kind == rule.kind)
