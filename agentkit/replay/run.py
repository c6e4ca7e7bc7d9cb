"""Run a counted session under a schedule, a cache model and a price list. Summary calls have rows of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.caching.prefix import CacheResult, PrefixCache, Segment
from agentkit.messages import Usage
from agentkit.pricing import Bill, Prices
from agentkit.replay.caches import CacheChoice, cache_for
from agentkit.replay.counted import Counted, Point
from agentkit.replay.schedules import Schedule, Step, View

OPEN_LOOP = "open loop: replayed from a record; what the agent would have done otherwise is not known"
"""Said wherever a replayed figure is shown."""


RowKind = Literal["request", "summary"]


@dataclass(frozen=True, slots=True)
class Row:
    """One request, or one summary call. Tokens; `usd` is its price and `cumulative` that of everything so far.

    `number` counts requests from 1; a summary call has the number of the request that it was made for.
    `used` are the references of the answer's tool calls, `in_view` those that it could see.
    """

    number: int
    kind: RowKind
    at: float | None
    sent: int
    read: int
    written: int
    fresh: int
    output: int
    usd: float
    cumulative: float
    events: tuple[str, ...] = ()
    used: int = 0
    in_view: int = 0
    written_1h: int = 0


@dataclass(frozen=True)
class Replay:
    """What came of a replay. `notes` say how to read it; the first is that it is open loop."""

    session: str
    policy: str
    cache: str
    prices: str
    rows: tuple[Row, ...]
    bill: Bill
    summaries: Bill
    notes: tuple[str, ...]

    @property
    def requests(self) -> tuple[Row, ...]:
        """Return the rows of the session's own requests."""
        return tuple(row for row in self.rows if row.kind == "request")

    @property
    def compactions(self) -> int:
        """Return how many compactions took effect."""
        return sum(any(event.startswith("compacted") for event in row.events) for row in self.rows)

    @property
    def usd(self) -> float:
        """Return the price of everything, summary calls included."""
        return self.bill.total

    @property
    def sent(self) -> int:
        """Return all prompt tokens."""
        return sum(row.sent for row in self.rows)

    @property
    def read_share(self) -> float:
        """Return the share of all prompt tokens that was read from the cache."""
        return sum(row.read for row in self.rows) / max(1, self.sent)

    @property
    def recall(self) -> float | None:
        """Return the share of references that were in view when they were used; None when there were none."""
        used = sum(row.used for row in self.rows)
        return sum(row.in_view for row in self.rows) / used if used else None


def replay(
    counted: Counted, schedule: Schedule, prices: Prices, cache: CacheChoice | None = None, *, warm: bool = False
) -> Replay:
    """Replay `counted`. `cache` is the model of the prices' provider unless another is given.

    `warm`: the head is in the cache from the start, because other sessions sent it before.
    """
    choice = cache or cache_for(prices)
    run = Account(counted, prices, choice)
    if warm:
        run.warm_up()
    run.follow(schedule)
    return run.result(schedule.name, choice.label, getattr(schedule, "summary", None))


def replay_sums(counted: Counted, schedule: Schedule, prices: Prices, cache: CacheChoice | None = None) -> Sums:
    """Replay `counted` and keep the sums only: three times as fast, for a sweep."""
    run = Sums(counted, prices, cache or cache_for(prices))
    run.follow(schedule)
    return run


def _notes(counted: Counted, stand_in: int | None) -> tuple[str, ...]:
    notes = [OPEN_LOOP, f"tokens: {counted.texts.name}; output: {counted.output_from}"]
    if counted.fixed:
        notes.append(f"{counted.fixed:,} tokens are added to every request: the first bill has them, the log has not")
    if stand_in is not None:
        notes.append(
            f"summaries are a stand-in of {stand_in:,} tokens, no model was asked; recall counts what stays word for word"
        )
    if counted.points[0].at is None:
        notes.append("the session has no times, so no pause ends a cache entry")
    return tuple(notes)


