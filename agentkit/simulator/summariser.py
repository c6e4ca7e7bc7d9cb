"""The summariser: the reader's answer to a request for a summary. It follows the list of what to keep, to the letter.

The prompt holds a list `Keep:`, perhaps an `<earlier-summary>`, and the `<history>` as plain text. What an item names is looked
for in the history and written under that item's name; what no item names is not written. So a list without file names makes a
summary without file names, and an agent that has to look for its files again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agentkit.messages import Message, Request, ToolCall
from agentkit.simulator import history
from agentkit.simulator.knowledge import Knowledge
from agentkit.simulator.questions import FILE

MOST_LINES = 12
"""Lines of one item; of more, the first and the newest stay."""
LONGEST = 300
"""Characters of one line."""
NOTHING = "(nothing to keep)"

_LIST = re.compile(r"^Keep:\n((?:- .*(?:\n|$))+)", re.MULTILINE)
_MARK = re.compile(r"^\[(system|user|assistant|tool)\](?: |$)", re.MULTILINE)
_CALL = re.compile(r"<call ([\w.-]+)\((.*?)\)>(?=\s*(?:<call |<picture |\Z))", re.DOTALL)

_Fact = Callable[[Knowledge], list[str]]


def is_summary_call(request: Request) -> bool:
    """Say whether the request asks for a summary: no tools, and a last user message with a list and a history."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "user" or request.tools:
        return False
    return bool(_LIST.search(last.content)) and "<history>" in last.content


def summarise(request: Request) -> str:
    """Return the summary that the last message of a summary call asks for."""
    prompt = request.messages[-1].content
    listed = _LIST.search(prompt)
    items = [line[2:].strip() for line in listed[1].split("\n") if line[2:].strip()] if listed else []
    known = Knowledge(messages_of(_between(prompt, "history")))
    earlier = Knowledge([Message("user", f"<summary>{_between(prompt, 'earlier-summary')}</summary>")])
    names_files = any(_names_files(item) for item in items)
    lines = [f"{_name(item)}: {line}" for item in items for line in _lines(item, known, earlier, names_files)]
    return "\n".join(lines) or f"{_name(items[0]) if items else 'summary'}: {NOTHING}"


def messages_of(transcript: str) -> list[Message]:
    """Turn a transcript back into messages: `[role] text <call name(arguments)>`, results in the order of the calls."""
    messages: list[Message] = []
    waiting: list[str] = []
    marks = list(_MARK.finditer(transcript))
    for mark, stop in zip(marks, [*(m.start() for m in marks[1:]), len(transcript)], strict=True):
        text = transcript[mark.end() : stop].removesuffix("\n")
        if mark[1] == "tool":
            messages.append(Message("tool", text, tool_call_id=waiting.pop(0) if waiting else ""))
        elif mark[1] == "assistant":
            messages.append(_assistant(text, len(messages)))
            waiting = [c.id for c in messages[-1].tool_calls]
        else:
            messages.append(Message("user" if mark[1] == "user" else "system", text))
    return messages


def _assistant(text: str, number: int) -> Message:
    start = text.find("<call ")
    found = _CALL.findall(text, start) if start >= 0 else []
    calls = tuple(ToolCall(f"{number}-{i}", name, args) for i, (name, args) in enumerate(found))
    return Message("assistant", text[:start].strip() if calls else text, tool_calls=calls)


def _between(text: str, tag: str) -> str:
    """Return what stands between the first opening and the last closing tag, or an empty string."""
    inside = text.partition(f"<{tag}>\n")[2]
    return inside.rpartition(f"\n</{tag}>")[0]


# --- from items to lines -----------------------------------------------------------------------------------------------------


def _name(item: str) -> str:
    return item.partition(":")[0].strip()


def _names_files(item: str) -> bool:
    return re.search(r"\bfiles?\b|\bpaths?\b|^facts?$", item, re.IGNORECASE) is not None


def _files(item: str) -> _Fact:
    with_lines = _asks(r"\blines?\b|^facts?$", item)
    with_names = _names_files(item)

    def lines(known: Knowledge) -> list[str]:
        counts = [(path, history.line_count(known, path)) for path in history.file_names(known)]
        told = [f"{path} ({history.plural(n, 'lines')})" if with_lines and n is not None else path for path, n in counts]
        return told if with_names else [line for line, (_, n) in zip(told, counts, strict=True) if n is not None]

    return lines


