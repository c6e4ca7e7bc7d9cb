"""Search files for a pattern, as a process of its own that can be stopped; started by `search.py`.

A backtracking pattern can keep Python's `re` busy for years, and nothing in the same process can interrupt it.
Reads a job and writes a result, both JSON. Imports nothing but the standard library, so it starts in milliseconds.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any


def search(job: dict[str, Any]) -> dict[str, Any]:
    """Return the rows that match (at most `job["most"]`), how many lines matched, or the error of the pattern."""
    try:
        pattern = re.compile(job["pattern"])
    except (re.error, OverflowError, RecursionError) as error:
        return {"error": str(error)}
    rows: list[str] = []
    found = 0
    for name, path in job["files"]:
        for number, line in enumerate(_lines(path), 1):
            match = pattern.search(line)
            if match:
                found += 1
                if found <= job["most"]:
                    rows.append(f"{name}:{number}:{_excerpt(line, match, job['width'])}")
    return {"rows": rows, "found": found}


def _lines(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return []
    # A NUL byte marks a picture or a program, as grep and git have it.
    if b"\0" in data[:8000]:
        return []
    lines = data.decode("utf-8", errors="replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _excerpt(line: str, match: re.Match[str], width: int) -> str:
    """Return the line, or of a long one `width` characters around the match."""
    if len(line) <= width:
        return line
    start = min(max(0, match.start() - width // 3), len(line) - width)
    stop = start + width
    return ("…" if start else "") + line[start:stop] + ("…" if stop < len(line) else "")


if __name__ == "__main__":
    json.dump(search(json.load(sys.stdin)), sys.stdout)
