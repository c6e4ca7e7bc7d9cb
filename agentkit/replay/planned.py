"""A schedule that is given beforehand: at which requests to compact, and where to cut. What the optimum finds is one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentkit.policies.branch import last_safe
from agentkit.policies.cost_aware import SHARE
from agentkit.policies.trail import Trail
from agentkit.replay.counted import Counted
from agentkit.replay.schedules import Decide, Middle, Step, View
from agentkit.replay.summaries import (
    STAND_IN,
    SummaryCall,
    flattened,
    instruction,
    names_in,
    question_before,
    stand_in,
    summary_segment,
)


@dataclass(frozen=True)
class Planned:
    """Compact before each request (counted from 0) of `calls`, which says how its summary is asked for.

    `cuts[request]` is where the tail would start, as a position of the body. Where that would gain nothing there is no
    compaction and no call. Summaries are stand-ins of `summary` tokens; the question of a running turn stays behind them.
    """

    calls: Mapping[int, SummaryCall]
    cuts: Sequence[int]
    summary: int = STAND_IN
    name: str = "planned"

    def begin(self, counted: Counted) -> Decide:
        """Return a decider at the start of the plan."""
        done, question = 0, None

        def decide(view: View, request: int) -> Step | None:
            nonlocal done, question
            cut = self.cuts[request]
            if request not in self.calls or cut <= view.start:
                return None
            text, asked = stand_in(done + 1, self.summary), question_before(counted, cut, counted.points[request].end)
            summary = summary_segment(counted, text, asked)
            removed = counted.sums[cut] - counted.sums[view.start] + (len(view.summary.tokens) if view.summary else 0)
            if len(summary.tokens) >= removed:
                return None
            call, names = self.calls[request], names_in(counted, asked)
            extra = (instruction(counted),) if call == "shared" else flattened(counted, view.start, cut, view.text, question)
            done, question = done + 1, asked
            return Step(extra, call == "shared", self.summary, cut, summary, cut - view.start, text, names)

        return decide


def keep_cuts(counted: Counted, policy: Middle) -> tuple[int, ...]:
    """Return where `policy` would cut at each request if nothing had been compacted before; 0 where it would not.

    Its keep rules look at the end of the conversation only, so after a compaction they cut at the same places.
    """
    eager = replace(policy, threshold=1, call="shared", limit=None)
    found = []
    for request in range(len(counted.points)):
        step = eager.begin(counted)(View(counted), request)
        found.append(step.start if step else 0)
    return tuple(found)


def lately_cuts(counted: Counted, share: float = SHARE, most: int | None = None) -> tuple[int, ...]:
    """Return where the cost-aware policy would cut at each request: as far back as `share` of the latest references went.

    `most` is the most tokens that the tail may have (None: no limit).
    """
    sizes = {id(m): len(s.tokens) for m, s in zip(counted.body, counted.segments, strict=True)}
    trail, found = Trail(lambda message: sizes[id(message)]), []
    for point in counted.points:
        body = counted.body[: point.end]
        reach = trail.follow(body).reach(share)
        room = counted.sums[point.end] - min(reach, reach if most is None else most)
        found.append(last_safe(body, bisect_left(counted.sums, room, 0, point.end + 1)))
    return tuple(found)
