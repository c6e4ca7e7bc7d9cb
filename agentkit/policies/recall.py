"""Tools that a policy offers to the model: search what left the view, save a fact, read notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentkit.messages import Message, ToolSpec
from agentkit.policies.ranking import words
from agentkit.tools.base import Arguments, Tool, ToolError
from agentkit.tools.text import clip

PAGE = 5
LONGEST = 2_000
"""Characters of one message in an answer of the search."""


def search_tool(evicted: Callable[[], Sequence[Message]]) -> Tool:
    """Return `search_conversation`, which looks through what `evicted` gives: the messages that left the view."""

    def run(arguments: Arguments) -> str:
        query, page = arguments["query"], arguments.get("page", 1)
        if page < 1:
            raise ToolError(f"page {page}: pages are counted from 1")
        found = matches(query, evicted())
        if not found:
            return "no earlier message has these words; try fewer or other words"
        shown = found[(page - 1) * PAGE : page * PAGE]
        pages = -(-len(found) // PAGE)
        lines = [f"[{m.role}] {clip(m.content, LONGEST)}" for m in shown]
        return "\n\n".join([f"{len(found)} found, page {page} of {pages}", *lines])

    properties = {
        "query": {"type": "string", "description": "words of what was said or shown"},
        "page": {"type": "integer", "description": "counted from 1; 1 when left out"},
    }
    description = f"Search the earlier messages that are no longer in your context; {PAGE} a page, the best first."
    return _tool("search_conversation", description, properties, ["query"], run)


def matches(query: str, messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the whole `query` in them; if there are none, those with most of its words first."""
    exact = [m for m in messages if query.lower() in m.content.lower()]
    if exact:
        return exact
    wanted = set(words(query))
    scored = [(len(wanted & set(words(m.content))), -i, m) for i, m in enumerate(messages)]
    return [m for score, _, m in sorted(scored, key=lambda s: s[:2], reverse=True) if score]


def remember_tool(save: Callable[[str], None]) -> Tool:
    """Return `remember`, which keeps one fact in view for good."""

    def run(arguments: Arguments) -> str:
        text = " ".join(arguments["text"].split())
        if not text:
            raise ToolError("there is nothing in the text; say what to remember")
        save(text)
        return f"saved: {text}"

    properties = {"text": {"type": "string", "description": "the fact, in one sentence"}}
    return _tool("remember", "Save a fact; it stays in your context when messages leave it.", properties, ["text"], run)


def read_notes_tool(read: Callable[[], str]) -> Tool:
    """Return `read_notes`, which gives the notes back."""

    def run(arguments: Arguments) -> str:
        return read() or "the notes are empty"

    return _tool("read_notes", "Read NOTES.md, your own notes on the work so far.", {}, [], run)


def add_note_tool(add: Callable[[str], None]) -> Tool:
    """Return `add_note`, which appends to the notes."""

    def run(arguments: Arguments) -> str:
        if not arguments["text"].strip():
            raise ToolError("there is nothing in the text; say what to note")
        add(arguments["text"].strip())
        return "noted in NOTES.md"

    properties = {"text": {"type": "string", "description": "what to note"}}
    return _tool("add_note", "Append to NOTES.md, your own notes on the work.", properties, ["text"], run)


def _tool(
    name: str, description: str, properties: dict[str, object], required: list[str], run: Callable[[Arguments], str]
) -> Tool:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Tool(ToolSpec(name, description, schema), run)
