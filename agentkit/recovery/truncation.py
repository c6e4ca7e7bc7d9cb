"""Truncation, the last resort: the oldest messages leave the view without a summary, long tool results keep their start.

It is recorded as a compaction entry like any other: the log says what was left out and keeps all of it, and a resumed
session shows the same. `shown` makes that hold for every policy, also for one that looks at no compactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agentkit.compaction.compactor import summary_message
from agentkit.compaction.cut import Keep, find_cut
from agentkit.compaction.transcript import clip as shorten
from agentkit.log import Compaction, Log, project, shown_messages, with_question
from agentkit.messages import Message
from agentkit.settle import settle

TRUNCATION = "truncation"
"""The name under which a truncation stands in a record."""

CLIPS = (16_000, 4_000, 1_000, 200)
"""Characters left of each tool result and of the earlier summary, from the mildest. Only what is longer is cut."""


def truncate(log: Log, keep: int, clip: int = 0) -> Compaction | None:
    """Return the record that leaves the last `keep` messages and `clip` characters of each tool result and of the summary.

    0 means all of them. The system prompt and the question of the running turn stay. None when nothing would be left out.
    """
    view = project(log)
    cut = find_cut(view.tail, Keep(keep, "messages"), "pair") if keep else 0
    dropped = len(view.tail) - len(with_question(view.tail, cut))
    earlier = view.compaction
    said = earlier.summary if earlier else ""
    long = clip and (len(said) > clip or any(m.role == "tool" and len(m.content) > clip for m in view.tail))
    if not view.tail or not (dropped > 0 or long):
        return None
    note = _note(dropped, clip if long else 0)
    summary = f"{shorten(said, clip) if clip else said}\n{note}".strip()
    placement = earlier.placement if earlier else "system"
    # With nothing dropped the cut stays where it was: the tail may start with an older question that was pinned.
    first = earlier.first_kept if earlier and not cut else next(m.id for m in view.tail[cut:] if m.role != "system")
    return Compaction(
        summary, first, dropped, reason="overflow", policy=TRUNCATION, placement=placement, clip=clip if long else 0
    )


def _note(dropped: int, clip: int) -> str:
    parts = []
    if dropped:
        parts.append(f"{dropped} more messages were left out here, without a summary, because the context was too long.")
    if clip:
        parts.append(f"Long tool results show their first {clip:,} characters; read the rest in parts where it is needed.")
    return " ".join(parts)


def truncations(log: Log, keep: int) -> Iterator[Compaction]:
    """Yield the ways to truncate, from the mildest.

    First only giant results are cut; then messages go, down to `keep`, two by two; then long results are cut ever shorter.
    """
    sizes = [*range(keep, 0, -2)] + [1] * (keep % 2 == 0)
    ways = [(0, CLIPS[0]), *((size, 0) for size in sizes)]
    ways += [(size, clip) for clip in CLIPS for size in (0, *sizes)]
    for size, clip in ways:
        if record := truncate(log, size, clip):
            yield record


def smallest(log: Log, *, clipped: bool) -> Compaction | None:
    """Return the harshest truncation: what it leaves is what has to stay."""
    return truncate(log, 1, CLIPS[-1] if clipped else 0)


def shown(view: tuple[Message, ...], log: Log) -> tuple[Message, ...]:
    """Return the `view` of any policy as the truncations in `log` left it: a pure function of both."""
    branch = log.branch()
    records = [e.compaction for e in branch if e.compaction and e.compaction.status == "done"]
    cuts = [c for c in records if c.policy == TRUNCATION]
    if not cuts:
        return view
    whole, short = log.messages(), {m.id: m for m in shown_messages(branch)}
    start = next(i for i, m in enumerate(whole) if m.id == cuts[-1].first_kept)
    known = [e.seq for e in branch if e.compaction is cuts[-1]][0]
    size = sum(e.message is not None for e in branch if e.seq < known)
    kept = {m.id for m in with_question(whole, start, size)}
    gone = {m.id for m in whole if m.role != "system"} - kept
    left = [_as_shown(m, short) for m in view if m.id not in gone]
    if records[-1] is cuts[-1] and not any(cuts[-1].summary in m.content for m in left):
        at = next((i for i, m in enumerate(left) if m.role != "system"), len(left))
        left.insert(at, summary_message(cuts[-1]))
    return settle(left)


def _as_shown(message: Message, short: dict[str, Message]) -> Message:
    """Shorten a result that the policy shows whole; what a policy has rewritten is its own."""
    known = short.get(message.id)
    if known is None or message.role != "tool" or len(message.content) <= len(known.content):
        return message
    return replace(message, content=known.content)
