"""What happened in a history: the facts that a summary may keep, each as short lines of text.

Every function takes the knowledge of the history and returns lines. Which of them are written is decided by the list in the
prompt, not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.simulator.answers import plural, span
from agentkit.simulator.excerpts import Excerpt
from agentkit.simulator.knowledge import NOTE, Knowledge, Step, is_edit, same_file
from agentkit.simulator.questions import Question, decides, files_in, is_question, understand
from agentkit.simulator.recall import ABILITIES, GONE, QUOTE, UNKNOWN
from agentkit.simulator.repairs import passed, tally
from agentkit.simulator.topics import topic
from agentkit.simulator.work import clipped

IN_PART = "and perhaps others"
"""The end of a list of names from a text that was clipped."""

_RESULT = re.compile(r"`(\w+\([^`\n]*\))`.*?returns ([^\s;,]+?)\.?(?=;|\s|$)")
_COUNTED = re.compile(
    r"^`([^`\n]+)` has (\d[\d,]{0,12}) (lines?|methods?|functions?|class(?:es)?)\b:? ?([^;\n]*)", re.MULTILINE
)
_ERROR = re.compile(r"\b(ERROR|FATAL|FAILED|Traceback|[A-Z]\w*(?:Error|Exception))\b|\berror:|^E  ")
_PAST = {"count": "counted", "work": "worked"}


# --- questions and answers ---------------------------------------------------------------------------------------------


def turns(known: Knowledge) -> Iterator[tuple[Question, str, str]]:
    """Yield (question, topic, final answer) of each turn; an empty answer means that there was none yet."""
    stops = [*(i for i, _ in known.asked), len(known.messages)][1:]
    for (start, text), stop in zip(known.asked, stops, strict=True):
        question = understand(text)
        meant = _meant(known, question, start, stop) if question.kind in ("count", "read") else ""
        final = [m.content for m in known.messages[start + 1 : stop] if m.role == "assistant" and not m.tool_calls]
        yield question, topic(question, meant), final[-1] if final else ""


def _meant(known: Knowledge, question: Question, start: int, stop: int) -> str:
    """Return the file that was meant where none is named: the last one touched in the turn, or spoken of before it."""
    touched = [s.path for s in known.steps if start < s.index < stop and s.path]
    return (touched or ([] if question.hint else files_before(known, start)) or [""])[-1]


def files_before(known: Knowledge, index: int) -> list[str]:
    """Return the files spoken of before a message, oldest first."""
    return [name for m in known.messages[:index] if m.role in ("user", "assistant") for name in files_in(m.content)]


def goals(known: Knowledge) -> list[str]:
    """Return what the user wanted, as topics and not in the user's words."""
    return [about for _, about, _ in turns(known) if about]


def pending(known: Knowledge) -> list[str]:
    """Return the topics of questions that have no answer in the history."""
    return [about for _, about, answer in turns(known) if about and not answer]


def open_tasks(known: Knowledge) -> list[str]:
    """Return what is still to do: questions without an answer, and tests that fail."""
    runs = _runs(known)
    last = (runs[-1].result or "") if runs else ""
    return pending(known) + ([f"fix the failing tests ({tally(last)})"] if last and not passed(last) else [])


def wording(known: Knowledge) -> list[str]:
    """Return the user's messages, quoted."""
    return [f"“{' '.join(text.split())}”" for _, text in known.asked]


def decisions(known: Knowledge) -> list[str]:
    """Return what user and assistant said that lays something down."""
    questions = [text for _, text in known.asked if understand(text).kind in ("decision", "remember", "other")]
    sentences = [s.strip() for text in questions + known.said("assistant") for s in re.split(r"(?<=[.!?])\s+|\n", text)]
    ours = (GONE, UNKNOWN, ABILITIES)
    return [
        s for s in sentences if decides(s) and not is_question(s) and not any(s in text for text in ours) and QUOTE not in s
    ]


# --- facts -----------------------------------------------------------------------------------------------------------------


def file_names(known: Knowledge) -> list[str]:
    """Return the files that were read, edited or named."""
    steps = [s for s in known.steps if s.path and (s.call.name == "read_file" or is_edit(s))]
    used = [s.path for s in steps if not s.failed]
    missing = {s.path for s in steps if s.failed} - set(used)
    named = [name for _, text in known.asked for name in files_in(text) if name not in missing]
    return list(dict.fromkeys(_longest(name, used) for name in used + named))


def _longest(name: str, names: list[str]) -> str:
    return next((n for n in names if same_file(n, name) and len(n) > len(name)), name)


