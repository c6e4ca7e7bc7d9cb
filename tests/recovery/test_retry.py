"""When the same request goes out again: never for nothing, never after output began, never for longer than allowed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import httpx
import pytest

from agentkit.connect import simulated
from agentkit.messages import Reply, Request, assistant, user
from agentkit.providers.base import Done, Provider, ProviderError, StreamEvent, TextDelta, complete
from agentkit.providers.errors import retry_after, should_retry
from agentkit.providers.openai import OpenAI
from agentkit.recovery.retry import NO_RETRY, Patient, RetryRules, worth_retrying
from agentkit.simulator import PROFILES, Fault

HELLO = Request((user("hello"),))


class Failing:
    """Raise the given errors, one a request, then answer; with `said` some text comes first."""

    name = model = "failing"

    def __init__(self, *errors: ProviderError, said: str = "") -> None:
        self.errors, self.said, self.requests = list(errors), said, 0

    def stream(self, request: Request) -> Iterator[StreamEvent]:
        self.requests += 1
        if self.errors:
            if self.said:
                yield TextDelta(self.said)
            raise self.errors.pop(0)
        yield Done(Reply(assistant("fine")))


def error(kind: str, status: int | None = None, **more: object) -> ProviderError:
    return ProviderError(kind, kind=kind, status=status, **more)  # type: ignore[arg-type]


def tried(provider: Provider, rules: RetryRules | None = None, seed: int = 1) -> list[float]:
    """Send a request to its end, or to its last error, and return the pauses."""
    pauses: list[float] = []
    try:
        complete(Patient(provider, rules, sleep=pauses.append, seed=seed), HELLO)
    except ProviderError:
        pauses.append(-1.0)
    return pauses


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server", "timeout", "unreachable", "broken_stream"])
def test_what_may_pass_is_tried_again(kind: str) -> None:
    provider = Failing(error(kind))
    assert -1.0 not in tried(provider)
    assert provider.requests == 2


@pytest.mark.parametrize("kind", ["overflow", "authentication", "configuration", "bad_request", "not_found", "too_large"])
def test_what_cannot_pass_is_not(kind: str) -> None:
    provider = Failing(error(kind, 400))
    assert tried(provider) == [-1.0]
    assert provider.requests == 1


def test_the_server_has_the_last_word_but_not_on_overflow_and_quota() -> None:
    assert not worth_retrying(error("rate_limit", 429, should_retry=False))
    assert not worth_retrying(error("server", 500, should_retry=False))
    assert worth_retrying(error("bad_request", 400, should_retry=True))
    assert not worth_retrying(error("overflow", 400, should_retry=True))
    assert not worth_retrying(error("authentication", 429, should_retry=True))
    assert worth_retrying(error("bad_request", 409))


@pytest.mark.parametrize("profile", PROFILES)
def test_a_rate_limit_is_waited_for_as_told(profile: str) -> None:
    provider = simulated(profile, faults=[Fault("rate_limit", times=2, seconds=7)])
    assert tried(provider) == [7.0, 7.0]


def test_the_number_of_requests_is_bounded() -> None:
    for tries in (1, 2, 3, 5):
        provider = Failing(*[error("server", 500)] * 9)
        assert len(tried(provider, RetryRules(tries=tries))) == tries
        assert provider.requests == tries
    assert tried(Failing(error("server")), NO_RETRY) == [-1.0]


def test_the_pause_is_drawn_below_a_bound_that_doubles() -> None:
    rules = RetryRules(tries=99, first=0.5, cap=8.0, total=10_000)
    longest = [0.0] * 8
    for seed in range(400):
        pauses = tried(Failing(*[error("server")] * 8), rules, seed)
        for i, pause in enumerate(pauses):
            assert 0 <= pause <= min(8.0, 0.5 * 2**i)
            longest[i] = max(longest[i], pause)
    assert all(most > 0.9 * min(8.0, 0.5 * 2**i) for i, most in enumerate(longest))


def test_the_jitter_of_one_seed_is_the_same_every_time() -> None:
    runs = [tried(Failing(error("server"), error("server")), seed=s) for s in (7, 7, 8)]
    assert runs[0] == runs[1] != runs[2]


def test_the_time_in_all_is_bounded() -> None:
    rules = RetryRules(tries=50, total=20.0)
    pauses = tried(Failing(*[error("rate_limit", 429, retry_after=6.0)] * 50), rules)
    assert pauses == [6.0, 6.0, 6.0, -1.0]


def test_a_server_that_asks_for_more_than_can_be_waited_is_not_asked_again_early() -> None:
    assert tried(Failing(error("rate_limit", 429, retry_after=121.0))) == [-1.0]
    assert tried(Failing(error("rate_limit", 429, retry_after=119.0))) == [119.0]
    assert tried(Failing(error("rate_limit", 429, retry_after=0.0))) == [0.0]


def test_once_output_began_nothing_is_sent_again() -> None:
    provider = Failing(error("broken_stream"), said="The answer is")
    assert tried(provider) == [-1.0]
    assert provider.requests == 1


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", ["cut_stream", "error_in_stream"])
def test_a_stream_that_breaks_behind_a_word_is_reported(profile: str, kind: str) -> None:
    provider = simulated(profile, faults=[Fault(kind)], reader=lambda request: assistant("a few words of an answer"))  # type: ignore[arg-type]
    seen: list[str] = []
    with pytest.raises(ProviderError) as caught:
        for event in Patient(provider, sleep=lambda s: None).stream(HELLO):
            seen.append(getattr(event, "text", ""))
    assert seen and caught.value.kind in ("broken_stream", "overloaded")


def test_every_retry_is_told() -> None:
    told: list[tuple[str, int, float]] = []
    provider = Failing(error("server"), error("rate_limit", retry_after=2.0))
    patient = Patient(provider, sleep=lambda s: None, seed=3, tell=lambda e, n, s: told.append((e.kind, n, s)))
    complete(patient, HELLO)
    first = random.Random(3).uniform(0, 0.5)
    assert told == [("server", 1, first), ("rate_limit", 2, 2.0)]
    assert (patient.name, patient.model) == ("failing", "failing")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
    ],
)
def test_every_form_of_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=lambda: 1_792_567_680.0) == seconds  # 07:28:00


@pytest.mark.parametrize(("sent", "read"), [("true", True), ("False", False), ("maybe", None), (None, None)])
def test_x_should_retry_arrives(sent: str | None, read: bool | None) -> None:
    headers = {} if sent is None else {"x-should-retry": sent}
    assert should_retry(headers) is read
    transport = httpx.MockTransport(lambda request: httpx.Response(500, headers=headers))
    with pytest.raises(ProviderError) as caught:
        complete(OpenAI("m", "http://127.0.0.1/v1", transport=transport), HELLO)
    assert caught.value.should_retry is read
