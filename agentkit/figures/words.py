"""The strip without graphics: the result as sentences, and rows of letters for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from agentkit.figures.palette import LOOKS
from agentkit.figures.rows import Group, Row


def describe(rows: Sequence[Row]) -> str:
    """Return what the strip shows, for those who do not see it."""
    if not rows:
        return "Context strip with no request yet."
    return " ".join(s for s in (_growth(rows), *_compactions(rows), _misses(rows), _totals(rows)) if s)


def caption(rows: Sequence[Row], title: str, drawn: int) -> str:
    """Return the line under the strip: title, totals, and how many requests a drawn row stands for."""
    size = -(-len(rows) // drawn) if drawn else 1
    note = f"Each row stands for up to {size} requests and shows the last of them, with the marks of all."
    parts = (f"{title.rstrip('.')}." if title else "", _totals(rows), note if size > 1 else "")
    return " ".join(part for part in parts if part)


def _growth(rows: Sequence[Row]) -> str:
    first, last = rows[0], rows[-1]
    if len(rows) == 1:
        return f"Context strip of request {first.number}: a prompt of {first.prompt:,} tokens."
    largest = max(rows, key=lambda r: r.prompt)
    ends = f"{first.prompt:,} tokens in request {first.number}, {last.prompt:,} in request {last.number}"
    top = "" if largest in (first, last) else f", {largest.prompt:,} at most (request {largest.number})"
    return f"Context strip of {len(rows)} requests. The prompt has {ends}{top}."


def _compactions(rows: Sequence[Row]) -> Iterator[str]:
    found = [(a, b) for a, b in zip(rows, rows[1:], strict=False) if "compaction" in b.marks]
    for before, row in found[:3]:
        change = f"{before.prompt:,} to {row.prompt:,} tokens"
        yield f"A compaction before request {row.number} takes the prompt from {change}."
    if len(found) > 3:
        yield f"{len(found) - 3} more compactions follow."


def _misses(rows: Sequence[Row]) -> str:
    numbers = [str(r.number) for r in rows if "cache miss" in r.marks]
    if len(numbers) < 2:
        return f"Cache miss at request {numbers[0]}." if numbers else ""
    more = f" and {len(numbers) - 10} more" if len(numbers) > 10 else ""
    return f"Cache misses at requests {', '.join(numbers[:10])}{more}."


def _totals(rows: Sequence[Row]) -> str:
    prompt, read = sum(r.prompt for r in rows), sum(r.cache_read for r in rows)
    count = f"{len(rows)} request{'' if len(rows) == 1 else 's'}"
    share = f", {read:,} of them read from the cache ({read / prompt:.0%})" if prompt else ""
    return f"{count}: {prompt:,} prompt tokens{share}, {sum(r.output for r in rows):,} output tokens."


def as_text(groups: Sequence[Group], top: int, caption: str, width: int) -> str:
    """Return the strip as letters, at most `width` columns: capitals are fresh (or written), small letters were read."""
    written = any(g.row.cache_write for g in groups)
    label = max([len(g.label) for g in groups], default=1)
    names = ["prompt", "read", *(["written"] if written else []), "fresh", "output"]
    room = min(40, width - label - 2 - 9 * len(names) - len("  cache miss"))
    lines = ["".join([" " * (label + 2 + room), *(f"{name:>9}" for name in names)])]
    for group in groups:
        row = group.row
        if "compaction" in row.marks:
            lines.append(" " * (label + 2) + "-- compaction --")
        numbers = [row.prompt, row.cache_read, *([row.cache_write] if written else []), row.fresh, row.output]
        rest = ", ".join(m for m in row.marks if m != "compaction")
        bar = f"{group.label:>{label}}  {_bar(row, room / top):<{room}}" + "".join(f"{n:>9,}" for n in numbers)
        lines.append(f"{bar}  {rest}".rstrip())
    return "\n".join([*lines, *textwrap.wrap(_key(groups, top / room), width), *textwrap.wrap(caption, width)])


def _bar(row: Row, scale: float) -> str:
    bar, at = "", 0
    for block in row.blocks:
        for state, tokens in block.pieces():
            at += tokens
            letter = LOOKS[block.part].letter
            bar += (letter.lower() if state == "read" else letter) * (round(at * scale) - len(bar))
    return bar


def _key(groups: Sequence[Group], tokens: float) -> str:
    parts = {b.part for g in groups for b in g.row.blocks}
    names = ", ".join(f"{look.letter} {look.name}" for part, look in LOOKS.items() if part in parts)
    return f"{names}; small letters: read from the cache; one letter: {tokens:,.0f} tokens"
