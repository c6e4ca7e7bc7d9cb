"""How the simulated model uses the tools of a policy: it saves what it is told, and fetches what has left the context."""

from __future__ import annotations

import re

from agentkit.simulator.framing import FETCHING, user_texts
from agentkit.simulator.topics import content_words
from agentkit.simulator.work import Work

MOST = 3
"""Messages that are called back for one question."""

_LISTED = re.compile(r"^(\S+) \([\d,]+\): (.+)$", re.MULTILINE)
_SAID = re.compile(r"(\S+) “([^”]*)”")
_RECEIPT = "[Receipt:"
SAID = "user said"
"""How a receipt opens its line with the beginnings of what the user said."""


def save(work: Work, text: str) -> None:
    """Save `text` with the tool for that, where there is one. Raises `Missing` with the call."""
    for tool in ("remember", "add_note"):
        if tool in work.tools:
            work.result(tool, text=" ".join(text.split()))


def fetch(work: Work, text: str) -> None:
    """Ask once for what may answer `text`: a message that a receipt names, the notes, or a search.

    Raises `Missing` with the calls. Returns when there is nothing to ask for, or all of it has been asked for: what came is
    in the results of this turn.
    """
    calls = [("recall", {"id": found}) for found in _named(work, text)] if "recall" in work.tools else []
    if "read_notes" in work.tools and "[context cleared]" in "".join(m.content for m in work.known.messages):
        calls.append(("read_notes", {}))
    if "search_conversation" in work.tools and work.known.has_summary and (words := content_words(text)):
        calls.append(("search_conversation", {"query": " ".join(words)}))
    new = [(name, args) for name, args in calls if not work.step(name, **args)]
    if new:
        work.need(*new)


def fetched(work: Work) -> list[str]:
    """Return the lines that tools have fetched in this turn."""
    results = (step.result or "" for step in work.known.turn if step.call.name in FETCHING)
    return [line for result in results for line in result.split("\n")]


def beginnings(line: str) -> list[str]:
    """Return what the receipt's line quotes of the user, each by itself."""
    return [text for _, text in _SAID.findall(line)]


def first_user_text(work: Work) -> str:
    """Return the first thing that the user said, called back by the receipt; empty when no receipt names it."""
    said = _SAID.search(_receipt(work))
    if said is None or "recall" not in work.tools:
        return ""
    return next(iter(user_texts("recall", work.result("recall", id=said[1]))), "")


def _receipt(work: Work) -> str:
    return work.known.summary.partition(_RECEIPT)[2]


def _named(work: Work, text: str) -> list[str]:
    """Return the ids that the receipt has beside names or words of `text`, the best first."""
    wanted = set(content_words(text))
    receipt = _receipt(work)
    shared = [
        (len(wanted & set(content_words(re.sub(r"[_./]", " ", names)))), found)
        for found, names in (*_SAID.findall(receipt), *_LISTED.findall(receipt))
    ]
    least = min(2, len(wanted))
    ranked = sorted((pair for pair in shared if pair[0] >= max(1, least)), key=lambda pair: -pair[0])
    return list(dict.fromkeys(found for _, found in ranked))[:MOST]
