"""When a compaction pays: what it costs once, what it saves with every request, and the threshold that follows from both.

Plain formulas. Tokens go in, USD and requests come out. They know no pauses and no minimum of a cache; a replay does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from agentkit.pricing import Rates

SummaryCall = Literal["flatten", "shared"]
"""How the summary is asked for: the history as plain text, or an instruction behind the prefix that is cached anyway."""

_MILLION = 1_000_000


def replacing(rates: Rates) -> float:
    """Return how many cache reads of a token it costs to store another token in its place.

    12.5 where writing costs 1.25 and reading 0.1 of the input price. Raises `ZeroDivisionError` where reading is free.
    """
    return rates.write / rates.read


def summary_call_usd(
    rates: Rates, history: float, summary: float, *, instruction: float = 0, call: SummaryCall = "flatten"
) -> float:
    """Return the price in USD of a summary call that reads `history` tokens and writes `summary` tokens.

    `flatten` shares no prefix with the conversation, so all it reads is fresh. `shared` reads the history from the cache.
    """
    price = rates.fresh if call == "flatten" else rates.read
    return (history * price + instruction * rates.fresh + summary * rates.output) / _MILLION


def break_even(rates: Rates, removed: float, rewritten: float, call_usd: float) -> float:
    """Return how many requests have to follow a compaction until it is paid for, the first one after it included.

    Every request sends `removed` tokens less, which would have been cache reads. Once, `rewritten` tokens are stored anew
    instead of read, and the summary call costs `call_usd`. Infinite where nothing is removed, or where reading is free.
    """
    saved = removed * rates.read
    if saved <= 0:
        return math.inf
    return (call_usd * _MILLION + rewritten * (rates.write - rates.read)) / saved


@dataclass(frozen=True)
class Pace:
    """How fast a conversation grows, and what it is after a compaction; all in tokens.

    `growth` comes with every request. After a compaction are sent: `head` (tools and system prompt, still cached),
    `summary`, and `tail` (kept word for word). A summary call reads `instruction` besides the history, of which a flattened
    transcript has the share `told`.
    """

    growth: float
    head: float
    summary: float
    tail: float
    instruction: float = 0
    told: float = 1

    @property
    def base(self) -> float:
        """Return the tokens of the first request after a compaction."""
        return self.head + self.summary + self.tail


def compaction_usd(rates: Rates, pace: Pace, call: SummaryCall = "flatten") -> float:
    """Return what each compaction costs in USD, however late it comes: the part that a higher threshold makes rarer.

    That is: the summary written, its instruction and the earlier summary read, summary and tail stored anew. What is new
    in the history is not in it: every token is summarised once, under any threshold.
    """
    earlier = pace.summary if call == "flatten" else pace.base
    call_usd = summary_call_usd(rates, earlier, pace.summary, instruction=pace.instruction, call=call)
    return call_usd + (pace.summary + pace.tail) * (rates.write - rates.read) / _MILLION


def request_usd(rates: Rates, pace: Pace, threshold: float, call: SummaryCall = "flatten") -> float:
    """Return what a request costs in USD on average without its output, compactions at `threshold` tokens included.

    Raises `ValueError` for a threshold that leaves no room to grow.
    """
    room = threshold - pace.base
    if room <= 0:
        raise ValueError(f"a threshold of {threshold:,.0f} tokens leaves no room above the {pace.base:,.0f} of a compaction")
    carried = (pace.base + room / 2) * rates.read
    summarised = pace.growth * (pace.told * rates.fresh if call == "flatten" else rates.read)
    new = pace.growth * (rates.write - rates.read)  # stored, where the line above has it read
    return (carried + summarised + new) / _MILLION + compaction_usd(rates, pace, call) * pace.growth / room


def square_root_threshold(rates: Rates, pace: Pace, call: SummaryCall = "flatten") -> float:
    """Return the threshold in tokens at which a request is cheapest: the square-root law.

    Carrying costs more the later one compacts, compacting less; the sum is least where both cost the same. The same law
    gives the order quantity in stock keeping (F. W. Harris, 1913). Infinite where reading is free.
    """
    if rates.read <= 0:
        return math.inf
    fixed = compaction_usd(rates, pace, call) * _MILLION
    return pace.base + math.sqrt(2 * fixed * pace.growth / rates.read)
