"""The one folder that the tools may touch, and the check that every path goes through."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from difflib import get_close_matches
from errno import EACCES
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath, PureWindowsPath

from agentkit.tools.base import ToolError
from agentkit.tools.text import quote

SKIPPED = frozenset({".git", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints"})
"""Folders that are never listed or searched: machines write them, and they would differ from run to run."""

LARGEST = 10_000_000
"""Bytes; a larger file is not opened, because it would be held in memory several times over."""


class Workspace:
    """A folder with a fence around it: each method takes names inside the folder and refuses all others."""

    def __init__(self, folder: Path) -> None:
        """Open `folder`. Raises `ValueError` when it is not a folder."""
        self.root = Path(os.path.realpath(folder))
        if not self.root.is_dir():
            raise ValueError(f"the workspace {quote(str(folder))} is not a folder; create it or name another one")
        if not os.access(self.root, os.R_OK | os.X_OK):
            raise ValueError(f"the workspace {quote(str(folder))} cannot be read: no permission; name another one")

    def inside(self, path: str) -> Path:
        """Return the real path of `path`, whether it exists or not. Raises `ToolError` when it leads outside."""
        _refuse(path, "path")
        real = Path(os.path.realpath(self.root / path))
        if not real.is_relative_to(self.root):
            raise ToolError(f"path {quote(path)} is a link that leads outside the workspace; name a file inside it")
        return real

    def file(self, path: str) -> Path:
        """Return the real path of an existing ordinary file. Raises `ToolError` for anything else."""
        real = self.inside(path)
        try:
            state = real.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise ToolError(f"no file {quote(path)} in the workspace{self._near(path)}") from None
        except OSError as error:
            raise ToolError(f"cannot open {quote(path)}: {error.strerror}") from error
        if stat.S_ISDIR(state.st_mode):
            raise ToolError(f"{quote(path)} is a folder; list it with list_files({quote(path.rstrip('/') + '/*')})")
        if not stat.S_ISREG(state.st_mode):
            raise ToolError(f"{quote(path)} is no ordinary file but a device, pipe or socket; name another file")
        if state.st_size > LARGEST:
            raise ToolError(f"{quote(path)} has {state.st_size:,} bytes; files over {LARGEST:,} are not opened")
        return real

    def read(self, path: str) -> bytes:
        """Return the bytes of the file `path`. Raises `ToolError`."""
        real = self.file(path)
        try:
            return real.read_bytes()
        except OSError as error:
            raise ToolError(f"cannot read {quote(path)}: {error.strerror}") from error

    def write(self, path: str, data: bytes) -> None:
        """Replace the file `path` by `data` in one step: a reader sees the old file or the new one, never a half.

        Raises `ToolError`.
        """
        real = self.inside(path)
        try:
            if real.exists() and not os.access(real, os.W_OK):
                raise PermissionError(EACCES, "it is read-only")
            real.parent.mkdir(parents=True, exist_ok=True)
            _replace(real, data)
        except (FileExistsError, NotADirectoryError):
            raise ToolError(f"cannot write {quote(path)}: a folder of that path is a file") from None
        except OSError as error:
            raise ToolError(f"cannot write {quote(path)}: {error.strerror}") from error

    def files(self, pattern: str = "**/*") -> list[str]:
        """Return the names of all ordinary files that match the glob `pattern`, sorted; links to outside are left out.

        `*` stays within one folder, `**` stands for any number of them. Raises `ToolError` on a pattern that leads out.
        """
        _refuse(pattern, "pattern")
        parts = [part for part in pattern.split("/") if part != "."]
        return sorted(name for name in self._walk() if _matches(name.split("/"), parts))

    def links(self) -> list[Path]:
        """Return every symbolic link in the folder, whether it leads outside or not."""
        entries = (Path(folder, name) for folder, *names in os.walk(self.root) for name in sum(names, []))
        return sorted(entry for entry in entries if entry.is_symlink())

    def _walk(self) -> Iterator[str]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in SKIPPED]
            for name in names:
                path = Path(folder, name)
                if self._is_ours(path):
                    yield path.relative_to(self.root).as_posix()

    def _is_ours(self, path: Path) -> bool:
        try:
            return path.is_file() and Path(os.path.realpath(path)).is_relative_to(self.root)
        except OSError:
            return False

    def _near(self, path: str) -> str:
        """Return `; did you mean …?` with up to three names: the same name in another folder, then similar ones."""
        names = sorted(self._walk())
        same = [name for name in names if PurePosixPath(name).name == PurePosixPath(path).name]
        near = list(dict.fromkeys([*same, *get_close_matches(path, names)]))[:3]
        return f"; did you mean {', '.join(near)}?" if near else "; see list_files"


def _refuse(path: str, what: str) -> None:
    """Raise `ToolError` when the wording of `path` alone shows that it leads outside, or is no path at all."""
    reason = ""
    if not path.strip():
        reason = "is empty"
    elif any(ord(char) < 32 or "\ud800" <= char <= "\udfff" for char in path):
        reason = "holds a control character or half a surrogate pair"
    elif path.startswith(("/", "\\", "~")) or PureWindowsPath(path).drive:
        reason = "is absolute or starts at a home folder"
    elif ".." in re.split(r"[/\\]", path):
        reason = "goes up with '..'"
    if reason:
        raise ToolError(f"{what} {quote(path)} {reason}; write it relative to the workspace, such as 'tests/test_a.py'")


def _matches(name: list[str], pattern: list[str]) -> bool:
    """Tell whether a name fits a pattern, both cut at the slashes.

    `at` holds every place in the pattern that the parts so far can have led to. Trying them one after the other would
    take exponential time on a pattern with many `**`.
    """
    at = _past_stars({0}, pattern)
    for part in name:
        at = _past_stars(
            {i + (pattern[i] != "**") for i in at if i < len(pattern) and fnmatchcase(part, pattern[i])}, pattern
        )
    return len(pattern) in at


def _past_stars(at: set[int], pattern: list[str]) -> set[int]:
    """Add the places that are reached when each `**` stands for no folder at all."""
    for i, part in enumerate(pattern):
        if i in at and part == "**":
            at.add(i + 1)
    return at


def _replace(real: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=real.parent, prefix=".write-")
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.chmod(name, stat.S_IMODE(real.stat().st_mode) if real.exists() else 0o644)
        os.replace(name, real)
    except BaseException:
        os.unlink(name)
        raise
