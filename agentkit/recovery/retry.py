"""When to send the same request again, and how long to wait first.

Never after an overflow: the same request is refused again. Never for an empty account: waiting fills none. Never once output
has begun: whoever reads has seen half of an answer. The rules are those of the OpenAI and Anthropic SDKs as of 2026-11, with
full jitter and a bound on the time in all.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agentkit.messages import Request
from agentkit.providers.base import Provider, ProviderError, StreamEvent

_NEVER = frozenset({"overflow", "authentication", "configuration"})
_AGAIN = frozenset({"rate_limit", "overloaded", "server", "timeout", "unreachable", "broken_stream"})
_STATUSES = frozenset({408, 409, 429})


def worth_retrying(error: ProviderError) -> bool:
    """Say whether the same request may succeed later. The server's own word (`x-should-retry`) goes before the status."""
    if error.kind in _NEVER:
        return False
    if error.should_retry is not None:
        return error.should_retry
    return error.kind in _AGAIN or error.status in _STATUSES or (error.status or 0) >= 500


@dataclass(frozen=True)
class RetryRules:
    """How often, and how long. All times in seconds.

    `tries` requests at most. Without a word from the server the pause is drawn between 0 and `first` × 2ⁿ, at most `cap`:
    full jitter, so that many clients do not come back together. `longest` is the longest pause that a server may ask for
    (OpenAI's SDK: 120), `total` the most that is waited for one request in all.
    """

    tries: int = 3
    first: float = 0.5
    cap: float = 8.0
    longest: float = 120.0
    total: float = 180.0

    def pause(self, error: ProviderError, attempt: int, waited: float, draw: random.Random) -> float | None:
        """Return the seconds to wait after failed attempt `attempt` (1, 2 …); None: give up.

        `waited` is what was waited before. What a server asks for is waited in full or not at all: coming back early is
        refused again.
        """
        if attempt >= self.tries or not worth_retrying(error):
            return None
        told = error.retry_after
        if told is not None and told > self.longest:
            return None
        pause = draw.uniform(0, min(self.cap, self.first * 2 ** (attempt - 1))) if told is None else told
        return pause if waited + pause <= self.total else None


NO_RETRY = RetryRules(tries=1)


class Patient:
    """A provider that tries again: the same interface around any other one, also around that of a compactor.

    `sleep` waits (a test passes one that does not), `seed` makes the jitter repeatable, `tell` hears of every retry: the
    error, the number of the attempt that failed, the seconds to wait.
    """

    def __init__(
        self,
        provider: Provider,
        rules: RetryRules | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        seed: int | None = None,
        tell: Callable[[ProviderError, int, float], None] = lambda error, attempt, pause: None,
    ) -> None:
        self.provider, self.rules = provider, rules or RetryRules()
        self.name, self.model = provider.name, provider.model
        self._sleep, self._draw, self._tell = sleep, random.Random(seed), tell

    def stream(self, request: Request) -> Iterator[StreamEvent]:
        """Send `request`, again where that is worth it. Raises the last `ProviderError`."""
        attempt, waited = 0, 0.0
        while True:
            attempt += 1
            began = False
            try:
                for event in self.provider.stream(request):
                    began = True
                    yield event
                return
            except ProviderError as error:
                pause = None if began else self.rules.pause(error, attempt, waited, self._draw)
                if pause is None:
                    raise
                self._tell(error, attempt, pause)
            self._sleep(pause)
            waited += pause
