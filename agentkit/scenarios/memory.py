"""Slow tools that remember: the same call on the same files has the same answer, so its process runs once.

The runs of one scenario under many policies, and the checks after each turn, share what is remembered here.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from agentkit.tools import Tool, Toolbox

_SLOW = ("grep", "run_tests")
"""Tools that start a process. The same files give the same answer, so the process runs once for all runs of a scenario."""

_known: dict[tuple[str, str, str], str] = {}


def with_memory(box: Toolbox, folder: Path) -> Toolbox:
    """Return `box` with slow tools that remember their answers as long as no file of `folder` changes."""
    return Toolbox([_remembering(tool, folder) if tool.spec.name in _SLOW else tool for tool in box.tools], limit=box.limit)


def _remembering(tool: Tool, folder: Path) -> Tool:
    def run(arguments: dict[str, object]) -> str:
        key = (tool.spec.name, json.dumps(arguments, sort_keys=True), _fingerprint(folder))
        if key not in _known:
            _known[key] = tool.run(arguments)
        return _known[key]

    return Tool(tool.spec, run)


def _fingerprint(folder: Path) -> str:
    """Return a hash of all names and bytes below `folder`."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()
