"""How the simulated model gets what it lacks: it names the missing call, and the call goes out instead of an answer.

The model starts from the beginning in every round. A fact that is in view is taken from there; one that is not raises
`Missing` with the call that would bring it. So there is no state: the request alone says how far the work has come.
"""

from __future__ import annotations

import re
from typing import Any

from agentkit.simulator.excerpts import Excerpt
from agentkit.simulator.knowledge import Knowledge, Step, is_edit
from agentkit.simulator.questions import Question, files_in

MOST_CALLS = 24
"""Calls in one turn; after that the model gives up, so that no task can keep it busy for ever."""

MOST_CHANGES = 200
"""Calls in one turn that is an order to change many places."""

Call = tuple[str, dict[str, Any]]


class Missing(Exception):
    """A fact is not in view; `calls` (name and arguments) would bring it."""

    def __init__(self, *calls: Call) -> None:
        super().__init__(", ".join(name for name, _ in calls))
        self.calls = calls


class Stuck(Exception):
    """The model cannot go on; the text is what it answers."""


class Work:
    """The work on one question: what is known, and which tools there are."""

    def __init__(self, known: Knowledge, tools: frozenset[str], most: int = MOST_CALLS) -> None:
        self.known, self.tools, self.most = known, tools, most

    def step(self, name: str, **args: Any) -> Step | None:
        """Return this call of the present turn; an edit makes every earlier one worthless."""
        for step in reversed(self.known.turn):
            if step.call.name == name and step.args == args:
                return step
            if is_edit(step):
                return None
        return None

    def result(self, name: str, **args: Any) -> str:
        """Return the result of this call in the present turn. Raises `Missing` or `Stuck`."""
        step = self.step(name, **args)
        if step is None:
            self.need((name, args))
        if step is None or step.result is None:
            raise Stuck(f"My call of `{name}` has no result.")
        return step.result

    def need(self, *calls: Call) -> None:
        """Ask for `calls`. Raises `Missing`, or `Stuck` when a call is not possible or was made before."""
        for name, args in calls:
            if name not in self.tools:
                raise Stuck(f"For that I would have to call `{name}`, and this request offers no such tool.")
            if self.step(name, **args):
                raise Stuck(f"I have called `{name}` for that in this turn, and what I need is still not in my context.")
        if len(self.known.turn) + len(calls) > self.most:
            raise Stuck(f"I stop here: {len(self.known.turn)} calls in this turn were not enough.")
        raise Missing(*calls)

    def seen(self, path: str) -> Excerpt:
        """Return what is in view of a file, and read it if nothing is. Raises `Missing` or `Stuck`."""
        found = self.known.excerpt(path)
        if found is not None:
            return found
        step = self.step("read_file", path=path)
        if step is None:
            self.need(("read_file", {"path": path}))
        elif step.failed:
            return self.seen(self._elsewhere(path, step))
        first = (step.result if step else None) or "no result"
        if re.match(r"\[.* is empty\]", first):
            return Excerpt(path, {}, total=0)
        raise Stuck(f"I have read `{path}` in this turn, but its text is not in my context: {clipped(first, 120)}")

    def _elsewhere(self, path: str, failed: Step) -> str:
        """Look for a file that is not where it was expected to be."""
        name = path.rpartition("/")[2]
        found = files_in(self.result("list_files", pattern=f"**/{name}"))
        others = [f for f in found if f.endswith(name) and f != path and not self.step("read_file", path=f)]
        seen = [f for f in found if f != path and self.known.excerpt(f)]
        if not (others or seen):
            reason = clipped((failed.result or "").removeprefix("error: "), 160).removesuffix(".")
            raise Stuck(f"I could not read `{path}`: {reason}.")
        return (seen or others)[0]

    def whole(self, path: str) -> Excerpt:
        """Return all of a file, reading on where a part is missing. Raises `Missing` or `Stuck`."""
        found = self.seen(path)
        if not found.complete:
            first, last = found.first_gap
            args = {"path": found.path, "first_line": first} | ({"last_line": last} if last else {})
            self.need(("read_file", args))
        return found

    def file(self, question: Question) -> str:
        """Return the file that a question means: the one it names, the one that fits, or the one last spoken of."""
        if question.files:
            return question.files[0]
        known = self.known.last_file(question.hint)
        if known:
            return known
        if not question.hint:
            raise Stuck("Which file? Nothing in my context names one.")
        found = files_in(self.result("list_files", pattern=f"**/*{question.hint}*"))
        if not found:
            raise Stuck(f"I found no file with “{question.hint}” in its name.")
        return found[0]


def clipped(text: str, limit: int) -> str:
    """Return the first line of `text`, at most `limit` characters."""
    line = text.strip().split("\n", 1)[0].strip()
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
