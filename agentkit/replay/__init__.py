"""Replay: feed a recorded session through a policy, a cache model and a price list, request by request.

Open loop: only what would have been sent, cached and paid changes. What the agent would have done otherwise is not known.
"""

from agentkit.replay.any_policy import replay_policy
from agentkit.replay.caches import CACHES, CacheChoice, cache_for
from agentkit.replay.compare import Comparison, compare, report
from agentkit.replay.counted import Counted, NothingToReplay, count
from agentkit.replay.run import OPEN_LOOP, Replay, Row, replay
from agentkit.replay.schedules import AsRecorded, KeepAll, Middle, Schedule

__all__ = [
    "CACHES",
    "OPEN_LOOP",
    "AsRecorded",
    "CacheChoice",
    "Comparison",
    "Counted",
    "KeepAll",
    "Middle",
    "NothingToReplay",
    "Replay",
    "Row",
    "Schedule",
    "cache_for",
    "compare",
    "count",
    "replay",
    "replay_policy",
    "report",
]
