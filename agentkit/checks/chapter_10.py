"""The exercises of chapter 10: a policy of one's own, the share that a cache reads, what AutoGPT's source really sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentkit.budget import Budget
from agentkit.checks.base import Case, Exercise
from agentkit.checks.policy_check import PolicyExercise, Story
from agentkit.compaction.compactor import Compactor
from agentkit.log import Log
from agentkit.messages import Message, ToolCall, assistant, system, tool_result, user
from agentkit.policies.base import Policy, Situation
from agentkit.policies.branch import Branch, last_safe
from agentkit.policies.compacting import KeepingTail
from agentkit.policies.filling import fill
from agentkit.policies.viewing import Viewing

# --- own_policy ----------------------------------------------------------------------------------------------------------


def own_policy(compactor: Compactor) -> Policy:
    """Return a policy that summarises at the budget's threshold and keeps the last 8 messages: one of many answers."""

    class Mine(KeepingTail):
        name = "mine"

        def threshold(self, budget: Budget) -> int:
            return budget.threshold

        def cut(self, tail: Sequence[Message], situation: Situation) -> int:
            return last_safe(tail, len(tail) - 8)

    return Mine(compactor)


def _chat(turns: int) -> list[Message]:
    return [m for n in range(turns) for m in (user(f"question {n}"), assistant(f"answer {n}, at some length " * 20))]


def _loop(rounds: int, at_once: int = 1) -> list[Message]:
    messages = []
    for n in range(rounds):
        calls = [ToolCall(f"call_{n}_{k}", "read_file", f'{{"path": "part_{n}_{k}.py"}}') for k in range(at_once)]
        messages.append(assistant(f"step {n}", *calls))
        messages += [tool_result(c.id, f"def part_{c.id}():\n    return {n}\n" * 15) for c in calls]
    return messages


def _work(turns: int) -> list[Message]:
    parts = ([*_chat(2), user(f"task {n}"), *_loop(6), assistant(f"done {n}")] for n in range(turns))
    return [message for part in parts for message in part]


_HEAD = system("You are a coding agent.")
_LONG = 10**6
_STORIES = (
    Case((Story((_HEAD, user("hello"), 100)),), None, "one question"),
    Case((Story((_HEAD, *_chat(8), user("and now?"), _LONG)),), None, "a long chat"),
    Case((Story((_HEAD, user("fix it"), *_loop(9), _LONG)),), None, "one turn of many calls"),
    Case((Story((_HEAD, *_work(4), user("and now?"), _LONG), shorter=True),), None, "four turns of calls and chat"),
    Case((Story((_HEAD, user("read all"), *_loop(3, at_once=6), _LONG)),), None, "six calls at once, not answered yet"),
    Case(
        (Story((_HEAD, *_chat(6), user("go on"), _LONG, *_loop(7), _LONG, *_loop(9)[14:], 300)),),
        None,
        "one compaction after another",
    ),
    Case((Story((_HEAD, *_chat(8), user("and now?"), _LONG, 100), down=True),), None, "the summariser is down"),
)


class _Orphans:
    """Keep the last nine messages, whatever they are."""

    name = "last nine"

    def decide(self, log: Log, situation: Situation) -> None:
        return None

    def view(self, log: Log) -> tuple[Message, ...]:
        head, *rest = log.messages()
        return (head, *rest[-9:])


class _Remembers(Viewing):
    """Fold old outputs once it was over the threshold: known to this object only."""

    name = "remembers"
    over = False

    def decide(self, log: Log, situation: Situation) -> None:
        self.over = self.over or situation.estimate >= situation.budget.threshold

    def messages(self, branch: Branch) -> Sequence[Message]:
        folded = [replace(m, content="(omitted)") if m.role == "tool" else m for m in branch.body[:-6]]
        return [*branch.head, *(folded if self.over else branch.body[:-6]), *branch.body[-6:]]


class _Everything(Viewing):
    name = "everything"

    def decide(self, log: Log, situation: Situation) -> None:
        return None

    def messages(self, branch: Branch) -> Sequence[Message]:
        return [*branch.head, *branch.body]


# --- cache_read_share ----------------------------------------------------------------------------------------------------

Prompt = Sequence[tuple[str, int]]
"""A request as blocks: the text of each (equal text, equal block) and its tokens."""


def cache_read_share(prompts: Sequence[Prompt], minimum: int = 0) -> float:
    """Return the share of all prompt tokens, 0 to 1, that a plain prefix cache reads.

    A block is read when it and all before it stood so at the start of an earlier request; a read of fewer than `minimum`
    tokens is none. Nothing expires.
    """
    read, seen = 0, set[tuple[str, ...]]()
    for prompt in prompts:
        texts, found, tokens = tuple(text for text, _ in prompt), 0, 0
        for end, (_, size) in enumerate(prompt, 1):
            tokens += size
            found = tokens if texts[:end] in seen else found
        read += found if found >= minimum else 0
        seen |= {texts[:end] for end in range(1, len(texts) + 1)}
    return read / max(1, sum(size for prompt in prompts for _, size in prompt))


_BODY = [(f"m{n}", 300) for n in range(30)]


def _prompts(kind: str, requests: int = 12) -> list[list[tuple[str, int]]]:
    """Return what four policies send, two messages more each time."""
    found = []
    for n in range(1, requests + 1):
        head, body = [("tools and system", 900)], _BODY[: 2 * n]
        if kind == "clock":
            head.append((f"it is 10:{n:02}", 10))
        if kind == "last nine":
            body = body[-9:]
        if kind == "folded":
            body = [(f"folded {text}", 10) for text, _ in body[:-9]] + body[-9:]
        if kind == "summary" and n > 6:
            body = [("summary", 500), *body[10:]]
        found.append([*head, *body])
    return found