def line_count(known: Knowledge, path: str) -> int | None:
    """Return the lines of a file, from its text or from an answer; None if unknown, or edited since it was read."""
    found = known.excerpt(path)
    if found and found.total is not None:
        return found.total
    said = [m for text in known.said("assistant") for m in _COUNTED.finditer(text) if same_file(m[1], path)]
    counts = [int(m[2].replace(",", "")) for m in said if m[3].startswith("line")]
    return counts[-1] if counts and not known.edited(path) else None


def names(known: Knowledge, noun: str) -> list[str]:
    """Return one line for each file with methods, functions or classes: their names and how many there are."""
    lines = []
    for path in file_names(known):
        found = known.excerpt(path)
        listed = _stated(known, path, noun) or (_listed(found, noun) if found else "")
        lines += [f"{noun} of {path}: {listed}"] if listed else []
    return lines


def _stated(known: Knowledge, path: str, noun: str) -> str:
    said = [m for text in known.said("assistant") for m in _COUNTED.finditer(text) if same_file(m[1], path)]
    lists = [m for m in said if m[3].startswith(noun[:5]) and m[4]]
    if not lists or known.edited(path):
        return ""
    listed = lists[-1][4].replace("`", "").strip(" .")
    return f"{listed} ({plural(int(lists[-1][2].replace(',', '')), noun)})"


def _listed(found: Excerpt, noun: str) -> str:
    seen = found.names(noun)
    if not seen:
        return ""
    return f"{span(seen, '')} ({plural(len(seen), noun)})" if found.complete else f"{span(seen, '')} {IN_PART}"


def errors(known: Knowledge) -> list[str]:
    """Return lines with an error: of searches, test runs and files that hold no program."""
    found: list[str] = []
    last_run = _runs(known)[-1:]
    for step in known.steps:
        path, stale = step.path, step.call.name == "run_tests" and step not in last_run
        if step.result and not stale and not path.endswith((".py", ".js")) and step.call.name != "list_files":
            rows = (re.sub(r"^\s*(\d+)\t", rf"{path}:\1: " if path else "", row) for row in step.result.split("\n"))
            found += [clipped(row, 200) for row in rows if len(row) < 2_000 and _ERROR.search(row)][:5]
    return list(dict.fromkeys(found))


def results(known: Knowledge) -> list[str]:
    """Return what answers came to, short: `f(3) = 91`, else the beginning. Counts of lines and names are facts above."""
    lines: dict[str, str] = {}
    for question, about, answer in turns(known):
        if match := _RESULT.search(answer[:2_000]):
            lines[match[1]] = f"{match[1]} = {match[2]}"
        elif question.kind in ("find", "tests") and answer:
            # Of several test runs only the last one says how things are.
            key = about if question.kind == "find" else "tests"
            lines[key] = clipped(answer.replace("`", "").replace(":\n", ": "), 160)
    return list(lines.values())


# --- actions ---------------------------------------------------------------------------------------------------------------


def _runs(known: Knowledge) -> list[Step]:
    return [s for s in known.steps if s.call.name == "run_tests" and s.result]


def actions(known: Knowledge) -> list[str]:
    """Return the calls that were carried out, worded as finished."""
    return [line for step in known.steps if not step.failed and (line := _done(step))]


def _done(step: Step) -> str:
    if is_edit(step):
        return f"edited {step.path}"
    pattern = str(step.args.get("pattern", "")).removeprefix("(?i)").removesuffix(r"\b")
    known = {"read_file": f"read {step.path}", "list_files": "listed the files", "grep": f"searched for {pattern}"}
    return known.get(step.call.name, "")


def tests_run(known: Knowledge) -> list[str]:
    """Return how the last test run ended."""
    return [f"tests run: {tally(run.result or '')}" for run in _runs(known)[-1:]]


def answered(known: Knowledge) -> list[str]:
    """Return the counts and results that were asked for and given, worded as finished."""
    told = ((about, answer) for q, about, answer in turns(known) if answer and q.kind in ("count", "returns"))
    return [f"{_finished(about)}{_outcome(answer)}" for about, answer in told]


def _finished(about: str) -> str:
    verb, _, rest = about.partition(" ")
    return f"{_PAST[verb]} {rest}"


def _outcome(answer: str) -> str:
    """Return ": 40" for an answer that counts, ": 91" for one that works out a result, else nothing."""
    found = [m[2] for m in _COUNTED.finditer(answer)] or [m[2] for m in _RESULT.finditer(answer[:2_000])]
    return f": {', '.join(found)}" if found else ""


def facts_told(known: Knowledge) -> list[str]:
    """Return what the user asked to remember, marked as such."""
    return [f"{NOTE}{' '.join(note.split())}”" for note in known.notes]
