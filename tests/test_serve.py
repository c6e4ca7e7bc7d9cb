"""`agentkit serve` as a stranger uses it: what it prints, what it refuses, and that it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from agentkit import serve_cli
from agentkit.cli import main, parser
from agentkit.simulator import Fault
from agentkit.simulator.server import Server


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("rate_limit", Fault("rate_limit")),
        ("rate_limit:3", Fault("rate_limit", 3)),
        ("slow_first_byte:2:0.5", Fault("slow_first_byte", 2, 0.5)),
    ],
)
def test_a_fault_is_read(text: str, right: Fault) -> None:
    assert serve_cli.fault(text) == right
    assert parser().parse_args(["serve", "--fault", text]).fault == [right]


@pytest.mark.parametrize("text", ["boom", "rate_limit:x", "rate_limit:1:soon"])
def test_a_fault_that_is_none_is_one_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--fault", text])
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert text in error and "argument --fault" in error


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--window", "0"], "at least 1 token"), (["--port", "99999999"], "0 to 65535")],
)
def test_what_is_wrong_is_said_in_one_line(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *arguments]) == 1
    error = capsys.readouterr().err
    assert says in error and error.startswith("agentkit: ") and error.count("\n") == 1


def test_a_port_that_is_taken_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 1
    assert f"--port {port}" in capsys.readouterr().err


def test_nothing_off_this_machine_can_reach_it() -> None:
    from agentkit.simulator import Simulator

    with Server(Simulator("anthropic")) as server:
        assert server.root.startswith("http://127.0.0.1:")
        assert server._http.server_address[0] == "127.0.0.1"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_the_command_serves_until_ctrl_c() -> None:
    # A test run in the background hands down an ignored Ctrl-C.
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from agentkit.cli import main; "
    arguments = ["serve", "--window", "5000", "--profile", "anthropic"]
    command = [sys.executable, "-c", f"{code}sys.exit(main({arguments}))"]
    environment = {k: v for k, v in os.environ.items() if not k.endswith("API_KEY")}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace", env=environment
    )
    limit = threading.Timer(60, process.kill)  # reading a line has no limit of its own
    limit.start()
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        address = re.search(r"http://127\.0\.0\.1:(\d+)", lines[0])
        assert address and "window 5,000" in lines[1] and "key" in lines[2]
        with socket.create_connection(("127.0.0.1", int(address[1])), timeout=10):
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        limit.cancel()
        process.kill()
    assert (process.returncode, err) == (0, "") and "stopped" in out
