"""What every tool result goes through before the model may see it: valid text, of bounded length."""

from __future__ import annotations

LIMIT = 16_000
"""Characters that one tool result may add to the context, the marker of a clipped one included."""

SMALLEST_LIMIT = 200
EMPTY = "(no output)"
"""Stands for a result with no visible text, which some APIs refuse; always the same, so the cached prefix holds."""


def clean(text: str) -> str:
    """Return `text` as valid UTF-8: half surrogate pairs and NUL become U+FFFD, whole pairs become one character."""
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "\ufffd")


def clip(text: str, limit: int = LIMIT) -> str:
    """Return clean `text` of at most `limit` characters: head and tail stay, a marker counts what was left out.

    Raises `ValueError` when `limit` is under 200: the marker itself needs room.
    """
    if limit < SMALLEST_LIMIT:
        raise ValueError(f"limit {limit} is too small for a clipped text; use at least {SMALLEST_LIMIT}")
    text = clean(text)
    if len(text) <= limit:
        return text
    # The longest marker this text can have; the real one only counts less.
    room = limit - len(_marker(text, 0, len(text)))
    start, stop = _at_lines(text, room - room // 2, len(text) - room // 2)
    return text[:start] + _marker(text, start, stop) + text[stop:]


def one_line(text: str) -> str:
    """Return `text` with every run of white space turned into one space."""
    return " ".join(text.split())


def quote(value: object, width: int = 80) -> str:
    """Return `value` as it is shown in an error: in quotes, without control characters, at most `width` long."""
    shown = repr(value)
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def count_lines(text: str) -> int:
    """Return the number of lines; a last line without a line end counts too."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def _marker(text: str, start: int, stop: int) -> str:
    """Return the sentence that stands for `text[start:stop]`. Lines that are shown only in part count as left out."""
    size = f"{stop - start:,} of {len(text):,} characters"
    total = count_lines(text)
    if total > 1:
        size += f", {count_lines(text[start:stop]):,} of {total:,} lines,"
    before = "" if text[:start].endswith("\n") else "\n"
    return f"{before}[… {size} left out; ask for a smaller part …]\n"


def _at_lines(text: str, start: int, stop: int) -> tuple[int, int]:
    """Move both cuts away from the middle to the next line end, where that gives up at most a fifth of what is kept."""
    head = text.rfind("\n", start - start // 5, start)
    tail = text.find("\n", stop - 1, stop + (len(text) - stop) // 5)
    return (head + 1 if head >= 0 else start), (tail + 1 if tail >= 0 else stop)
