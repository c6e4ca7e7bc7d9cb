"""What stands in a request and is not from the user: summaries, memories, maps and warnings that a policy puts there.

A language model takes these for what they say they are. So does the simulated one: by their opening words, as they are sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agentkit.messages import Message

_SUMMARY = re.compile(
    r"\A(?:SUMMARY:\n|This reminds you of these events from your past:\s*"
    r"|Another model worked on this task before and left this summary of its work\.[^\n]*\n+)"
)
_ALERT = '{"type": "system_alert"'
_CLEARED = "[context cleared]"
_MAP = "These are the signatures of other files of the project;"
_NOTICES = ("[system note]", "[memory pressure]", _MAP)
_PAIR = re.compile(r"(?:(?:done|results|facts): [^\n]*\n?)+")
_SAVED = "Saved facts:\n"


_CODEX = "Another model worked on this task before"
_LINES = re.compile(r"(?:[a-z][a-z ]{0,40}: [^\n]*(?:\n|\Z))+")


def separate(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Part what a policy put in from what the user said, where an API has made one message of neighbours of one role."""
    return tuple(part for message in messages for part in _parts(message))


def _parts(message: Message) -> list[Message]:
    paragraphs = message.content.split("\n\n") if message.role == "user" and "\n\n" in message.content else []
    if not any(_is_frame(text) for text in paragraphs):
        return [message]
    texts: list[str] = []
    for text in paragraphs:
        last = texts[-1] if texts else ""
        if last.startswith(_MAP) or (last.startswith(_CODEX) and _LINES.fullmatch(text)):
            texts[-1] += f"\n\n{text}"
        else:
            texts.append(text)
    return [replace(message, content=text) for text in texts]


def _is_frame(text: str) -> bool:
    return text.startswith((_CODEX, _ALERT, _CLEARED, *_NOTICES)) or _PAIR.fullmatch(text) is not None


def inserted(message: Message) -> str | None:
    """Return the summary that the message as a whole is; an empty text: one without words; None: it is something else."""
    text = message.content
    if message.role != "tool" and (opening := _SUMMARY.match(text)):
        return text[opening.end() :].strip()
    if message.role != "user":
        return None
    if text.startswith(_ALERT):
        return _of_alert(text)
    if text.startswith(_CLEARED):
        return ""
    return text.strip() if _PAIR.fullmatch(text) else None


def is_notice(text: str) -> bool:
    """Say whether a user message is a note of the client: nothing that the user said."""
    return text.startswith(_NOTICES)


def saved_facts(messages: Iterable[Message]) -> list[str]:
    """Return the facts that the model has saved and that stand behind the system prompt."""
    texts = (m.content for m in messages if m.role == "system" and m.content.startswith(_SAVED))
    return [line.removeprefix("- ") for text in texts for line in text.removeprefix(_SAVED).split("\n") if line]


FETCHING = ("recall", "search_conversation", "read_notes")
"""Tools that policies offer: they bring back what has left the context."""

_USER = re.compile(r"^\[user(?: [^\]\n]*)?\]\s+([^\n]+)", re.MULTILINE)


def user_texts(tool: str, result: str) -> list[str]:
    """Return what the user said, as a tool that fetches brings it back word for word."""
    return _USER.findall(result) if tool in FETCHING else []


def _of_alert(text: str) -> str | None:
    try:
        told = str(json.loads(text).get("message", ""))
    except (ValueError, AttributeError):
        return None
    return told.partition("summary of them:\n")[2].strip()
