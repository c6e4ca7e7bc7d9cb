"""What a request costs: example prices with their source and date, and bills in USD.

Prices come from the package genai-prices, whose data lies on this machine; nothing is fetched. What it lacks stands in
`cache_rules.toml`. All of them are *example prices*: right on the day given, and bound to change.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any

from agentkit.cache_rules import rule_row, table
from agentkit.messages import Usage

EXAMPLE = "example prices"
"""Said wherever a price is shown."""

_MILLION = 1_000_000


class UnknownModel(ValueError):
    """There is no price for this model; the text lists the nearest names."""


@dataclass(frozen=True)
class Rates:
    """USD per million tokens. `write` is for the short life of a cache entry, `write_long` for the long one."""

    fresh: float
    read: float
    write: float
    write_long: float
    output: float

    def times(self, factor: float) -> Rates:
        """Return every rate times `factor`."""
        return Rates(*(getattr(self, name) * factor for name in ("fresh", "read", "write", "write_long", "output")))


@dataclass(frozen=True)
class Tier:
    """The rates of a whole request whose prompt has more than `above` tokens."""

    above: int
    rates: Rates


@dataclass(frozen=True)
class Peak:
    """Other rates between two times of the day (UTC); `weekdays_only`: not on Saturday and Sunday."""

    start: time
    end: time
    tiers: tuple[Tier, ...]
    weekdays_only: bool = False

    def active(self, when: datetime) -> bool:
        """Say whether these rates hold at `when`."""
        if self.weekdays_only and when.weekday() >= 5:
            return False
        now = when.time()
        return self.start <= now < self.end if self.start <= self.end else now >= self.start or now < self.end


@dataclass(frozen=True)
class Bill:
    """USD for one request or for many, by what was paid for."""

    fresh: float = 0.0
    read: float = 0.0
    written: float = 0.0
    output: float = 0.0

    @property
    def input(self) -> float:
        """Return the price of the prompt."""
        return self.fresh + self.read + self.written

    @property
    def total(self) -> float:
        """Return the price of prompt and output."""
        return self.input + self.output

    def __add__(self, other: Bill) -> Bill:
        return Bill(
            self.fresh + other.fresh,
            self.read + other.read,
            self.written + other.written,
            self.output + other.output,
        )


@dataclass(frozen=True)
class Prices:
    """The example prices of one model, with source and date. `note` says what is only approximately right."""

    model: str
    provider: str
    tiers: tuple[Tier, ...]
    source: str
    date: date
    peaks: tuple[Peak, ...] = ()
    note: str = ""

    @property
    def rates(self) -> Rates:
        """Return the rates of a short prompt outside peak hours."""
        return self.tiers[0].rates

    def label(self) -> str:
        """Return the line to show beside any figure in USD."""
        note = f"; {self.note}" if self.note else ""
        return f"{EXAMPLE}: {self.provider} {self.model}, {self.source}, {self.date.isoformat()}{note}"

    def rates_at(self, prompt: int, when: datetime | float | None = None) -> Rates:
        """Return the rates for a prompt of `prompt` tokens sent at `when` (a time, or seconds since 1970; None: off-peak).

        A tier's price is that of the whole request, not only of the tokens above it.
        """
        tiers = self.tiers
        if self.peaks and when is not None:
            moment = _utc(when)
            tiers = next((p.tiers for p in self.peaks if p.active(moment)), tiers)
        if len(tiers) == 1:
            return tiers[0].rates
        rates = tiers[0].rates
        for tier in tiers:
            if prompt > tier.above:
                rates = tier.rates
        return rates

    def bill(self, usage: Usage, *, written_long: int = 0, when: datetime | float | None = None) -> Bill:
        """Return the bill of one request. `written_long` of the written tokens are paid at the long life's rate."""
        rates = self.rates_at(usage.prompt, when)
        short = usage.cache_write - written_long
        return Bill(
            usage.fresh * rates.fresh / _MILLION,
            usage.cache_read * rates.read / _MILLION,
            (short * rates.write + written_long * rates.write_long) / _MILLION,
            usage.output * rates.output / _MILLION,
        )


def _utc(when: datetime | float) -> datetime:
    if isinstance(when, datetime):
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    return datetime.fromtimestamp(when, UTC)


def plain(model: str, *, fresh: float, read: float, output: float, write: float | None = None) -> Prices:
    """Return a price list of your own (USD per million tokens); without `write`, storing costs nothing extra."""
    paid = fresh if write is None else write
    rates = Rates(fresh, read, paid, paid, output)
    return Prices(model, "your own", (Tier(-1, rates),), "given by hand", table()["read"])


# ------------------------------------------------------------------------------------------------------------ finding prices


@functools.cache
def _catalogue() -> tuple[Any, ...]:
    """Return the providers of genai-prices, makers of models first; none when the package is not installed.

    Only its bundled data is read: the part of the package that updates prices over the network is never started.
    """
    try:
        from genai_prices.data import providers
    except ImportError:
        return ()
    first = table()["providers"]
    return tuple(sorted(providers, key=lambda p: first.index(p.id) if p.id in first else len(first)))


