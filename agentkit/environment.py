"""What this machine has: one line for each thing that a chapter needs, and what to do when it is missing."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version

from agentkit.kv import optional
from agentkit.vocabulary import Unavailable, encoding

_PYTHON = (3, 11)


def report() -> list[tuple[bool, str]]:
    """Return (ready, line) for Python, the widgets on both sides, and the vocabulary."""
    return [_python(), _widgets(), _vocabulary()]


def optional_report() -> list[tuple[bool, str]]:
    """Return (there, line) for what chapter 05 can use and does not need."""
    found = optional.versions().items()
    return [(bool(there), f"optional: {name} {there or 'is not installed'}") for name, there in found]


def show() -> None:
    """Print the report."""
    for ready, line in report():
        print("✓" if ready else "✗", line)
    there = optional_report()
    for ready, line in there:
        print("✓" if ready else "○", line)
    if not all(ready for ready, _ in there):
        print("  for chapter 05 on a real model:", " && ".join(optional.INSTALL))


def _python() -> tuple[bool, str]:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= _PYTHON:
        return True, f"Python {found}"
    return False, f"Python {found} is too old; the book needs 3.11 or newer"


def _widgets() -> tuple[bool, str]:
    # Kernel and browser are served by two packages; a slider needs both, in the environment that JupyterLab runs in.
    kernel, browser = _version("ipywidgets"), _version("jupyterlab_widgets")
    if kernel and browser and int(kernel.split(".")[0]) >= 8:
        return True, f"panels: ipywidgets {kernel}, jupyterlab_widgets {browser}"
    return False, "panels: pip install -U ipywidgets, then restart JupyterLab (every panel also has a static picture)"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _vocabulary() -> tuple[bool, str]:
    try:
        return True, f"token counts: tiktoken, vocabulary {encoding().name} (no network needed)"
    except Unavailable as reason:
        return False, f"token counts are estimates: {reason}"
