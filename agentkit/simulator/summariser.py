"""The summariser: the reader's answer to a request for a summary. It follows the list of what to keep, to the letter.

The prompt holds a list `Keep:`, perhaps an `<earlier-summary>`, and the `<history>` as plain text. What an item names is
looked for in the history and written under that item's name; what no item names is not written. So a list without file
names makes a summary without file names, and an agent that has to look for its files again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from agentkit.messages import Message, Request, ToolCall
from agentkit.simulator import history
from agentkit.simulator.knowledge import NOTE, Knowledge
from agentkit.simulator.questions import FILE

MOST_LINES = 12
"""Lines of one item, before those of the earlier summary give way (its first and its newest stay longest)."""
LONGEST = 300
"""Characters of one line."""
NOTHING = "(nothing to keep)"
_ABOVE = "<history>\n(the conversation above)\n</history>"

_LIST = re.compile(r"^Keep:\n((?:- .*(?:\n|$))+)", re.MULTILINE)
_MOST_WORDS = re.compile(r"^Write at most (\d+) words", re.MULTILINE)
_MARK = re.compile(r"^\[(system|user|assistant|tool)\](?: |$)", re.MULTILINE)
_CALL_START = re.compile(r"(?=<call [\w.-]+\()")
_CALL = re.compile(r"<call ([\w.-]+)\((.*)\)>\s*(?:<picture \S+>\s*)*", re.DOTALL)

_Find = Callable[[Knowledge, str], list[str]]
"""From the history and the item's text to lines."""


