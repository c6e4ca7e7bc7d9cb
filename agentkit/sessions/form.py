"""The neutral form of a recorded session: its messages with times, and what each model call was billed for."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.messages import Message, ToolSpec, Usage

SUMMARY = "compaction_summary"
"""The `kind` of an item that is the summary of a compaction."""


class SessionError(ValueError):
    """A session cannot be read; the text says where (file and line), what is wrong and what to do."""


@dataclass(frozen=True)
class RecordedCut:
    """A compaction in the log: what it kept from (index of an item), and the tokens before it; None where unknown."""

    kept_from: int
    tokens_before: int | None = None
    usage: Usage | None = None


@dataclass(frozen=True)
class Item:
    """One message of a session. `at` is seconds since 1970 (None: not recorded); `kind` is the recorder's own remark.

    `model` is set where one message came from another model than the rest.
    """

    message: Message
    at: float | None = None
    kind: str = ""
    cut: RecordedCut | None = None
    model: str = ""


@dataclass(frozen=True)
class Session:
    """A whole session. `usage` has one entry for each model call (assistant message); None where there is no bill.

    `warnings` says, with a count, what could not be taken as it stood in the file.
    """

    id: str
    items: tuple[Item, ...]
    usage: tuple[Usage | None, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    title: str = ""
    format: str = ""
    model: str = ""
    notes: str = ""
    warnings: tuple[tuple[str, int], ...] = ()

    @property
    def calls(self) -> int:
        """Return the number of model calls."""
        return sum(item.message.role == "assistant" for item in self.items)

    @property
    def billed(self) -> int:
        """Return the number of model calls with a bill."""
        return sum(usage is not None for usage in self.usage)

    def report(self) -> str:
        """Return the warnings as one line; empty when there are none."""
        return "; ".join(f"{text} ({count} x)" if count > 1 else text for text, count in self.warnings)
