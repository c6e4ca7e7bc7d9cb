"""The exercises of chapter 07: what is an overflow, what may be tried again, how long to wait, when to stop compacting."""

from __future__ import annotations

from agentkit.checks.base import Case, Exercise
from agentkit.providers.base import ProviderError
from agentkit.recovery.overflow import says_overflow
from agentkit.recovery.retry import worth_retrying

# --- says_overflow -------------------------------------------------------------------------------------------------------


def _text(text: str, status: int, note: str) -> Case:
    return Case((text, status), says_overflow(text, status), note)


_TEXTS = (
    _text("prompt is too long: 205123 tokens > 200000 maximum", 400, "Anthropic"),
    _text("This model's maximum context length is 131072 tokens. However, you requested 140000 tokens.", 400, "DeepSeek"),
    _text("request (9000 tokens) exceeds the available context size (8192 tokens)", 400, "llama.cpp"),
    _text("ServiceUnavailable: wrapped: the model's maximum context length of 131072 tokens", 503, "behind a gateway"),
    _text("Rate limit reached: too many tokens, please wait; the maximum context length is 8192", 400, "throttling"),
    _text("too many tokens, please wait before trying again", 429, "throttling with its status"),
    _text("the maximum context length is 8192", 429, "a status that says it all"),
    _text("file name is too long", 400, "another thing that is too long"),
    _text("max_tokens must be at most 8192", 400, "a limit of the output"),
)


def _any_long(text: str, status: int) -> bool:
    return "too long" in text or "maximum context length" in text or "context size" in text


def _any_tokens(text: str, status: int) -> bool:
    return status == 400 and "tokens" in text


def _only_400(text: str, status: int) -> bool:
    return status == 400 and says_overflow(text, status)


# --- worth_retrying ------------------------------------------------------------------------------------------------------


def _error(kind: str, status: int | None, note: str, should_retry: bool | None = None) -> Case:
    error = ProviderError(note, kind=kind, status=status, should_retry=should_retry)
    return Case((error,), worth_retrying(error), note)


_ERRORS = (
    _error("rate_limit", 429, "too fast"),
    _error("overloaded", 529, "overloaded"),
    _error("server", 500, "the server's own fault"),
    _error("unreachable", None, "no connection"),
    _error("broken_stream", 200, "the line broke"),
    _error("overflow", 400, "too long"),
    _error("overflow", 503, "too long, behind a gateway"),
    _error("authentication", 429, "an empty account"),
    _error("bad_request", 400, "not understood"),
    _error("bad_request", 409, "a conflict"),
    _error("server", 500, "the server says: do not", should_retry=False),
    _error("bad_request", 400, "the server says: do", should_retry=True),
    _error("overflow", 400, "too long, and the server says: do", should_retry=True),
)


def _by_status(error: ProviderError) -> bool:
    return error.status is None or error.status == 429 or error.status >= 500


def _every_error(error: ProviderError) -> bool:
    return error.kind != "overflow"


def _obeys_always(error: ProviderError) -> bool:
    return worth_retrying(error) if error.should_retry is None else error.should_retry


# --- pause ---------------------------------------------------------------------------------------------------------------


def pause(attempt: int, waited: float, told: float | None, drawn: float) -> float | None:
    """Return the seconds to wait after failed attempt 1, 2 …; None to give up.

    At most 3 attempts and 60 seconds in all. `told` is what the server asked for, `drawn` a number between 0 and 1.
    """
    if attempt >= 3:
        return None
    seconds = drawn * min(8.0, 0.5 * 2 ** (attempt - 1)) if told is None else told
    return seconds if waited + seconds <= 60 else None


def _pause(attempt: int, waited: float, told: float | None, drawn: float, note: str) -> Case:
    return Case((attempt, waited, told, drawn), pause(attempt, waited, told, drawn), note)


