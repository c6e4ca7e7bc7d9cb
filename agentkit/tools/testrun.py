"""The tool that runs the tests of a workspace.

The tests are ordinary programs: they run with the rights of whoever started the agent, and no fence holds them.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from agentkit.messages import ToolSpec
from agentkit.tools.base import Arguments, Tool, ToolError
from agentkit.tools.text import one_line
from agentkit.tools.workspace import Workspace

_COMMAND = ["-m", "pytest", "-q", "--tb=short", "--color=no", "-p", "no:cacheprovider", "-o", "addopts="]

_SETTINGS = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "COLUMNS": "80",
    # Loading the plugins of the agent's own environment takes seconds, and none belongs to the workspace.
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}

# What a test prints is sent to the model; a key must not be there to be printed. And pytest prints more, or in colour, where
# it finds out that it runs in CI: the same tests must print the same everywhere.
_KEPT_BACK = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|^PYTEST_|^(CI|BUILD_NUMBER|FORCE_COLOR|PY_COLORS)$", re.IGNORECASE)

_GOOD_CODES = {0, 1, 2, 5}
"""pytest's exit codes for passed, failed, could not collect, found none: each is an answer about the code."""


def run_tests(workspace: Workspace, timeout: float) -> Tool:
    """Return the tool `run_tests` for `workspace`; one run may take `timeout` seconds."""

    def run(arguments: Arguments) -> str:
        target = [_target(workspace, arguments["target"])] if "target" in arguments else []
        # pytest follows links, out of the workspace and round in circles; files inside are run where they really are.
        target += [f"--ignore={link}" for link in workspace.links()]
        with tempfile.TemporaryDirectory(prefix="agentkit-", ignore_cleanup_errors=True) as scratch:
            temp = os.path.realpath(scratch)
            code, output = _pytest(target, workspace.root, Path(temp), timeout)
            # The folder's random ending goes even where pytest has cut the path short.
            output = re.sub(re.escape(temp.rpartition("-")[0]) + r"-\w*", "<temp>", output)
            text = steady(output, {str(workspace.root): "."} | _python_folders())
        if code is None:
            raise ToolError(f"the tests did not end within {timeout:g} s and were stopped; run fewer of them")
        if text.endswith("No module named pytest"):
            raise ToolError("pytest is not installed; install it with `python -m pip install pytest`")
        if code not in _GOOD_CODES:
            raise ToolError(f"pytest ended with exit code {code}: {one_line(text)}")
        return text

    target = {"type": "string", "description": "a test file or path::test_name; all tests when left out"}
    return Tool(
        ToolSpec(
            "run_tests",
            "Run the tests with pytest and return what it prints.",
            {"type": "object", "properties": {"target": target}, "required": [], "additionalProperties": False},
        ),
        run,
    )


def steady(output: str, names: dict[str, str]) -> str:
    """Return `output` without what differs from run to run: durations, addresses, and the folders in `names`."""
    for folder in sorted(names, key=len, reverse=True):
        output = output.replace(folder, names[folder])
    output = re.sub(r" in \d+\.\d+s(?: \(\d+:\d\d:\d\d\))?(?=[ =]*$)", "", output, flags=re.MULTILINE)
    return re.sub(r"\b0x[0-9a-fA-F]{6,}\b", "0x…", output).strip()


def _target(workspace: Workspace, target: str) -> str:
    """Return `target` as pytest takes it. Raises `ToolError` when its file is not in the workspace."""
    path, colons, test = target.partition("::")
    real = workspace.inside(path)
    if not real.is_dir():
        real = workspace.file(path)
    # The full path cannot be taken for an option, as '-x' would be.
    return str(real) + colons + test


def _pytest(target: list[str], folder: Path, scratch: Path, timeout: float) -> tuple[int | None, str]:
    """Run pytest and return its exit code (None: time over) and what it printed.

    The output goes to a file: a pipe stays open as long as any process that a test left behind.
    """
    kept = {name: value for name, value in os.environ.items() if not _KEPT_BACK.search(name)}
    command = [sys.executable, *_COMMAND, f"--basetemp={scratch / 'pytest'}", *target]
    with open(scratch / "output.txt", "w+b") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=kept | _SETTINGS | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code = _wait(process, timeout)
        output.seek(0)
        return code, output.read().decode("utf-8", errors="replace").replace("\r\n", "\n")


def _wait(process: subprocess.Popen[bytes], timeout: float) -> int | None:
    """Wait for `process` and return its exit code; stop it and its children when the time is over or on Ctrl-C."""
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.returncode is None:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if os.name == "posix":
        # A group of its own (start_new_session): what the tests have started ends as well.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait(10)


def _python_folders() -> dict[str, str]:
    paths = sysconfig.get_paths()
    return {paths[name]: "<python>" for name in ("stdlib", "purelib", "platlib")} | {sys.executable: "python"}
