"""Replay a session as it was recorded and hold it against its real bills: how far off, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from agentkit.cache_rules import cache_rule
from agentkit.pricing import Prices, UnknownModel, plain, prices
from agentkit.replay.caches import cache_for
from agentkit.replay.counted import Counted, Point
from agentkit.replay.run import OPEN_LOOP, Row, replay
from agentkit.replay.schedules import AsRecorded
from agentkit.tokens import relative_error


@dataclass(frozen=True)
class Comparison:
    """A session as recorded, modelled and real.

    Errors are shares of the real prompt: -0.2 means 20 % too low. `error` is the median over the requests and `worst` the
    one in twenty furthest off, both of the plain count; `calibrated` is the median size of the error that is left when the
    count is multiplied by `ratio`, real tokens per counted token. `read_model` and `read_real` are shares of all prompt
    tokens. `reasons` explain what is off.
    """

    session: str
    model: str
    calls: int
    billed: int
    error: float
    worst: float
    ratio: float
    calibrated: float
    read_model: float
    read_real: float
    reasons: tuple[str, ...]

    @property
    def read_error(self) -> float:
        """Return modelled minus real share of tokens read from the cache."""
        return self.read_model - self.read_real


def compare(counted: Counted) -> Comparison:
    """Compare `counted` as recorded with its real bills. Raises `ValueError` when it has none."""
    pairs = [(i, p) for i, p in enumerate(counted.points) if p.usage is not None and p.usage.prompt > 0]
    if not pairs:
        raise ValueError(f"{counted.session.id}: no real usage in this session, so there is nothing to compare with")
    found, guessed = _prices(counted.session.model)
    real = [p.usage.prompt for _, p in pairs if p.usage]
    warm = bool(pairs[0][1].usage and pairs[0][1].usage.cache_read)
    run = replay(counted, AsRecorded(), found, cache_for(found), warm=warm)
    rows = [run.requests[i] for i, _ in pairs]
    errors = [relative_error(row.sent, bill) for row, bill in zip(rows, real, strict=True)]
    ratio = _ratio(counted, rows, [p for _, p in pairs])
    fitted = [counted.fixed + ratio * (row.sent - counted.fixed) for row in rows]
    left = [abs(relative_error(fit, bill)) for fit, bill in zip(fitted, real, strict=True)]
    bills = [p.usage for _, p in pairs if p.usage]
    return Comparison(
        counted.session.id,
        f"{found.model}{' (assumed)' if guessed else ''}",
        len(counted.points),
        len(pairs),
        median(errors),
        sorted(errors, key=abs)[max(0, round(len(errors) * 0.95) - 1)],
        ratio,
        median(left),
        sum(row.read for row in rows) / sum(row.sent for row in rows),
        sum(b.cache_read for b in bills) / sum(real),
        tuple(_reasons(counted, found, rows, [p for _, p in pairs], ratio, warm)),
    )


def _prices(model: str) -> tuple[Prices, bool]:
    """Return the prices of the recorded model, which decide its cache rule; a plain list when nobody knows it."""
    for name in (model, model.rpartition("/")[2].replace(".", "-").removesuffix("-fast")):
        try:
            return prices(name), False
        except UnknownModel:
            continue
    return plain(model or "unknown", fresh=1.0, read=0.1, output=5.0), True


def _ratio(counted: Counted, rows: Sequence[Row], points: Sequence[Point]) -> float:
    """Return real tokens per counted token: the median over requests of what they have beyond the fixed part."""
    ratios = [
        (point.usage.prompt - counted.fixed) / (row.sent - counted.fixed)
        for row, point in zip(rows, points, strict=True)
        if point.usage and row.sent - counted.fixed > 2_000 and point.usage.prompt > counted.fixed
    ]
    return median(ratios) if ratios else 1.0


# --------------------------------------------------------------------------------------------------------------------- why


def _reasons(
    counted: Counted, found: Prices, rows: Sequence[Row], points: Sequence[Point], ratio: float, warm: bool
) -> Iterator[str]:
    bills = [p.usage for p in points if p.usage]
    if counted.fixed:
        share = counted.fixed / bills[0].prompt
        yield f"fixed overhead: {counted.fixed:,} tokens ({share:.0%} of the first prompt) not in the log, as its bill says"
    if abs(ratio - 1) > 0.05:
        yield f"another tokenizer, or text not in the log: {ratio:.2f} real tokens for one of {counted.texts.name}"
    if hidden := sum(b.reasoning for b in bills):
        yield f"hidden reasoning: {hidden:,} tokens were billed as output; the log does not show whether they are sent again"
    if counted.output_from.endswith("too small)"):
        yield "output counters of the log are not to be believed; the text was counted"
    if len(bills) < len(counted.points):
        yield f"{len(counted.points) - len(bills)} of {len(counted.points)} calls have no bill"
    yield from _jumps(counted, rows, points)
    yield from _cache_reasons(found, rows, points, warm)
    models = sorted({item.model for item in counted.session.items if item.model})
    if len(models) > 1:
        yield f"more than one model answered ({', '.join(models)}): another tokenizer, and a cache of its own"
    if evicted := sum("evicted" in m.content[:120].lower() for m in counted.body if m.role == "tool"):
        yield f"{evicted} tool results were evicted by the client: their text is a one-line mark, the bill had the whole"


def _jumps(counted: Counted, rows: Sequence[Row], points: Sequence[Point]) -> Iterator[str]:
    """Find prompts that became much smaller, in the bills and in the replay; they should be the same ones."""
    real = _drops([p.usage.prompt for p in points if p.usage])
    model = _drops([row.sent for row in rows])
    for place in model:
        late = next((r - place for r in real if 0 <= r - place <= 5), None)
        if late is None:
            yield f"the compaction before request {rows[place].number} is not to be seen in the bills"
        elif late:
            yield f"the compaction before request {rows[place].number} is in the bills {late} requests later"
    alone = [place for place in real if not any(0 <= place - m <= 5 for m in model)]
    if alone:
        bills = points[alone[0] - 1].usage, points[alone[0]].usage
        what = " -> ".join(f"{bill.prompt:,}" for bill in bills if bill)
        where = _some([rows[place].number for place in alone])
        several = ", or the file holds several sessions" if len(alone) > 2 else ""
        yield f"the prompt shrank {len(alone)} x and the log does not show why ({where}; first {what}){several}"


def _some(numbers: Sequence[int], most: int = 6) -> str:
    """Return the numbers of requests, the first ones of many."""
    shown = ", ".join(str(number) for number in numbers[:most])
    return f"request{'s' if len(numbers) > 1 else ''} {shown}" + (" ..." if len(numbers) > most else "")


def _drops(sizes: Sequence[int]) -> list[int]:
    return [i + 1 for i, (a, b) in enumerate(pairwise(sizes)) if b < 0.9 * a and a - b > 1_000]


def _cache_reasons(found: Prices, rows: Sequence[Row], points: Sequence[Point], warm: bool) -> Iterator[str]:
    bills = [p.usage for p in points if p.usage]
    if not any(b.cache_read for b in bills):
        yield "no cache: not one bill has cached tokens"
        return
    if warm:
        yield f"warm start: the first request found {bills[0].cache_read:,} tokens that other sessions had left in the cache"
    rule = cache_rule(found.provider, found.model)
    if rule.source.startswith("no page"):
        yield "the cache rule of this provider was not read anywhere; OpenAI's stands in"
    surprises = [
        (row.number, before.prompt - bill.cache_read)
        for row, before, bill in zip(rows[1:], bills, bills[1:], strict=False)
        if bill.cache_read < 0.5 * min(before.prompt, bill.prompt) <= row.read
    ]
    if surprises:
        lost, where = sum(tokens for _, tokens in surprises), _some([number for number, _ in surprises])
        yield f"{len(surprises)} real misses without a cause in the log ({where}): {lost:,} tokens"
    more = [row.number for row, bill in zip(rows, bills, strict=True) if bill.cache_read > 2 * row.read + 1_000]
    if more:
        yield f"{_some(more)} read more than modelled: entries lived longer, or other sessions kept them alive"


def report(comparisons: Sequence[Comparison]) -> str:
    """Return the comparisons as lines of text, the session furthest off first."""
    lines = [OPEN_LOOP]
    for c in sorted(comparisons, key=lambda c: -abs(c.read_error)):
        off = (
            f"prompt error {c.error:+.1%} (1 in 20: {c.worst:+.1%}), after calibration (x {c.ratio:.2f}) {c.calibrated:.1%}"
        )
        read = f"read from cache {c.read_model:.1%}, real {c.read_real:.1%}"
        lines.append(f"{c.session}: {c.model}, {c.billed} of {c.calls} calls billed; {off}; {read}")
        lines += [f"  - {reason}" for reason in c.reasons]
    return "\n".join(lines)