@functools.cache
def prices(model: str, on: date | None = None) -> Prices:
    """Return the example prices of `model` as of the day `on` (None: the day on which all prices were read).

    `provider/model` asks for one provider. A dated name (`claude-sonnet-4-5-20250929`) has the price of its family; the
    `model` of the result says which that was, and so it does for this project's simulator, which has no prices of its own.
    Raises `UnknownModel`, which lists near names.
    """
    name = model.strip().lower()
    name = table()["simulated"].get(name, name)
    day = on or table()["read"]
    found = _from_table(name) or _from_catalogue(name, day)
    if found is None:
        raise UnknownModel(_unknown(model))
    return found


def _from_table(name: str) -> Prices | None:
    for row in table()["prices"]:
        if name in (row["model"], f"{row['provider']}/{row['model']}"):
            write = row.get("write", row["fresh"])
            rates = Rates(row["fresh"], row["read"], write, row.get("write_long", write), row["output"])
            return Prices(row["model"], row["provider"], (Tier(-1, rates),), row["source"], row["date"])
    return None


def _from_catalogue(name: str, day: date) -> Prices | None:
    wanted, _, rest = name.partition("/")
    for provider in _catalogue():
        if found := provider.find_model(name):
            return _convert(provider, found, day)
        if rest and provider.id == wanted and (found := provider.find_model(rest)):
            return _convert(provider, found, day)
    return None


def _convert(provider: Any, found: Any, day: date) -> Prices | None:
    conditions = found.prices if isinstance(found.prices, list) else [None]
    standard, peaks = None, []
    # The last condition that holds counts, so later ones overwrite earlier ones.
    for condition in conditions:
        values = found.prices if condition is None else condition.prices
        limit = getattr(condition, "constraint", None)
        if hasattr(limit, "start_time"):
            peaks.append((limit, _tiers(values)))
        elif limit is None or limit.start_date <= day:
            standard = _tiers(values)
    if not standard:
        return None
    weekdays = rule_row(provider.id).get("peak_weekdays_only", False)
    hours = tuple(
        Peak(p.start_time.replace(tzinfo=None), p.end_time.replace(tzinfo=None), t, weekdays) for p, t in peaks if t
    )
    # A time of the day has no start date of its own in the data; it belongs to the newest prices.
    return Prices(found.id, provider.id, standard, _source(provider), table()["read"], hours, _note(standard, hours))


def _source(provider: Any) -> str:
    from importlib.metadata import version

    address = (provider.pricing_urls or [""])[0]
    return f"genai-prices {version('genai-prices')}" + (f" ({address})" if address else "")


def _note(tiers: tuple[Tier, ...], peaks: tuple[Peak, ...]) -> str:
    notes = [f"dearer above {tier.above:,} prompt tokens" for tier in tiers[1:]]
    notes += [f"dearer {p.start:%H:%M}-{p.end:%H:%M} UTC" for p in peaks if p.tiers[0].rates.fresh > tiers[0].rates.fresh]
    return ", ".join(notes)


_FIELDS = {
    "fresh": "input_mtok",
    "read": "cache_read_mtok",
    "write": "cache_write_mtok",
    "write_long": "cache_write_1h_mtok",
    "output": "output_mtok",
}


def _tiers(values: Any) -> tuple[Tier, ...]:
    """Return the rates of every tier. Without a price of its own a read or a write costs what a fresh token costs."""
    given = {ours: getattr(values, theirs, None) for ours, theirs in _FIELDS.items()}
    if given["fresh"] is None or given["output"] is None:
        return ()
    starts = sorted({t.start for value in given.values() for t in getattr(value, "tiers", ())})
    return tuple(Tier(start, _rates(given, start)) for start in (-1, *starts))


def _rates(given: dict[str, Any], above: int) -> Rates:
    at = {name: _price(value, above) for name, value in given.items()}
    fresh, output = at["fresh"] or 0.0, at["output"] or 0.0
    read = fresh if at["read"] is None else at["read"]
    write = fresh if at["write"] is None else at["write"]
    return Rates(fresh, read, write, write if at["write_long"] is None else at["write_long"], output)


def _price(value: Any, above: int) -> float | None:
    if value is None or not hasattr(value, "tiers"):
        return None if value is None else float(value)
    return float(next((t.price for t in reversed(value.tiers) if t.start <= above), value.base))


def _unknown(model: str) -> str:
    names = sorted(set(known_models()))
    near = difflib.get_close_matches(model.strip().lower().rpartition("/")[2], names, n=5, cutoff=0.4)
    hint = f"near names: {', '.join(near)}" if near else f"for example {', '.join(table()['examples'])}"
    missing = "" if _catalogue() else "; most prices are in a package: pip install genai-prices"
    return f"no example prices for the model {model!r}; {hint}{missing}"


def known_models() -> Iterator[str]:
    """Yield the names of the models that have example prices, of the makers of models only."""
    yield from (row["model"] for row in table()["prices"])
    makers = table()["providers"]
    for provider in _catalogue():
        if provider.id in makers:
            yield from (m.id.lower() for m in provider.models if m.prices)
