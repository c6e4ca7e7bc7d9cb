"""pi, 2026: keep the latest 20,000 tokens, summarise the rest, and carry the lists of files along."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agentkit.budget import Budget
from agentkit.compaction.compactor import Compactor
from agentkit.log import Projection
from agentkit.messages import Message
from agentkit.policies.base import Situation
from agentkit.policies.branch import first_safe
from agentkit.policies.compacting import KeepingTail, previous_summary
from agentkit.policies.viewing import Answer, added

RESERVE = 16_384
KEEP_RECENT = 20_000
CLIP = 2_000
SPLIT = "Turn Context (split turn):"

_FILES = re.compile(r"\n*<(read|modified)-files>\n(.*?)\n</\1-files>", re.DOTALL)
_CHANGES = re.compile(r"edit|write|patch|replace|create", re.IGNORECASE)
_READS = re.compile(r"read|view|open|cat", re.IGNORECASE)


class Pi(KeepingTail):
    """At window − 16,384 keep about the latest 20,000 tokens and summarise what stands before them.

    Source: pi-mono @83378aad (2026-03-15), packages/coding-agent, core/compaction. The cut goes to the first message from
    there on that is no tool result. Where it falls inside a turn two summaries are written, of the history and of the
    beginning of that turn (`splits`). Lists of read and modified files are carried from summary to summary. A reserve of
    more than half the window is halved down to that (there a small window compacts all the time).

    Simplified: a file is what a call names as `path`, `file_path`, `file` or `filename`, read or modified by the name of the
    tool; the prompt's headings are this package's list.
    """

    name = "pi"
    year, source = "2026-03", "pi-mono @83378aad"
    note = "at window − 16,384 a summary, the latest 20,000 tokens stay"

    def __init__(
        self, compactor: Compactor, reserve: int = RESERVE, keep_recent: int = KEEP_RECENT, *, splits: bool = True
    ) -> None:
        super().__init__(compactor)
        self.clip = min(self.clip, CLIP)
        self.reserve, self.keep_recent, self.splits = reserve, keep_recent, splits

    def threshold(self, budget: Budget) -> int:
        """Return the first size above window − reserve."""
        return budget.limit - min(self.reserve, budget.limit // 2) + 1

    def cut(self, tail: Sequence[Message], situation: Situation) -> int:
        """Walk back until enough is kept, then forward to a place where a tail may start."""
        room = min(self.keep_recent, self.threshold(situation.budget) // 2)
        left = room >> situation.harsher
        for i in range(len(tail) - 1, -1, -1):
            left -= self.sizes(tail[i])
            if left <= 0:
                return first_safe(tail, i)
        return 0

    def summary_of(self, view: Projection, cut: int, situation: Situation) -> Answer:
        """Ask for one summary, or for two when the cut splits a turn; add the lists of files."""
        gone, earlier = view.tail[:cut], previous_summary(view)
        read, changed = _listed(earlier, "read"), _listed(earlier, "modified")
        previous = _FILES.sub("", earlier).strip()
        start = max((i for i, m in enumerate(gone) if m.role == "user"), default=0)
        split = self.splits and view.tail[cut].role != "user" and bool(start or previous)
        parts = [gone[:start], gone[start:]] if split else [gone]
        answers = [self.summarise(parts[0], previous)] if parts[0] else [Answer(previous)]
        if split and not answers[0].fault:
            answers.append(self.summarise(parts[1]))
        usage = added([answer.usage for answer in answers])
        fault = next((answer for answer in answers if answer.fault), None)
        if fault:
            return replace(fault, usage=usage)
        text = f"\n\n---\n\n{SPLIT}\n\n".join(answer.text for answer in answers)
        changed = _union(changed, _paths(gone, _CHANGES))
        read = [path for path in _union(read, _paths(gone, _READS)) if path not in changed]
        return Answer(text + _list("read", read) + _list("modified", changed), usage)


def _listed(summary: str, kind: str) -> list[str]:
    return [path for name, paths in _FILES.findall(summary) if name == kind for path in paths.split("\n")]


def _list(kind: str, paths: Sequence[str]) -> str:
    return f"\n\n<{kind}-files>\n" + "\n".join(paths) + f"\n</{kind}-files>" if paths else ""


def _union(old: Iterable[str], new: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*old, *new]))


def _paths(messages: Sequence[Message], tools: re.Pattern[str]) -> list[str]:
    found = []
    for call in (call for message in messages for call in message.tool_calls):
        try:
            arguments = call.parsed() if tools.search(call.name) else {}
        except ValueError:
            continue
        names = (arguments.get(key) for key in ("path", "file_path", "file", "filename"))
        found += [name for name in names if isinstance(name, str) and name and "\n" not in name]
    return found
