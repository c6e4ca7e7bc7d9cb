"""Small repairs of text on its way in and out: one line, no half characters, no key."""

from __future__ import annotations

import re
from itertools import groupby

HIDDEN = "[key]"
_PART = 6
"""A run of this many characters of a key counts as a part of it."""
_LONG_KEY = 12
"""Below this length a "key" is a placeholder such as `none`, whose parts are ordinary words."""
_MASK = re.compile(r"\*{2,}|\.{3}|…")


def paired(text: str) -> str:
    """Join surrogate pairs that arrived in two halves; a half that stays alone becomes U+FFFD.

    Such text cannot be encoded, so it would break at the next request, print or save.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class Pieces:
    """Text that arrives in pieces. Half a surrogate pair is held back until its other half comes."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._half = ""

    def add(self, piece: str) -> str:
        """Take in `piece` and return what may be shown now."""
        text = self._half + piece
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        shown = paired(text[: len(text) - len(self._half)])
        self._parts.append(shown)
        return shown

    def __str__(self) -> str:
        return "".join(self._parts) + paired(self._half)


def one_line(text: str, limit: int = 300) -> str:
    """Return `text` as one printable line of at most `limit` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in paired(text)).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def redact(text: str, key: str) -> str:
    """Replace `key`, and what is recognisably a part of it, by `[key]`: servers echo keys, whole or masked."""
    if len(key) >= 4:
        text = text.replace(key, HIDDEN)
    if len(key) < _LONG_KEY:
        return text
    return _hide_masked(_hide_parts(text, key), key)


def _hide_parts(text: str, key: str) -> str:
    parts = {key[i : i + _PART] for i in range(len(key) - _PART + 1)}
    hidden = {at + i for part in parts for at in _places(text, part) for i in range(_PART)}
    runs = groupby(enumerate(text), lambda pair: pair[0] in hidden)
    return "".join(HIDDEN if secret else "".join(c for _, c in run) for secret, run in runs)


def _places(text: str, part: str) -> list[int]:
    return [m.start() for m in re.finditer(f"(?={re.escape(part)})", text)]


def _hide_masked(text: str, key: str) -> str:
    """Hide words such as `sk-ab***yz`: the middle is gone, the ends are still the key's."""

    def shown(match: re.Match[str]) -> str:
        ends = _MASK.split(match[0].strip("\"'`.,:;()"))
        return HIDDEN if len(ends) > 1 and any(len(end) > 1 and end in key for end in ends) else match[0]

    return re.sub(r"\S+", shown, text)