def is_summary_call(request: Request) -> bool:
    """Say whether the request asks for a summary: no tools, and a last user message with a list and a history."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "user" or request.tools:
        return False
    return re.search(r"^Keep:$", last.content, re.MULTILINE) is not None and "<history>" in last.content


def shares_prefix(request: Request) -> bool:
    """Say whether the request asks for a summary of the conversation in front of it, which has its cached prefix."""
    last = request.messages[-1] if request.messages else None
    return last is not None and last.role == "user" and _ABOVE in last.content and _LIST.search(last.content) is not None


def _above(request: Request) -> list[Message]:
    """Return the conversation that stands in front of the prompt, also where both were merged into one message."""
    *before, last = request.messages
    said = last.content.partition("Keep:\n")[0].rstrip().rpartition("\n\n")[0]
    return [*before, Message("user", said)] if said else before


def summarise(request: Request) -> str:
    """Return the summary that the last message of a summary call asks for."""
    prompt = request.messages[-1].content
    listed = _LIST.search(prompt)
    items = [line[2:].strip() for line in listed[1].split("\n") if line[2:].strip()] if listed else []
    history = _above(request) if shares_prefix(request) else messages_of(_between(prompt, "history"))
    known = Knowledge(history)
    before = _between(prompt, "earlier-summary") or known.summary  # an older summary may be part of the history
    earlier = Knowledge([Message("user", f"<summary>{before}</summary>")])
    names_files = any(_asks(_FILES, item) for item in items)
    found = [[f"{_name(item)}: {line}" for line in _lines(item, known, earlier, names_files)] for item in items]
    told = _MOST_WORDS.search(prompt.partition("<history>")[0])
    lines = [line for lines in (_within(found, int(told[1])) if told else found) for line in lines]
    return "\n".join(lines) or f"{_name(items[0]) if items else 'summary'}: {NOTHING}"


def _within(found: list[list[str]], most: int) -> list[list[str]]:
    """Return as many lines of each item as `most` words allow: the first of every item, then the second, and so on."""
    kept: list[list[str]] = [[] for _ in found]
    for rank in range(max(map(len, found), default=0)):
        for lines, item in zip(kept, found, strict=True):
            words = len(item[rank].split()) if rank < len(item) else 0
            if 0 < words <= most:
                most -= words
                lines.append(item[rank])
    return kept


def messages_of(transcript: str) -> list[Message]:
    """Turn a transcript back into messages: `[role] text <call name(arguments)>`, results in the order of the calls."""
    messages: list[Message] = []
    waiting: list[str] = []
    marks = list(_MARK.finditer(transcript))
    stops = [*(m.start() for m in marks), len(transcript)][1:]
    for mark, stop in zip(marks, stops, strict=True):
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
    """Part the calls, which stand at the end, from what was said before them."""
    said, *pieces = _CALL_START.split(text)
    found = [match for piece in pieces if (match := _CALL.fullmatch(piece))]
    calls = tuple(ToolCall(f"{number}-{i}", match[1], match[2]) for i, match in enumerate(found))
    return Message("assistant", said.strip() if calls else text, tool_calls=calls)


def _between(text: str, tag: str) -> str:
    """Return what stands between the first opening and the last closing tag, or an empty string."""
    inside = text.partition(f"<{tag}>\n")[2]
    return inside.rpartition(f"\n</{tag}>")[0]


# --- from items to lines -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Aspect:
    """What an item may ask for: the words that ask for it, where it is found, and the most lines it may take."""

    words: str
    find: _Find
    most: int


def _only(fact: Callable[[Knowledge], list[str]]) -> _Find:
    return lambda known, item: fact(known)


def _asks(words: str, item: str) -> bool:
    return re.search(words, item, re.IGNORECASE) is not None


_FACTS = r"|^facts?$"
"""An item that says nothing but "facts" asks for all of them."""
_FILES = r"\bfiles?\b|\bpaths?\b" + _FACTS
_LINES = r"\blines?\b" + _FACTS
_NAMES = {"classes": r"\bclass(es)?\b" + _FACTS} | dict.fromkeys(
    ("functions", "methods"), r"\bfunctions?\b|\bmethods?\b" + _FACTS
)


def _files(known: Knowledge, item: str) -> list[str]:
    counts = [(path, history.line_count(known, path) if _asks(_LINES, item) else None) for path in history.file_names(known)]
    told = [f"{path} ({history.plural(n, 'lines')})" if n is not None else path for path, n in counts]
    # Where the item asks for lines but not for files, a file without a count says nothing.
    return [line for line, (_, n) in zip(told, counts, strict=True) if n is not None or _asks(_FILES, item)]


def _names(known: Knowledge, item: str) -> list[str]:
    return [line for noun, words in _NAMES.items() if _asks(words, item) for line in history.names(known, noun)]


_DONE = r"\bdone\b|\bfinished\b|\bactions?\b"
_PROGRESS = r"\bin progress\b|\bworked on now\b"
_OPEN = r"\bopen\b|\bto[ -]?do\b|\bnext steps?\b"
_TOLD = r"\bremember|\bnotes?\b|\bconstraints?\b"
_WORDING = r"\bword for word\b|\bwording\b|\bverbatim\b|\bquot"
_ASPECTS: tuple[_Aspect, ...] = (
    _Aspect(r"\bgoals?\b|\bwants?\b|(?<!open )\btasks?\b|\btopics?\b", _only(history.goals), 8),
    _Aspect(r"\bdecisions?\b|\bdecided\b", _only(history.decisions), 8),
    _Aspect(rf"{_FILES}|{_LINES}", _files, 6),
    _Aspect("|".join(_NAMES.values()), _names, 4),
    _Aspect(r"\berrors?\b" + _FACTS, _only(history.errors), 2),
    _Aspect(r"\bresults?\b" + _FACTS, _only(history.results), 4),
    _Aspect(rf"\bfacts?\b|{_TOLD}", _only(history.facts_told), 6),
    _Aspect(_DONE, _only(history.actions), 6),
    _Aspect(_DONE, _only(history.tests_run), 1),
    _Aspect(_DONE, _only(history.answered), 4),
    _Aspect(_PROGRESS, _only(history.pending), 3),
    _Aspect(_OPEN, _only(history.open_tasks), 6),
    _Aspect(_WORDING, _only(history.wording), 12),
)


def _name(item: str) -> str:
    return item.partition(":")[0].strip()


def _lines(item: str, known: Knowledge, earlier: Knowledge, names_files: bool) -> list[str]:
    """Return the lines of one item: those of the earlier summary that still hold, then the new ones."""
    name = _name(item)
    # Such an item is nothing else, whatever words its explanation uses ("… worded as finished", "… still to do").
    text = name if _asks(rf"^done\b|{_PROGRESS}|{_OPEN}", name) else item
    found = [
        _newest(list(dict.fromkeys(aspect.find(known, text))), aspect.most)
        for aspect in _ASPECTS
        if _asks(aspect.words, text)
    ]
    new = list(dict.fromkeys(" ".join(line.split()) for lines in found for line in lines))
    old = [line for item_name, line in earlier.items if item_name == name and line != NOTHING]
    if _asks(rf"{_PROGRESS}|{_OPEN}", name):
        old = [line for line in old if not _settled(line, known)]
    lines = _folded(old, new)
    if not names_files and not _asks(_WORDING, item):
        lines = [line if line.startswith(NOTE) else FILE.sub("a file", line) for line in lines]
    return list(dict.fromkeys(line if len(line) <= LONGEST else line[: LONGEST - 1] + "…" for line in lines))


def _folded(old: list[str], new: list[str]) -> list[str]:
    """Join earlier and new lines. On one subject the newer line counts, unless it knows only a part."""
    known = {_subject(line) for line in old}
    new = [line for line in new if not (line.endswith(history.IN_PART) and _subject(line) in known)]
    subjects = {_subject(line) for line in new}
    kept = [line for line in old if _subject(line) not in subjects]
    return _newest(kept, max(2, MOST_LINES - len(new))) + new


def _subject(line: str) -> str:
    return re.split(r" \(| = |: ", line, maxsplit=1)[0]


def _newest(lines: list[str], most: int) -> list[str]:
    """Return at most `most` lines: the first, which says how it all began, and the newest."""
    return lines if len(lines) <= most else lines[:1] + lines[len(lines) - most + 1 :]


def _settled(line: str, known: Knowledge) -> bool:
    """Say whether an open end of the earlier summary was closed in the history."""
    if "failing tests" in line:
        return bool(history.tests_run(known))  # the last run is reported anew
    first = known.asked[0][0] if known.asked else len(known.messages)
    return any(m.role == "assistant" and not m.tool_calls and m.content for m in known.messages[:first])
