"""Reading a notebook: its cells, headings, sections and what its outputs show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from typing import Any

Notebook = Mapping[str, Any]
"""What nbformat reads: a dict whose keys are attributes too."""


def code_cells(notebook: Notebook) -> list[tuple[int, Any]]:
    """Return the code cells with their positions."""
    return [(i, c) for i, c in enumerate(notebook["cells"]) if c["cell_type"] == "code"]


def prose_cells(notebook: Notebook) -> list[tuple[int, Any]]:
    """Return the markdown cells with their positions."""
    return [(i, c) for i, c in enumerate(notebook["cells"]) if c["cell_type"] == "markdown"]


def tags(cell: Any) -> set[str]:
    """Return the tags of a cell."""
    return set(cell["metadata"].get("tags", ()))


def without_fences(text: str) -> str:
    """Return markdown without its fenced blocks."""
    return re.sub(r"^ {0,3}(```+|~~~+)[^\n]*\n.*?(^ {0,3}\1[`~]*[ \t]*$|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)


def headings(notebook: Notebook) -> list[tuple[int, int, str]]:
    """Return cell, level and title of every heading, in markdown or HTML."""
    found = []
    pattern = r"^ {0,3}(#{1,6})[ \t]+(.+?)[ \t#]*$|<h([1-6])\b[^>]*>(.*?)</h[1-6]>"
    for i, cell in prose_cells(notebook):
        for mark, title, level, html in re.findall(pattern, without_fences(cell["source"]), re.MULTILINE | re.DOTALL):
            found.append((i, len(mark) or int(level), (title or html).strip()))
    return found


def sections(notebook: Notebook) -> Iterator[tuple[str, int, str]]:
    """Yield the markdown in pieces: the level-2 heading that it stands under, its cell, its text without fenced blocks."""
    title = ""
    for i, cell in prose_cells(notebook):
        for piece in re.split(r"(?m)^(?=## )", without_fences(cell["source"])):
            first, _, rest = piece.partition("\n")
            if first.startswith("## "):
                title, piece = first[3:].strip(), rest
            yield title, i, piece


def section_of(notebook: Notebook) -> list[str]:
    """Return for every cell the level-2 heading that it stands under (for one with a heading: its last)."""
    title, titles = "", []
    at: dict[int, str] = {i: name for i, level, name in headings(notebook) if level == 2}
    for i in range(len(notebook["cells"])):
        title = at.get(i, title)
        titles.append(title)
    return titles


def texts(output: Any) -> Iterator[tuple[str, str]]:
    """Yield MIME type and text of what an output shows; pictures are left out."""
    if output["output_type"] == "stream":
        yield "text/plain", output["text"]
    elif output["output_type"] == "error":
        yield "text/plain", "\n".join([output["ename"], output["evalue"], *output["traceback"]])
    else:
        for kind, value in output["data"].items():
            if kind.startswith("text/"):
                yield kind, value


class Html(HTMLParser):
    """Collect the pictures of an HTML text, and what a reader reads: text, alternative texts, titles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.pictures: list[dict[str, str | None]] = []
        self.names: set[str] = set()
        self.read: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        values = dict(attrs)
        if tag == "img":
            self.pictures.append(values)
        self.read += [values[name] or "" for name in ("alt", "title", "aria-label") if name in values]

    def handle_data(self, data: str) -> None:
        self.read.append(data)
