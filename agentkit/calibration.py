"""Estimators that learn from bills: the last bill plus the tail, and the ratio of bill to estimate.

A bill is exact, but it is the bill of the request before. Whatever was sent then and is sent again needs no estimate; only
what was added since does. When the start of the request has changed, by a compaction for instance, the bill is stale.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from agentkit.messages import Message, Request, Usage
from agentkit.tokens import PerScript, TextEstimator


@dataclass(frozen=True)
class _Bill:
    request: Request
    usage: Usage

    def new_messages(self, request: Request) -> tuple[Message, ...] | None:
        """Return what `request` adds to the billed one; None when it does not start the same way (the bill is stale)."""
        size = len(self.request.messages)
        same = request.tools == self.request.tools and request.messages[:size] == self.request.messages
        return request.messages[size:] if same else None


class LastBill:
    """The last bill plus an estimate of what was added since.

    The model's own answer needs no estimate either: the bill says how long it was. `reasoning_sent_back` says whether the
    thinking in it is sent again. With no bill, or a stale one, the whole request is estimated.
    """

    def __init__(self, base: TextEstimator | None = None, *, reasoning_sent_back: bool = False) -> None:
        self.base = base or PerScript()
        self.name = f"last bill + tail ({self.base.name})"
        self.reasoning_sent_back = reasoning_sent_back
        self._bill: _Bill | None = None

    def text(self, text: str) -> int:
        """Return the base estimate of `text`."""
        return self.base.text(text)

    def message(self, message: Message) -> int:
        """Return the base estimate of `message`."""
        return self.base.message(message)

    def is_stale(self, request: Request) -> bool:
        """Say whether the last bill is of no use for `request` (or there is none)."""
        return self._bill is None or self._bill.new_messages(request) is None

    def request(self, request: Request) -> int:
        """Return the tokens of `request`, from the last bill as far as it reaches."""
        new = self._bill.new_messages(request) if self._bill else None
        if self._bill is None or new is None:
            return self.base.request(request)
        return self._billed(self._bill.usage, new) + self.base.messages(new[1:] if self._own_answer(new) else new)

    def observe(self, request: Request, usage: Usage) -> None:
        """Remember the bill of exactly this request. A bill of nothing is no bill."""
        if usage.prompt > 0:
            self._bill = _Bill(request, usage)

    def _billed(self, usage: Usage, new: tuple[Message, ...]) -> int:
        if not self._own_answer(new):
            return usage.prompt
        return usage.prompt + usage.output - (0 if self.reasoning_sent_back else usage.reasoning)

    @staticmethod
    def _own_answer(new: tuple[Message, ...]) -> bool:
        return bool(new) and new[0].role == "assistant"


class SelfCalibrating:
    """The last bill plus the tail, times the ratio of bill to estimate that this conversation has shown so far.

    `upper(request)` is a bound that the bill exceeds in at most 1 request in 20: the estimate plus the 96th percentile of
    the errors seen so far, each taken relative to the size of what was new. Before 20 errors are known it is the largest of
    them, and never less than 0.8 times what is new. Ratios are kept between 0.3 and 4: an odd bill must not spoil the rest.
    """

    _FORGET = 0.93  # an old round counts half after ten newer ones
    _START = 1.15  # the per-script estimate of code is some 15 % low; replaced by the first bills
    _SLACK = 200  # tokens of structure that a round adds whatever its text

    def __init__(self, base: TextEstimator | None = None) -> None:
        self.base = base or PerScript()
        self.name = f"self-calibrating ({self.base.name})"
        self._bill: _Bill | None = None
        self._billed, self._estimated = self._START * 300, 300.0
        self._errors: deque[float] = deque(maxlen=100)

    @property
    def ratio(self) -> float:
        """Return the learned ratio of bill to base estimate."""
        return self._billed / self._estimated

    def text(self, text: str) -> int:
        """Return the base estimate of `text`, times the ratio."""
        return round(self.base.text(text) * self.ratio)

    def message(self, message: Message) -> int:
        """Return the base estimate of `message`, times the ratio."""
        return round(self.base.message(message) * self.ratio)

    def request(self, request: Request) -> int:
        """Return the tokens of `request`: the last bill and the calibrated tail, or all of it calibrated."""
        known, new = self._split(request)
        return round(known + new * self.ratio)

    def upper(self, request: Request) -> int:
        """Return a bound that the bill exceeds in at most 1 request in 20."""
        known, new = self._split(request)
        return math.ceil(known + new * self.ratio + self._margin() * (new + self._SLACK))

    def observe(self, request: Request, usage: Usage) -> None:
        """Learn from the bill of exactly this request. A bill of nothing teaches nothing."""
        if usage.prompt <= 0:
            return
        known, new = self._split(request)
        grown = usage.prompt - known
        self._errors.append((grown - new * self.ratio) / (new + self._SLACK))
        if new > 0 and 0.3 < grown / new < 4:
            self._billed = self._billed * self._FORGET + grown
            self._estimated = self._estimated * self._FORGET + new
        self._bill = _Bill(request, usage)

    def _split(self, request: Request) -> tuple[int, int]:
        """Return (tokens known from the bill, base estimate of the rest)."""
        new = self._bill.new_messages(request) if self._bill else None
        if self._bill is None or new is None:
            return 0, self.base.request(request)
        return self._bill.usage.prompt, self.base.messages(new)

    def _margin(self) -> float:
        if len(self._errors) < 20:
            return max(0.8, *self._errors, 0.8)
        ranked = sorted(self._errors)
        return max(0.0, ranked[min(len(ranked) - 1, math.ceil(0.96 * (len(ranked) + 1)) - 1)])
