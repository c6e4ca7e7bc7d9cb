"""Aider's repo map: in front of the conversation stand the signatures that matter most for the files at hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from agentkit.log import Log
from agentkit.messages import Message, assistant, user
from agentkit.policies.base import Situation
from agentkit.policies.branch import Branch, write_note
from agentkit.policies.viewing import Viewing
from agentkit.repomap.graph import Weights
from agentkit.repomap.seen import files_seen, paths_named
from agentkit.repomap.text import BUDGET, repo_map
from agentkit.tokens import TextEstimator

Refresh = Literal["auto", "files"]
PREFIX = "These are the signatures of other files of the project; ask for a file before you change it.\n\n"
ACKNOWLEDGED = "I have seen the map. I will read a file before I change it."
CHAT_TURNS = 2
WITHOUT_FILES = 8
ROOM = 4_096
LARGEST_FILE = 1_000_000
"""Bytes; a larger file is not parsed."""


class AiderRepoMap(Viewing):
    """Put a map of the repository in front of the whole history: the best signatures within 1,024 tokens.

    Source: Aider @5dc9490b (2026-05-22), aider/repomap.py; the map is of 2023. Symbols by tree-sitter, a graph of files that
    refer to each other, PageRank personalised by the files of the newest turns and the words of the user. `refresh`: `auto`
    makes the map anew when files or words changed, `files` only when the files did. Without files at hand the map may be 8
    times as large. `map_tokens` None takes an eighth of the window, 1,024 to 4,096.

    `folder` is the workspace. Without one the repository is what the conversation has read and written so far, as in a
    replay. The map in force is a note in the log, so the view follows from the log also when the files have changed.

    Simplified: Python only, other files by name; the files at hand are those that calls of the newest 2 turns name (there
    the user adds them); the map is made anew at the start of a turn; history stays whole (there it is summarised beyond a
    sixteenth of the window).
    """

    name = "Aider repo map"
    year, source = "2023", "Aider @5dc9490b"
    note = "signatures of other files by PageRank, 1,024 tokens, in front of the history"

    def __init__(
        self,
        folder: Path | None = None,
        map_tokens: int | None = BUDGET,
        refresh: Refresh = "auto",
        weights: Weights | None = None,
        *,
        estimator: TextEstimator | None = None,
    ) -> None:
        if refresh not in ("auto", "files"):
            raise ValueError(f"refresh is auto or files, not {refresh!r}")
        super().__init__(estimator)
        self.folder, self.map_tokens, self.refresh = folder, map_tokens, refresh
        self.weights = weights or Weights()

    def decide(self, log: Log, situation: Situation) -> None:
        """Make the map anew at the start of a turn, if what it depends on has changed; a changed one becomes a note."""
        branch = self.branch(log)
        if not branch.body or branch.body[-1].role != "user":
            return
        files = read_folder(self.folder) if self.folder else files_seen(branch.body)
        chat = sorted(set(paths_named(branch.body[_turn_start(branch.body) :])) & files.keys())
        said = branch.body[-1].content
        words = sorted(set(re.findall(r"\w+", said)))
        key = [chat, sorted(files), words if self.refresh == "auto" else []]
        last = self._last(branch)
        if last and last.get("key") == key:
            return
        budget = self._budget(situation.budget.limit, bool(chat))
        named = {path for path in files if path in said}
        count = self.sizes.estimator.text
        text = repo_map(files, chat, named, words, budget=budget, count=count, weights=self.weights)
        if last is None or (text, key) != (last["map"], last["key"]):
            write_note(log, self.name, map=text, key=key)

    def messages(self, branch: Branch) -> Sequence[Message]:
        """Return head, map, and the whole history."""
        last = self._last(branch)
        shown = [user(PREFIX + last["map"]), assistant(ACKNOWLEDGED)] if last and last["map"] else []
        return [*branch.head, *shown, *branch.body]

    def _last(self, branch: Branch) -> Mapping[str, object] | None:
        return next((data for data, _ in reversed([*branch.notes(self.name)])), None)

    def _budget(self, window: int, has_files: bool) -> int:
        budget = self.map_tokens or min(max(window // 8, BUDGET), 4 * BUDGET)
        return budget if has_files else max(budget, min(WITHOUT_FILES * budget, window - ROOM))


def _turn_start(body: Sequence[Message]) -> int:
    """Return where the newest turns with calls begin: the present one has only begun, so it does not count."""
    starts = [i for i, m in enumerate(body) if m.role == "user"]
    return starts[max(0, len(starts) - 1 - CHAT_TURNS)]


def read_folder(folder: Path, skip: Callable[[Path], bool] | None = None) -> dict[str, str]:
    """Return the text of every file below `folder` that is text and not too large, by its path; hidden ones are left out."""
    files: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if any(part.startswith(".") or part == "__pycache__" for part in parts) or (skip and skip(path)):
            continue
        try:
            if not path.is_file() or path.is_symlink() or path.stat().st_size > LARGEST_FILE:
                continue
            files["/".join(parts)] = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    return files