def _share(kind: str, note: str, minimum: int = 0) -> Case:
    prompts = _prompts(kind)
    return Case((prompts, minimum), cache_read_share(prompts, minimum), note, 1e-9)


_SHARES = (
    _share("all", "keep everything: all but the end is read"),
    _share("clock", "a clock behind the system prompt"),
    _share("last nine", "the last nine: the first message is another one each time"),
    _share("folded", "old outputs folded one by one"),
    _share("summary", "one summary in the middle of the session"),
    _share("clock", "a clock, and what stands before it is shorter than the minimum", 1_024),
)


def _compared_by_place(prompts: Sequence[Prompt], minimum: int = 0) -> float:
    """Count every block that was seen before, wherever it stands."""
    seen: set[str] = set()
    read = 0
    for prompt in prompts:
        read += sum(size for text, size in prompt if text in seen)
        seen |= {text for text, _ in prompt}
    return read / sum(size for prompt in prompts for _, size in prompt)


def _of_requests(prompts: Sequence[Prompt], minimum: int = 0) -> float:
    """Take the mean over the requests."""
    shares = [
        cache_read_share(prompts[:n], minimum) * _size(prompts[:n])
        - cache_read_share(prompts[: n - 1], minimum) * _size(prompts[: n - 1])
        for n in range(1, len(prompts) + 1)
    ]
    return sum(share / _size([prompt]) for share, prompt in zip(shares, prompts, strict=True)) / len(prompts)


def _size(prompts: Sequence[Prompt]) -> int:
    return sum(size for prompt in prompts for _, size in prompt)


def _without_minimum(prompts: Sequence[Prompt], minimum: int = 0) -> float:
    return cache_read_share(prompts)


# --- newest_first --------------------------------------------------------------------------------------------------------


def newest_first(sizes: Sequence[int], room: int) -> list[int]:
    """Return the positions of the messages that AutoGPT 0.2.1 sends, in order: from the newest back, as long as they fit.

    `sizes` and `room` are tokens. The newest message is sent in any case; the first that does not fit ends it.
    """
    chosen, left = [len(sizes) - 1], room - sizes[-1]
    for position in range(len(sizes) - 2, -1, -1):
        if sizes[position] > left:
            break
        chosen.append(position)
        left -= sizes[position]
    return sorted(chosen)


def by_the_package(sizes: Sequence[int], room: int) -> list[int]:
    """Ask the package's own filling: the newest message is the user's, all others are answers."""
    body = [*(assistant(str(n)) for n in range(len(sizes) - 1)), user(str(len(sizes) - 1))]
    return fill(body, lambda message: sizes[int(message.content)], room)


def _filled(sizes: Sequence[int], room: int, note: str) -> Case:
    return Case((list(sizes), room), by_the_package(sizes, room), note)


_FILLS = (
    _filled([50] * 20, 3_000, "short messages: all of them, where the text says nine"),
    _filled([900] * 20, 3_000, "long messages: three, where the text says nine"),
    _filled([100, 100, 2_500, 100, 100, 400], 3_000, "one that does not fit ends it, although older ones would"),
    _filled([200, 300, 500], 1_000, "just fits"),
    _filled([10, 10, 5_000], 3_000, "the newest is too large by itself"),
)


def _last_nine(sizes: Sequence[int], room: int) -> list[int]:
    """Do what the text says."""
    return list(range(max(0, len(sizes) - 9), len(sizes)))


def _skips(sizes: Sequence[int], room: int) -> list[int]:
    """Leave out what does not fit and go on."""
    chosen = []
    for position in range(len(sizes) - 1, -1, -1):
        if sizes[position] <= room or not chosen:
            chosen.append(position)
            room -= sizes[position]
    return sorted(chosen)


def _oldest_first(sizes: Sequence[int], room: int) -> list[int]:
    back = newest_first(sizes[::-1], room)
    return sorted(len(sizes) - 1 - position for position in back)


EXERCISES = [
    PolicyExercise(
        "own_policy",
        _STORIES,
        (
            "start from `Viewing` (a view by rule, `messages(branch)`) or from `KeepingTail` (a summary when it is due: "
            "`threshold(budget)` or `is_due`, and `cut(tail, situation)`); both settle the view, so that no API refuses it",
            "everything that the view depends on has to stand in the log: nothing in `self` may change what is shown",
            "let `cut` return `last_safe(tail, wanted)`: a tail must not begin with a tool result",
        ),
        own_policy,
        {
            "orphans": lambda compactor: _Orphans(),
            "remembers in self": lambda compactor: _Remembers(),
            "drops nothing": lambda compactor: _Everything(),
        },
    ),
    Exercise(
        "cache_read_share",
        _SHARES,
        (
            "the law of chapter 05: what is read is the longest beginning in common with any earlier request",
            "go along the blocks of a request while the beginning up to there was the beginning of an earlier one; add up "
            "their tokens, and count nothing when the sum is under `minimum`",
            "the share is of all tokens of all requests: divide once, at the end",
        ),
        cache_read_share,
        {"anywhere": _compared_by_place, "mean of requests": _of_requests, "no minimum": _without_minimum},
    ),
    Exercise(
        "newest_first",
        _FILLS,
        (
            "nine is not in it: the room decides how many messages are sent",
            "begin with the newest, which is sent in any case, and go back while the next one fits into what is left",
            "the first that does not fit ends it; return the positions in the order of the conversation",
        ),
        newest_first,
        {"the text's last nine": _last_nine, "skips what is too large": _skips, "oldest first": _oldest_first},
    ),
]
