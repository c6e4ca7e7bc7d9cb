"""The agent's tools: read, list, search, edit and create files in one folder, and run its tests."""

from __future__ import annotations

from pathlib import Path

from agentkit.tools.base import Tool, Toolbox, ToolError, signature
from agentkit.tools.files import file_tools
from agentkit.tools.search import grep
from agentkit.tools.testrun import run_tests
from agentkit.tools.text import EMPTY, LIMIT, clean, clip
from agentkit.tools.workspace import Workspace

__all__ = [
    "EMPTY",
    "LIMIT",
    "Tool",
    "ToolError",
    "Toolbox",
    "Workspace",
    "clean",
    "clip",
    "signature",
    "workspace_tools",
]


def workspace_tools(folder: Path, *, limit: int = LIMIT, tests_timeout: float = 60, grep_timeout: float = 5) -> Toolbox:
    """Return the six tools for the project in `folder`; none of them reads or writes a file outside it.

    `limit` is in characters per result, the time-outs in seconds per call. Raises `ValueError` when there is no such
    folder. `run_tests` runs what is in the folder as an ordinary program; that program is not confined.
    """
    workspace = Workspace(folder)
    tools = [*file_tools(workspace), grep(workspace, grep_timeout), run_tests(workspace, tests_timeout)]
    return Toolbox(tools, limit=limit)
