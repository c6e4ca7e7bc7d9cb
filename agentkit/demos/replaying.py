"""Replay a recorded session for the lab: the requests that a policy would have sent, as events that the strip can show.

Open loop: the agent's calls and answers are those of the record, whatever the policy forgets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agentkit.budget import Budget
from agentkit.compaction import Compactor, Keep
from agentkit.compaction.compactor import Outcome
from agentkit.demos.plans import Plan
from agentkit.events import Billed, Compacted, CompactionLog, Event
from agentkit.log import Compaction, Log
from agentkit.messages import Message, Request, Usage
from agentkit.policies.base import Policy, Situation
from agentkit.policies.registry import make_policy
from agentkit.pricing import plain
from agentkit.providers.base import Provider
from agentkit.replay import cache_for, replay_policy
from agentkit.replay.counted import Counted
from agentkit.replay.run import Row
from agentkit.sessions import Session, SessionError, loads


def parse(data: bytes, name: str) -> Session:
    """Return the session in `data`: the first line that is not empty. Raises `SessionError` with one clear line."""
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    if not lines:
        raise SessionError(f"{name}: the file is empty; a session is one JSON object on one line")
    number, line = lines[0]
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SessionError(f"{name}:{number}: not UTF-8 at byte {error.start + 1}; save the file as UTF-8") from None
    session = loads(text, where=f"{name}:{number}", name=name.rpartition(".")[0], more=len(lines) > 1)
    if not session.calls:
        raise SessionError(f"{name}:{number}: the session has no model call, so there is no request to show")
    return session


def turns_of(counted: Counted) -> Iterator[tuple[str, int, str]]:
    """Yield (what the user said, requests, last answer) of each turn with a request."""
    said = [message.content for message in counted.body if message.role == "user"]
    by_turn: dict[int, list[int]] = {}
    for point in counted.points:
        by_turn.setdefault(point.turn, []).append(point.end)
    for turn, ends in sorted(by_turn.items()):
        yield (said[turn - 1] if 0 < turn <= len(said) else "(before the first question)"), len(ends), _answer(counted, ends)


def _answer(counted: Counted, ends: list[int]) -> str:
    return counted.body[ends[-1]].content


def replayed(counted: Counted, plan: Plan) -> tuple[Event, ...]:
    """Return the events of `counted` under the policy, the budget and the cache rule of `plan`."""
    watch: list[_Watched] = []

    def make(provider: Provider) -> Policy:
        watch.append(_Watched(make_policy(plan.policy, Compactor(provider, Keep(plan.keep or 1, "messages")))))
        return watch[0]

    # Nobody pays here: the name alone decides how long entries of the cache live.
    nobody = replace(plain("", fresh=0.0, read=0.0, output=0.0), provider=plan.rules)
    budget = Budget.ratio(plan.budget, plan.threshold)
    rows = replay_policy(counted, make, budget, nobody, cache_for(nobody, plan.rules)).rows
    return tuple(_events(counted, rows, watch[0]))


class _Watched:
    """A policy that somebody looks over the shoulder of: what it decided and showed, request by request."""

    def __init__(self, policy: Policy) -> None:
        self.name, self._policy = policy.name, policy
        self.views: list[tuple[Message, ...]] = []
        self.made: list[tuple[Compaction, int] | None] = []

    def decide(self, log: Log, situation: Situation) -> Compaction | None:
        """Let the policy decide; a request begins here."""
        made = self._policy.decide(log, situation)
        self.made.append((made, situation.estimate) if made else None)
        return made

    def view(self, log: Log) -> tuple[Message, ...]:
        """Show what the policy shows; the first view after a decision is what is sent."""
        view = self._policy.view(log)
        if len(self.views) < len(self.made):
            self.views.append(view)
        return view


def _events(counted: Counted, rows: tuple[Row, ...], watched: _Watched) -> Iterator[Event]:
    for row in rows:
        at = row.number - 1
        usage = Usage(row.fresh, row.read, row.written, row.output)
        if row.kind == "summary":
            done = watched.made[at] is not None
            yield CompactionLog("", Outcome("done" if done else "failed", "replayed", usage=usage))
            continue
        if (made := watched.made[at]) is not None:
            yield Compacted(made[0], made[1], row.sent)
        request = Request(watched.views[at], counted.session.tools)
        message = counted.body[counted.points[at].end]
        yield Billed(row.number, request, row.sent, usage, message, "tool_calls" if message.tool_calls else "stop")
