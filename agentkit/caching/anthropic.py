"""Anthropic's cache: nothing without a mark, an entry at each mark, and a look back from each mark for an earlier entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentkit.caching.parts import what_differs
from agentkit.caching.prefix import CacheResult, Kind, Life, Node, PrefixTree, Segment

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
    """The cache holds the prompt up to here, for anybody to read from `ready` on (before, the writer waits) until `end`."""

    life: Life
    ready: float
    end: float

    def state(self, at: float) -> str:
        if at >= self.end:
            return EXPIRED
        return "" if at >= self.ready else NOT_READY

    def keep(self, at: float) -> None:
        """Live on: whoever reads it, or would write it again, does so from `at` on."""
        self.end = max(self.end, at + LIVES[self.life])


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
        return self.observe_marked(prompt, {i: part.mark for i, part in enumerate(prompt) if part.mark}, at)

    def observe_marked(self, prompt: Sequence[Segment], marks: Mapping[int, Life], at: float = 0.0) -> CacheResult:
        """Account for `prompt` with `marks` at these positions, in order: for a client that knows where it put them."""
        check_marks([(prompt[i].kind, life) for i, life in marks.items()])
        path, known = self._tree.follow(prompt)
        total = path[-1].end if path else 0
        entries = [node for i in marks if (node := self._look_back(prompt, path, i, at))]
        read = max((node.end for node in entries), default=0)
        cause = self._cause(path, known, max(marks, default=None), read, at)
        for node in entries:
            node.note.keep(at)
        ends = self._write(path, marks, at)
        written, hour = (max(0, end - read) for end in ends)
        return CacheResult(read, written, total - read - written, hour, cause)

    def _look_back(self, prompt: Sequence[Segment], path: Sequence[Node], mark: int, at: float) -> Node | None:
        """Return the nearest entry that can be read from `mark`: within `look_back` blocks. Parameters are no blocks."""
        left = self.look_back
        for i in range(mark, -1, -1):
            if left == 0:
                break
            entry: _Entry | None = path[i].note
            if entry and entry.ready <= at < entry.end:
                return path[i]
            left -= prompt[i].kind != "parameter"
        return None

    def _write(self, path: Sequence[Node], marks: Mapping[int, Life], at: float) -> tuple[int, int]:
        """Make an entry at each mark that has none; return the end of the last mark, and of the last with a long life.

        A mark inside what is read makes an entry too, and costs nothing: only what lies behind the hit is billed as
        written. An entry that lives keeps the life it was written with.
        """
        ends = {"5m": 0, "1h": 0}
        for i, life in marks.items():
            node = path[i]
            if node.end < self.minimum:
                continue
            ends[life] = node.end
            old: _Entry | None = node.note
            if old is None or at >= old.end:
                node.note = _Entry(life, at + self.delay, at + LIVES[life])
            elif at < old.ready:
                old.keep(at)
        return max(ends.values()), ends["1h"]

    def _cause(self, path: Sequence[Node], known: int, last: int | None, read: int, at: float) -> str:
        """Say why more was not read, as far as earlier requests had cached more of this prompt, or of one like it."""
        if last is None:
            return NO_MARK
        if path[last].end < self.minimum:
            return BELOW_MINIMUM
        for i in reversed(range(known)):  # the last entry decides
            if path[i].note:
                if path[i].end > read:
                    return path[i].note.state(at) or OUT_OF_REACH
                break
        after = path[known - 1] if known else self._tree.root
        if known == len(path) or len(after.children) == 1:
            return ""
        return what_differs([(data, node.kind) for data, node in after.children.items()]) + " changed"


def check_marks(marked: Sequence[tuple[Kind, Life]]) -> None:
    """Raise `ValueError`, in the API's words, when the marks of a request are too many or on a kind of block without."""
    if len(marked) > MOST_MARKS:
        raise ValueError(f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {len(marked)}.")
    for kind, _ in marked:
        if kind == "empty":
            raise ValueError("cache_control cannot be set for empty text blocks")
        if kind in ("thinking", "parameter"):
            raise ValueError(f"{kind}.cache_control: Extra inputs are not permitted")
    lives = [life for _, life in marked]
    if "5m" in lives and "1h" in lives[lives.index("5m") :]:
        raise ValueError(
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
            "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
        )
