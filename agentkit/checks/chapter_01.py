"""The exercises of chapter 01: answer a whole batch, find what is unanswered, add up a turn, stay in the workspace."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PureWindowsPath

from agentkit.checks.base import Case, Exercise
from agentkit.messages import Message, ToolCall, assistant, tool_result, user
from agentkit.protocol import batches

# --- answer every call -----------------------------------------------------------------------------------------------


Answer = tuple[str, str, bool]
"""(id of the call, text for the model, is it an error): the three parts of a tool message."""


def answer_batch(calls: Sequence[ToolCall], run: Callable[[ToolCall], str]) -> list[Answer]:
    """Return one answer for each call, in call order; what `run` raises becomes an answer too."""
    answers = []
    for call in calls:
        try:
            answers.append((call.id, run(call), False))
        except Exception as error:
            answers.append((call.id, f"error: {error}", True))
    return answers


def _first_only(calls: Sequence[ToolCall], run: Callable[[ToolCall], str]) -> list[Answer]:
    return answer_batch(calls[:1], run)


def _sorted_by_id(calls: Sequence[ToolCall], run: Callable[[ToolCall], str]) -> list[Answer]:
    return answer_batch(sorted(calls, key=lambda call: call.id), run)


def _lets_errors_out(calls: Sequence[ToolCall], run: Callable[[ToolCall], str]) -> list[Answer]:
    return [(call.id, run(call), False) for call in calls]


def _stops_at_an_error(calls: Sequence[ToolCall], run: Callable[[ToolCall], str]) -> list[Answer]:
    answers = answer_batch(calls, run)
    failed = next((i for i, (_, _, is_error) in enumerate(answers) if is_error), len(answers))
    return answers[: failed + 1]


def _shelf(call: ToolCall) -> str:
    """Stand in for a tool: three files by name, and an error for any other."""
    files = {"a.txt": "alpha", "b.txt": "beta", "c.txt": "gamma"}
    path = call.parsed()["path"]
    if path not in files:
        raise ValueError(f"no file {path!r}")
    return files[path]


def _reading(call_id: str, path: str) -> ToolCall:
    return ToolCall(call_id, "read_file", f'{{"path": "{path}"}}')


_BROKEN = ToolCall("call_x", "read_file", '["a.txt"]')

_BATCHES = (
    Case(([_reading("call_1", "a.txt")], _shelf), [("call_1", "alpha", False)], "one call"),
    Case(
        ([_reading("call_9", "b.txt"), _reading("call_2", "a.txt")], _shelf),
        [("call_9", "beta", False), ("call_2", "alpha", False)],
        "two calls, in call order",
    ),
    Case(
        ([_reading("call_1", "z.txt"), _reading("call_2", "c.txt")], _shelf),
        [("call_1", "error: no file 'z.txt'", True), ("call_2", "gamma", False)],
        "the first call fails",
    ),
    Case(
        ([_BROKEN], _shelf),
        [("call_x", "error: expected a JSON object, got list", True)],
        "arguments that are no object",
    ),
    Case(([], _shelf), [], "no calls"),
)


# --- find what is unanswered -------------------------------------------------------------------------------------------


def unanswered(messages: Sequence[Message]) -> list[str]:
    """Return the ids of all calls that no tool message answers directly behind them: each would be a 400."""
    return [call_id for batch in batches(list(messages)) for call_id in batch.unanswered]


def _anywhere(messages: Sequence[Message]) -> list[str]:
    answered = {m.tool_call_id for m in messages}
    return [c.id for m in messages for c in m.tool_calls if c.id not in answered]


def _last_batch(messages: Sequence[Message]) -> list[str]:
    callers = [i for i, m in enumerate(messages) if m.tool_calls]
    return unanswered(messages[callers[-1] :]) if callers else []


def _next_message_only(messages: Sequence[Message]) -> list[str]:
    following = [*messages[1:], user("")]
    return [c.id for m, after in zip(messages, following, strict=True) for c in m.tool_calls if c.id != after.tool_call_id]


_ONE, _TWO, _THREE = (_reading(f"call_{n}", f"{letter}.txt") for n, letter in ((1, "a"), (2, "b"), (3, "c")))
_ASKED = user("Read a.txt and b.txt at once.")
_BOTH = [_ASKED, assistant("", _ONE, _TWO)]

_HISTORIES = (
    Case(([*_BOTH, tool_result("call_1", "alpha"), tool_result("call_2", "beta")],), [], "all answered"),
    Case((_BOTH,), ["call_1", "call_2"], "none answered"),
    Case(([*_BOTH, tool_result("call_2", "beta")],), ["call_1"], "the first one is missing"),
    Case(
        ([*_BOTH, tool_result("call_1", "alpha"), user("Go on."), tool_result("call_2", "beta")],),
        ["call_2"],
        "an answer that comes too late",
    ),
    Case(
        ([*_BOTH, tool_result("call_1", "alpha"), assistant("", _THREE), tool_result("call_3", "gamma")],),
        ["call_2"],
        "the gap is in an older batch",
    ),
    Case(([user("Hello!"), assistant("Hello.")],), [], "no calls"),
)


# --- add up a turn -----------------------------------------------------------------------------------------------------


def total_prompt_tokens(fixed: int, growth: int, rounds: int) -> int:
    """Return the prompt tokens of a turn: the first prompt has `fixed`, each later one `growth` more than the one before."""
    return rounds * fixed + growth * rounds * (rounds - 1) // 2


def _last_prompt(fixed: int, growth: int, rounds: int) -> int:
    return fixed + growth * (rounds - 1) if rounds else 0


def _all_as_the_last(fixed: int, growth: int, rounds: int) -> int:
    return rounds * _last_prompt(fixed, growth, rounds)


def _one_growth_too_many(fixed: int, growth: int, rounds: int) -> int:
    return rounds * fixed + growth * rounds * (rounds + 1) // 2


_TURNS = (
    Case((1_000, 500, 1), 1_000, "one round"),
    Case((1_000, 500, 2), 2_500, "two rounds"),
    Case((1_000, 500, 10), 32_500, "ten rounds"),
    Case((1_000, 500, 20), 115_000, "twenty rounds"),
    Case((15_000, 0, 8), 120_000, "nothing is added"),
    Case((1_000, 500, 0), 0, "no rounds"),
)


# --- stay in the workspace -----------------------------------------------------------------------------------------------


def stays_inside(path: str) -> bool:
    """Say whether the wording of `path` keeps it in the workspace: relative, no step up, no home, no Windows drive."""
    parts = re.split(r"[/\\]", path)
    return bool(path.strip()) and parts[0] not in ("", "~") and not PureWindowsPath(path).drive and ".." not in parts


def _begins_with_dots(path: str) -> bool:
    return bool(path.strip()) and not path.startswith(("..", "/", "\\", "~")) and not PureWindowsPath(path).drive


def _no_dots_at_all(path: str) -> bool:
    return stays_inside(path) and ".." not in path


def _forward_slashes(path: str) -> bool:
    return bool(path.strip()) and not path.startswith(("/", "~")) and ".." not in path.split("/")


def _only_steps_up(path: str) -> bool:
    return ".." not in re.split(r"[/\\]", path)


_PATHS = (
    Case(("stats.py",), True, "a file"),
    Case(("tests/test_stats.py",), True, "a file in a folder"),
    Case(("../secrets.txt",), False, "one step up"),
    Case(("tests/../../secrets.txt",), False, "up, but not at the start"),
    Case(("/etc/passwd",), False, "absolute"),
    Case(("~/notes.txt",), False, "the home folder"),
    Case(("tests\\..\\..\\secrets.txt",), False, "backslashes"),
    Case(("C:\\secrets.txt",), False, "a Windows drive"),
    Case(("notes..old.txt",), True, "dots inside a name"),
    Case(("",), False, "no path"),
)


EXERCISES = [
    Exercise(
        "answer_batch",
        _BATCHES,
        (
            "go through the calls one by one; each gives exactly one answer, whatever happens",
            "put a `try` around `run(call)` inside the loop, not around the loop",
            "in the `except` branch: `answers.append((call.id, f'error: {error}', True))`",
        ),
        answer_batch,
        {
            "only the first call": _first_only,
            "in another order": _sorted_by_id,
            "an error gets out": _lets_errors_out,
            "stops at an error": _stops_at_an_error,
        },
    ),
    Exercise(
        "unanswered",
        _HISTORIES,
        (
            "for each message with calls, look at the tool messages that stand directly behind it, and no further",
            "`agentkit.protocol.batches` yields each message with calls together with the results behind it",
            "each of those batches has `.unanswered`: the ids that you want",
        ),
        unanswered,
        {
            "an answer anywhere counts": _anywhere,
            "only the last batch": _last_batch,
            "only the next message": _next_message_only,
        },
    ),
    Exercise(
        "total_prompt_tokens",
        _TURNS,
        (
            "write down the prompts of three rounds: fixed, fixed + growth, fixed + 2 × growth",
            "the fixed part is sent in every round; the growth is sent 0 + 1 + 2 + … + (rounds - 1) times",
            "0 + 1 + … + (n - 1) is n × (n - 1) / 2; `sum(...)` over a `range` does it as well",
        ),
        total_prompt_tokens,
        {
            "only the last prompt": _last_prompt,
            "every prompt as large as the last": _all_as_the_last,
            "one growth too many": _one_growth_too_many,
        },
    ),
    Exercise(
        "stays_inside",
        _PATHS,
        (
            "cut the path at both kinds of slash and look at the parts",
            "a part that *is* `..` goes up; a part that only contains two dots does not",
            "`PureWindowsPath(path).drive` is not empty for `C:\\\\…`; an absolute path has an empty first part",
        ),
        stays_inside,
        {
            "looks only at the start": _begins_with_dots,
            "forbids dots inside a name": _no_dots_at_all,
            "knows only forward slashes": _forward_slashes,
            "forgets absolute paths": _only_steps_up,
        },
    ),
]
