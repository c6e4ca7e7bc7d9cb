"""Anthropic's cache: nothing without a mark, an entry at each mark, and a look back from each mark for an earlier entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentkit.caching.parts import what_differs
from agentkit.caching.prefix import CacheResult, Life, Node, PrefixTree, Segment

LIVES: dict[Life, float] = {"5m": 300.0, "1h": 3_600.0}
"""How long an entry lives, in seconds from the start of the request that wrote it or last read it."""

MOST_MARKS = 4
LOOK_BACK = 20

NO_MARK = "no mark"
BELOW_MINIMUM = "below minimum"
EXPIRED = "expired"
NOT_READY = "not ready"
OUT_OF_REACH = "out of reach"


@dataclass
class _Entry:
    """The cache holds the prompt up to here. `ready`: nobody can read it before (the writing request still waits)."""

    life: Life
    since: float
    ready: float

    def state(self, at: float) -> str:
        if at >= self.since + LIVES[self.life]:
            return EXPIRED
        return "" if at >= self.ready else NOT_READY


class AnthropicCache:
    """Read the longest entry that a mark can see, and write up to the last mark.

    Every segment is one block: a tool, a system text, a content block of a message. They come in the order in which the
    server hashes them (`parts.arrange`). The rules: at most four marks; an entry is written only at a mark, and only if the
    prompt up to it has `minimum` tokens (512 to 4,096, by model), else silently not; each mark looks back over `look_back`
    blocks, itself counted; whatever it finds lives on from this request's start. `delay` is the time in seconds until the
    answer begins; before that nobody else can read what was written. Source: Anthropic's prompt caching page, 2026-08-21.
    """

    def __init__(self, minimum: int = 1_024, look_back: int = LOOK_BACK, delay: float = 0.0) -> None:
        self.minimum, self.look_back, self.delay = minimum, look_back, delay
        self._tree = PrefixTree()

    def observe(self, prompt: Sequence[Segment], at: float = 0.0, output: Segment | None = None) -> CacheResult:
        """Account for `prompt`; the output is written only when it is sent again before a mark.

        Raises `ValueError`, in that API's words, on marks that it refuses.
        """
        marks = [i for i, segment in enumerate(prompt) if segment.mark]
        check_marks([prompt[i] for i in marks])
        path, known = self._tree.follow(prompt)
        total = path[-1].end if path else 0
        entries = [node for i in marks for node in self._look_back(prompt, path, i, at)]
        read = max((node.end for node in entries), default=0)
        cause = self._cause(path, known, marks, read, at)
        for node in entries:
            node.note.since = max(node.note.since, at)
        ends = self._write(prompt, path, marks, at)
        written, hour = (max(0, end - read) for end in ends)
        return CacheResult(read, written, total - read - written, hour, cause)

    def _look_back(self, prompt: Sequence[Segment], path: Sequence[Node], mark: int, at: float) -> list[Node]:
        """Return the nearest entry that can be read from `mark`, in a list, or an empty list."""
        nodes = (path[i] for i in _blocks_back(prompt, mark, self.look_back))
        found = next((node for node in nodes if node.note and not node.note.state(at)), None)
        return [found] if found else []

    def _write(self, prompt: Sequence[Segment], path: Sequence[Node], marks: list[int], at: float) -> tuple[int, int]:
        """Make an entry at each mark that has none; return the end of the last mark, and of the last with a long life.

        A mark inside what is read makes an entry too, and costs nothing: only what lies behind the hit is billed as
        written. An entry that lives keeps the life it was written with.
        """
        ends = {"5m": 0, "1h": 0}
        for i in marks:
            node, life = path[i], prompt[i].mark
            if life is None or node.end < self.minimum:
                continue
            ends[life] = node.end
            old: _Entry | None = node.note
            if old is None or old.state(at) == EXPIRED:
                node.note = _Entry(life, at, at + self.delay)
            elif old.state(at) == NOT_READY:
                old.since = max(old.since, at)
        return max(ends.values()), ends["1h"]

    def _cause(self, path: Sequence[Node], known: int, marks: list[int], read: int, at: float) -> str:
        """Say why more was not read, as far as earlier requests had cached more of this prompt, or of one like it."""
        if not marks:
            return NO_MARK
        if path[marks[-1]].end < self.minimum:
            return BELOW_MINIMUM
        deepest = next((path[i] for i in reversed(range(known)) if path[i].note), None)
        if deepest and deepest.end > read:
            return deepest.note.state(at) or OUT_OF_REACH
        after = path[known - 1] if known else self._tree.root
        if known == len(path) or len(after.children) == 1:
            return ""
        return what_differs([(data, node.kind) for data, node in after.children.items()]) + " changed"


def _blocks_back(prompt: Sequence[Segment], mark: int, most: int) -> Iterator[int]:
    """Yield the positions from `mark` backwards, `most` blocks in all. Parameters are no blocks."""
    for i in range(mark, -1, -1):
        if most == 0:
            return
        if prompt[i].kind != "parameter":
            most -= 1
            yield i


def check_marks(marked: Sequence[Segment]) -> None:
    """Raise `ValueError`, in the API's words, when the marked segments of a request are too many or misplaced."""
    if len(marked) > MOST_MARKS:
        raise ValueError(f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {len(marked)}.")
    for segment in marked:
        if segment.kind == "empty":
            raise ValueError("cache_control cannot be set for empty text blocks")
        if segment.kind in ("thinking", "parameter"):
            raise ValueError(f"{segment.kind}.cache_control: Extra inputs are not permitted")
    lives = [segment.mark for segment in marked]
    if "5m" in lives and "1h" in lives[lives.index("5m") :]:
        raise ValueError(
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
            "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
        )