class Account:
    """The state of one replay: the prompt of the moment, the cache, the bill."""

    def __init__(self, counted: Counted, prices: Prices, choice: CacheChoice) -> None:
        self.counted, self.prices, self.cache = counted, prices, choice.make()
        self.body: Sequence[Any] = counted.blocks if choice.blocks else counted.segments
        self.blocks = choice.blocks
        self.view = View(counted)
        self.rows: list[Row] = []
        self.bill, self.summaries = Bill(), Bill()
        self.prompt: list[Segment] = list(counted.head)
        self.reached = 0  # the body is in the prompt up to here
        self.before: Point | None = None
        self.read_back = 0  # tokens of the last request
        self.events: list[str] = []

    def result(self, policy: str, cache: str, stand_in: int | None) -> Replay:
        """Return what came of it."""
        notes = _notes(self.counted, stand_in)
        label = self.prices.label()
        return Replay(self.counted.session.id, policy, cache, label, tuple(self.rows), self.bill, self.summaries, notes)

    def warm_up(self) -> None:
        """Put the head into the cache."""
        self.cache.observe(self.prompt, self.counted.points[0].at or 0.0)

    def follow(self, schedule: Schedule) -> None:
        """Run the whole session under `schedule`."""
        decide = schedule.begin(self.counted)
        for i, point in enumerate(self.counted.points):
            if (step := decide(self.view, i)) is not None:
                self.summarise(step, i, point)
            self.request(i, point)

    def request(self, number: int, point: Point) -> None:
        """Send the request of `point` and add its row."""
        self._extend(point.end)
        result = self.cache.observe(self.prompt, point.at or 0.0, self.counted.segments[point.end])
        self.look(point, result)
        references = self.counted.references
        in_view = references.in_view(number, self.view.start, self.view.names)
        self.add_row(number + 1, "request", point, result, point.output, references.used(number), in_view)
        self.before, self.read_back = point, result.read + result.written + result.fresh

    def summarise(self, step: Step, number: int, point: Point) -> None:
        """Make the summary call of `step` and, unless it failed, change the view."""
        self._extend(point.end)
        prompt = [*self.prompt, *step.extra] if step.shares else list(step.extra)
        cache: PrefixCache = self.cache if step.shares else getattr(self.cache, "unmarked", self.cache)
        result = cache.observe(prompt, point.at or 0.0, step.summary)
        before = self.view.size(point.end)
        if step.failed:
            self.events = [f"failed: {step.failed}"]
        else:
            self.view.change(step)
            self.prompt, self.reached = [*self.counted.head, step.summary], step.start
            after = self.view.size(point.end)
            self.events = [f"compacted: {step.messages:,} messages, {before:,} -> {after:,} tokens"]
        self.add_row(number + 1, "summary", point, result, step.output)

    def _extend(self, end: int) -> None:
        new = self.body[self.reached : end]
        self.prompt += [block for message in new for block in message] if self.blocks else new
        self.reached = end

    def look(self, point: Point, result: CacheResult) -> None:
        """Note a pause, and a request that read less than half of what the one before had sent."""
        pause = point.at - self.before.at if self.before and self.before.at is not None and point.at is not None else 0
        if pause >= 300:
            self.events.append(f"pause: {pause:,.0f} s")
        if self.before and result.read < self.read_back / 2:
            self.events.append(f"miss: {result.cause}" if result.cause else "miss")

    def add_row(
        self, number: int, kind: RowKind, point: Point, result: CacheResult, output: int, used: int = 0, in_view: int = 0
    ) -> None:
        """Add the row of one request or summary call, with the events since the last row.

        `used` are the references that the answer makes, `in_view` those of them that it could see.
        """
        usage = Usage(result.fresh, result.read, result.written, output)
        bill = self.prices.bill(usage, written_long=result.written_1h, when=point.at)
        self.bill += bill
        if kind == "summary":
            self.summaries += bill
        row = Row(
            number,
            kind,
            point.at,
            usage.prompt,
            result.read,
            result.written,
            result.fresh,
            output,
            bill.total,
            self.bill.total,
            tuple(self.events),
            used,
            in_view,
            result.written_1h,
        )
        self.rows.append(row)
        self.events = []


class Sums(Account):
    """The same replay without rows. USD and tokens of everything, summary calls included; `summaries_usd` is their part."""

    def __init__(self, counted: Counted, prices: Prices, choice: CacheChoice) -> None:
        super().__init__(counted, prices, choice)
        self.usd = self.summaries_usd = 0.0
        self.sent = self.read = self.compactions = self.used = self.seen = 0

    @property
    def recall(self) -> float | None:
        """Return the share of references that were in view; None when there were none."""
        return self.seen / self.used if self.used else None

    def look(self, point: Point, result: CacheResult) -> None:
        """Note nothing."""

    def add_row(
        self, number: int, kind: RowKind, point: Point, result: CacheResult, output: int, used: int = 0, in_view: int = 0
    ) -> None:
        """Add up one request or summary call."""
        sent = result.read + result.written + result.fresh
        rates = self.prices.rates_at(sent, point.at)
        long = result.written_1h
        written = (result.written - long) * rates.write + long * rates.write_long
        usd = (result.fresh * rates.fresh + result.read * rates.read + written + output * rates.output) / 1_000_000
        self.usd += usd
        self.sent += sent
        self.read += result.read
        self.used += used
        self.seen += in_view
        if kind == "summary":
            self.summaries_usd += usd
            self.compactions += any(event.startswith("compacted") for event in self.events)
            self.events = []
