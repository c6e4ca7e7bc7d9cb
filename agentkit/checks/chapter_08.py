"""The exercises of chapter 08: the branch, the view, what a second summary is made of, and where one can go back to."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.checks.base import Case, Exercise
from agentkit.ledger.history import turns
from agentkit.log import Compaction, Entry, Log, project
from agentkit.messages import Message, assistant, system, user

# --- logs ----------------------------------------------------------------------------------------------------------------


def _talk(count: int = 3) -> Log:
    """Return a log of `count` turns: m0 is the system prompt, m1, m3 … are questions."""
    log = Log([system("rules")])
    for n in range(count):
        log.append(user(f"question {n + 1}"))
        log.append(assistant(f"answer {n + 1}"))
    return log


def _compacted(*kept: str, status: str = "done") -> Log:
    log = _talk()
    for n, first_kept in enumerate(kept):
        log.compact(Compaction(f"S{n + 1}", first_kept, status=status))  # type: ignore[arg-type]
    return log


def _rewound(log: Log, seq: int, *more: Message) -> Log:
    log.rewind(seq)
    for message in more:
        log.append(message)
    return log


_PLAIN, _ONE, _TWO = _talk(), _compacted("m3"), _compacted("m3", "m5")
_FAILED = _compacted("m3")
_FAILED.compact(Compaction("FAILED", "m5", status="failed"))
_BRANCHED = _rewound(_talk(), 2, user("another question"))
_BACK = _rewound(_compacted("m3"), 4, user("another question"))
_TWICE = _rewound(_rewound(_compacted("m3"), 4, user("one way")), 7, user("the first way again"))
_NOTED = _talk()
_NOTED.note("the user went for lunch")
_NOTED.append(user("question 4"))

# --- branch_of -----------------------------------------------------------------------------------------------------------

Row = tuple[int, int | None]


def branch_of(rows: Sequence[Row], newest: int) -> list[int]:
    """Return the numbers from the first entry to `newest`; each row is (number, number of its parent)."""
    parent = dict(rows)
    path: list[int] = []
    number: int | None = newest
    while number is not None:
        path.append(number)
        number = parent[number]
    return path[::-1]


def _everything_before(rows: Sequence[Row], newest: int) -> list[int]:
    return [number for number, _ in rows if number <= newest]


def _newest_first(rows: Sequence[Row], newest: int) -> list[int]:
    return branch_of(rows, newest)[::-1]


def _without_the_newest(rows: Sequence[Row], newest: int) -> list[int]:
    return branch_of(rows, newest)[:-1]


def _branch(log: Log, newest: int, note: str) -> Case:
    rows = [(e.seq, e.parent) for e in log]
    return Case((rows, newest), [e.seq for e in log.at(newest).branch()], note)


_BRANCHES = (
    _branch(_PLAIN, 6, "one branch only"),
    _branch(_PLAIN, 0, "the first entry"),
    _branch(_BRANCHED, 8, "after a rewind"),
    _branch(_BRANCHED, 6, "the branch that was left"),
    _branch(_TWICE, 11, "back to a branch that was left"),
)

# --- model_sees ----------------------------------------------------------------------------------------------------------


def model_sees(branch: Sequence[Entry]) -> list[str]:
    """Return what the model sees of a branch: ids of messages, and the text of the summary in its place."""
    messages = [e.message for e in branch if e.message is not None]
    size = next((i for i, m in enumerate(messages) if m.role != "system"), len(messages))
    head, body = [m.id for m in messages[:size]], [m.id for m in messages[size:]]
    done = [e.compaction for e in branch if e.compaction is not None and e.compaction.status == "done"]
    if not done:
        return head + body
    return [*head, done[-1].summary, *body[body.index(done[-1].first_kept) :]]


def _every_summary(branch: Sequence[Entry]) -> list[str]:
    """Show all summaries one after the other: the second holds the first already."""
    done = [e.compaction.summary for e in branch if e.compaction and e.compaction.status == "done"]
    seen = model_sees(branch)
    return [seen[0], *done, *seen[2:]] if done else seen


def _failed_too(branch: Sequence[Entry]) -> list[str]:
    made = [e for e in branch if e.compaction]
    if not made or made[-1].compaction is None:
        return model_sees(branch)
    ids = [e.message.id for e in branch if e.message]
    return [ids[0], made[-1].compaction.summary, *ids[ids.index(made[-1].compaction.first_kept) :]]


def _from_the_record_on(branch: Sequence[Entry]) -> list[str]:
    """Take what stands behind the record instead of what it keeps."""
    last = max((i for i, e in enumerate(branch) if e.compaction and e.compaction.status == "done"), default=-1)
    later = [e.message.id for e in branch[last + 1 :] if e.message]
    return model_sees(branch) if last < 0 else [*model_sees(branch)[:2], *later]


def _no_head(branch: Sequence[Entry]) -> list[str]:
    seen = model_sees(branch)
    return seen[1:] if any(e.compaction for e in branch) else seen


def _seen(log: Log, note: str) -> Case:
    view = project(log)
    summary = [view.compaction.summary] if view.compaction else []
    return Case((log.branch(),), [*(m.id for m in view.head), *summary, *(m.id for m in view.tail)], note)


_ANSWERED = _compacted("m3")
_ANSWERED.append(user("question 4"))

_VIEWS = (
    _seen(_PLAIN, "no compaction"),
    _seen(_ONE, "one compaction"),
    _seen(_ANSWERED, "a question after the compaction"),
    _seen(_TWO, "two compactions"),
    _seen(_FAILED, "the second compaction failed"),
    _seen(_BACK, "a rewind to before the compaction"),
    _seen(_NOTED, "a note for the reader"),
)

# --- to_fold -------------------------------------------------------------------------------------------------------------


def to_fold(log: Log, first_kept: str) -> tuple[str, list[str]]:
    """Return what a summary that keeps from `first_kept` is made of: the summary in force, the ids that are new since."""
    view = project(log)
    ids = [m.id for m in view.tail]
    previous = view.compaction.summary if view.compaction else ""
    return previous, ids[: ids.index(first_kept)]


def _all_again(log: Log, first_kept: str) -> tuple[str, list[str]]:
    """Read everything again, each time: dearer with every compaction."""
    ids = [m.id for m in log.messages() if m.role != "system"]
    return to_fold(log, first_kept)[0], ids[: ids.index(first_kept)]


def _since_the_record(log: Log, first_kept: str) -> tuple[str, list[str]]:
    """Begin at the record and not at what it kept: the tail of then is in neither summary."""
    branch = log.branch()
    last = max((i for i, e in enumerate(branch) if e.compaction), default=0)
    ids = [e.message.id for e in branch[last:] if e.message and e.message.role != "system"]
    return to_fold(log, first_kept)[0], ids[: ids.index(first_kept)] if first_kept in ids else []


def _forgets_the_first(log: Log, first_kept: str) -> tuple[str, list[str]]:
    return "", to_fold(log, first_kept)[1]


_LONG = _compacted("m3")
_LONG.append(user("question 4"))
_LONG.append(assistant("answer 4"))

_FOLDS = tuple(
    Case((log, kept), want, note)
    for log, kept, want, note in (
        (_PLAIN, "m3", ("", ["m1", "m2"]), "the first compaction"),
        (_LONG, "m5", ("S1", ["m3", "m4"]), "the second begins at what the first one kept"),
        (_LONG, "m8", ("S1", ["m3", "m4", "m5", "m6"]), "what was said since is read too"),
        (_TWO, "m6", ("S2", ["m5"]), "the third"),
        (_BACK, "m3", ("", ["m1", "m2"]), "after a rewind to before the first"),
    )
)

# --- rewind_targets ------------------------------------------------------------------------------------------------------


def rewind_targets(log: Log) -> list[tuple[str, int | None]]:
    """Return (id of the question, entry before it) for every turn of the branch: `turns` of the package, as plain data."""
    return [(turn.message.id, turn.before) for turn in turns(log)]


def _of_all_branches(log: Log) -> list[tuple[str, int | None]]:
    return [(e.message.id, e.parent) for e in log if e.message and e.message.role == "user"]


def _the_question_itself(log: Log) -> list[tuple[str, int | None]]:
    """Go back to the question and not to before it: asked again, it stands there twice."""
    return [(turn.message.id, turn.seq) for turn in turns(log)]


def _only_what_is_seen(log: Log) -> list[tuple[str, int | None]]:
    """Offer what the model sees: then nothing before a compaction can be reached."""
    seen = {m.id for m in project(log).tail}
    return [pair for pair in rewind_targets(log) if pair[0] in seen]


_FORKED = Log([system("rules"), user("question 1"), assistant("answer 1"), user("question 2")])
_FORKED.rewind(2)
_FORKED.append(user("question 2, asked better"))

_TARGETS = tuple(
    Case((log,), want, note)
    for log, want, note in (
        (_PLAIN, [("m1", 0), ("m3", 2), ("m5", 4)], "three turns"),
        (_ANSWERED, [("m1", 0), ("m3", 2), ("m5", 4), ("m8", 7)], "a compaction: before question 4 it is in force"),
        (_FORKED, [("m1", 0), ("m5", 4)], "a branch was left"),
        (_TWICE, [("m1", 0), ("m3", 2), ("m5", 4), ("m11", 10)], "back to a branch that was left"),
    )
)


EXERCISES = (
    Exercise(
        "branch_of",
        _BRANCHES,
        (
            "Begin at the newest entry and ask for its parent, then for the parent of that.",
            "Put the parents into a dict. Stop at None, and turn the list round at the end.",
        ),
        branch_of,
        {"everything before": _everything_before, "newest first": _newest_first, "without the newest": _without_the_newest},
    ),
    Exercise(
        "model_sees",
        _VIEWS,
        (
            "Three parts: the system prompt, the newest summary that counts, the messages from its `first_kept` on.",
            "`first_kept` is an id of a message. It stands *before* the compaction's own place in the branch.",
        ),
        model_sees,
        {
            "every summary": _every_summary,
            "failed ones too": _failed_too,
            "from the record on": _from_the_record_on,
            "no system prompt": _no_head,
        },
    ),
    Exercise(
        "to_fold",
        _FOLDS,
        (
            "What is new since the last compaction? Everything that the model still sees word for word.",
            "`project(log)` has it: `.compaction` is in force, `.tail` is what is new. Cut the tail at `first_kept`.",
        ),
        to_fold,
        {"all again": _all_again, "since the record": _since_the_record, "forgets the first": _forgets_the_first},
    ),
    Exercise(
        "rewind_targets",
        _TARGETS,
        (
            "Only this branch counts, and only messages of the user; a summary is no message of the log.",
            "`log.branch()` gives the entries; where one goes back to is the `parent` of the question.",
        ),
        rewind_targets,
        {
            "all branches": _of_all_branches,
            "the question itself": _the_question_itself,
            "only what is seen": _only_what_is_seen,
        },
    ),
)
