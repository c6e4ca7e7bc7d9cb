"""What happened in a history: the facts that a summary may keep, each as short lines of text.

Every function takes the knowledge of the history and returns lines. Which of them are written is decided by the list in the
prompt, not here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.simulator.answers import plural, span
from agentkit.simulator.excerpts import Excerpt
from agentkit.simulator.knowledge import Knowledge, Step, is_edit, same_file
from agentkit.simulator.questions import Question, decides, files_in, is_question, topic, understand
from agentkit.simulator.recall import ABILITIES, GONE, UNKNOWN
from agentkit.simulator.repairs import passed, tally
from agentkit.simulator.work import clipped

_RESULT = re.compile(r"`(\w+\([^`\n]*\))`.*?returns ([^\s;,]+?)\.?(?=;|\s|$)")
_COUNTED = re.compile(r"^`([^`\n]+)` has ([\d,]+) (lines?|methods?|functions?|class(?:es)?)\b:? ?([^;\n]*)", re.MULTILINE)
_ERROR = re.compile(r"\b(ERROR|FATAL|FAILED|Traceback|[A-Z]\w*(?:Error|Exception))\b|\berror:|^E  ")
_PAST = {"count": "counted", "work": "worked"}


# --- questions and answers ---------------------------------------------------------------------------------------------


def turns(known: Knowledge) -> Iterator[tuple[Question, str, str]]:
    """Yield (question, topic, final answer) of each turn; an empty answer means that there was none yet."""
    starts = [i for i, _ in known.asked]
    for (start, text), stop in zip(known.asked, [*starts[1:], len(known.messages)], strict=True):
        question = understand(text)
        steps = [s for s in known.steps if start < s.index < stop and s.path]
        named = question.files or tuple(s.path for s in steps[-1:])
        if not named and not question.hint:
            named = tuple(files_before(known, start)[-1:])
        final = [m.content for m in known.messages[start + 1 : stop] if m.role == "assistant" and not m.tool_calls]
        yield question, topic(question, named[0] if named else ""), final[-1] if final else ""


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
    failing = [f"fix the failing tests ({tally(runs[-1].result or '')})"] if runs and not passed(runs[-1].result or "") else []
    return pending(known) + failing


def wording(known: Knowledge) -> list[str]:
    """Return the user's messages, quoted."""
    return [f"“{' '.join(text.split())}”" for _, text in known.asked]


def decisions(known: Knowledge) -> list[str]:
    """Return what user and assistant said that lays something down."""
    questions = [text for _, text in known.asked if understand(text).kind in ("decision", "remember", "other")]
    sentences = [s.strip() for text in questions + known.said("assistant") for s in re.split(r"(?<=[.!?])\s+|\n", text)]
    ours = (GONE, UNKNOWN, ABILITIES)
    return [s for s in sentences if decides(s) and not is_question(s) and not any(s in text for text in ours)]


# --- facts -----------------------------------------------------------------------------------------------------------------


def file_names(known: Knowledge) -> list[str]:
    """Return the files that were read, edited or named."""
    used = [s.path for s in known.steps if s.path and not s.failed and s.call.name in ("read_file", "edit_file", "write_file")]
    named = [name for _, text in known.asked for name in files_in(text)]
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
    return f"{span(seen, '')} ({plural(len(seen), noun)})" if found.complete else f"{span(seen, '')} and perhaps others"


def errors(known: Knowledge) -> list[str]:
    """Return lines with an error: of searches, test runs and files that hold no program."""
    found: list[str] = []
    for step in known.steps:
        path = step.path
        if step.result and not path.endswith((".py", ".js")) and step.call.name != "list_files":
            rows = (re.sub(r"^\s*(\d+)\t", rf"{path}:\1: " if path else "", row) for row in step.result.split("\n"))
            found += [clipped(row, 200) for row in rows if len(row) < 2_000 and _ERROR.search(row)][:5]
    return list(dict.fromkeys(found))


def results(known: Knowledge) -> list[str]:
    """Return what answers came to, short: `f(3) = 91`, else the beginning. Counts of lines and names are facts above."""
    lines: dict[str, str] = {}
    for question, about, answer in turns(known):
        if match := _RESULT.search(answer):
            lines[match[1]] = f"{match[1]} = {match[2]}"
        elif question.kind in ("find", "tests") and answer:
            # Of several test runs only the last one says how things are.
            lines[question.kind if question.kind == "tests" else about] = clipped(answer.replace("`", "").replace(":\n", ": "), 160)
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
    pattern = str(step.args.get("pattern", "")).removeprefix("(?i)")
    known = {"read_file": f"read {step.path}", "list_files": "listed the files", "grep": f"searched for {pattern}"}
    return known.get(step.call.name, "")


def tests_run(known: Knowledge) -> list[str]:
    """Return how the last test run ended."""
    return [f"tests run: {tally(run.result or '')}" for run in _runs(known)[-1:]]


def answered(known: Knowledge) -> list[str]:
    """Return the counts and results that were asked for and given, worded as finished."""
    told = [about for q, about, answer in turns(known) if answer and q.kind in ("count", "returns")]
    return [f"{_PAST[verb]} {rest}" for about in told for verb, _, rest in [about.partition(" ")]]


def facts_told(known: Knowledge) -> list[str]:
    """Return what the user asked to remember."""
    return [" ".join(note.split()) for note in known.notes]
