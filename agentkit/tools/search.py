"""The tool that searches the files of a workspace."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from agentkit.messages import ToolSpec
from agentkit.tools.base import Arguments, Tool, ToolError
from agentkit.tools.text import quote
from agentkit.tools.workspace import LARGEST, Workspace

MOST_ROWS = 200
"""Lines in one answer of `grep`."""

WIDTH = 300
"""Characters of a line that are shown; of a longer one, those around the match."""

_WORKER = Path(__file__).with_name("_search_worker.py")


def grep(workspace: Workspace, timeout: float) -> Tool:
    """Return the tool `grep` for `workspace`; one search may take `timeout` seconds, whatever the pattern."""

    def run(arguments: Arguments) -> str:
        pattern, glob = arguments["pattern"], arguments.get("glob", "**/*")
        if not pattern:
            raise ToolError("pattern is empty and would match every line; give the text to look for")
        names = workspace.files(glob)
        small = [name for name in names if (workspace.root / name).stat().st_size <= LARGEST]
        result = _search(pattern, [(name, str(workspace.root / name)) for name in small], timeout)
        rows = result["rows"] or [f"no line matches {quote(pattern)} in {len(small)} files"]
        if result["found"] > MOST_ROWS:
            rows.append(f"[… {result['found'] - MOST_ROWS:,} more lines match; use a narrower pattern or glob …]")
        if len(small) < len(names):
            rows.append(f"[{len(names) - len(small)} files over {LARGEST:,} bytes were not searched]")
        return "\n".join(rows)

    properties = {
        "pattern": {"type": "string", "description": "a Python regular expression; (?i) at its start ignores case"},
        "glob": {"type": "string", "description": "which files; '**/*' (every file) when left out"},
    }
    return Tool(
        ToolSpec(
            "grep",
            f"Find the lines that match a pattern, as path:line:text, at most {MOST_ROWS}. Long lines are cut.",
            {"type": "object", "properties": properties, "required": ["pattern"], "additionalProperties": False},
        ),
        run,
    )


def _search(pattern: str, files: list[tuple[str, str]], timeout: float) -> dict[str, Any]:
    """Run the worker and return its result. Raises `ToolError` on a bad pattern and when the time is over."""
    job = json.dumps({"pattern": pattern, "files": files, "most": MOST_ROWS, "width": WIDTH})
    try:
        # -I -S: without site packages and user settings the interpreter starts in about 20 ms.
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(_WORKER)],
            input=job,
            capture_output=True,
            timeout=timeout,
            encoding="utf-8",
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        reason = f"no answer to {quote(pattern)} within {timeout:g} s; use a simpler pattern or a narrower glob"
        raise ToolError(reason) from None
    except OSError as error:
        raise ToolError(f"cannot start the search: {error.strerror}") from error
    if done.returncode:
        raise ToolError(f"the search broke off (exit code {done.returncode}); use a simpler pattern")
    result: dict[str, Any] = json.loads(done.stdout)
    if "error" in result:
        raise ToolError(f"{quote(pattern)} is no regular expression: {result['error']}; put \\ before ( [ {{ * + ? . |")
    return result
