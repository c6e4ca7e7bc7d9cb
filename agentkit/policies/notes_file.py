"""A notes file: the model writes down what matters, the context is cleared, and the notes are read back when needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentkit.budget import Budget
from agentkit.compaction.compactor import Compactor, assemble
from agentkit.log import Compaction, Log, Projection
from agentkit.messages import Message, user
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch, last_safe, own_note, pending, write_note
from agentkit.policies.compacting import KeepingTail, projected
from agentkit.policies.recall import add_note_tool, read_notes_tool
from agentkit.policies.viewing import Answer
from agentkit.tools.base import Tool

FILE = "NOTES.md"
CLEARED = (
    "[context cleared] What came before this point was taken out of your context to save room. Your notes on it are in "
    f"{FILE} ({{lines}}). Read them when you need something from before; files can be read again."
)


class NotesFile(KeepingTail):
    """At the budget's threshold the model appends what matters to NOTES.md, and the context is cleared.

    Source: an exercise in part 4 of a Java agent course, 2026; the memory files of several products work alike. What stays
    is the system prompt, a line that says where the notes are, the newest question, and what waits for an answer. The model
    can also note something at any time. Nothing of the notes is in view until the model reads them.

    The notes live in the log. With a `folder` a copy is written there as NOTES.md, for an agent that reads files.

    Simplified: each clearing appends a section, and nobody tidies up.
    """

    name = "notes file"
    year, source = "2026", "Java agent course, part 4, exercise 4"
    note = "at the threshold the model writes NOTES.md and the context is cleared"

    def __init__(self, compactor: Compactor, folder: Path | None = None) -> None:
        super().__init__(compactor)
        self.folder = folder

    def threshold(self, budget: Budget) -> int:
        """Return the budget's threshold."""
        return budget.threshold

    def cut(self, tail: Sequence[Message], situation: Situation) -> int:
        """Keep only what waits for an answer."""
        return last_safe(tail, pending(tail))

    def summary_of(self, view: Projection, cut: int, situation: Situation) -> Answer:
        """Ask for a new section of the notes; the earlier ones stay as they are."""
        return self.summarise(view.tail[:cut])

    def decide(self, log: Log, situation: Situation) -> Compaction | None:
        """Write notes and clear when it is due; keep the copy of the file up to date."""
        record = super().decide(log, situation)
        if self.folder and record:
            self._copy("\n\n".join([self.notes(log), record.summary]).strip(), situation)
        return record

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return head, the line about the notes, tail."""
        view = projected(branch)
        if view.compaction is None or view.compaction.policy != self.name:
            return assemble(view)
        sections = [e.compaction.summary for e in branch.entries if e.compaction and e.compaction.policy == self.name]
        lines = sum(len(text.splitlines()) for text in sections)
        return (*view.head, user(CLEARED.format(lines=f"{lines} lines")), *view.tail)

    def notes(self, log: Log) -> str:
        """Return the text of NOTES.md as the log has it."""
        sections = []
        for entry in self.branch(log).entries:
            if entry.compaction and entry.compaction.status == "done" and entry.compaction.policy == self.name:
                sections.append(entry.compaction.summary)
            elif entry.kind == "note":
                sections += [data["text"]] if (data := own_note(entry.text, self.name)) else []
        return "\n\n".join(sections)

    def tools(self, log: Log) -> tuple[Tool, ...]:
        """Return the tools of the model: read the notes, append to them."""
        return read_notes_tool(lambda: self.notes(log)), add_note_tool(lambda text: self._add(log, text))

    def _add(self, log: Log, text: str) -> None:
        write_note(log, self.name, text=text)
        self._copy(self.notes(log), None)

    def _copy(self, text: str, situation: Situation | None) -> None:
        if self.folder is None:
            return
        try:
            (self.folder / FILE).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            if situation:
                situation.report(f"cannot write {FILE}: {error.strerror or error}; the notes are in the log")
