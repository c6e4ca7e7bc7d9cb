"""Chapter 06: keep, threshold and price list, and what the recorded session then costs."""

from __future__ import annotations

import functools
from dataclasses import replace

from agentkit.compaction.cut import Keep
from agentkit.figures.bill import cost_curve, point_in_words
from agentkit.panels.common import Panel, View, dropdown, slider
from agentkit.replay.counted import Counted, count
from agentkit.replay.schedules import Middle
from agentkit.sessions.course import course_session
from agentkit.sweep import Cell
from agentkit.u_curve import PROFILES, Curve, PriceProfile, replay_at, spread, u_curve

_KEEP, _THRESHOLD, _PRICES, _CALL = "Messages kept", "Threshold in tokens", "Price list", "How the summary is asked for"
_CALLS = (("as a transcript, nothing shared", "flatten"), ("behind the cached prefix", "shared"))
_KEEPS = (2, 4, 8, 16, 32)


def bill() -> Panel:
    """Return the panel. Every point and every curve is a replay of the recorded session; none is drawn from memory."""
    low, high = _range()
    controls = {
        _PRICES: dropdown(_PRICES, [(profile.name, profile) for profile in PROFILES], PROFILES[0]),
        _KEEP: dropdown(_KEEP, _KEEPS, 8),
        _CALL: dropdown(_CALL, _CALLS, "flatten"),
        _THRESHOLD: slider(_THRESHOLD, min(high, 4 * low), low, high, 2_000),
    }
    return Panel("What the session costs", controls, _draw)


@functools.cache
def _session() -> Counted:
    return count(course_session()).prepare(blocks=True)


def _range() -> tuple[int, int]:
    counted = _session()
    largest = counted.head_tokens + counted.sums[counted.points[-1].end]
    return 8_000, round(1.05 * largest, -3)


@functools.lru_cache(maxsize=64)
def _curve(profile: PriceProfile, keep: int, call: str) -> Curve:
    return u_curve(_session(), profile, _policy(keep, call), spread(*_range(), 12))


@functools.lru_cache(maxsize=512)
def _point(profile: PriceProfile, keep: int, call: str, threshold: int) -> Cell:
    return replay_at(_session(), profile, replace(_policy(keep, call), threshold=threshold))


def _policy(keep: int, call: str) -> Middle:
    return Middle(1, Keep(keep, "messages"), "pair", call=call)  # type: ignore[arg-type]


def _draw(panel: Panel) -> View:
    setting = panel[_PRICES], panel[_KEEP], panel[_CALL]
    curve, point = _curve(*setting), _point(*setting, panel[_THRESHOLD])
    picture = cost_curve(curve, point)
    return View(picture, f"{point_in_words(curve, point)} {picture.caption}.")
