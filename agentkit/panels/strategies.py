"""Chapter 10: a policy and a price list, and what the policy makes of the recorded session."""

from __future__ import annotations

import functools

from agentkit.figures.strategies import point_in_words, policy_strip, recall_points
from agentkit.panels.common import Panel, View, dropdown
from agentkit.policies.registry import POLICIES, describe
from agentkit.pricing import EXAMPLE
from agentkit.replay.counted import Counted, count
from agentkit.replay.run import OPEN_LOOP
from agentkit.sessions.course import course_session
from agentkit.strategies import SESSION, Played, beginning, play, recorded
from agentkit.u_curve import PROFILES, PriceProfile

_POLICY, _PRICES = "Policy", "Price list"
REQUESTS, SMALL = 24, 16_000
"""The strip shows so many requests, under a window of so many tokens: small, so that most policies act within them."""


def strategies(policy: str = "AutoGPT 2023-04 as told") -> Panel:
    """Return the panel: the strip is replayed, the points are the recorded scores of the whole session.

    Raises `ValueError` for an unknown policy.
    """
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}; there are {', '.join(POLICIES)}")
    today, *others, before = PROFILES
    lists = [(f"today: {today.name}", today), (f"2023: {before.name}", before)]
    lists += [(f"today: {profile.name}", profile) for profile in others]
    controls = {_POLICY: dropdown(_POLICY, tuple(POLICIES), policy), _PRICES: dropdown(_PRICES, lists, today)}
    return Panel("One session, every policy", controls, _draw)


@functools.cache
def _session() -> Counted:
    return count(beginning(course_session(SESSION), REQUESTS)).prepare(blocks=True)


@functools.lru_cache(maxsize=128)
def _played(policy: str, profile: PriceProfile) -> Played:
    return play(_session(), policy, profile, SMALL)


def _draw(panel: Panel) -> View:
    policy, profile = panel[_POLICY], panel[_PRICES]
    played, scores = _played(policy, profile), recorded(profile.name)
    about = describe(policy)
    sentence = (
        f"{about['year']}, {about['source']}: {about['note']}. In the first {REQUESTS} requests, with a window of {SMALL:,} "
        f"tokens, {played.score.read_share:.0%} of all prompt tokens are read from the cache; {played.score.compactions} "
        f"compactions. On the whole session: {point_in_words(scores, policy)}. {EXAMPLE.capitalize()}; {OPEN_LOOP}."
    )
    return View(policy_strip(played), sentence, recall_points(scores, policy).svg)
