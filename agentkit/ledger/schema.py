"""The tables of a ledger, and the triggers that make them append-only.

A trigger guards against mistakes, also against SQLite's REPLACE, which takes a row away without firing a delete trigger. It
does not guard against someone who drops the trigger.
"""

from __future__ import annotations

APPLICATION_ID = 0x61676B74
"""Written into the file's header ("agkt"): how a ledger is told from any other SQLite file."""

VERSION = 1
"""The form of the tables, in the file's `user_version`. A file with a higher one is refused, not guessed at."""

_TABLES = (
    """CREATE TABLE sessions (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        forked_from INTEGER REFERENCES sessions (number),
        forked_at INTEGER CHECK ((forked_at IS NULL) = (forked_from IS NULL)),
        created REAL NOT NULL
    )""",
    # Without row ids: the pair (session, seq) is the only key, so there is no second one to replace a row by.
    """CREATE TABLE entries (
        session INTEGER NOT NULL REFERENCES sessions (number),
        seq INTEGER NOT NULL CHECK (seq >= 0),
        kind TEXT NOT NULL CHECK (kind IN ('message', 'compaction', 'rewind', 'note')),
        parent INTEGER CHECK (parent IS NULL OR parent BETWEEN 0 AND seq - 1),
        message_id TEXT CHECK ((message_id IS NULL) = (kind <> 'message')),
        body TEXT NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (session, seq)
    ) WITHOUT ROWID""",
    "CREATE INDEX entries_by_message ON entries (session, message_id)",
    """CREATE TABLE bills (
        session INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        fresh INTEGER NOT NULL,
        cache_read INTEGER NOT NULL,
        cache_write INTEGER NOT NULL,
        output INTEGER NOT NULL,
        reasoning INTEGER NOT NULL,
        PRIMARY KEY (session, seq),
        FOREIGN KEY (session, seq) REFERENCES entries (session, seq)
    ) WITHOUT ROWID""",
)

_VIEWS = (
    """CREATE VIEW messages AS
        SELECT session, seq, parent, message_id,
            json_extract(body, '$.message.role') AS role, json_extract(body, '$.message.content') AS content
        FROM entries WHERE kind = 'message'""",
    """CREATE VIEW compactions AS
        SELECT session, seq, parent, json_extract(body, '$.compaction.first_kept') AS first_kept,
            json_extract(body, '$.compaction.tokens_before') AS tokens_before,
            json_extract(body, '$.compaction.tokens_after') AS tokens_after,
            json_extract(body, '$.compaction.reason') AS reason, json_extract(body, '$.compaction.policy') AS policy,
            json_extract(body, '$.compaction.summary') AS summary
        FROM entries WHERE kind = 'compaction'""",
)
"""For a reader with the `sqlite3` shell. Derived, never stored: a total that is written down can be wrong."""


def _refuse(name: str, event: str, table: str, why: str, when: str = "") -> str:
    condition = f" WHEN {when}" if when else ""
    return f"CREATE TRIGGER {name} BEFORE {event} ON {table}{condition} BEGIN SELECT RAISE(ABORT, '{why}'); END"


_NEXT = """coalesce(
    (SELECT max(seq) + 1 FROM entries WHERE session = NEW.session),
    (SELECT forked_at + 1 FROM sessions WHERE number = NEW.session),
    0)"""
_USED = """NEW.message_id IS NOT NULL
    AND EXISTS (SELECT 1 FROM entries WHERE session = NEW.session AND message_id = NEW.message_id)"""
_TAKEN = """NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM sessions)
    OR EXISTS (SELECT 1 FROM sessions WHERE name = NEW.name)"""
_BILLED = "EXISTS (SELECT 1 FROM bills WHERE session = NEW.session AND seq = NEW.seq)"

_TRIGGERS = (
    *(
        _refuse(f"{t}_never_change", "UPDATE", t, "append-only: a row never changes")
        for t in ("sessions", "entries", "bills")
    ),
    *(_refuse(f"{t}_never_leave", "DELETE", t, "append-only: a row never leaves") for t in ("sessions", "entries", "bills")),
    _refuse(
        "entries_in_order", "INSERT", "entries", "append-only: seq is the next number, without a gap", f"NEW.seq <> {_NEXT}"
    ),
    _refuse("entries_once", "INSERT", "entries", "append-only: a message is stored once", _USED),
    _refuse("sessions_once", "INSERT", "sessions", "append-only: a session has a new number and a new name", _TAKEN),
    _refuse("bills_once", "INSERT", "bills", "append-only: a request is billed once", _BILLED),
)

STATEMENTS = (
    *_TABLES,
    *_VIEWS,
    *_TRIGGERS,
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)
"""Everything that makes a new ledger, in order. One transaction: a kill leaves a whole ledger or an empty file."""
