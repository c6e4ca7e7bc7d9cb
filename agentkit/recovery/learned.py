"""What overflows teach about a model: how much it holds, and how far our estimate of it is off."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.recovery.overflow import Sizes

_LEAST, _MOST = 0.5, 3.0
"""Bounds of the factor. One odd error must not spoil the rest; a real tokenizer was once 1.63 times what another counted."""


@dataclass(frozen=True)
class Known:
    """What is known of one model: its window in its own tokens, and tokens of it for one of our estimate.

    `wordy`: it does not keep to the length of a summary that it is given, so it is told one and gets more room.
    """

    window: int | None = None
    factor: float = 1.0
    wordy: bool = False

    @property
    def room(self) -> int | None:
        """Return the window by our own count; None: not known."""
        return int(self.window / self.factor) if self.window else None


class Learned:
    """What is known of each model, by its name. It belongs to whoever sends the requests; two agents share nothing."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}

    def of(self, model: str) -> Known:
        """Return what is known of `model`."""
        return self._known.get(model, Known())

    def overflow(self, model: str, estimate: int, sizes: Sizes) -> Known:
        """Learn from a refused request of about `estimate` tokens; `sizes` is what the error said."""
        known = self.of(model)
        factor = min(_MOST, max(_LEAST, sizes.used / estimate)) if sizes.used and estimate > 0 else known.factor
        self._known[model] = Known(sizes.limit or known.window, factor, known.wordy)
        return self._known[model]

    def is_wordy(self, model: str) -> None:
        """Remember that `model` writes longer summaries than it has room for."""
        known = self.of(model)
        self._known[model] = Known(known.window, known.factor, wordy=True)
