"""The command line as a stranger uses it: what it prints, and one line for everything that can go wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentkit.cli import main
from agentkit.scenarios import FOUR_QUESTIONS
from agentkit.simulator import PROFILES, Simulator
from agentkit.simulator.server import Server

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "questions.txt"
    path.write_text("\n".join(FOUR_QUESTIONS) + "\n\n", encoding="utf-8")
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["run", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_m4_run_shows_estimate_compaction_and_bills(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "--budget", "4000", "--keep", "4", "--script", script)
    assert (status, err) == (0, "")
    assert "[context] estimate" in out and "of 2,400 (budget 4,000)" in out
    assert out.count("messages → 1 summary") == 1
    assert "[compaction] 6 messages → 1 summary, " in out and "tokens, −" in out
    assert "summary call: in=" in out
    bills = [line for line in out.splitlines() if line.startswith("[request ")]
    before, after = (_numbers(line) for line in bills[-2:])
    assert after["in"] < before["in"] / 2 and after["cache"] < before["cache"]
    assert "no longer in my context" in out


def _numbers(line: str) -> dict[str, int]:
    return {k: int(v.replace(",", "")) for k, v in (p.split("=") for p in line.split() if "=" in p)}


def test_json_is_one_event_a_line_with_the_same_figures(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--budget", "4000", "--keep", "4", "--script", script, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert [e["reason"] for e in lines if e["event"] == "TurnEnded"] == ["answered"] * 4
    assert sum(e["event"] == "Compacted" for e in lines) == 1
    prompts = [e["usage"]["fresh"] + e["usage"]["cache_read"] for e in lines if e["event"] == "Billed"]
    assert prompts[-1] < prompts[-2] / 2


def test_the_course_workspace_is_never_touched(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before = {p: p.read_bytes() for p in (ROOT / "chapters/workspace").rglob("*.py")}
    path = tmp_path / "fix.txt"
    path.write_text("Run the tests and fix the bug.\n", encoding="utf-8")
    status, out, _ = run(capsys, "--script", str(path))
    assert status == 0 and "edited stats.py" in out and "The tests pass" in out
    assert {p: p.read_bytes() for p in (ROOT / "chapters/workspace").rglob("*.py")} == before


def test_a_folder_of_ones_own_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("a = 1\nb = 2\n", encoding="utf-8")
    (tmp_path / "q.txt").write_text("How many lines is mine.py?\n", encoding="utf-8")
    _, out, _ = run(capsys, "--workspace", str(tmp_path), "--script", str(tmp_path / "q.txt"))
    assert "`mine.py` has 2 lines" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--budget", "400"], "use a budget of at least"),
        (["--budget", "-5"], "at least 1 token"),
        (["--keep-list", ""], "an item is empty"),
        (["--keep", "0"], "keep must be at least 1"),
        (["--threshold", "2"], "above 0 and at most 1"),
        (["--provider", "ftp://x"], "neither 'simulator' nor an address"),
        (["--provider", "http://127.0.0.1:9/v1"], "--model"),
        (["--workspace", "no-such-folder"], "not a folder"),
        (["--script", "no-such-file"], "No such file"),
        (["--model", "nope"], "has no model 'nope'"),
        (["--provider", "http://127.0.0.1:9/v1", "--model", "m"], "start the server"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str], says: str, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = run(capsys, *(arguments if "--script" in arguments else [*arguments, "--script", script]))
    assert status == 1
    assert says in err
    assert err.startswith("agentkit: ") and err.count("\n") == 1


def test_keep_beyond_the_history_is_said_and_nothing_is_lost(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--budget", "4000", "--keep", "99", "--script", script)
    assert status == 0
    assert "nothing to summarise: keeping 99 messages" in out
    assert FOUR_QUESTIONS[0] in out.rsplit("[context]", 1)[1]


def test_a_script_that_is_not_text_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bytes.bin"
    path.write_bytes(b"\xff\xfe\x00")
    status, _, err = run(capsys, "--script", str(path))
    assert status == 1 and "not a UTF-8 text file" in err


def test_any_server_works_by_address_with_its_key_from_the_environment(
    script: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTKIT_API_KEY", "TEST-KEY-0001")
    with Server(Simulator("openai", key="TEST-KEY-0001")) as server:
        model = PROFILES["openai"].model
        where = ["--provider", server.url, "--model", model, "--budget", "4000", "--keep", "4", "--script", script]
        status, out, err = run(capsys, *where)
        assert status == 0 and out.count("→ 1 summary") == 1 and "no longer in my context" in out
        monkeypatch.setenv("AGENTKIT_API_KEY", "TEST-KEY-0002")
        status, out2, err = run(capsys, *where)
    assert status == 1 and "AGENTKIT_API_KEY" in err and err.count("\n") == 1
    assert "TEST-KEY" not in out + out2 + err


def test_h10_it_runs_inside_a_running_event_loop_too(script: str) -> None:
    import asyncio

    async def inside() -> int:
        return main(["run", "--script", script, "--json"])

    assert asyncio.run(inside()) == 0


def test_as_a_module_and_with_another_code_page(script: str) -> None:
    command = [sys.executable, "-m", "agentkit", "run", "--budget", "4000", "--keep", "4", "--script", script]
    done = subprocess.run(
        command,
        capture_output=True,
        timeout=60,
        env={**_environment(), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"},
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    assert "6 messages → 1 summary" in done.stdout.decode("utf-8")


def test_questions_come_from_standard_input_as_well() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agentkit", "run", "--script", "-"],
        input="How many lines is stats.py?\n",
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        env=_environment(),
    )
    assert done.returncode == 0 and "`stats.py` has 40 lines" in done.stdout


def test_the_prompt_ends_at_the_end_of_input() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agentkit", "run"],
        input="hello\nexit\n",
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        env=_environment(),
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr


def _environment() -> dict[str, str]:
    import os

    return {k: v for k, v in os.environ.items() if not k.endswith("API_KEY")}