def _names_of(noun: str) -> Callable[[str], _Fact]:
    return lambda item: lambda known: history.names(known, noun)


def _just(fact: _Fact) -> Callable[[str], _Fact]:
    return lambda item: fact


_ALL = r"|^facts?$"
_DONE = r"\bdone\b|\bfinished\b|\bactions?\b"
_ASPECTS: tuple[tuple[str, Callable[[str], _Fact]], ...] = (
    (r"\bgoals?\b|\bwants?\b|(?<!open )\btasks?\b|\btopics?\b", _just(history.goals)),
    (r"\bdecisions?\b|\bdecided\b", _just(history.decisions)),
    (r"\bfiles?\b|\bpaths?\b|\blines?\b" + _ALL, _files),
    (r"\bclass(es)?\b" + _ALL, _names_of("classes")),
    (r"\bfunctions?\b|\bmethods?\b" + _ALL, _names_of("functions")),
    (r"\bfunctions?\b|\bmethods?\b" + _ALL, _names_of("methods")),
    (r"\berrors?\b" + _ALL, _just(history.errors)),
    (r"\bresults?\b" + _ALL, _just(history.results)),
    (r"\bfacts?\b|\bremember|\bnotes?\b|\bconstraints?\b", _just(history.facts_told)),
    (_DONE, _just(history.actions)),
    (_DONE, _just(history.tests_run)),
    (_DONE, _just(history.answered)),
    (r"\bin progress\b|\bworked on now\b", _just(history.pending)),
    (r"\bopen\b|\bto[ -]do\b|\btodo\b|\bnext steps?\b", _just(history.open_tasks)),
    (r"\bword for word\b|\bwording\b|\bverbatim\b|\bquot", _just(history.wording)),
)
_LITERAL = r"\bword for word\b|\bwording\b|\bverbatim\b|\bquot|\bremember|\bnotes?\b|\bconstraints?\b"
_UNFINISHED = r"\bin progress\b|\bworked on now\b|\bopen\b|\bto[ -]do\b|\btodo\b|\bnext steps?\b"


def _asks(pattern: str, item: str) -> bool:
    return re.search(pattern, item, re.IGNORECASE) is not None


def _lines(item: str, known: Knowledge, earlier: Knowledge, names_files: bool) -> list[str]:
    """Return the lines of one item: those of the earlier summary that still hold, then the new ones."""
    # "done: …, worded as finished" names no topic of its own: an item about actions or open ends is nothing else.
    single = next((p for p in (_UNFINISHED, r"^done\b") if _asks(p, _name(item))), None)
    facts = [make(item) for pattern, make in _ASPECTS if _asks(pattern, _name(item) if single else item)]
    new = [[" ".join(line.split()) for line in fact(known)] for fact in facts]
    old = [text for name, text in earlier.items if name == _name(item) and text != NOTHING]
    if _asks(_UNFINISHED, _name(item)):
        old = [line for line in old if not _settled(line, known)]
    subjects = {_subject(line) for group in new for line in group}
    groups = [[line for line in old if _subject(line) not in subjects], *new]
    if not names_files and not _asks(_LITERAL, item):
        groups = [[FILE.sub("a file", line) for line in group] for group in groups]
    return _capped([[_short(line) for line in group] for group in groups])


def _subject(line: str) -> str:
    """Return what a line is about: a newer line on the same subject replaces it."""
    return re.split(r" \(| = |: ", line, maxsplit=1)[0]


def _settled(line: str, known: Knowledge) -> bool:
    """Say whether an open end of the earlier summary was closed in the history."""
    runs = [s.result for s in known.steps if s.call.name == "run_tests" and s.result]
    if "failing tests" in line:
        return bool(runs)  # the last run is reported anew
    first = known.asked[0][0] if known.asked else len(known.messages)
    return any(m.role == "assistant" and not m.tool_calls and m.content for m in known.messages[:first])


def _short(line: str) -> str:
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rstrip() + "…"


def _capped(groups: Sequence[list[str]]) -> list[str]:
    """Return the lines of all groups, each once. Of too many the longest group gives, its first and its newest lines last."""
    left = [list(dict.fromkeys(group)) for group in groups]
    while sum(len(group) for group in left) > MOST_LINES:
        longest = max(left, key=len)
        del longest[1 if len(longest) > 1 else 0]
    return list(dict.fromkeys(line for group in left for line in group))
