"""Where to put marks: on what stays the same, and where the next request will look for it.

A placement takes the blocks of a request and returns the positions to mark, in order. It looks at content, never at position
alone: thinking and empty text cannot carry a mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Protocol

from agentkit.caching.anthropic import MOST_MARKS
from agentkit.caching.prefix import Kind, Life, Segment

EVERY = 15
"""Blocks between marks in a long turn: under the look-back of 20, with room for thinking that cannot carry a mark."""

_HEAD: tuple[Kind, ...] = ("tools", "system")
_MESSAGE: tuple[Kind, ...] = ("user", "assistant")
_TALK: tuple[Kind, ...] = (*_MESSAGE, "thinking")
_NOT_SENT: tuple[Kind, ...] = ("parameter", "empty")


class Block(Protocol):
    """What a placement needs to know of a block: its kind, and the mark that it has already. A `Segment` is one."""

    @property
    def kind(self) -> Kind:
        """Return what the block is."""
        ...

    @property
    def mark(self) -> Life | None:
        """Return the mark that came with it."""
        ...


Placement = Callable[[Sequence[Block]], list[int]]


def no_marks(blocks: Sequence[Block]) -> list[int]:
    """Mark nothing: every token is billed in full, every time."""
    return []


def system_only(blocks: Sequence[Block]) -> list[int]:
    """Mark the end of the system prompt (which covers the tools) and never a message."""
    return _head(blocks, tools_too=False)


def last_message_only(blocks: Sequence[Block]) -> list[int]:
    """Mark the newest user message only: what `cache_control` on the whole request does. A long turn breaks it."""
    return list(islice(_user_ends(blocks), 1))


def place(
    blocks: Sequence[Block], *, tools_too: bool = False, every: int = EVERY, carried: Iterable[int] | None = None
) -> list[int]:
    """Return where to put marks, best first until four are used: the system prompt, the newest user message, the one before.

    What is left goes `every` blocks apart, back from the newest mark, so that a long turn stays within the look-back. The
    mark on the system prompt covers the tools; `tools_too` gives the last tool one of its own, before all others, for an
    agent whose system prompt changes. Marks that the blocks carry already count; a caller that knows where they are says
    so in `carried`, and then only the head and the last few blocks are looked at.
    """
    taken = {i for i, block in enumerate(blocks) if block.mark} if carried is None else set(carried)
    room = MOST_MARKS - len(taken)
    chosen: list[int] = []
    for i in chain(_head(blocks, tools_too), islice(_user_ends(blocks), 2), _steps(blocks, taken, every)):
        if i not in taken and len(chosen) < room:
            chosen.append(i)
            taken.add(i)
        if len(chosen) >= room:
            break
    return sorted(chosen)


PLACEMENTS: dict[str, Placement] = {
    "none": no_marks,
    "system only": system_only,
    "last message only": last_message_only,
    "recommended": place,
}


def add_marks(
    prompt: Sequence[Segment], places: Sequence[int], life: Life = "5m", *, head: Life | None = None
) -> list[Segment]:
    """Return a copy of `prompt` with marks at `places`; the segments given stay as they are.

    `head` is the life of marks on tools and system, where it is another: the longer life has to come first.
    """
    marked = list(prompt)
    for i in places:
        marked[i] = replace(marked[i], mark=(head or life) if marked[i].kind in _HEAD else life)
    return marked


def _head(blocks: Sequence[Block], tools_too: bool) -> list[int]:
    """Return the last block of the system prompt, or the last tool; both, the tool first, with `tools_too`."""
    last: dict[Kind, int] = {}
    for i, block in enumerate(blocks):
        if block.kind in _TALK:
            break  # a system note further on is no stable head
        last[block.kind] = i
    found = [last[kind] for kind in _HEAD if kind in last]
    return found if tools_too else found[-1:]


def _user_ends(blocks: Sequence[Block]) -> Iterator[int]:
    """Yield the last block of each user message, newest first. Results of parallel calls are one message."""
    inside = False
    for i in range(len(blocks) - 1, -1, -1):
        kind = blocks[i].kind
        if kind in _NOT_SENT:
            continue
        if kind == "user" and not inside:
            yield i
        inside = kind == "user"


def _steps(blocks: Sequence[Block], taken: set[int], every: int) -> Iterator[int]:
    """Yield positions `every` blocks behind a mark, from the newest mark back to the first message."""
    distance: int | None = None
    for i in range(len(blocks) - 1, -1, -1):
        kind = blocks[i].kind
        if kind in _HEAD:
            return
        if i in taken:
            distance = 0
        elif distance is not None and kind not in _NOT_SENT:
            distance += 1
            if distance >= every and kind in _MESSAGE:
                distance = 0
                yield i
