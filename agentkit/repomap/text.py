"""From ranks to text: the best signatures, file by file, as many as fit into the budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from agentkit.repomap.graph import Ranked, Weights, rank
from agentkit.repomap.symbols import Tag, tags

BUDGET = 1_024
SLACK = 0.15
TOKENS_PER_TAG = 25
LONGEST_LINE = 100
SAMPLED_FROM = 200
"""Characters from which on only some lines are counted."""

_WELL_KNOWN = re.compile(
    r"(^|/)(README(\.\w+)?|pyproject\.toml|setup\.(py|cfg)|requirements\.txt|package\.json|Makefile|Dockerfile|Cargo\.toml)$"
)

Entry = tuple[str, int]
"""(path, line of the signature); line 0 stands for the bare name of the file"""


def repo_map(
    files: Mapping[str, str],
    chat: Collection[str] = (),
    mentioned_files: Collection[str] = (),
    mentioned: Collection[str] = (),
    *,
    budget: int = BUDGET,
    count: Callable[[str], int],
    weights: Weights | None = None,
) -> str:
    """Return the map of `files` (path to text) without those in `chat`; empty when there is nothing to show.

    The map may be up to 15 % over the budget: the search for the number of signatures ends when it is close enough.
    """
    found = {path: tags(path, text) for path, text in files.items()}
    ranked = rank(found, chat, mentioned_files, mentioned, weights)
    entries = _entries(found, ranked, chat)
    size = sampled(count)
    low, high, best, best_size = 0, len(entries), "", 0
    middle = min(budget // TOKENS_PER_TAG, len(entries))
    while low <= high:
        text = render(files, entries[:middle])
        tokens = size(text)
        close = abs(tokens - budget) / budget < SLACK
        if close or (tokens <= budget and tokens > best_size):
            best, best_size = text, tokens
        if close:
            break
        low, high = (middle + 1, high) if tokens < budget else (low, middle - 1)
        middle = (low + high) // 2
    return best


def _entries(found: Mapping[str, Sequence[Tag]], ranked: Ranked, chat: Collection[str]) -> list[Entry]:
    """Return what the map may show, the most important first: well-known files, signatures, bare file names."""
    others = [path for path in found if path not in chat]
    known = sorted(path for path in others if _WELL_KNOWN.search(path))
    lines = {(tag.path, tag.name): tag.line for path in others for tag in reversed(found[path]) if tag.kind == "def"}
    signatures = [(path, lines[path, name]) for path, name in ranked.symbols if (path, name) in lines]
    shown = {path for path, _ in signatures}
    bare = sorted((p for p in others if p not in shown), key=lambda p: (-ranked.files.get(p, 0.0), p))
    return list(dict.fromkeys([*((path, 0) for path in known), *signatures, *((path, 0) for path in bare)]))


def render(files: Mapping[str, str], entries: Iterable[Entry]) -> str:
    """Return the entries as text: each file's name, its signature lines, `⋮` where lines are left out."""
    lines: dict[str, set[int]] = {}
    for path, line in entries:
        lines.setdefault(path, set()).update([line] if line else [])
    return "\n".join(_file(path, files[path].split("\n"), sorted(numbers)) for path, numbers in sorted(lines.items()))


def _file(path: str, source: Sequence[str], numbers: Sequence[int]) -> str:
    if not numbers:
        return path
    rows, before = [f"{path}:"], 0
    for number in numbers:
        if number > before + 1:
            rows.append("⋮")
        rows.append(f"│{source[number - 1].rstrip()[:LONGEST_LINE]}")
        before = number
    return "\n".join(rows if before >= len(source) else [*rows, "⋮"])


def sampled(count: Callable[[str], int]) -> Callable[[str], int]:
    """Return a count that reads about a hundred lines of a long text and extrapolates by characters."""

    def estimate(text: str) -> int:
        if len(text) < SAMPLED_FROM:
            return count(text)
        lines = text.splitlines(keepends=True)
        sample = "".join(lines[:: max(1, len(lines) // 100)])
        return round(count(sample) / len(sample) * len(text))

    return estimate
