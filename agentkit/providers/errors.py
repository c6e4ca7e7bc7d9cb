"""What went wrong, in one line: error objects of servers and faults of the connection become `ProviderError`."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from agentkit.providers.base import ProviderError
from agentkit.providers.text import one_line
from agentkit.recovery import overflow

_KIND_OF_CODE = {
    **dict.fromkeys(overflow.CODES, "overflow"),
    # An empty account is no matter of pace: waiting does not help, so it must not look like a rate limit.
    "insufficient_quota": "authentication",
    "credit_balance_exhausted": "authentication",
    "organization_usage_limit_exceeded": "authentication",
    "billing_error": "authentication",
    "authentication_error": "authentication",
    "permission_error": "authentication",
    "invalid_api_key": "authentication",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "overloaded_error": "overloaded",
    "service_unavailable": "overloaded",
    "model_not_found": "not_found",
    "not_found_error": "not_found",
    "timeout_error": "timeout",
}

_BLAMES_US = {"invalid_request_error", "invalid_parameter_error", "INVALID_ARGUMENT"}
"""Codes that say no more than a status 400 would; overflow hides behind them, so the text is looked at first."""

_KIND_OF_STATUS = {
    401: "authentication",
    402: "authentication",
    403: "authentication",
    404: "not_found",
    408: "timeout",
    413: "overflow",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}

_SPENT = re.compile(r"(?i)spend(ing)?[ _]limit|usage limits?\b|credit balance|insufficient balance|out of credits")
"""Limits of money. With a time to wait it may still be a limit of pace."""

_TEXT_SAYS_PACE = (None, 200, 400, 422)
"""Statuses that say nothing about pace, so that a text about it decides."""

_ADVICE = {
    "overflow": "the context is too long, shorten it",
    "rate_limit": "wait and try again",
    "overloaded": "wait and try again",
    "server": "try again",
    "timeout": "try again",
    "broken_stream": "try again",
}


@dataclass(frozen=True)
class Caller:
    """Who asked, for the wording of errors: `host`, what to do about each kind, and what hides the key in a text."""

    host: str
    advice: Mapping[str, str]
    hide: Callable[[str], str] = str

    def error(self, text: str, kind: str, **details: Any) -> ProviderError:
        """Make a `ProviderError` that ends in what to do."""
        advice = self.advice.get(kind) or _ADVICE.get(kind)
        return ProviderError(self.hide(f"{text.rstrip('.')}; {advice}" if advice else text), kind=kind, **details)


def server_error(
    value: object,
    caller: Caller,
    *,
    status: int | None,
    wait: float | None = None,
    again: bool | None = None,
    at: str = "",
) -> ProviderError:
    """Make the `ProviderError` for an error object (or text) that a server sent.

    `status` is the HTTP status, `wait` the seconds to wait that its headers named, `again` what they say about trying again.
    `at` overrides how the line begins.
    """
    message, names, told = _read(value)
    wait = wait if wait is not None else told
    number = next((int(n) for n in names if n.isdecimal() and 400 <= int(n) < 600), None)
    code = next((n for n in names if n in _KIND_OF_CODE), next((n for n in names if not n.isdecimal()), None))
    begin = at or f"{caller.host} answered {status}"
    text = one_line(caller.hide(message)) or code or "no reason given"
    kind = kind_of(names, message, number if status in (None, 200) and number else status)
    if kind == "rate_limit" and wait is None and _SPENT.search(message):
        kind = "authentication"  # Anthropic's spend cap is a 429 without a time to wait: it does not end by waiting
    return caller.error(
        f"{begin}: {text}",
        kind,
        status=status,
        code=caller.hide(code) if code else None,
        retry_after=wait,
        should_retry=again,
    )


def kind_of(names: list[str], message: str, status: int | None) -> str:
    """Classify an error: by code or type, then by status; by text only where status and code say nothing.

    A text about throttling is never an overflow, even when it speaks of too many tokens.
    """
    kind = next((k for name in names if (k := _kind_of_code(name))), "")
    # A gateway wraps what another server said into its own "unavailable".
    if kind in ("", "overloaded") and overflow.says_overflow(message, status):
        return "overflow"
    if kind:
        return kind
    if status in _TEXT_SAYS_PACE and overflow.is_throttling(message):
        return "rate_limit"
    if status in _KIND_OF_STATUS:
        return _KIND_OF_STATUS[status]
    if status and 300 <= status < 500 or _BLAMES_US & set(names):
        return "bad_request"
    return "server"


def _kind_of_code(code: str) -> str:
    return "authentication" if code.endswith("_spend_limit_exceeded") else _KIND_OF_CODE.get(code, "")


def error_in(data: object, event: str = "") -> Any:
    """Return the error object inside a piece of an answer, or None when it reports none."""
    if isinstance(data, list):
        return next((found for item in data if (found := error_in(item))), None)
    if not isinstance(data, Mapping):
        return data if event == "error" else None
    if data.get("error") or "error" in (event, data.get("object")):
        return data.get("error") or data
    choices = data.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, Mapping) and (choice.get("error") or choice.get("finish_reason") == "error"):
            return choice.get("error") or {"message": "the server stopped with an error"}
    return None


def error_body(text: str) -> Any:
    """Return the error object of an error page: JSON in any of the usual shapes, else its text."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return re.sub(r"<[^>]*>", " ", text)
    return error_in(data, "error") or text


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Return the seconds to wait: `retry-after-ms`, else `retry-after` in seconds or as an HTTP date, else None."""
    if (wait := _seconds(headers.get("retry-after-ms"))) is not None:
        return wait / 1000
    value = headers.get("retry-after")
    if (wait := _seconds(value)) is not None or not value:
        return wait
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now())
    except (ValueError, OverflowError):
        return None


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """Return what `x-should-retry` says; None when it says nothing."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


def _read(value: object) -> tuple[str, list[str], float | None]:
    """Return message, codes (most telling first) and seconds to wait of an error object of any shape."""
    if isinstance(value, str):
        return value, [], None
    if not isinstance(value, Mapping):
        return _plain(value), [], None
    names = [str(value[field]) for field in ("code", "type", "status") if isinstance(value.get(field), str | int)]
    message = _plain(value.get("message") or value.get("detail") or value.get("msg") or "")
    # llama.cpp gives both sizes as fields; in the text they are read like those of any other server.
    used, limit = value.get("n_prompt_tokens"), value.get("n_ctx")
    if isinstance(used, int) and isinstance(limit, int) and str(used) not in message:
        message = f"{message} ({used} tokens in a context of {limit})".strip()
    metadata = value.get("metadata")
    if not isinstance(metadata, Mapping):
        return message, names, None
    # OpenRouter passes on another server's error; the real cause is in there.
    cause, inner, told = _read(error_body(str(metadata.get("raw") or "")))
    wait = _seconds(metadata.get("retry_after_seconds"))
    return f"{message} ({cause})" if cause else message, inner + names, wait if wait is not None else told


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _seconds(value: object) -> float | None:
    try:
        seconds = float(str(value))
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
