"""The ledger: the log on SQLite. Nothing in it is changed or deleted; a rewind, a fork and a crash all lose nothing."""

from agentkit.ledger.errors import LedgerError
from agentkit.ledger.files import LedgerFile
from agentkit.ledger.history import Line, Turn, entry_of, history, turns
from agentkit.ledger.store import MAIN, Ledger

__all__ = ["MAIN", "Ledger", "LedgerError", "LedgerFile", "Line", "Turn", "entry_of", "history", "turns"]
