"""Chapter 05: where to edit a prompt, and how far the cache holds; keys and values are computed, not drawn from memory."""

from __future__ import annotations

import functools

from agentkit.figures.kv import EditSeen, edit_in_words, edit_picture
from agentkit.kv.cache import KVCache
from agentkit.kv.model import Transformer, tiny
from agentkit.kv.opened import differences, filled
from agentkit.kv.work import kept, work_ratio
from agentkit.panels.common import Panel, View, dropdown, slider

_KIND, _PLACE = "What to do", "Token counted from 1"
_KINDS = (
    ("append three tokens at the end", "append"),
    ("change one token", "edit"),
    ("delete one token", "delete"),
)
_SAME = 1e-9

_TEXT = (
    "You are a coding agent . Read before you answer . Read stats.py and say how many functions it has . "
    "It has five functions . How many lines is it ? It has forty lines . What was my first question ?"
)
WORDS = tuple(_TEXT.split())
"""The prompt of the panel. A word is a token here."""
_MORE, _OTHER = ("Answer", "briefly", "."), "CHANGED"


def kv_edit() -> Panel:
    """Return the panel. Where to append is not a choice, so the slider is switched off then."""
    controls = {
        _KIND: dropdown(_KIND, _KINDS, "edit"),
        _PLACE: slider(_PLACE, 12, 1, len(WORDS)),
    }
    return Panel("Where to edit, and how far the cache holds", controls, _draw)


@functools.cache
def _model() -> Transformer:
    return tiny()


@functools.cache
def _old() -> KVCache:
    return filled(_model(), _numbers(WORDS))


def _numbers(words: tuple[str, ...]) -> list[int]:
    known = list(dict.fromkeys((*WORDS, *_MORE, _OTHER)))
    return [known.index(word) for word in words]


@functools.lru_cache(maxsize=256)
def _edit(kind: str, place: int) -> EditSeen:
    """Compute the prompt after the edit, and compare it with the one before."""
    at, end = place - 1, len(WORDS)
    # New words; where the old tokens before the edit end, and where those behind it begin; by how much these are shifted.
    words, head, tail, shift, title = {
        "append": ((*WORDS, *_MORE), end, end, 0, "Three tokens appended"),
        "edit": ((*WORDS[:at], _OTHER, *WORDS[place:]), at, place, 0, f"Token {place} changed"),
        "delete": ((*WORDS[:at], *WORDS[place:]), at, place, -1, f"Token {place} deleted"),
    }[kind]
    new, hit = filled(_model(), _numbers(words)), kept(_numbers(WORDS), _numbers(words))
    work = work_ratio(_model().shape, len(words), hit)
    return EditSeen(title, words, hit, _rows(new, head, tail, shift), at if kind == "edit" else None, work)


def _rows(new: KVCache, head: int, tail: int, shift: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return for keys and values of every layer, token by token, what became of them."""
    front, behind = differences(_old(), new, 0, head), differences(_old(), new, tail, shift=shift)
    rows = []
    for layer, pairs in enumerate(zip(front, behind, strict=True), 1):
        for number, name in enumerate(("keys", "values")):
            before, after = (["differs" if d > _SAME else "same" for d in pair[number]] for pair in pairs)
            fresh = ["new"] * (len(new.tokens) - len(before) - len(after))
            rows.append((f"{name} of layer {layer}", (*before, *fresh, *after)))
    return tuple(rows)


def _draw(panel: Panel) -> View:
    panel.controls[_PLACE].disabled = panel[_KIND] == "append"
    edit = _edit(panel[_KIND], panel[_PLACE])
    return View(edit_picture(edit), edit_in_words(edit))
