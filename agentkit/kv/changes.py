"""Ways in which the next prompt differs from the last one, as plain chats for a small local model.

The model's chat format knows neither tools nor results, so tools stand in the system prompt as text (where other formats put
them as well), and a result is a user message. The cache sees tokens only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentkit.messages import Message, ToolSpec, assistant, system, user

Chat = tuple[Message, ...]

SUMMARY = (
    "The earlier conversation was summarised. stats.py has 5 functions (mean, median, spread, percentile, running_total) "
    "and 40 lines. Nothing was changed. Open: nothing."
)
OTHER: Chat = (system("Answer in one word."), user("Why is the sky blue?"))
"""What a cold cache holds: a chat that has nothing in common with the next one but the marks that every chat begins with."""

_CLOCK = "It is Monday, 30 November 2026, 10:41:{:02}."


@dataclass(frozen=True)
class Change:
    """One comparison: the chat that the cache holds, and the chat that is sent next."""

    name: str
    before: Chat
    after: Chat


def changes(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[Change]:
    """Return the changes to a conversation that begins with its system prompt and ends with a question."""
    chat = flat(messages, tools)
    more = (assistant("I looked: it is the same."), user("Which of the two files is longer?"))
    short = (chat[0], user(SUMMARY), *chat[-3:])
    clocks = [_with_clock(chat, second) for second in (7, 19)]
    return [
        Change("cold", OTHER, chat),
        Change("the same again", chat, chat),
        Change("one more turn", chat, (*chat, *more)),
        *(Change(f"one word changed at {share}%", chat, change_word(chat, share / 100)) for share in (90, 50, 10)),
        Change("tools in another order", chat, flat(messages, [*tools[1:], *tools[:1]])),
        Change("a clock in the system prompt", *clocks),
        Change("middle replaced by a summary", chat, short),
        Change("one more turn after the summary", short, (*short, *more)),
    ]


def flat(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Chat:
    """Return a conversation as system, user and assistant messages of plain text."""
    listed = "\n".join(f"- {t.name}: {t.description} {json.dumps(t.parameters, ensure_ascii=False)}" for t in tools)
    found = [system(f"{messages[0].content}\n\nTools:\n{listed}" if tools else messages[0].content)]
    for message in messages[1:]:
        calls = "\n".join(f"{call.name}({call.arguments})" for call in message.tool_calls)
        text = "\n".join(filter(None, (message.content, calls)))
        found.append(assistant(text) if message.role == "assistant" else user(text))
    return tuple(found)


def change_word(chat: Chat, share: float) -> Chat:
    """Return the chat with the first word behind `share` of its text written backwards. Raises `ValueError` without one."""
    start = round(share * sum(len(message.content) for message in chat))
    for number, message in enumerate(chat):
        for found in re.finditer(r"[A-Za-z]{4,}", message.content):
            word = found.group()
            if found.start() >= start and word != word[::-1]:
                text = message.content[: found.start()] + word[::-1] + message.content[found.end() :]
                return (*chat[:number], replace(message, content=text), *chat[number + 1 :])
        start -= len(message.content)
    raise ValueError(f"no word of four letters behind {share:.0%} of the chat; choose a smaller share")


def chat_text(chat: Chat) -> str:
    """Return the chat in SmolLM2's format (ChatML), up to where the answer begins."""
    turns = "".join(f"<|im_start|>{message.role}\n{message.content}<|im_end|>\n" for message in chat)
    return turns + "<|im_start|>assistant\n"


def _with_clock(chat: Chat, second: int) -> Chat:
    first = replace(chat[0], content=f"{_CLOCK.format(second)} {chat[0].content}")
    return (first, *chat[1:])
