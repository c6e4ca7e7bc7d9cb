"""What a user asks, as the simulated model understands it: a table of patterns, tried from top to bottom.

Each kind of question has one small function that recognises it. The wording may vary; what no pattern fits is `other`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

_ENDINGS = "py|js|ts|txt|md|json|log|b64|toml|cfg|ini|ya?ml|csv|html|css|java|sh|ipynb|xml|rst"
FILE = re.compile(rf"(?<![\w./-])(?:[\w.-]{{1,80}}/){{0,20}}[\w-][\w.-]{{0,80}}\.(?:{_ENDINGS})(?![\w/-])", re.ASCII)
FOCUS = 1_000
"""A question longer than twice this many characters is understood from its beginning and its end: the rest is material."""


@dataclass(frozen=True)
class Question:
    """One understood question. What a kind does not need is empty.

    `hint` is the word in "the big file", `what` the name or text asked about, `nouns` what is to be counted, `new` what
    shall stand in a file after a change.
    """

    kind: str
    files: tuple[str, ...] = ()
    hint: str = ""
    what: str = ""
    numbers: tuple[int | float, ...] = ()
    nouns: tuple[str, ...] = ()
    fix: bool = False
    at_once: bool = False
    new: str = ""


@functools.lru_cache(maxsize=1_024)
def understand(text: str) -> Question:
    """Return what `text` asks; the kind is `other` when no pattern fits."""
    text = text.strip()
    if len(text) > 2 * FOCUS:
        text = f"{text[:FOCUS]}\n{text[-FOCUS:]}"
    found = (make(text) for make in _TABLE)
    return next((q for q in found if q), Question("other", files_in(text), what=text))


def files_in(text: str) -> tuple[str, ...]:
    """Return the file names in `text`, each once, in order."""
    return tuple(dict.fromkeys(FILE.findall(text)))


def _has(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


# --- one small function for each kind ------------------------------------------------------------------------------------

_FACT = re.compile(
    r"(?:please\s+)?(?:remember|note|keep in mind|do not forget|don't forget)\b(?:\s+that\b)?\s*[:,]?\s*(\S.*)"
    r"|(?:请)?记住[::,,\s]*(\S.*)",
    re.IGNORECASE | re.DOTALL,
)


def _remember(text: str) -> Question | None:
    match = _FACT.match(text)
    if match is None or text.endswith(("?", "?")):
        return None
    return Question("remember", what=match[1] or match[2])


def _first_question(text: str) -> Question | None:
    english = r"\bfirst\b.{0,40}\b(question|thing|message|request|sentence)\b|\bask(ed)?\b.{0,20}\bfirst\b"
    asked = _has(english, text) and _has(r"\b(i|my|me)\b|\bfirst question\b", text)
    chinese = r"第一(个|句|条|次)?(问题|问|话)|最(先|初|早|开始).{0,10}(问|说)"
    return Question("first question") if asked or _has(chinese, text) else None


def _files_read(text: str) -> Question | None:
    english = r"\bfiles?\b.{0,40}\b(have|did|has) (you|we)\b|\bfiles you (have )?read\b"
    return Question("files read") if _has(english, text) or _has(r"(读|看)(过|了).{0,8}文件", text) else None


def _notes(text: str) -> Question | None:
    asked = _has(r"^(what|which|list|show|tell)\b.{0,60}\b(remember|noted?|notes)\b", text)
    return Question("notes") if asked and not (files_in(text) or _hint(text)) else None


def _tests(text: str) -> Question | None:
    fix = _has(r"\b(fix|repair)\b|\bmake\b.{0,40}\bpass\b|修(复|好|正)", text)
    run = _has(r"\b(run|re-?run|execute|try)\b.{0,40}\btests?\b|\btests?\b.{0,20}\b(pass|fail)", text)
    chinese = _has(r"(跑|运行|执行).{0,6}测试", text)
    return Question("tests", files_in(text), fix=fix) if fix or run or chinese else None


_RENAME = re.compile(
    r"\brename\s+(?:the\s+)?(?:(?:function|method|class|constant|name)\s+)?`?([A-Za-z_]\w{0,80})`?"
    r"\s+(?:to|into|as)\s+`?([A-Za-z_]\w{0,80})`?",
    re.IGNORECASE | re.ASCII,
)
_PARAMETER = re.compile(
    r"\badd\s+(?:the|a)\s+parameter\s+`?([A-Za-z_]\w{0,80}) ?= ?([-\w.\"']{1,40}?)`?\s+to\s+(?:the\s+|every\s+)?"
    r"(?:(?:function|method)\s+)?`?([A-Za-z_]\w{0,80})",
    re.IGNORECASE | re.ASCII,
)


def _change(text: str) -> Question | None:
    """Recognise an order to change many places: a new name, another parameter, docstrings, tests."""
    if match := _RENAME.search(text):
        return Question("rename", files_in(text), what=match[1], new=match[2])
    if match := _PARAMETER.search(text):
        return Question("parameter", files_in(text), what=match[3], new=f"{match[1]}={match[2]}")
    files = files_in(text)
    if files and _has(r"^(please )?(write|add)\b.{0,30}\bdocstrings\b", text):
        return Question("docstrings", files)
    return Question("write tests", files) if files and _has(r"^(please )?(write|add)\b.{0,30}\btests for\b", text) else None


def _constants(text: str) -> Question | None:
    asked = _has(r"\b(which|what|list|show)\b.{0,40}\bconstants\b", text)
    return Question("constants", files_in(text), _hint(text)) if asked else None


_CALL = re.compile(r"\b([A-Za-z_]\w{0,80})\(\s*([-+\d][-+\d\s.,_]{0,80})\)", re.ASCII)
_RETURNS = re.compile(
    r"\b(?:does|do|would|will|can)\s+(?:the\s+)?(?:method\s+|function\s+)?`?([A-Za-z_]\w{0,80})`?(?:\(\w*\))?"
    r"\s+(?:return|give|yield|produce)(?:\s+back)?\b(.{0,200})"
    r"|([A-Za-z_]\w{0,80})(.{0,80})返回",
    re.IGNORECASE | re.DOTALL | re.ASCII,
)


def _returns(text: str) -> Question | None:
    match = _CALL.search(text)
    if match:
        return Question("returns", files_in(text), what=match[1], numbers=_numbers(match[2]))
    match = _RETURNS.search(text)
    if match is None:
        return None
    rest = FILE.sub(" ", (match[2] or match[4] or "") + text[match.end() :][:80])
    return Question("returns", files_in(text), what=match[1] or match[3], numbers=_numbers(rest))


def _numbers(text: str) -> tuple[int | float, ...]:
    found = re.findall(r"(?<![\w.])[-+]?\d{1,18}(?:\.\d{1,18})?(?![\w])", text, re.ASCII)
    return tuple(float(n) if "." in n else int(n) for n in found)


_NOUNS = {
    "lines": r"\blines?\b|行|\bhow long\b",
    "methods": r"\bmethods?\b|方法",
    "functions": r"\bfunctions?\b|函数",
    "classes": r"\bclass(es)?\b",
}


def _count(text: str) -> Question | None:
    wanted = _has(r"\bhow (many|long)\b|\bcount\b|\bnumber of\b|几|多少", text)
    if not wanted or _has(r"\blines?( that)? (contain|mention|match)", text):
        return None
    nouns = tuple(noun for noun, pattern in _NOUNS.items() if _has(pattern, text))
    return Question("count", files_in(text), _hint(text), nouns=nouns) if nouns else None


_FIND = re.compile(
    r"\b(?:find|grep(?: for)?|search(?: \S+)? for|search|look for|lines?(?: that)? (?:contain|mention|match)(?:s|ing|es)?)"
    r"\s+(.{1,200}?)"
    r"(?:\s+(?:in|inside|within|of)\s+(?:the\s+)?\S*\s?(?:file)?)?\s*[?.!]*$",
    re.IGNORECASE | re.MULTILINE,
)
_WHERE = re.compile(r"\bwhere\s+(?:is|are|do|does)\s+(.{1,200}?)(?:\s+in\s+\S+(?:\s+file)?)?\s*[?.!]*$", re.I | re.M)
_DEFINED = re.compile(r"\s+(defined|used|called|declared|mentioned|happen(ed)?|occur)$", re.IGNORECASE)


def _find(text: str) -> Question | None:
    match = _FIND.search(text)
    if match is None:
        match = _WHERE.search(text)
        place = files_in(text) or _hint(text)
        if match is None or not (place or _DEFINED.search(match[1]) or re.search(r"[`_\d]", match[1])):
            return None
    what = _thing(match[1])
    return Question("find", files_in(text), _hint(text), what) if what else None


def _thing(words: str) -> str:
    """Reduce "the word `zone`", "any errors" or "compute7 defined" to the text to look for."""
    quoted = re.search(r"[`\"“']([^`\"”']+)[`\"”']", words)
    if quoted:
        return quoted[1]
    definition = re.search(r"\s+(defined|declared)$", words, re.IGNORECASE)
    words = _DEFINED.sub("", words.strip())
    words = re.sub(r"^(?:(?:all|any|every|the|an?|out|me|words?|text|lines?|with|where)\s+)+", "", words, flags=re.I)
    words = re.sub(r"^(error|warning)s?( messages?| lines?)?$", r"\1", words, flags=re.IGNORECASE)
    return f"def {words}" if definition else words


def _list(text: str) -> Question | None:
    pattern = r"\b(list|show|which|what)\b.{0,40}\bfiles\b|列出.{0,8}文件|有哪些文件"
    return Question("list") if _has(pattern, text) else None


def _read(text: str) -> Question | None:
    files, hint = files_in(text), _hint(text)
    verb = _has(r"\b(read|re-?read|open|look at|load|show|view)\b|[读看]", text)
    if not verb or not (files or hint or _has(r"\b(it|file)\b|文件", text)):
        return None
    at_once = _has(r"\b(at once|in parallel|together|simultaneously|at the same time)\b|同时", text)
    return Question("read", files, hint, at_once=at_once)


_NO_HINT = "that|this|the|same|whole|last|first|which|what|a|each|every|same|one|of|in|read|other|next|any|entire"


def _hint(text: str) -> str:
    """Return the word that says which file, as in "the big file"; "it" and "this file" give no hint."""
    if files_in(text):
        return ""
    match = re.search(rf"\b(?!(?:{_NO_HINT})\b)([A-Za-z]\w{{1,30}})\s+(?:file|module)\b", text, re.IGNORECASE | re.ASCII)
    return match[1].lower() if match else "big" if "大文件" in text else ""


def _polite(text: str) -> Question | None:
    short = len(text) <= 40 and "?" not in text
    if short and _has(r"^(hi|hello|hey|good (morning|evening|afternoon)|你好)\b", text):
        return Question("hello")
    return Question("thanks") if short and _has(r"^(many thanks|thanks|thank you|thx|谢谢|多谢)", text) else None


_DECISION = r"\b(decid(ed?|ing)|use|using|instead|must|always|never|prefer\w*)\b"


def decides(text: str) -> bool:
    """Say whether a sentence lays something down: a decision, a rule, a preference."""
    return _has(_DECISION, text)


def is_question(text: str) -> bool:
    """Say whether a text asks for something to be told."""
    asks = r"^(who|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|has|have|tell|say|answer)\b"
    return text.endswith(("?", "?")) or _has(asks, text) or "吗" in text or "什么" in text


def _decision(text: str) -> Question | None:
    return Question("decision", what=text) if decides(text) and not is_question(text) else None


_TABLE: tuple[Callable[[str], Question | None], ...] = (
    _remember,
    _first_question,
    _files_read,
    _notes,
    _change,
    _constants,
    _tests,
    _returns,
    _count,
    _find,
    _list,
    _read,
    _polite,
    _decision,
)
