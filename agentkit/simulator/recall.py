"""What the simulated model remembers of the conversation itself, and what it says when it does not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.simulator.answers import hits
from agentkit.simulator.excerpts import excerpt
from agentkit.simulator.fetching import SAID, beginnings, fetch, fetched, first_user_text, save
from agentkit.simulator.questions import FILE, Question, files_in, is_question
from agentkit.simulator.topics import content_words
from agentkit.simulator.work import Work, clipped

GONE = (
    "That is no longer in my context: the earlier messages were replaced by a summary, "
    "and a summary keeps the topic, not your wording."
)
UNKNOWN = "I find no answer to that in my context. I am a simulated model and know only a few kinds of question."
QUOTE = "My context says:"
ABILITIES = (
    "I can read, list and search files, count their lines and methods, work out what a small function returns, "
    "run the tests and fix simple bugs, and remember what you tell me."
)
_WORDING = r"word for word|wording|quot|verbatim"
_QUOTED = re.compile(r"“([^”]+)”|\"([^\"]+)\"|'(.+)'")


def first_question(work: Work, question: Question) -> str:
    """Quote the first question; after a compaction say that its wording is gone, and what it was about."""
    known = work.known
    if not known.has_summary or known.asked and known.asked[0][0] < known.summary_at:
        return f"The first question in my context is: “{known.asked[0][1].strip()}”" if known.asked else UNKNOWN
    for text in known.summary_lines(_WORDING):
        quoted = _QUOTED.search(text)
        return f"The summary keeps it word for word: “{next(filter(None, quoted.groups())) if quoted else text}”"
    if told := first_user_text(work):
        return f"The first question was: “{told}”"
    goals = known.summary_lines(r"\bgoal|\btopic|\bwants?\b")
    return f"{GONE} It was about {_gerund(goals[0].rstrip('.'))}." if goals else GONE


def _gerund(goal: str) -> str:
    """Turn "count the lines" into "counting the lines"; anything else stays as it is, after a colon."""
    verb, _, rest = goal.partition(" ")
    if goal.startswith("a question about "):
        return goal.removeprefix("a question about ")
    simple = verb in ("count", "find", "read", "work", "run", "list")
    return f"{'runn' if verb == 'run' else verb}ing {rest}" if simple and rest else f"this: {goal}"


def files_read(work: Work, question: Question) -> str:
    """Name the files read, as far as calls in view and the summary show them."""
    known = work.known
    read = list(dict.fromkeys(s.path for s in known.steps if s.call.name == "read_file" and s.path and not s.failed))
    earlier = [text[5:] for _, text in known.items if text.startswith("read ") and FILE.fullmatch(text[5:])]
    noted = [name for name in files_in(known.summary) if name not in read + earlier]
    parts = [f"I have read {_ticked(read)}."] if read else []
    parts += [f"The summary says that I have read {_ticked(earlier)}."] if earlier else []
    parts += [f"The summary names {_ticked(noted)}."] if noted else []
    return " ".join(parts) or "Nothing in my context names a file that I have read."


def _ticked(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def remember(work: Work, question: Question) -> str:
    """Note what the user asks to remember, and save it where a policy offers a tool for that."""
    save(work, question.what)
    return "Noted."


def notes(work: Work, question: Question) -> str:
    """Repeat what the user asked to remember."""
    if not work.known.notes:
        fetch(work, question.what or "remember")
    found = work.known.notes
    return " ".join(f"You told me: “{clipped(note, 300)}”" for note in found) or UNKNOWN


def other(work: Work, question: Question) -> str:
    """Answer what no pattern fits: quote the sentence in view that shares most words with it.

    A file that the question names is read first, and only its lines count.
    """
    text = FILE.sub(" ", question.what).strip()
    if not (question.files or is_question(text)):
        return ABILITIES
    lines = [line for path in question.files for line in work.seen(path).lines.values()]
    found = _best(text, [], lines) if question.files else _best(text, work.known.notes[::-1], list(_sentences(work)))
    if not found or found.endswith("…"):  # the beginning of a sentence is no answer if the rest can be fetched
        fetch(work, text)
        found = _best(text, [], fetched(work)) or found
    return f"{QUOTE} “{found}”" if found else UNKNOWN


def _best(question: str, told: list[str], sentences: list[str]) -> str:
    """Return the sentence that shares most words with the question, at least two of them (an empty string: none does).

    A single word is enough when the question has no other and the user told the sentence, or when the word is an identifier.
    """
    wanted = set(content_words(question))
    alone = len(wanted) == 1
    identifier = alone and re.search(r"[_\d]", next(iter(wanted))) is not None
    best, most = "", 1
    for i, sentence in enumerate([*told, *sentences]):
        shared = len(wanted & set(content_words(sentence)))
        if shared > most or (shared == most == 1 and alone and (identifier or i < len(told))):
            best, most = sentence, max(shared, most) + (shared == 1)
    return clipped(best, 300)


def _sentences(work: Work) -> Iterator[str]:
    """Yield what was said and read, in order of trust: the user's statements, the summary, tool results; newest first."""
    known = work.known
    for _, text in reversed(known.asked[:-1]):
        yield from (s for s in _split(text) if not s.endswith(("?", "?")))
    # That there was such a question is no answer to it.
    for item, text in reversed(known.items):
        if not text.startswith("a question about "):
            yield from beginnings(text) if item == SAID else [text]
    for step in reversed(known.steps):
        found = excerpt(step.path, step.result or "") if step.call.name == "read_file" else None
        rows = [t for _, _, t in hits(step.result or "")] if step.call.name == "grep" else []
        yield from (found.lines.values() if found else rows or (step.result or "").split("\n"))


def _split(text: str) -> list[str]:
    return [s.strip() for s in re.split(r"(?<=[.!?])\s+|(?<=[。!?])|\n", text) if s.strip()]
