"""`agentkit lab`: JupyterLab on chapter 00, with what a stranger's machine needs."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from agentkit.scenarios import course_workspace
from agentkit.vocabulary import SHA256, Unavailable, unpack

FIRST = "00_start_here.ipynb"

PATIENCE = 15
"""Seconds that JupyterLab has to end its kernels."""


class CannotStart(RuntimeError):
    """JupyterLab cannot be started; the text says why and what to do."""


def run(port: int | None = None, browser: bool = True) -> int:
    """Start JupyterLab and wait for its end; return its exit status. Raises `CannotStart`."""
    if find_spec("jupyterlab") is None:
        raise CannotStart("jupyterlab is not installed; pip install -r requirements.txt")
    chapters = course_workspace().parent
    for name in SHA256:
        try:
            unpack(name)
        except Unavailable as reason:
            print(f"note: {reason}; token counts will be estimates", file=sys.stderr)
    if port is not None and not 0 < port < 65536:
        raise CannotStart(f"--port {port}: a port is a number from 1 to 65535")
    port, token = port or free_port(), secrets.token_hex(16)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="agentkit-lab-") as settings:
        command = arguments(chapters, port, browser, quiet_settings(Path(settings)))
        print(f"JupyterLab: http://127.0.0.1:{port}/lab/tree/{FIRST}?token={token}", flush=True)
        print("Stop it with Ctrl-C.", flush=True)
        # The token goes through the environment: a command line can be read by every user of the machine.
        return _until_stopped(subprocess.Popen(command, env={**os.environ, "JUPYTER_TOKEN": token}))


def _until_stopped(lab: subprocess.Popen[bytes]) -> int:
    """Wait for the end of JupyterLab. Ctrl-C and a polite kill end it too, and its kernels with it."""
    try:
        return lab.wait(None)
    except KeyboardInterrupt:
        # subprocess.call would kill it after a quarter of a second: kernels left alone, files half written.
        if os.name == "posix":
            lab.terminate()
        try:
            lab.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            lab.kill()
        return 0


def arguments(chapters: Path, port: int, browser: bool, settings: Path) -> list[str]:
    """Return the command that starts JupyterLab: loopback only, no news, no update check, chapter 00 open."""
    command = [sys.executable, "-m", "jupyter", "lab", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"]
    command += [f"--ServerApp.root_dir={chapters}", f"--LabApp.default_url=/lab/tree/{FIRST}"]
    command += ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    command += [f"--LabApp.app_settings_dir={settings}", "--LabApp.extension_manager=readonly"]
    # Whoever pressed Ctrl-C has answered the question whether to stop.
    command += ["--JupyterApp.answer_yes=True"]
    # Jupyter refuses to run as root, which is what a container usually is.
    command += ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return command if browser else [*command, "--no-browser"]


def quiet_settings(folder: Path) -> Path:
    """Write application settings that ask no question about news; the user's own settings stay as they are."""
    quiet = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}}
    (folder / "overrides.json").write_text(json.dumps(quiet), encoding="utf-8")
    return folder


def free_port(preferred: int = 8888) -> int:
    """Return `preferred` if nothing listens there, else a port that is free now."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise CannotStart("no free port on 127.0.0.1")
