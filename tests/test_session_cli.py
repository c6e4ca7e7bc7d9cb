"""A conversation in a file, from the command line: stored, resumed, rewound, forked; one line for what goes wrong."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from agentkit.cli import main
from agentkit.ledger import Ledger, LedgerFile
from agentkit.messages import Usage
from agentkit.scenarios import FOUR_QUESTIONS

Run = Callable[..., tuple[int, str, str]]
SMALL = ("--budget", "4000", "--keep", "4")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talk.db"


@pytest.fixture(name="ask")
def asking(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that asks questions on the session file, with options."""

    def ask(*options: str, questions: tuple[str, ...] = (FOUR_QUESTIONS[3],)) -> tuple[int, str, str]:
        script = tmp_path / "questions.txt"
        script.write_text("\n".join(questions), encoding="utf-8")
        status = main(["run", *SMALL, "--session", str(path), "--script", str(script), *options])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return ask


@pytest.fixture
def look(path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Return a function that gives the lines of `agentkit session`."""

    def listed(*options: str) -> list[str]:
        assert main(["session", str(path), *options]) == 0
        return capsys.readouterr().out.splitlines()

    return listed


def test_a_conversation_is_resumed_where_it_ended(ask: Run, path: Path, look: Callable[..., list[str]]) -> None:
    assert ask(questions=FOUR_QUESTIONS[:3])[0] == 0
    status, out, err = ask("--resume")
    assert (status, err) == (0, "")
    assert "session 'main' in" in out and "11 entries" in out
    assert "[history] compaction: the model saw 12 messages and now sees 7; all are kept" in out
    assert "no longer in my context" in out
    with Ledger(path, read_only=True) as ledger:
        assert len(ledger.bills()) == 6 and all(isinstance(u, Usage) for u in ledger.bills().values())
    lines = look()
    assert lines[0].startswith(
        "session 'main' (in this file: main): 14 entries, 13 messages on this branch; the model sees 8"
    )
    assert lines[-1] == "to ask again: m1: --rewind 0, m7: --rewind 6, m9: --rewind 8, m11: --rewind 10"
    assert sum("in the summary" in line for line in lines) == 6 and len(look("--view")) == 2 + 8


def test_a_rewind_goes_back_to_before_a_compaction(ask: Run, look: Callable[..., list[str]]) -> None:
    ask(questions=FOUR_QUESTIONS)
    status, out, _ = ask("--rewind", "m6")
    assert status == 0 and f"“{FOUR_QUESTIONS[0]}”" in out, "the wording is there again"
    lines = look()
    assert any("rewind: back to 6" in line for line in lines) and sum("other branch" in line for line in lines) == 7


def test_a_fork_leaves_the_old_session_as_it_is(ask: Run, look: Callable[..., list[str]]) -> None:
    ask(questions=FOUR_QUESTIONS)
    before = look()[1:]
    assert ask("--rewind", "6", "--fork", "second")[0] == 0
    assert ask("--resume", "--name", "second")[0] == 0
    assert look()[1:] == before and look("--name", "second")[0].startswith(
        "session 'second' (in this file: main, second): 11"
    )


def test_export_and_import(
    ask: Run, look: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(questions=FOUR_QUESTIONS)
    out, other = tmp_path / "out.jsonl", tmp_path / "other.db"
    look("--export", str(out))
    assert main(["session", str(other), "--import", str(out)]) == 0
    assert capsys.readouterr().out == "stored 14 entries as session 'main'\n"
    assert main(["session", str(path_of(other))]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == look()[1:]
    assert main(["session", str(other), "--import", str(out)]) == 1
    assert main(["session", str(other), "--export", str(out)]) == 1
    assert capsys.readouterr().err.count("\n") == 2


def path_of(path: Path) -> Path:
    return path


def test_json_says_nothing_else_on_standard_output(ask: Run) -> None:
    status, out, err = ask("--json")
    assert status == 0 and err == "" and all(line.startswith("{") for line in out.splitlines())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "is there already; add --resume"),
        (("--resume", "--name", "no"), "there is no session 'no'; there are: 'main'"),
        (("--rewind", "99"), "--rewind: no entry and no message '99'"),
        (("--rewind", "m99"), "lists them"),
        (("--fork", "main"), "a session 'main' already"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_stored(ask: Run, path: Path, options: tuple[str, ...], says: str) -> None:
    ask()
    with Ledger(path, read_only=True) as ledger:
        before = ledger.sessions, tuple(ledger)
    status, out, err = ask(*options)
    assert (status, out) == (1, "") and says in err and err.startswith("agentkit: ") and err.count("\n") == 1
    with Ledger(path, read_only=True) as ledger:
        assert (ledger.sessions, tuple(ledger)) == before


def test_what_is_no_ledger_is_one_line(ask: Run, path: Path) -> None:
    assert "no such file; leave out --resume" in ask("--resume")[2]
    path.write_text("no ledger\n" * 1_000, encoding="utf-8")
    assert "not a ledger" in ask("--resume")[2] and "add --resume" in ask()[2]
    path.unlink()
    sqlite3.connect(path).execute("PRAGMA user_version = 7").connection.executescript("CREATE TABLE t (x)").close()
    assert "an SQLite file, but not a ledger" in ask("--resume")[2]
    path.unlink()
    ask()
    sqlite3.connect(path).execute("PRAGMA user_version = 7").connection.close()
    status, _, err = ask("--resume")
    assert status == 1 and "written by a newer agentkit" in err and err.count("\n") == 1


def test_two_programs_do_not_share_a_conversation(ask: Run, path: Path) -> None:
    ask()
    with Ledger(path) as ledger:
        ledger.file.claim()
        status, out, err = ask("--resume")
    assert (status, out) == (1, "") and "in use by another process" in err and err.count("\n") == 1
    assert ask("--resume")[0] == 0


def test_options_without_a_session_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["--resume"], ["--rewind", "1"], ["--fork", "x"], ["--or-memory"]):
        assert main(["run", *options]) == 1
        assert f"{options[0]} needs --session FILE.db" in capsys.readouterr().err


def test_a_new_file_without_a_question_is_removed(ask: Run, path: Path) -> None:
    assert ask(questions=())[0] == 0 and not path.exists()
    assert ask("--budget", "400")[0] == 1 and not path.exists()
    ask()
    assert ask("--resume", questions=())[0] == 0 and path.exists()


def no_more_pages(file: LedgerFile) -> None:
    pages = file.connection.execute("PRAGMA page_count").fetchone()[0]
    file.connection.execute(f"PRAGMA max_page_count = {pages}")


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file that is opened from here on finds the disk full."""
    prepare = LedgerFile._prepare

    def prepared(self: LedgerFile, synchronous: str) -> None:
        prepare(self, synchronous)  # type: ignore[arg-type]
        no_more_pages(self)

    monkeypatch.setattr(LedgerFile, "_prepare", prepared)


def test_a_full_disk_ends_the_run_with_one_line(ask: Run, full: None) -> None:
    status, _, err = ask(questions=FOUR_QUESTIONS)
    assert status == 1 and "the disk is full" in err and err.count("\n") == 1


def test_a_full_disk_is_told_once_and_the_run_goes_on_in_memory_if_asked(ask: Run, full: None) -> None:
    status, out, err = ask("--or-memory", questions=FOUR_QUESTIONS)
    assert status == 0 and "no longer in my context" in out
    assert err.count("the disk is full") == 1 and "going on in memory" in err
    assert "did not reach" in err.splitlines()[-1]


@pytest.fixture
def protected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file that is opened from here on may only be read, as SQLite finds out by itself on a read-only medium."""
    connect = LedgerFile._connect
    monkeypatch.setattr(LedgerFile, "_connect", lambda self, read_only: connect(self, self.path != ":memory:"))


def test_a_read_only_file_is_one_line_and_in_memory_if_asked(ask: Run, path: Path, request: pytest.FixtureRequest) -> None:
    ask(questions=FOUR_QUESTIONS[:1])
    request.getfixturevalue("protected")
    status, out, err = ask("--resume")
    assert (status, out) == (1, "") and "may only be read" in err and err.count("\n") == 1
    status, out, err = ask("--resume", "--or-memory")
    assert status == 0 and f"“{FOUR_QUESTIONS[0]}”" in out, "the history was read"
    assert "is lost at the end" in err and "2 entries did not reach" in err
