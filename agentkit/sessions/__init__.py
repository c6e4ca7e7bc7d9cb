"""Recorded sessions: read and write them in one neutral form, whichever agent they come from."""

from agentkit.sessions.form import Item, RecordedCut, Session, SessionError
from agentkit.sessions.ledgers import from_ledger, into_ledger
from agentkit.sessions.reading import load, loads
from agentkit.sessions.recording import Recorder, session_of
from agentkit.sessions.writing import dumps, save

__all__ = [
    "Item",
    "RecordedCut",
    "Recorder",
    "Session",
    "SessionError",
    "dumps",
    "from_ledger",
    "into_ledger",
    "load",
    "loads",
    "save",
    "session_of",
]
