"""The exercises of chapter 04: a safe cut, a cut by turns, clipping, and whether a summary may be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentkit.checks.base import Case, Exercise
from agentkit.compaction.calls import fault_of as _fault
from agentkit.compaction.cut import Keep, find_cut, is_safe_cut
from agentkit.compaction.transcript import clip
from agentkit.messages import Message, Reply, ToolCall, assistant, system, tool_result, user

# --- histories -----------------------------------------------------------------------------------------------------------


def _reading(call_id: str) -> ToolCall:
    return ToolCall(call_id, "read_file", '{"path": "stats.py"}')


_TURN = [user("Read stats.py."), assistant("", _reading("call_1")), tool_result("call_1", "…"), assistant("Done.")]
_SMALL_TALK = [user("Thanks!"), assistant("Not at all.")]
_PARALLEL = [
    user("Read both."),
    assistant("", _reading("call_1"), _reading("call_2")),
    tool_result("call_1", "…"),
    tool_result("call_2", "…"),
    assistant("Done."),
]
_INTERRUPTED = [*_PARALLEL[:3], user("Hurry up!"), *_PARALLEL[3:], user("Thanks!")]
_NOTED = [*_TURN, system("The workspace has changed."), *_SMALL_TALK]
# Some servers count their ids anew in every answer.
_SAME_IDS = [*_TURN, *_TURN]
_PENDING = [*_SMALL_TALK, user("Read stats.py."), assistant("", _reading("call_1"))]


# --- is_safe_cut ---------------------------------------------------------------------------------------------------------


def _safe(messages: Sequence[Message], cut: int, boundary: str, note: str) -> Case:
    return Case((messages, cut, boundary), is_safe_cut(messages, cut, boundary), note)  # type: ignore[arg-type]


_SAFE_CASES = (
    _safe(_TURN, 0, "user", "a question"),
    _safe(_TURN, 1, "user", "an assistant message, boundary user"),
    _safe(_TURN, 1, "pair", "an assistant message, boundary pair"),
    _safe(_TURN, 2, "pair", "a result"),
    _safe(_PARALLEL, 3, "pair", "the second of two results"),
    _safe(_INTERRUPTED, 3, "user", "a question between two results of one batch"),
    _safe(_INTERRUPTED, 6, "user", "the question behind that batch"),
    _safe(_NOTED, 4, "pair", "a system note"),
    _safe(_SAME_IDS, 4, "user", "the ids start again, and nothing is torn apart"),
    _safe(_PENDING, 3, "pair", "a call that still waits for its result"),
    _safe(_TURN, len(_TURN), "pair", "nothing would be kept"),
    _safe(_TURN, -1, "pair", "no index"),
)

_Safe = Callable[..., bool]


def _by_role(messages: Sequence[Message], cut: int, boundary: str) -> bool:
    """Look at the role only: a question between two results counts as safe."""
    return 0 <= cut < len(messages) and messages[cut].role in {"user": ("user",), "pair": ("user", "assistant")}[boundary]


def _ids_anywhere(messages: Sequence[Message], cut: int, boundary: str) -> bool:
    """Compare ids over the whole history: a server that counts anew looks like one torn batch."""
    asked = {call.id for message in messages[:cut] for call in message.tool_calls}
    return _by_role(messages, cut, boundary) and not any(m.tool_call_id in asked for m in messages[cut:])


def _no_bounds(messages: Sequence[Message], cut: int, boundary: str) -> bool:
    return cut == len(messages) or is_safe_cut(messages, cut, boundary)  # type: ignore[arg-type]


# --- cut_at_turn ---------------------------------------------------------------------------------------------------------


def cut_at_turn(messages: Sequence[Message], turns: int) -> int:
    """Return the cut that keeps the last `turns` turns whole; 0 when there are not so many."""
    starts = [i for i, message in enumerate(messages) if message.role == "user"]
    cut = starts[-turns] if len(starts) >= turns else 0
    while cut > 0 and not is_safe_cut(messages, cut, "user"):
        cut -= 1
    return cut


def _one_too_few(messages: Sequence[Message], turns: int) -> int:
    return cut_at_turn(messages, turns - 1) if turns > 1 else len(messages)


def _counts_messages(messages: Sequence[Message], turns: int) -> int:
    return find_cut(messages, Keep(turns, "messages"), "user")


def _first_start(messages: Sequence[Message], turns: int) -> int:
    starts = [i for i, message in enumerate(messages) if message.role == "user"]
    return starts[-turns] if len(starts) >= turns else 0


def _all_or_last(messages: Sequence[Message], turns: int) -> int:
    starts = [i for i, message in enumerate(messages) if message.role == "user"]
    return cut_at_turn(messages, min(turns, len(starts))) if starts else 0


def _turns(messages: Sequence[Message], turns: int, note: str) -> Case:
    return Case((messages, turns), find_cut(messages, Keep(turns, "turns"), "user"), note)


_TURN_CASES = (
    _turns([*_TURN, *_SMALL_TALK], 1, "the last turn"),
    _turns([*_TURN, *_SMALL_TALK], 2, "both turns: nothing to cut off"),
    _turns([*_SMALL_TALK, *_TURN, *_SMALL_TALK], 2, "two turns of three"),
    _turns([*_SMALL_TALK, *_TURN], 1, "a turn with a call"),
    _turns(_TURN, 3, "more turns than there are"),
    _turns([*_TURN[1:], *_SMALL_TALK], 2, "a history that starts in the middle of a turn"),
    _turns([*_SMALL_TALK, *_INTERRUPTED], 2, "a question between two results of one batch"),
)


# --- clip ----------------------------------------------------------------------------------------------------------------


def _head_only(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n… ({len(text) - limit:,} characters left out) …\n"


def _no_note(text: str, limit: int) -> str:
    head = limit * 3 // 4
    return text if len(text) <= limit else text[:head] + text[len(text) - (limit - head) :]


def _always_a_note(text: str, limit: int) -> str:
    head = limit * 3 // 4
    return f"{text[:head]}\n… ({len(text) - limit:,} characters left out) …\n{text[len(text) - (limit - head) :]}"


def _negative_slice(text: str, limit: int) -> str:
    head = limit * 3 // 4
    left_out = f"\n… ({len(text) - limit:,} characters left out) …\n"
    return text if len(text) <= limit else text[:head] + left_out + text[head - limit :]


_LETTERS = "abcdefghijklmnopqrstuvwxyz"

_CLIPS = tuple(
    Case(args, clip(*args), note)
    for args, note in (
        ((_LETTERS, 8), "six characters of the start, two of the end"),
        ((_LETTERS, 26), "exactly the limit"),
        ((_LETTERS, 25), "one too many"),
        (("", 8), "no text"),
        ((_LETTERS * 100, 1_000), "a number with a comma"),
        ((_LETTERS, 0), "a limit of nothing"),
    )
)


# --- may_be_used ---------------------------------------------------------------------------------------------------------


def may_be_used(reply: Reply, before: int, after: int, limit: int) -> bool:
    """Say whether the answer of a summary call may replace messages: whole, not empty, a gain, and within the limit."""
    return not _fault(reply) and after < before and after <= limit


_GOOD = Reply(assistant("goal: count the methods"))

_VERDICTS = tuple(
    Case((reply, before, after, limit), may_be_used(reply, before, after, limit), note)
    for reply, before, after, limit, note in (
        (_GOOD, 3_000, 700, 4_000, "a good summary"),
        (Reply(assistant("")), 3_000, 620, 4_000, "an empty one"),
        (Reply(assistant(" \n")), 3_000, 620, 4_000, "white space"),
        (Reply(assistant("I read it again.", _reading("call_1"))), 3_000, 640, 4_000, "text, and a call"),
        (Reply(assistant("goal: count the"), finish="length"), 3_000, 640, 4_000, "cut off before its end"),
        (Reply(assistant("I cannot help with that."), finish="refused"), 3_000, 640, 4_000, "refused"),
        (_GOOD, 700, 900, 4_000, "longer than what it replaces"),
        (_GOOD, 700, 700, 4_000, "no longer and no shorter"),
        (_GOOD, 9_000, 5_000, 4_000, "a gain, but still over the limit"),
        (_GOOD, 9_000, 4_000, 4_000, "exactly the limit"),
    )
)


def _not_empty(reply: Reply, before: int, after: int, limit: int) -> bool:
    return bool(reply.message.content) and after < before and after <= limit


def _never_looks_at_the_end(reply: Reply, before: int, after: int, limit: int) -> bool:
    return may_be_used(Reply(reply.message), before, after, limit)


def _same_size_is_fine(reply: Reply, before: int, after: int, limit: int) -> bool:
    return may_be_used(reply, before + 1, after, limit)


def _no_limit(reply: Reply, before: int, after: int, limit: int) -> bool:
    return may_be_used(reply, before, after, after)


EXERCISES = [
    Exercise(
        "is_safe_cut",
        _SAFE_CASES,
        (
            "three questions: is `cut` an index, may a tail start on this role, does the cut tear a batch apart?",
            "a batch is torn when a call stands before the cut and one of its results at the cut or behind it, "
            "whatever stands between them",
            "a result belongs to the newest assistant message before it: walk through the messages, note where that one "
            "stands, and collect every index behind it up to each of its results; `cut` must not be among them",
        ),
        is_safe_cut,
        {
            "looks at the role only": _by_role,
            "the same id means the same call": _ids_anywhere,
            "everything may be cut off": _no_bounds,
        },
    ),
    Exercise(
        "cut_at_turn",
        _TURN_CASES,
        (
            "a turn starts on a user message: first collect the indices of all of them",
            "`starts[-turns]` is the start of the oldest turn to keep; with too few turns the cut is 0",
            "then go back while `not is_safe_cut(messages, cut, 'user')`: a question may stand inside a batch",
        ),
        cut_at_turn,
        {
            "one turn too few": _one_too_few,
            "counts messages": _counts_messages,
            "does not look at batches": _first_start,
            "cuts although there are not so many turns": _all_or_last,
        },
    ),
    Exercise(
        "clip",
        _CLIPS,
        (
            "a text within the limit comes back as it is",
            "else three quarters of the limit (`limit * 3 // 4`) from the start, and what is left of it from the end",
            "for the end use `text[len(text) - tail:]`: with a tail of 0, `text[-tail:]` would be the whole text",
        ),
        clip,
        {
            "the start only": _head_only,
            "no note": _no_note,
            "a note in any case": _always_a_note,
            "a negative slice of nothing": _negative_slice,
        },
    ),
    Exercise(
        "may_be_used",
        _VERDICTS,
        (
            "everything that makes you doubt the summary makes the answer no: the history is worth more",
            "look at four things: `reply.message.tool_calls`, `reply.finish`, `reply.message.content.strip()`, the sizes",
            "`finish` must be `stop`; `after < before`, because no gain is a loss; `after <= limit`",
        ),
        may_be_used,
        {
            "white space is a summary": _not_empty,
            "half a summary is a summary": _never_looks_at_the_end,
            "no gain is no loss": _same_size_is_fine,
            "no limit": _no_limit,
        },
    ),
]
