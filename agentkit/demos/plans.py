"""What the context lab can play: conversations, the settings that a reader changes, and a file of one's own."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from agentkit.policies.registry import WITHOUT_BUDGET
from agentkit.scenarios import FOUR_QUESTIONS
from agentkit.simulator.questions import FILE

OWN = "your file"
LARGEST = 1_000_000
"""Bytes of a file of one's own: a larger one makes a run too slow to play with."""


@dataclass(frozen=True)
class Scenario:
    """A conversation, and the settings with which it shows something. `{file}` stands for a file of one's own."""

    questions: tuple[str, ...]
    about: str
    keep: int = 4
    threshold: float = 0.6
    budget: int = 4_000


SCENARIOS: dict[str, Scenario] = {
    "short chat": Scenario(
        (
            "Remember that we keep prices in whole cents.",
            "List the files.",
            "What did I ask you to remember?",
            "What was the very first question I asked you?",
        ),
        "Nothing is read, so the budget is never reached: both policies do the same.",
    ),
    "big file": Scenario(
        FOUR_QUESTIONS,
        "One file fills the budget; the last question asks for what a summary does not keep.",
    ),
    "loop of tests": Scenario(
        (
            "Run the tests and fix what fails.",
            "Run the tests again.",
            "Read stats.py and say how many functions it has.",
            "Run the tests again.",
            "Read tests/test_stats.py and say how many functions it has.",
            "Run the tests once more.",
            "Which files have you read?",
        ),
        "Many rounds, each with a tool result that soon is out of date.",
        keep=6,
    ),
    "budget too small": Scenario(
        (
            *FOUR_QUESTIONS[:2],
            "How many functions does stats.py have?",
            "What does compute9 return for 2?",
            "How many lines does stats.py have?",
            "What does compute11 return for 2?",
        ),
        "Little more than system prompt and tools fits: the policy compacts again and again, and files are read again.",
        keep=2,
        budget=1_800,
    ),
    OWN: Scenario(
        (
            "Read {file} and say how many lines it has.",
            "How many functions does {file} have?",
            "Which files have you read?",
            "What was the very first question I asked you?",
        ),
        "The agent reads a copy of a file of your own; nothing else of that folder, and nothing leaves this machine.",
    ),
}


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


def read_own(path: str) -> tuple[bytes, str]:
    """Return the bytes of a file and the name under which the agent sees it. Raises `ValueError` with one clear line.

    The simulated model knows files by endings such as `.py` and `.txt`; another name gets `.txt` behind it.
    """
    if not path.strip():
        raise ValueError("type the path of a text file into the field “Your file”")
    found = Path(path.strip()).expanduser()
    try:
        if not found.is_file():
            raise ValueError(
                f"there is no file {path.strip()!r}; type its path, from this notebook's folder or from the root"
            )
        if (size := found.stat().st_size) > LARGEST:
            raise ValueError(f"{found.name} has {size:,} bytes, at most {LARGEST:,} can be played; take a part of it")
        data = found.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read {path.strip()!r}: {error.strerror or error}") from None
    if b"\0" in data[:4096]:
        raise ValueError(f"{found.name} is no text file; choose another one")
    stem = re.sub(r"[^\w.-]+", "_", found.name, flags=re.ASCII).strip("._-")[:60] or "file"
    return data, stem if FILE.fullmatch(stem) else f"{stem}.txt"
