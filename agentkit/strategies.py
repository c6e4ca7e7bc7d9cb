"""Chapter 10: one recorded session under every policy, as requests to look at and as scores. Open loop, example prices.

All policies on a whole session take half a minute, so their scores are recorded: `python -m agentkit.strategies` makes the
record again.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from agentkit.budget import Budget
from agentkit.compaction.compactor import Compactor
from agentkit.events import Billed
from agentkit.log import Compaction, Log
from agentkit.messages import Message, Request, Usage
from agentkit.policies.base import Policy, Situation
from agentkit.policies.registry import POLICIES, Maker, describe
from agentkit.providers.base import Provider
from agentkit.replay.any_policy import replay_policy
from agentkit.replay.counted import Counted, count
from agentkit.replay.exact import Exact
from agentkit.replay.frontier import Score, Settings, optimum_of, score_of
from agentkit.replay.run import Replay
from agentkit.sessions.course import course_session
from agentkit.sessions.form import Session
from agentkit.u_curve import PROFILES, PriceProfile

WINDOW = 32_000
"""Tokens: the window of the recorded scores. Small, so that every policy has something to do in one session."""
SESSION = "long-refactor"
RECORDED = Path(__file__).with_name("recorded_strategies.json")
COMMAND = "python -m agentkit.strategies"
"""What makes the record again."""


def beginning(session: Session, requests: int) -> Session:
    """Return the first `requests` requests of `session`, with their answers. Raises `ValueError` when it has none."""
    answers = [i for i, item in enumerate(session.items) if item.message.role == "assistant"][:requests]
    if not answers:
        raise ValueError(f"{session.id}: there is no request among the first {requests}")
    return replace(session, items=session.items[: answers[-1] + 1], usage=session.usage[: len(answers)])


# --------------------------------------------------------------------------------------------------------- one policy, seen


@dataclass(frozen=True)
class Played:
    """A session under one policy: its requests with what the cache made of them, its compactions, and the replay's sums."""

    name: str
    bills: tuple[Billed, ...]
    compactions: tuple[Compaction, ...]
    replay: Replay

    @property
    def year(self) -> str:
        """Return when the strategy was current; empty for a policy that is not in the registry."""
        return describe(self.name)["year"] if self.name in POLICIES else ""

    @property
    def note(self) -> str:
        """Return what it does in one sentence; empty for a policy that is not in the registry."""
        return describe(self.name)["note"] if self.name in POLICIES else ""

    @property
    def score(self) -> Score:
        """Return its sums, with an optimum of 0: `against` puts one in."""
        rows, requests = self.replay.rows, self.replay.requests
        return Score(
            self.name,
            self.replay.usd,
            0.0,
            sum(row.used for row in requests),
            sum(row.in_view for row in requests),
            self.replay.compactions,
            self.replay.sent,
            sum(row.read for row in rows),
            max(row.sent for row in requests),
            len(rows) - len(requests),
            sum(event.startswith("failed") for row in rows for event in row.events),
        )


class _Watched:
    """A policy that is looked over the shoulder: it keeps each view that is sent, and each record."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.name = policy, policy.name
        self.sent: list[tuple[Message, ...]] = []
        self.records: list[Compaction] = []
        self._decided = False

    def decide(self, log: Log, situation: Situation) -> Compaction | None:
        record = self.policy.decide(log, situation)
        self._decided = True
        self.records += [record] if record else []
        return record

    def view(self, log: Log) -> tuple[Message, ...]:
        view = self.policy.view(log)
        if self._decided:  # the view right after a decision is the one that goes out
            self.sent.append(view)
        self._decided = False
        return view


def play(counted: Counted, make: str | Maker, profile: PriceProfile, window: int = WINDOW) -> Played:
    """Replay `counted` under a policy: the name of one in the registry, or what makes one from a compactor.

    The budget is 80 % of `window` tokens. Raises `ValueError` for an unknown name.
    """
    maker = _named(make) if isinstance(make, str) else make
    watched: list[_Watched] = []

    def watch(provider: Provider) -> Policy:
        made: Any = maker(Compactor(provider, estimator=Exact(counted)))
        if hasattr(made, "priced"):  # a policy that decides by prices is told them
            made = made.priced(profile.prices, profile.cache)
        watched.append(_Watched(made))
        return watched[0]

    run = replay_policy(counted, watch, Budget.share(window), profile.prices, profile.choice())
    seen = watched[0]
    return Played(seen.name, tuple(_bills(counted, seen.sent, run)), tuple(seen.records), run)


def _named(name: str) -> Maker:
    if name not in POLICIES:
        raise ValueError(f"unknown policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name]


def _bills(counted: Counted, sent: Iterable[tuple[Message, ...]], run: Replay) -> Iterable[Billed]:
    for view, row, point in zip(sent, run.requests, counted.points, strict=True):
        usage = Usage(row.fresh, row.read, row.written, row.output)
        answer = counted.body[point.end]
        yield Billed(row.number, Request(view, counted.session.tools), row.sent, usage, answer, "stop")


# -------------------------------------------------------------------------------------------------------------- the record


def against(score: Score, profile: PriceProfile) -> Score:
    """Return `score`, made on the whole session, with the recorded optimum beside it."""
    return replace(score, optimum=recorded(profile.name)[0].optimum)


def recorded(profile: str, path: Path = RECORDED) -> list[Score]:
    """Return the recorded scores under a price profile, in the order of the registry.

    Raises `ValueError` for a profile that is not in the record, or a file that is none.
    """
    data = _read(path)
    if profile not in data:
        raise ValueError(f"no price profile {profile!r} in the record; there are {', '.join(data)}")
    return [Score(**score) for score in data[profile]]


@functools.lru_cache(maxsize=4)
def _read(path: Path) -> Mapping[str, list[dict[str, Any]]]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))["profiles"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path.name} is no record of strategies ({error}); make it again with `{COMMAND}`") from None


def record(
    names: Iterable[str] = tuple(POLICIES), progress: Callable[[str], object] = lambda line: None
) -> dict[str, list[Score]]:
    """Replay the whole session under each of `names` and each price profile. `progress` is told each name."""
    counted, found = count(course_session(SESSION)).prepare(blocks=True), {}
    for profile in PROFILES:
        settings = Settings(profile.prices, Budget.share(WINDOW), profile.cache)
        best, scores = optimum_of(counted, settings), []
        for name in names:
            progress(f"{profile.name}: {name}")
            scores.append(replace(score_of(counted, settings, name), optimum=best))
        found[profile.name] = scores
    return found


def main() -> None:
    """Make the record again."""
    scores = {name: [asdict(score) for score in found] for name, found in record(progress=print).items()}
    data = {"session": SESSION, "window": WINDOW, "command": COMMAND, "profiles": scores}
    RECORDED.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
