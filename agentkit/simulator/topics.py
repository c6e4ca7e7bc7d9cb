"""What a question was about, in other words than the user's: the topic that a summary keeps.

`understand(topic(q))` is the same kind of question again, so a task that only a summary still names can be carried out.
"""

from __future__ import annotations

import re

from agentkit.simulator.questions import FOCUS, Question


def topic(question: Question, file: str = "") -> str:
    """Return what the question is about, such as "count the methods of a.py".

    Empty for small talk, for what is only to be noted, and for questions about the conversation itself. `file` is the file
    that was meant where the question names none.
    """
    files = ", ".join(question.files) or file or (f"the {question.hint} file" if question.hint else "a file")
    known = {
        "tests": "run the tests and fix what fails" if question.fix else "run the tests",
        "returns": f"work out {question.what}({', '.join(str(n) for n in question.numbers)})",
        "count": f"count the {' and '.join(question.nouns)} of {files}",
        "find": f"find {question.what!r}" + (f" in {files}" if files != "a file" else ""),
        "list": "list the files",
        "read": f"read {files}" + (" at once" if question.at_once else ""),
        "rename": f"rename {question.what} to {question.new}",
        "parameter": f"add the parameter {question.new} to the function {question.what}",
        "docstrings": f"write docstrings in {files}",
        "write tests": f"write tests for {files}",
        "constants": f"list the constants of {files}",
        "other": _gist(question.what),
    }
    return known.get(question.kind, "")


def _gist(text: str) -> str:
    """Name the content words of a text that no pattern fits, which is less than its wording."""
    words = [w for w in _WORD.findall(text[:FOCUS]) if content_words(w)]
    return f"a question about {', '.join(dict.fromkeys(words[:8]))}" if words else ""


_COMMON = (
    "a an the this that these those it its is are was were be been am do does did has have had having will would can "
    "could should shall may might must i you he she we they me my your our their his her us them of in on at to for "
    "from by with about as into and or but not no if then than so what which who whom whose when where why how there "
    "here please tell say give just also very much many any some all first again now know"
)
_STOP = frozenset(_COMMON.split())
_WORD = re.compile(r"[^\W_][\w'-]*|[A-Za-z_]\w*")
_CHINESE = re.compile(r"[\u4e00-\u9fff]+")


def content_words(text: str) -> list[str]:
    """Return the words that carry meaning, in lower case and without their endings; Chinese in pairs of characters."""
    words = []
    for word in _WORD.findall(text.lower()):
        if _CHINESE.search(word):
            words += [run[i : i + 2] for run in _CHINESE.findall(word) for i in range(len(run) - 1)]
        elif word not in _STOP and (len(word) > 1 or word.isdigit()):
            words.append(_stem(word))
    return words


def _stem(word: str) -> str:
    for ending, left in (("'s", 2), ("ing", 4), ("ed", 4), ("s", 3)):
        if word.endswith(ending) and len(word) - len(ending) >= left and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word
