"""Between the ledger and the session file: what is stored of a run goes out, a recorded session comes in."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agentkit.ledger import MAIN, Ledger, LedgerFile
from agentkit.log import Compaction, Log, project
from agentkit.messages import ToolSpec
from agentkit.sessions.form import Item, Session
from agentkit.sessions.recording import session_of


def from_ledger(ledger: Ledger, name: str = "", tools: Sequence[ToolSpec] = ()) -> Session:
    """Return the present branch of `ledger` as a session, with times and bills; `session_of` says what stays behind."""
    return session_of(ledger, name or ledger.session, times=ledger.times(), bills=ledger.bills(), tools=tools)


def into_ledger(session: Session, file: str | Path | LedgerFile, name: str = MAIN) -> Ledger:
    """Store `session` as a new session in a ledger and return that. Raises `ValueError` when it holds entries already.

    A compaction whose boundary is no message here (a system prompt, another summary) becomes a note.
    """
    now = [time.time()]
    ledger = Ledger(file, name, clock=lambda: now[0])
    if there := len(ledger):
        if not isinstance(file, LedgerFile):  # an open one is the caller's to close
            ledger.close()
        raise ValueError(f"{ledger.file.path}: session {name!r} has {there} entries already; give another name")
    bills = iter(session.usage)
    ids: list[str] = []
    for item in session.items:
        now[0] = item.at if item.at is not None else now[0]
        ids.append(_take(ledger, item, ids))
        if item.message.role == "assistant" and (usage := next(bills, None)) is not None:
            ledger.bill(usage)
    return ledger


def _take(ledger: Log, item: Item, ids: Sequence[str]) -> str:
    """Append `item` and return the id of its message; empty for a compaction."""
    if item.cut is None:
        message = ledger.append(replace(item.message, id="")).message
        return message.id if message else ""
    kept = ids[item.cut.kept_from]
    replaced = next((i for i, m in enumerate(project(ledger).tail) if m.id == kept), 0)
    made = Compaction(
        item.message.content, kept, replaced, item.cut.tokens_before or 0, reason="imported", usage=item.cut.usage
    )
    try:
        ledger.compact(made)
    except ValueError:
        ledger.note(f"a compaction that could not be taken over: {made.summary}")
    return ""
