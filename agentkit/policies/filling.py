"""How AutoGPT filled a small window: newest first, until one does not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from agentkit.messages import Message, system
from agentkit.policies.branch import Round, pending

TOKEN_LIMIT = 4_000
"""AutoGPT's fast limit in 2023: the window of gpt-3.5-turbo."""
FOR_THE_ANSWER = 1_000

_BEGINNING = datetime(2023, 4, 16, 12, 0, 0)


def clock(step: int) -> str:
    """Return a time for step `step`, half a minute after the one before.

    A view follows from the log alone, and the log has no times; what counts is that the text is another one each time.
    """
    return (_BEGINNING + timedelta(seconds=30 * step)).strftime("%c")


def time_message(step: int, tell: Callable[[int], str]) -> Message:
    """Return the message with the time that stood behind the system prompt."""
    return system(f"The current time and date is {tell(step)}")


def always_sent(body: Sequence[Message]) -> list[int]:
    """Return the positions of what is sent in any case: the newest user message, and what waits for an answer."""
    newest = next((i for i in range(len(body) - 1, -1, -1) if body[i].role == "user"), None)
    first = pending(body)
    return sorted({*([] if newest is None else [newest]), *range(first, len(body))})


def fill(
    body: Sequence[Message],
    count: Callable[[Message], int],
    room: int,
    *,
    cycles: Sequence[Round] | None = None,
    stops: bool = True,
) -> list[int]:
    """Return the positions of the messages that are sent: those that are sent anyway, and newest first what fits.

    `room` are the tokens for all of them. `cycles`: whole rounds instead of single messages. `stops`: end at the first that
    does not fit, even if older ones would.
    """
    anyway = set(always_sent(body))
    room -= sum(count(body[i]) for i in anyway)
    chosen = set(anyway)
    units = reversed([range(c.start, c.stop) for c in cycles]) if cycles else (range(i, i + 1) for i in _backwards(body))
    for unit in units:
        new = [i for i in unit if i not in anyway]
        size = sum([count(body[i]) for i in new])
        if size > room:
            if stops:
                break
            continue
        chosen.update(new)
        room -= size
    return sorted(chosen)


def _backwards(body: Sequence[Message]) -> range:
    return range(len(body) - 1, -1, -1)
