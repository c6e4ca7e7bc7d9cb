"""The log in a file: what is stored is there again, exactly; what goes wrong is one line and changes nothing."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from strategies import PICTURE, histories

from agentkit.ledger import Ledger, LedgerError, LedgerFile, entry_of, history, turns
from agentkit.ledger import rows as stored_rows
from agentkit.ledger.errors import translated
from agentkit.log import Compaction, Entry, Log, project
from agentkit.messages import Message, Opaque, ToolCall, Usage, assistant, system, tool_result, user

FULL = Message(
    "assistant",
    "a\0b 测试 \ud800",
    "odd",
    (ToolCall("c", "read", '{"a'), ToolCall("", "", "")),
    "x",
    "hm",
    (Opaque("vendor", {"signature": [1, None, "s"]}),),
    (PICTURE,),
    True,
)
"""A message with something in every field."""

MADE = Compaction("S \0 \udfff", "m1", 3, 10, 4, "overflow", "a policy", "user", Usage(1, 2, 3, 4, 5))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.db"


def five(path: Path, **options: object) -> Ledger:
    return Ledger(path, messages=[system("rules"), user("1"), assistant("2"), user("3"), assistant("4")], **options)  # type: ignore[arg-type]


def texts(log: Log) -> list[str]:
    return [m.content for m in log.messages()]


# ----------------------------------------------------------------------------------------------------------- there again


def test_everything_is_there_again_to_the_last_character(path: Path) -> None:
    with five(path) as ledger:
        made = (ledger.append(FULL), ledger.compact(MADE), ledger.note("n \ud800"), ledger.rewind(2))
        assert tuple(ledger)[5:] == made and made[0].message == FULL and made[1].compaction == MADE
    with Ledger(path) as again:
        assert tuple(again) == tuple(ledger) and again.branch() == ledger.branch()
        assert again.append(user("next")).seq == len(ledger)


@settings(max_examples=100)
@given(histories())
def test_any_message_survives_the_text(history: list[Message]) -> None:
    for seq, message in enumerate(history):
        entry = Entry(seq, "message", seq - 1 if seq else None, message)
        assert stored_rows.entry(seq, "message", entry.parent, stored_rows.body(entry)) == entry


def test_the_file_alone_is_enough_after_closing(path: Path, tmp_path: Path) -> None:
    five(path).close()
    assert [p.name for p in tmp_path.iterdir()] == ["session.db"]
    assert path.read_bytes()[:15] == b"SQLite format 3"


def test_provider_data_that_is_no_json_is_refused_and_nothing_changes(path: Path) -> None:
    with five(path) as ledger:
        with pytest.raises(ValueError, match="entry 5 cannot be stored"):
            ledger.append(replace(user("x"), opaque=(Opaque("vendor", b"bytes"),)))
        assert len(ledger) == 5 and ledger.append(user("y")).seq == 5


def test_sessions_of_one_file_do_not_see_each_other(path: Path) -> None:
    with five(path) as first:
        second = Ledger(first.file, "second", [user("hello")])
        assert (len(first), len(second), first.sessions) == (5, 1, ("main", "second"))
        assert second.append(replace(user("same id"), id="m1")).seq == 1


def test_a_fork_shares_rows_and_copies_none(path: Path) -> None:
    with five(path) as ledger:
        ledger.compact(Compaction("S", "m3"))
        fork = ledger.fork(3)
        deep = fork.fork(fork.append(user("other")).seq, "deep")
        early = deep.fork(1, "early")
        for log, text in ((deep, "deeper"), (early, "early"), (ledger, "5")):
            log.append(user(text))
        assert ledger.sessions == ("main", "main-2", "deep", "early")
        assert ledger.file.rows("SELECT count(*) FROM entries") == [(5 + 1 + 1 + 3,)]
        with pytest.raises(ValueError, match="a session 'deep' already"):
            ledger.fork(1, "deep")
    with Ledger(path, "deep") as again:
        assert texts(again) == ["rules", "1", "2", "3", "other", "deeper"] and tuple(again) == tuple(deep)
        assert texts(Ledger(again.file, "early")) == ["rules", "1", "early"]
        assert texts(Ledger(again.file, "main-2")) == ["rules", "1", "2", "3", "other"]


def test_bills_and_times_go_by_entry_and_through_forks(path: Path) -> None:
    ticks = iter(range(100, 200))
    with five(path, clock=lambda: float(next(ticks))) as ledger:
        ledger.bill(Usage(1, 2, 3, 4, 5))
        fork = ledger.fork(4)
        fork.append(assistant("6"))
        fork.bill(Usage(7))
        assert ledger.bills() == {4: Usage(1, 2, 3, 4, 5)} and fork.bills() == {**ledger.bills(), 5: Usage(7)}
        assert [ledger.times()[seq] for seq in range(5)] == [101.0, 102.0, 103.0, 104.0, 105.0]
        with pytest.raises(LedgerError, match="billed once"):
            ledger.bill(Usage(1))
        assert Ledger(ledger.file, "empty").bill(Usage(1)) is None


def test_a_reader_follows_the_writer(path: Path) -> None:
    with five(path) as writer, Ledger(path, read_only=True) as reader:
        writer.append(user("5"))
        writer.rewind(1)
        assert len(reader) == 5 and reader.refresh() == 2 and reader.refresh() == 0
        assert tuple(reader) == tuple(writer) and texts(reader) == ["rules", "1"]


# ------------------------------------------------------------------------------------------------------------ append-only

FORBIDDEN = [
    "UPDATE entries SET body = 'x'",
    "UPDATE OR REPLACE entries SET seq = 0 WHERE seq = 1",
    "DELETE FROM entries WHERE seq = 4",
    "REPLACE INTO entries VALUES (1, 4, 'note', 3, NULL, 'x', 0)",
    "INSERT OR REPLACE INTO entries VALUES (1, 5, 'message', 4, 'm1', 'x', 0)",
    "INSERT OR IGNORE INTO entries VALUES (1, 7, 'note', 4, NULL, 'x', 0)",
    "INSERT INTO entries VALUES (1, 0, 'note', NULL, NULL, 'x', 0) ON CONFLICT DO UPDATE SET body = 'x'",
    "INSERT INTO entries VALUES (1, 5, 'note', 5, NULL, 'x', 0)",
    "INSERT INTO entries VALUES (1, 5, 'note', 9, NULL, 'x', 0)",
    "INSERT INTO entries VALUES (1, 5, 'poem', 4, NULL, 'x', 0)",
    "INSERT INTO entries VALUES (1, 5, 'message', 4, NULL, 'x', 0)",
    "INSERT INTO entries VALUES (9, 0, 'note', NULL, NULL, 'x', 0)",
    "UPDATE sessions SET name = 'x'",
    "DELETE FROM sessions",
    "REPLACE INTO sessions VALUES (1, 'x', NULL, NULL, 0)",
    "REPLACE INTO sessions VALUES (2, 'main', NULL, NULL, 0)",
    "UPDATE bills SET fresh = 0",
    "DELETE FROM bills",
    "REPLACE INTO bills VALUES (1, 4, 0, 0, 0, 0, 0)",
]


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_the_file_itself_refuses_to_change(path: Path, sql: str) -> None:
    with five(path) as ledger:
        ledger.bill(Usage(1))
        before = [ledger.file.rows(f"SELECT * FROM {table}") for table in ("entries", "sessions", "bills")]
        with pytest.raises(sqlite3.IntegrityError):
            ledger.file.connection.execute(sql)
        assert [ledger.file.rows(f"SELECT * FROM {table}") for table in ("entries", "sessions", "bills")] == before


def test_what_is_allowed_is_allowed(path: Path) -> None:
    with five(path) as ledger:
        ledger.file.connection.execute("INSERT INTO entries VALUES (1, 5, 'note', 4, NULL, '{\"text\": \"by hand\"}', 0)")
        ledger.refresh()
        assert ledger.branch()[-1].text == "by hand"


def test_the_views_are_for_the_shell(path: Path) -> None:
    with five(path) as ledger:
        ledger.compact(replace(MADE, summary="S"))
        assert ledger.file.rows("SELECT seq, role, content FROM messages WHERE seq = 3") == [(3, "user", "3")]
        row = ledger.file.rows("SELECT first_kept, tokens_before, tokens_after, reason, policy, summary FROM compactions")
        assert row == [("m1", 10, 4, "overflow", "a policy", "S")]


# ------------------------------------------------------------------------------------------------------ one line each time


def test_what_cannot_be_opened_is_said_in_one_line(tmp_path: Path, path: Path) -> None:
    five(path).close()
    text = tmp_path / "notes.txt"
    text.write_text("no database\n" * 500, encoding="utf-8")
    foreign = tmp_path / "foreign.db"
    sqlite3.connect(foreign).executescript("CREATE TABLE t (x)").close()
    newer = tmp_path / "newer.db"
    newer.write_bytes(path.read_bytes())
    sqlite3.connect(newer).execute("PRAGMA user_version = 2").connection.close()
    empty = tmp_path / "empty.db"
    empty.touch()
    wrong: list[tuple[Callable[[], object], str, str]] = [
        (lambda: Ledger(tmp_path), "other", "a folder"),
        (lambda: Ledger(tmp_path / "no" / "x.db"), "missing", "there is no folder"),
        (lambda: Ledger(tmp_path / "none.db", read_only=True), "missing", "no such file"),
        (lambda: Ledger(text), "no ledger", "not a ledger"),
        (lambda: Ledger(foreign), "no ledger", "an SQLite file, but not a ledger"),
        (lambda: Ledger(newer), "newer", "written by a newer agentkit (form 2, this one knows 1)"),
        (lambda: Ledger(empty, read_only=True), "empty", "empty"),
        (lambda: Ledger(path, "other", read_only=True), "missing", "there is no session 'other'; there are: 'main'"),
    ]
    for attempt, kind, words in wrong:
        with pytest.raises(LedgerError) as caught:
            attempt()
        assert caught.value.kind == kind and words in str(caught.value) and "\n" not in str(caught.value)
    with Ledger(path) as ledger:
        assert ledger.sessions == ("main",) and len(ledger) == 5


def test_a_file_whose_making_was_killed_is_made_again(tmp_path: Path) -> None:
    half = tmp_path / "half.db"
    sqlite3.connect(half).execute("PRAGMA journal_mode=WAL").connection.close()
    with five(half) as ledger:
        assert len(ledger) == 5


def test_a_damaged_file_is_one_line(path: Path) -> None:
    with five(path) as ledger:
        for i in range(60):
            ledger.append(user("word " * 200 + str(i)))
    data = bytearray(path.read_bytes())
    data[4096 * 3 :] = b"\xff" * (len(data) - 4096 * 3)
    path.write_bytes(data)
    with pytest.raises(LedgerError, match="the file is damaged"):
        Ledger(path)


def test_every_code_of_sqlite_has_its_words() -> None:
    class Locked(sqlite3.OperationalError):
        sqlite_errorcode = sqlite3.SQLITE_BUSY | (2 << 8)

    assert translated(Locked("database is locked"), "f").kind == "locked"
    assert str(translated(sqlite3.OperationalError("odd"), "f")) == "f: odd"


# -------------------------------------------------------------------------------------------------- when writing goes wrong


def fill(ledger: Ledger) -> None:
    """Let the file grow no further: to SQLite that is a full disk."""
    pages = ledger.file.connection.execute("PRAGMA page_count").fetchone()[0]
    ledger.file.connection.execute(f"PRAGMA max_page_count = {pages}")


def make_room(ledger: Ledger) -> None:
    ledger.file.connection.execute("PRAGMA max_page_count = 100000")


BIG = user("word " * 5_000)


def test_a_full_disk_is_one_line_and_nothing_has_changed(path: Path) -> None:
    with five(path) as ledger:
        fill(ledger)
        before = tuple(ledger)
        with pytest.raises(LedgerError, match="the disk is full") as caught:
            ledger.append(replace(BIG, id="mine"))
        assert caught.value.kind == "full" and tuple(ledger) == before
        make_room(ledger)
        assert ledger.append(replace(BIG, id="mine")).seq == 5
    with Ledger(path) as again:
        assert tuple(again) == tuple(ledger)


def test_a_rewind_that_cannot_be_stored_goes_nowhere(path: Path) -> None:
    with five(path) as ledger:
        fill(ledger)
        for _ in range(200):  # until not even a small entry fits
            try:
                ledger.note("n" * 100)
            except LedgerError:
                break
        before, here = tuple(ledger), ledger.branch()
        with pytest.raises(LedgerError, match="the disk is full"):
            ledger.rewind(1)
        assert (tuple(ledger), ledger.branch()) == (before, here)


def test_the_run_goes_on_in_memory_if_asked_and_catches_up(path: Path) -> None:
    said: list[LedgerError] = []
    with five(path, on_trouble=said.append) as ledger:
        fill(ledger)
        ledger.append(BIG)
        ledger.bill(Usage(1))
        ledger.append(user("6"))
        ledger.rewind(2)
        assert [e.kind for e in said] == ["full"], "told once"
        assert [e.seq for e in ledger.unsaved] == [5, 6, 7] and texts(ledger) == ["rules", "1", "2"]
        with Ledger(path, read_only=True) as reader:
            assert len(reader) == 5
        with pytest.raises(LedgerError, match="in memory only"):
            ledger.fork(6)
        make_room(ledger)
        ledger.append(user("8"))
        assert ledger.unsaved == ()
    with Ledger(path) as again:
        assert tuple(again) == tuple(ledger) and len(again) == 9


def test_a_file_opened_for_reading_refuses_to_be_written(path: Path) -> None:
    five(path).close()
    with Ledger(path, read_only=True) as ledger:
        with pytest.raises(LedgerError, match="may only be read") as caught:
            ledger.append(user("x"))
        assert caught.value.kind == "read-only" and len(ledger) == 5
    said: list[LedgerError] = []
    with Ledger(path, read_only=True, on_trouble=said.append) as ledger:
        ledger.append(user("x"))
        assert len(ledger) == 6 and len(ledger.unsaved) == 1 and said[0].kind == "read-only"


def _cannot_write(place: Path) -> bool:
    return not os.access(place, os.W_OK)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_a_file_without_permission_to_write_is_one_line_and_can_be_read(path: Path, tmp_path: Path) -> None:
    five(path).close()
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        if not _cannot_write(path):
            pytest.skip("this user may write everything (root)")
        with pytest.raises(LedgerError) as caught:
            Ledger(path)
        assert caught.value.kind in ("read-only", "disk") and "\n" not in str(caught.value)
        with Ledger(path, read_only=True) as ledger:
            assert len(ledger) == 5
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize("when", ["BEGIN", "INSERT", "COMMIT"])
def test_ctrl_c_in_the_middle_of_a_write_leaves_memory_and_file_the_same(
    path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupting:
        """A connection after one of whose statements Ctrl-C arrives."""

        def __init__(self, real: sqlite3.Connection) -> None:
            self.real, self.armed = real, True

        def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
            cursor = self.real.execute(sql, *values)
            if self.armed and sql.startswith(when):
                self.armed = False
                raise KeyboardInterrupt
            return cursor

        def __getattr__(self, name: str) -> object:
            return getattr(self.real, name)

    with five(path) as ledger:
        monkeypatch.setattr(ledger.file, "connection", Interrupting(ledger.file.connection))
        with pytest.raises(KeyboardInterrupt):
            ledger.append(user("5"))
        with Ledger(path, read_only=True) as reader:
            assert tuple(reader) == tuple(ledger) and len(reader) == (6 if when == "COMMIT" else 5)
        assert ledger.append(user("6")).seq == len(reader)
    with Ledger(path) as again:
        assert tuple(again) == tuple(ledger)


# --------------------------------------------------------------------------------------------------------- for the reader


def test_the_whole_history_beside_what_the_model_sees(path: Path) -> None:
    with five(path) as ledger:
        ledger.compact(Compaction("OLD", "m1"))
        ledger.compact(Compaction("S", "m3"))
        ledger.compact(Compaction("F", "m3", status="failed"))
        ledger.note("n")
        places = [line.place for line in history(ledger)]
        assert places[:5] == ["word for word", "in the summary", "in the summary", "word for word", "word for word"]
        assert places[5:] == ["superseded", "in force", "failed", "no message"]
        seen = {m.id for m in project(ledger).head + project(ledger).tail}
        assert {line.entry.message.id for line in history(ledger) if line.place == "word for word"} == seen  # type: ignore[union-attr]
        ledger.rewind(5)
        assert [line.place for line in history(ledger)][5:] == [
            "in force",
            "other branch",
            "other branch",
            "no message",
            "no message",
        ]
        ledger.rewind(1)
        assert [line.place for line in history(ledger)][:5] == ["word for word"] * 2 + ["other branch"] * 3


def test_a_result_that_the_model_sees_in_part_is_shortened(path: Path) -> None:
    with Ledger(path) as ledger:
        for message in (user("q"), assistant("", ToolCall("c", "read", "{}")), tool_result("c", "x" * 500)):
            ledger.append(message)
        ledger.compact(Compaction("", "m0", clip=100))
        assert [line.place for line in history(ledger)] == ["word for word", "word for word", "shortened", "in force"]
    with Ledger(path) as again:
        assert history(again) == history(ledger) and len(again.messages()[2].content) == 500


def test_a_line_says_what_it_is(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.append(assistant("look:\n here", ToolCall("c", "read", "{}")))
        ledger.append(tool_result("c", "x"))
        ledger.append(user("q"))
        ledger.compact(Compaction("a\nb", "m2"))
        ledger.rewind(0)
        words = [line.words for line in history(ledger)]
    assert words == [
        "assistant: look: here <read {}>",
        "tool: x",
        "user: q",
        "compaction: keeps from m2; a b",
        "rewind: back to 0",
    ]


def test_an_id_is_a_number_or_a_message(path: Path) -> None:
    with five(path) as ledger:
        assert (entry_of(ledger, "3"), entry_of(ledger, "m3")) == (3, 3)
        for wrong in ("9", "-1", "m9", "", "³"):
            with pytest.raises(ValueError, match="no entry and no message"):
                entry_of(ledger, wrong)
        assert [(t.message.id, t.seq, t.before) for t in turns(ledger)] == [("m1", 1, 0), ("m3", 3, 2)]


def test_one_program_claims_a_file(path: Path, tmp_path: Path) -> None:
    with five(path) as ledger:
        ledger.file.claim()
        ledger.file.claim()
        other = LedgerFile(path)
        with pytest.raises(LedgerError, match="in use by another process") as caught:
            other.claim()
        assert caught.value.kind == "locked"
        with Ledger(path, read_only=True) as reader:
            assert len(reader) == 5
        ledger.append(user("5"))
        ledger.close()
        other.claim()
        other.close()
    assert [p.name for p in tmp_path.iterdir()] == ["session.db"]
    memory = LedgerFile(":memory:")
    memory.claim()
    assert repr(memory) == "LedgerFile(':memory:')"
