"""`agentkit lab`: what it asks of JupyterLab, and one real start."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_support import LONG, environment, status, wait_until

from agentkit import cli, lab
from agentkit.scenarios import course_workspace

CHAPTERS = course_workspace().parent


def test_the_lab_listens_on_loopback_and_opens_chapter_00() -> None:
    command = lab.arguments(Path("book"), 8899, True, Path("settings"))
    assert command[:4] == [sys.executable, "-m", "jupyter", "lab"]
    assert {"--ip=127.0.0.1", "--port=8899", "--ServerApp.root_dir=book"} <= set(command)
    assert f"--LabApp.default_url=/lab/tree/{lab.FIRST}" in command
    assert re.fullmatch(r"00_\w+\.ipynb", lab.FIRST)


def test_the_lab_asks_nothing_of_the_network() -> None:
    command = lab.arguments(Path("book"), 8899, True, Path("settings"))
    quiet = {"--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"}
    assert quiet | {"--LabApp.extension_manager=readonly"} <= set(command)


def test_no_browser_is_asked_for_only_when_wanted() -> None:
    with_browser, without = (lab.arguments(Path("b"), 1, wanted, Path("s")) for wanted in (True, False))
    assert without == [*with_browser, "--no-browser"]


def test_only_root_gets_the_option_that_lets_root_start(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, asked in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user, raising=False)
        assert ("--allow-root" in lab.arguments(Path("b"), 1, True, Path("s"))) is asked
    monkeypatch.delattr(os, "geteuid")
    assert "--allow-root" not in lab.arguments(Path("b"), 1, True, Path("s"))


def test_the_token_is_on_no_command_line() -> None:
    assert not [word for word in lab.arguments(Path("b"), 1, True, Path("s")) if "token" in word.lower()]


def test_the_settings_ask_no_question_about_news(tmp_path: Path) -> None:
    assert lab.quiet_settings(tmp_path) == tmp_path
    settings = json.loads((tmp_path / "overrides.json").read_text(encoding="utf-8"))
    assert settings["@jupyterlab/apputils-extension:notification"] == {"fetchNews": "false", "checkForUpdates": False}


def test_a_free_port_is_taken_as_wished() -> None:
    wished = lab.free_port(0)
    assert lab.free_port(wished) == wished


def test_a_port_in_use_is_left_alone() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        other = lab.free_port(taken.getsockname()[1])
        assert other not in (0, taken.getsockname()[1])


def test_a_missing_jupyterlab_is_one_line_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab, "find_spec", lambda name: None)
    assert cli.main(["lab", "--no-browser"]) == 1
    assert capsys.readouterr().err == "agentkit: jupyterlab is not installed; pip install -r requirements.txt\n"


# -------------------------------------------------------------------------------------------------------- one real start


class Started:
    """`agentkit lab --no-browser` as a process of its own, with what it prints."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "agentkit", "lab", "--no-browser", "--port", str(lab.free_port(0))],
            cwd=CHAPTERS.parent,
            env=environment(folder) | {"TMPDIR": str(folder), "TEMP": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            # A group of its own: Ctrl-C reaches every process of it, as in a terminal, and not the tests.
            start_new_session=os.name == "posix",
        )
        self.printed: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.printed.append(line)
            self._lines.put(line)

    def address(self) -> str:
        """Return the address in the first line."""
        line = self._lines.get(timeout=LONG)
        match = re.fullmatch(r"JupyterLab: (http://127\.0\.0\.1:\d+/\S+)\n", line)
        assert match, line
        return match[1]

    def text(self) -> str:
        return "".join(self.printed)

    def control_c(self) -> None:
        if os.name == "posix":
            os.killpg(self.process.pid, signal.SIGINT)
        else:
            self.process.terminate()

    def end(self) -> None:
        """End whatever still runs, also when a test has failed half way."""
        with contextlib.suppress(ProcessLookupError):
            if os.name == "posix":
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        self.process.wait(10)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    running = Started(tmp_path)
    try:
        yield running
    finally:
        running.end()


def test_agentkit_lab_starts_serves_loopback_only_and_stops(started: Started, tmp_path: Path) -> None:
    address = started.address()
    wait_until(lambda: status(address) == 200, started.text)
    port = int(re.findall(r":(\d+)/", address)[0])
    assert lab.FIRST in address
    # All of 127.0.0.0/8 is this machine: a server on every interface would answer at the second address too.
    with socket.socket() as other:
        other.settimeout(5)
        assert other.connect_ex(("127.0.0.2", port)) != 0
    assert status(f"http://127.0.0.1:{port}/api/contents") == 403, "answers without the token"
    assert _news(port, address) == []

    started.control_c()
    assert started.process.wait(LONG) == 0, started.text()
    assert status(address) is None
    assert list(tmp_path.glob("agentkit-lab-*")) == []
    assert "Traceback" not in started.text()


def _news(port: int, address: str) -> list[object]:
    """Return what the server would tell about news; it has no address to ask."""
    token = address.rpartition("token=")[2]
    request = urllib.request.Request(f"http://127.0.0.1:{port}/lab/api/news", headers={"Authorization": f"token {token}"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as response:
        return json.load(response)["news"]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no polite kill")
def test_a_polite_kill_of_agentkit_lab_ends_jupyterlab_too(started: Started) -> None:
    address = started.address()
    wait_until(lambda: status(address) == 200, started.text)
    started.process.terminate()
    assert started.process.wait(LONG) == 0, started.text()
    assert status(address) is None, "JupyterLab still answers"
    assert "Shutting down" in started.text(), "JupyterLab was killed instead of asked"
