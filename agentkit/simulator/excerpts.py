"""A file as the simulated model sees it: the numbered lines of what `read_file` returned, whole or in part."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

_NUMBERED = re.compile(r" {0,8}(\d{1,9})\t(.*)", re.DOTALL)
_SPAN = re.compile(r"\[lines [\d,]+ to [\d,]+ of (\d[\d,]{0,12})\]")
_GAP = re.compile(r"(?:\[… |… \()[\d,]+ .*left out")
_OF_LINES = re.compile(r" of (\d[\d,]{0,12}) lines")
_DEFINITION = re.compile(r"^([ \t]*)(?:async )?(def|class) (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Excerpt:
    """A file as far as it is in view.

    `lines` by number, `cut` the numbers of lines that are shown only in part, `total` how many there are, if that is known.
    """

    path: str
    lines: dict[int, str]
    cut: frozenset[int] = frozenset()
    total: int | None = None

    @property
    def complete(self) -> bool:
        """Say whether every line is in view."""
        return self.total is not None and len(self.lines) == self.total and not self.cut

    @property
    def first_gap(self) -> tuple[int, int | None]:
        """Return the first line that is not wholly in view, and the last of that gap (None: the end of the file)."""
        start = next(n for n in range(1, len(self.lines) + 2) if n not in self.lines or n in self.cut)
        return start, min((n for n in self.lines if n > start), default=0) - 1 if max(self.lines) > start else None

    def text(self) -> str:
        """Return the lines in view, joined."""
        return "\n".join(self.lines[n] for n in sorted(self.lines))

    def over(self, older: Excerpt) -> Excerpt:
        """Return both together; where they overlap, this one counts."""
        cut = (self.cut - older.lines.keys()) | (older.cut - self.lines.keys()) | (self.cut & older.cut)
        return Excerpt(self.path, {**older.lines, **self.lines}, frozenset(cut), self.total or older.total)

    def changed(self, old: str, new: str) -> Excerpt | None:
        """Return the file with one piece of text replaced; None unless all of it is in view and has that piece once."""
        text = self.text()
        if not self.complete or text.count(old) != 1:
            return None
        lines = dict(enumerate(text.replace(old, new).split("\n"), 1))
        return Excerpt(self.path, lines, total=len(lines))

    def names(self, noun: str) -> list[str]:
        """Return the names of the `methods`, `functions` or `classes` that are defined in view (Python only)."""
        whole = "\n".join(self.lines[n] for n in sorted(self.lines) if n not in self.cut)
        found = _DEFINITION.findall(whole)
        if noun == "classes":
            return [name for _, kind, name in found if kind == "class"]
        return [name for indent, kind, name in found if kind == "def" and bool(indent) == (noun == "methods")]

    def source(self, name: str) -> str | None:
        """Return the source of the function `name`; None unless it is in view from its first line to its last."""
        start = next((n for n in sorted(self.lines) if _defines(self.lines[n], name)), None)
        if start is None:
            return None
        end = start + 1
        while end in self.lines and _inside(self.lines[end], _indent(self.lines[start])):
            end += 1
        seen_to_end = end in self.lines or self.total == end - 1
        whole = seen_to_end and not any(n in self.cut for n in range(start, end))
        return "\n".join(self.lines[n] for n in range(start, end)) if whole else None


@functools.lru_cache(maxsize=512)
def excerpt(path: str, text: str) -> Excerpt | None:
    """Parse a result of `read_file`; None when it holds no numbered line: an error, or an output that was folded."""
    lines: dict[int, str] = {}
    cut: set[int] = set()
    last, total, open_end, after_gap = 0, None, False, False
    for row in text.split("\n"):
        if numbered := _NUMBERED.fullmatch(row):
            last, open_end = int(numbered[1]), False
            lines[last] = numbered[2]
        elif span := _SPAN.fullmatch(row):
            total = int(span[1].replace(",", ""))
        elif _GAP.match(row):
            cut.add(last)
            stated = _OF_LINES.search(row)
            # Without a count of lines in square brackets the tool says that there is but one line.
            open_end = bool(stated) or not row.startswith("[")
        elif row.strip() and not row.startswith("[not UTF-8") and not after_gap:
            open_end = True  # somebody's note: what follows the last numbered line is unknown
        after_gap = bool(_GAP.match(row))
    if total is None and not open_end:
        total = last
    return Excerpt(path, lines, frozenset(cut & lines.keys()), total) if lines else None


def _defines(line: str, name: str) -> bool:
    return re.match(rf"\s*(?:async )?def {re.escape(name)}\b", line) is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _inside(line: str, indent: int) -> bool:
    return not line.strip() or _indent(line) > indent
