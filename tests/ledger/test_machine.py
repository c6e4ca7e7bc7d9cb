"""One log in memory and one in a file, the same things done to both: they never differ, and nothing ever leaves either."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from strategies import TOOLS, conversations, histories

from agentkit.compaction.compactor import assemble
from agentkit.ledger import Ledger, LedgerFile, history, turns
from agentkit.log import Compaction, Entry, Log, project
from agentkit.messages import Message, Request
from agentkit.protocol import DIALECTS, violations
from agentkit.settle import settle


@dataclass
class Both:
    """A log and the ledger that must be the same, and what was seen in them before."""

    log: Log
    ledger: Ledger
    seen: tuple[Entry, ...] = ()
    checked: Ledger | None = None


class LogAndLedger(RuleBasedStateMachine):
    """Append, compact, rewind, fork and reopen, in any order."""

    sessions = Bundle("sessions")

    @initialize(target=sessions, history=conversations(max_turns=2))
    def begin(self, history: list[Message]) -> Both:
        self.folder = Path(tempfile.mkdtemp(prefix="agentkit-"))
        self.file = LedgerFile(self.folder / "s.db", synchronous="NORMAL")
        self.all = [Both(Log(history), Ledger(self.file, messages=history))]
        return self.all[0]

    def teardown(self) -> None:
        if hasattr(self, "file"):
            self.file.close()
            shutil.rmtree(self.folder)

    @rule(both=sessions, more=histories())
    def append(self, both: Both, more: list[Message]) -> None:
        for message in more[:3]:
            free = replace(message, id="")
            assert both.log.append(free) == both.ledger.append(free)

    @rule(both=sessions, number=st.integers(0, 99), failed=st.booleans(), where=st.sampled_from(["system", "user"]))
    def compact(self, both: Both, number: int, failed: bool, where: str) -> None:
        messages = [m for m in both.log.messages() if m.role != "system"]
        if messages:
            kept = messages[number % len(messages)].id
            made = Compaction(f"S{number} \ud800", kept, status="failed" if failed else "done", placement=where)  # type: ignore[arg-type]
            assert both.log.compact(made) == both.ledger.compact(made)

    @rule(both=sessions, number=st.integers(0, 99))
    def rewind(self, both: Both, number: int) -> None:
        if len(both.log):
            seq = number % len(both.log)
            assert both.log.rewind(seq) == both.ledger.rewind(seq)

    @rule(both=sessions, text=st.text(max_size=5))
    def note(self, both: Both, text: str) -> None:
        assert both.log.note(text) == both.ledger.note(text)

    @rule(target=sessions, both=sessions, number=st.integers(0, 99))
    def fork(self, both: Both, number: int) -> Both:
        if not len(both.log):
            return multiple()  # type: ignore[return-value]
        seq = number % len(both.log)
        self.all.append(Both(both.log.fork(seq), both.ledger.fork(seq)))
        return self.all[-1]

    @rule(both=sessions, number=st.integers(0, 99))
    def look_back(self, both: Both, number: int) -> None:
        if len(both.log):
            assert project(both.log.at(number % len(both.log))) == project(both.ledger.at(number % len(both.log)))

    @rule()
    def reopen(self) -> None:
        self.file.close()
        self.file = LedgerFile(self.folder / "s.db", synchronous="NORMAL")
        for both in self.all:
            both.ledger = Ledger(self.file, both.ledger.session)

    @invariant()
    def they_are_the_same_and_nothing_left(self) -> None:
        for both in getattr(self, "all", ()):
            if len(both.log) == len(both.seen) == len(both.ledger) and both.checked is both.ledger:
                continue  # nothing was done to this one
            log, ledger = both.log, both.ledger
            assert tuple(log) == tuple(ledger) and log.branch() == ledger.branch() and project(log) == project(ledger)
            assert history(log) == history(ledger) and turns(log) == turns(ledger)
            assert tuple(ledger)[: len(both.seen)] == both.seen
            both.seen, both.checked = tuple(ledger), ledger
            _is_valid(settle(assemble(project(ledger))))


def _is_valid(view: tuple[Message, ...]) -> None:
    """The next request would end with a question or with results: then every API takes it."""
    if any(m.role != "system" for m in view) and view[-1].role != "assistant":
        assert [violations(Request(view, TOOLS), d) for d in DIALECTS] == [()] * 3


TestLogAndLedger = LogAndLedger.TestCase
TestLogAndLedger.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
