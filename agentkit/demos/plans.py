"""What the context lab can play: conversations, the settings that a reader changes, and a file of one's own."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from agentkit.policies.registry import WITHOUT_BUDGET
from agentkit.scenarios import FOUR_QUESTIONS
from agentkit.scenarios.library import BIG_FILE, BUDGET_TOO_SMALL, LOOP_OF_TESTS, SHORT_CHAT, Scenario, Task
from agentkit.simulator.questions import FILE

OWN = "your file"
LARGEST = 1_000_000
"""Bytes of a file of one's own: a larger one makes a run too slow to play with."""

LARGEST_SESSION = 4_000_000
"""Bytes of a recorded session: 1.8 MB are some 470 requests, and more than 500 cannot be told apart in the strip."""


_OWN_QUESTIONS = (
    "Read {file} and say how many lines it has.",
    "How many functions does {file} have?",
    "Which files have you read?",
    FOUR_QUESTIONS[3],
)
_OWN = Scenario(
    OWN,
    "The agent reads a copy of a file of your own; nothing else of that folder, and nothing leaves this machine. A recorded "
    "session (.jsonl) is replayed instead.",
    tuple(Task(question) for question in _OWN_QUESTIONS),
    lambda folder: folder.mkdir(),
)

SCENARIOS: dict[str, Scenario] = {s.name: s for s in (SHORT_CHAT, BIG_FILE, LOOP_OF_TESTS, BUDGET_TOO_SMALL, _OWN)}
"""What the lab offers: conversations short enough to be played step by step before an audience."""


@dataclass(frozen=True)
class Plan:
    """What one side of the lab runs. `file` is read only in the scenario `your file`; `rules` is a simulator's profile."""

    scenario: str = "big file"
    policy: str = "summarise the middle"
    keep: int = 4
    threshold: float = 0.6
    budget: int = 4_000
    rules: str = "deepseek"
    file: str = ""

    def same_run(self) -> Plan:
        """Return the plan without what cannot change its run."""
        plan = self if self.scenario == OWN else replace(self, file="")
        if plan.policy in WITHOUT_BUDGET:
            return replace(plan, keep=0, threshold=1.0, budget=1_000_000_000)
        return plan


def is_session(path: str) -> bool:
    """Say whether a path is that of a recorded session: it ends in .jsonl."""
    return path.strip().lower().endswith(".jsonl")


def read_own(path: str) -> tuple[bytes, str]:
    """Return the bytes of a file and the name under which the agent sees it. Raises `ValueError` with one clear line.

    The simulated model knows files by endings such as `.py` and `.txt`; another name gets `.txt` behind it.
    """
    if not path.strip():
        raise ValueError("type the path of a text file, or of a recorded session (.jsonl), into the field “Your file”")
    most = LARGEST_SESSION if is_session(path) else LARGEST
    found = Path(path.strip()).expanduser()
    try:
        if not found.is_file():
            raise ValueError(
                f"there is no file {path.strip()!r}; type its path, from this notebook's folder or from the root"
            )
        if (size := found.stat().st_size) > most:
            raise ValueError(f"{found.name} has {size:,} bytes, at most {most:,} can be played; take a part of it")
        data = found.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read {path.strip()!r}: {error.strerror or error}") from None
    if b"\0" in data[:4096]:
        raise ValueError(f"{found.name} is no text file; choose another one")
    stem = re.sub(r"[^\w.-]+", "_", found.name, flags=re.ASCII).strip("._-")[:60] or "file"
    return data, stem if FILE.fullmatch(stem) else f"{stem}.txt"
