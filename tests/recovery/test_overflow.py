"""Is it an overflow? Every shape that a server is known to send, what only looks like one, and the numbers in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.messages import FinishReason, Reply, Request, ToolCall, Usage, assistant, user
from agentkit.providers.errors import Caller, kind_of, server_error
from agentkit.recovery.learned import Learned
from agentkit.recovery.overflow import (
    Sizes,
    came_with_nothing,
    cut_by_context,
    is_overflow,
    says_overflow,
    silent_truncation,
    sizes_in,
)

CALLER = Caller("a server", {})


def error(status: int | None, body: object, **more: object) -> Exception:
    return server_error(body, CALLER, status=status, **more)  # type: ignore[arg-type]


INVALID = "invalid_request_error"
SHAPES: dict[str, tuple[int, object, Sizes]] = {
    "anthropic": (
        400,
        {"type": INVALID, "message": "prompt is too long: 205123 tokens > 200000 maximum"},
        Sizes(205_123, None, 200_000),
    ),
    "anthropic, older": (
        400,
        {"type": INVALID, "message": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"},
        Sizes(190_000, 20_000, 200_000),
    ),
    "anthropic, bytes": (413, {"type": "request_too_large", "message": "Request exceeds the maximum size"}, Sizes()),
    "openai chat": (
        400,
        {
            "code": "context_length_exceeded",
            "type": INVALID,
            "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 140001.",
        },
        Sizes(140_001, None, 128_000),
    ),
    "deepseek": (
        400,
        {
            "code": INVALID,
            "message": "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens "
            "(132000 in the messages, 8000 in the completion).",
        },
        Sizes(132_000, 8_000, 131_072),
    ),
    "openrouter": (
        400,
        {
            "code": 400,
            "message": "This endpoint's maximum context length is 65536 tokens. However, you requested about 70000",
        },
        Sizes(70_000, None, 65_536),
    ),
    "openai responses": (
        400,
        {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."},
        Sizes(),
    ),
    "gemini": (
        400,
        {
            "status": "INVALID_ARGUMENT",
            "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        },
        Sizes(1_200_000, None, 1_048_576),
    ),
    "xai": (
        400,
        {"message": "This model's maximum prompt length is 500000 but the request contains 600000 tokens."},
        Sizes(600_000, None, 500_000),
    ),
    "groq": (400, {"message": "Please reduce the length of the messages or completion."}, Sizes()),
    "together": (
        400,
        {"message": "The input (130000 tokens) is longer than the model's context length (128000 tokens)."},
        Sizes(130_000, None, 128_000),
    ),
    "bedrock": (400, {"type": "ValidationException", "message": "Input is too long for requested model."}, Sizes()),
    "bedrock mantle": (
        400,
        {"message": "prompt tokens (210000) exceed model maximum (200000)"},
        Sizes(210_000, None, 200_000),
    ),
    "mistral": (
        400,
        {"message": "Prompt contains 300000 tokens, too large for model with 262144 maximum context length"},
        Sizes(300_000, None, 262_144),
    ),
    "github copilot": (
        400,
        {"message": "prompt token count of 140000 exceeds the limit of 128000"},
        Sizes(140_000, None, 128_000),
    ),
    "minimax": (400, {"message": "context window exceeds limit"}, Sizes()),
    "moonshot": (
        400,
        {"message": "Your request exceeded model token limit: 262144 (requested: 270000)"},
        Sizes(270_000, None, 262_144),
    ),
    "qwen": (
        400,
        {"code": "invalid_parameter_error", "message": "Range of input length should be [1, 991808]"},
        Sizes(None, None, 991_808),
    ),
    "cerebras": (400, {"message": "Current length is 70000 while limit is 65536"}, Sizes(70_000, None, 65_536)),
    "llama.cpp": (
        400,
        {
            "type": "exceed_context_size_error",
            "message": "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
            "n_prompt_tokens": 9_000,
            "n_ctx": 8_192,
        },
        Sizes(9_000, None, 8_192),
    ),
    "lm studio": (
        200,
        {"message": "the number of tokens to keep from the initial prompt is greater than the context length"},
        Sizes(),
    ),
    "vllm": (400, {"message": "context length is only 8192 tokens"}, Sizes(None, None, 8_192)),
    "ollama": (400, {"message": "prompt too long; exceeded max context length by 512"}, Sizes()),
    "ds4": (
        400,
        {"message": "Prompt has 40000 tokens, but the configured context size is 32768"},
        Sizes(40_000, None, 32_768),
    ),
}


@pytest.mark.parametrize("server", SHAPES)
def test_every_known_shape_is_an_overflow_and_its_numbers_are_read(server: str) -> None:
    status, body, sizes = SHAPES[server]
    found = error(status, body)
    assert is_overflow(found)
    assert sizes_in(str(found)) == sizes


@pytest.mark.parametrize("server", SHAPES)
def test_the_text_alone_is_enough_where_there_is_one(server: str) -> None:
    _, body, _ = SHAPES[server]
    assert says_overflow(body["message"])  # type: ignore[index]


@pytest.mark.parametrize("server", SHAPES)
def test_as_an_error_inside_a_stream_it_is_the_same(server: str) -> None:
    assert is_overflow(error(200, SHAPES[server][1], at="it broke off"))


@pytest.mark.parametrize("server", SHAPES)
def test_with_a_word_about_pace_it_is_throttling(server: str) -> None:
    body = dict(SHAPES[server][1], code=None, type=None, status=None)  # type: ignore[call-overload]
    body["message"] = f"Rate limit reached: {body['message']}"
    assert not is_overflow(error(400, body))


def test_cerebras_says_nothing_but_413() -> None:
    assert is_overflow(error(413, ""))


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"message": "file name is too long"}),
        (400, {"message": "max_tokens must be at most 8192"}),
        (400, {"message": "the value exceeds the maximum"}),
        (400, {"message": "maximum number of tools exceeded"}),
        (400, {"code": "invalid_value", "message": "bad temperature"}),
        (401, {"message": "invalid key"}),
        (404, {"message": "model not found"}),
        (429, {"message": "too many tokens, please wait before trying again; the maximum context length is 8192"}),
        (429, {"code": "rate_limit_exceeded", "message": "Request too large: Limit 30000, Requested 40000"}),
        (503, {"message": "Service unavailable"}),
    ],
)
def test_what_is_no_overflow(status: int, body: object) -> None:
    assert not is_overflow(error(status, body))


def test_code_goes_before_type_before_status_before_text() -> None:
    overflow = "prompt is too long"
    assert kind_of(["insufficient_quota"], overflow, 400) == "authentication"
    assert kind_of(["context_length_exceeded"], "rate limit", 429) == "overflow"
    assert kind_of([INVALID], overflow, 400) == "overflow"
    assert kind_of([], overflow, 401) == "authentication"
    assert kind_of(["service_unavailable"], overflow, 503) == "overflow"
    assert kind_of(["overloaded_error"], "busy", 529) == "overloaded"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("project_spend_limit_exceeded", "m"),
        ("organization_usage_limit_exceeded", "m"),
        ("credit_balance_exhausted", "m"),
        ("rate_limit_error", "This request would exceed your organization's monthly spend limit"),
        (None, "You have reached your specified API usage limits"),
    ],
)
def test_an_empty_account_is_no_matter_of_pace(code: str | None, text: str) -> None:
    assert error(429, {"code": code, "message": text}).kind == "authentication"  # type: ignore[attr-defined]


def test_a_usage_limit_with_a_time_to_wait_is_a_matter_of_pace() -> None:
    assert error(429, {"message": "usage limit reached"}, wait=20.0).kind == "rate_limit"  # type: ignore[attr-defined]


# --- answers that are overflows -----------------------------------------------------------------------------------------


def reply(text: str = "", finish: FinishReason = "stop", output: int | None = None, prompt: int = 1_000) -> Reply:
    return Reply(assistant(text), None if output is None else Usage(fresh=prompt, output=output), finish)


def test_status_200_and_nothing_said() -> None:
    assert came_with_nothing(reply(finish="overflow"))
    assert came_with_nothing(reply(finish="length", output=0))
    assert not came_with_nothing(reply(finish="length"))  # no bill: it may have thought for long
    assert not came_with_nothing(reply("half a", finish="overflow", output=9))
    assert not came_with_nothing(reply(finish="stop", output=0))
    called = Reply(assistant("", ToolCall("a", "f")), Usage(output=0), "length")
    assert not came_with_nothing(called)


ASKED = Request((user("q"),), max_output=1_000)


def test_an_answer_cut_by_the_window_is_told_from_one_that_was_long_enough() -> None:
    assert cut_by_context(reply("half a", "overflow"), ASKED)
    assert cut_by_context(reply("half a", "length", 400), ASKED)
    assert not cut_by_context(reply("long", "length", 1_000), ASKED)
    assert not cut_by_context(reply("whole", "stop", 400), ASKED)
    no_limit = replace(ASKED, max_output=None)
    assert not cut_by_context(reply("half a", "length", 400), no_limit)
    assert cut_by_context(reply("half a", "length", 400, prompt=7_700), no_limit, window=8_192)
    assert not cut_by_context(reply("half a", "length"), ASKED)


def test_silent_truncation_shows_in_the_count_only() -> None:
    def counted(prompt: int) -> Usage:
        return Usage(fresh=prompt)

    assert "160,689" in silent_truncation(160_689, counted(16_387))
    assert "stayed at 32,768" in silent_truncation(40_000, counted(32_768), before=(33_000, 32_768))
    assert "window of 8,000" in silent_truncation(9_000, counted(8_500), window=8_000)
    assert not silent_truncation(40_000, counted(39_000), before=(33_000, 32_768))
    assert not silent_truncation(33_200, counted(32_768), before=(33_000, 32_760))  # it grew by next to nothing
    assert not silent_truncation(3_000, counted(100))  # too small to tell
    assert not silent_truncation(40_000, counted(0))  # no bill


# --- what it teaches ----------------------------------------------------------------------------------------------------


def test_an_overflow_teaches_window_and_factor_of_one_model() -> None:
    learned = Learned()
    assert learned.of("a").room is None
    known = learned.overflow("a", 100_000, Sizes(150_000, None, 120_000))
    assert (known.window, known.factor, known.room) == (120_000, 1.5, 80_000)
    assert learned.of("a") == known and learned.of("b").room is None
    assert learned.overflow("a", 10, Sizes(10_000)).factor == 3.0
    assert learned.overflow("a", 10_000, Sizes(10)).factor == 0.5
    assert learned.overflow("a", 10_000, Sizes()).factor == 0.5
    learned.is_wordy("a")
    assert learned.overflow("a", 100, Sizes(100)).wordy