_PAUSES = (
    _pause(1, 0.0, None, 1.0, "the first pause at its longest"),
    _pause(2, 0.5, None, 0.5, "the second, halfway"),
    _pause(1, 0.0, 7.0, 0.1, "the server says seven seconds"),
    _pause(1, 0.0, 0.0, 0.9, "the server says: at once"),
    _pause(3, 3.0, None, 0.5, "the third attempt failed"),
    _pause(3, 3.0, 1.0, 0.5, "the third failed, whatever the server says"),
    _pause(2, 50.0, 20.0, 0.5, "more than there is time for"),
    _pause(2, 50.0, 10.0, 0.5, "just in time"),
)


def _comes_early(attempt: int, waited: float, told: float | None, drawn: float) -> float | None:
    """Wait for less than the server asked: the request is refused again."""
    return pause(attempt, waited, None if told is None else min(told, 60 - waited), drawn)


def _told_is_false(attempt: int, waited: float, told: float | None, drawn: float) -> float | None:
    return pause(attempt, waited, told or None, drawn)


def _no_end(attempt: int, waited: float, told: float | None, drawn: float) -> float | None:
    return pause(min(attempt, 2), waited, told, drawn)


# --- no_progress ---------------------------------------------------------------------------------------------------------


def no_progress(before: int, after: int, threshold: int, share: float) -> bool:
    """Say whether a compaction was in vain: it leaves the context over the threshold and frees less than `share` of it."""
    return after >= threshold and before - after < share * before


def _progress(before: int, after: int, note: str) -> Case:
    return Case((before, after, 50_000, 0.05), no_progress(before, after, 50_000, 0.05), note)


_GAINS = (
    _progress(60_000, 20_000, "a good one"),
    _progress(60_000, 59_900, "next to nothing"),
    _progress(60_000, 60_000, "nothing"),
    _progress(60_000, 55_000, "still over the threshold, but a good step"),
    _progress(50_500, 49_900, "a small step, but under the threshold"),
    _progress(60_000, 57_000, "exactly the share"),
    _progress(60_000, 61_000, "it has grown"),
)


def _still_above(before: int, after: int, threshold: int, share: float) -> bool:
    return after >= threshold


def _only_gain(before: int, after: int, threshold: int, share: float) -> bool:
    return before - after < share * before


def _any_gain(before: int, after: int, threshold: int, share: float) -> bool:
    return after >= threshold and after >= before


EXERCISES = [
    Exercise(
        "says_overflow",
        _TEXTS,
        (
            "three questions, in this order: is it about pace, does the status say it all, does the text know the words?",
            "throttling speaks of tokens too: look for words such as “rate limit” or “please wait” first",
            "401, 402, 403, 404 and 429 say what is wrong, so their texts count for nothing; 500 and 503 do not",
        ),
        says_overflow,
        {
            "anything that is too long": _any_long,
            "anything about tokens": _any_tokens,
            "never behind a gateway": _only_400,
        },
    ),
    Exercise(
        "worth_retrying",
        _ERRORS,
        (
            "start with what never helps: the same request after an overflow, or for an empty account",
            "then the server's own word, `error.should_retry`, where it says something",
            "then the kind: what may pass by itself is `rate_limit`, `overloaded`, `server`, `timeout`, `unreachable`, "
            "`broken_stream`; and the statuses 408, 409, 429 and everything from 500 on",
        ),
        worth_retrying,
        {
            "the status decides": _by_status,
            "everything but an overflow": _every_error,
            "obeys the server in everything": _obeys_always,
        },
    ),
    Exercise(
        "pause",
        _PAUSES,
        (
            "after the third failed attempt the answer is None, whatever else is given",
            "without a word from the server: `drawn` times half a second, doubled with every attempt, at most 8 s",
            "`told` may be 0.0, which is not the same as None; and what does not fit into 60 seconds in all is given up",
        ),
        pause,
        {
            "comes back early": _comes_early,
            "zero is nothing": _told_is_false,
            "never gives up": _no_end,
        },
    ),
    Exercise(
        "no_progress",
        _GAINS,
        (
            "a compaction is fine when it gets under the threshold, and it is fine when it gains a lot",
            "so it was in vain only when neither is true",
            "`after >= threshold and before - after < share * before`",
        ),
        no_progress,
        {
            "still above the threshold": _still_above,
            "looks at the gain only": _only_gain,
            "any gain counts": _any_gain,
        },
    ),
]
