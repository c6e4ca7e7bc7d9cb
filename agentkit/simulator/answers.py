"""How each kind of question about files is answered: one small function each, from facts in view.

`Missing` and `Stuck` (see `work.py`) pass through: they end the attempt with a call, or with an honest sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentkit.simulator.evaluate import Unsupported, evaluate, parameters
from agentkit.simulator.knowledge import same_file
from agentkit.simulator.questions import Question
from agentkit.simulator.work import Stuck, Work, clipped

SHOWN = 5
"""Matches of a search that an answer quotes."""


# --- counting ------------------------------------------------------------------------------------------------------------


def count(work: Work, question: Question) -> str:
    """Say how many lines, methods, functions or classes a file has."""
    path = work.file(question)
    return " ".join(_count_one(work, path, noun) for noun in question.nouns)


def _count_one(work: Work, path: str, noun: str) -> str:
    excerpt = work.known.excerpt(path)
    in_view = excerpt and (excerpt.complete or (noun == "lines" and excerpt.total is not None))
    if not in_view and (stated := stated_count(work, path, noun)):
        return stated
    if noun == "lines":
        found = work.seen(path)
        total = found.total if found.total is not None else work.whole(path).total
        return f"`{found.path}` has {plural(total or 0, noun)}."
    return named(path, noun, work.whole(path).names(noun))


_CONSTANT = re.compile(r"([A-Z][A-Z0-9_]*) *(?::[^=\n]*)?= *(\S.*)")


def constants(work: Work, question: Question) -> str:
    """Name the constants of a file with their values."""
    path = work.file(question)
    found = [m for line in work.whole(path).lines.values() if (m := _CONSTANT.fullmatch(line.rstrip()))]
    if not found:
        return f"`{path}` has no constants."
    return f"`{path}` defines {', '.join(f'`{m[1]} = {m[2]}`' for m in found)}."


def stated_count(work: Work, path: str, noun: str) -> str:
    """Return what the summary or an answer in view says about a count; empty if nothing, or if the file changed since."""
    if work.known.edited(path):
        return ""
    name = re.escape(path.rpartition("/")[2])
    lines = rf"(?<![\w.-]){name} \(([\d,]+ lines?)\)"
    names = rf"{noun} of (?:\S*/)?{name}: (.+?) \(([\d,]+ \w+)\)"
    if match := re.search(lines if noun == "lines" else names, work.known.summary):
        counted = match[1] if noun == "lines" else f"{match[2]}: {match[1]}"
        return f"`{path}` has {counted}; so says the summary, the text is not in my context."
    said = re.compile(rf"^`(?:\S*/)?{name}` has [\d,]+ {noun[:-1]}.*$", re.MULTILINE)
    found = [m[0] for text in work.known.said("assistant") for m in said.finditer(text)]
    return found[-1] if found else ""


def named(path: str, noun: str, names: Sequence[str]) -> str:
    """Say how many `names` a file has, and which."""
    return f"`{path}` has {plural(len(names), noun)}: {span(names)}." if names else f"`{path}` has no {noun}."


def plural(number: int, noun: str) -> str:
    """Return "1 line", "40 methods"; `noun` is given in the plural."""
    one = {"classes": "class", "matches": "match"}.get(noun, noun.removesuffix("s"))
    return f"{number:,} {one if number == 1 else noun}"


def span(names: Sequence[str], mark: str = "`") -> str:
    """Return a list of names, with runs such as compute1, compute2 … compute40 shortened."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _next(runs[-1][-1]) == name:
            runs[-1].append(name)
        else:
            runs.append([name])
    shown = [_run(run, mark) for run in runs]
    more = [f"and {len(shown) - 12} more"] if len(shown) > 12 else []
    return ", ".join(shown[:12] + more)


def _run(run: list[str], mark: str) -> str:
    shown = [f"{mark}{name}{mark}" for name in run]
    return f"{shown[0]} … {shown[-1]}" if len(run) > 2 else ", ".join(shown)


def _next(name: str) -> str:
    match = re.fullmatch(r"(.*?)(\d{1,9})", name)
    return f"{match[1]}{int(match[2]) + 1}" if match else ""


# --- working out a result --------------------------------------------------------------------------------------------------


def returns(work: Work, question: Question) -> str:
    """Say what a function returns for given numbers, with the steps."""
    name, numbers = question.what, question.numbers
    call = f"{name}({', '.join(str(n) for n in numbers)})"
    source = _source_in_view(work, name)
    known = re.search(rf"(?<!\w){re.escape(call)} = ([^\s;,]+)", work.known.summary)
    if source is None and known and not work.known.edited(_home(work, name)):
        return f"`{call}` returns {known[1].rstrip('.')}; so says the summary, the source is not in my context."
    if source is None:
        source = _fetch_source(work, question)
    try:
        if not numbers and parameters(source):
            return f"For which input? `{name}` takes {span(parameters(source))}."
        worked = evaluate(source, numbers)
    except Unsupported as error:
        return f"I have the source of `{name}` in view, but I cannot work it out: {error}."
    steps = ", ".join(worked.steps)
    return f"`{call}`: {steps}, so it returns {worked.value}." if steps else f"`{call}` returns {worked.value}."


def _source_in_view(work: Work, name: str) -> str | None:
    sources = (e.source(name) for e in reversed(work.known.files.values()))
    return next((s for s in sources if s is not None), None)


def _fetch_source(work: Work, question: Question) -> str:
    """Read the file that defines the function: the one named, the one that the summary or the talk gives, or look for it."""
    name = question.what
    path = (question.files or (_home(work, name),))[0] or _grepped_home(work, name)
    if (source := work.seen(path).source(name)) is None and (source := work.whole(path).source(name)) is None:
        path = _grepped_home(work, name)
        source = work.whole(path).source(name)
    if source is None:
        raise Stuck(f"`{path}` does not define `{name}`.")
    return source


_LISTED = re.compile(r"(?:methods|functions) of (\S+): (.+)|^`(\S+)` has [\d,]+ (?:methods|functions): (.+)$", re.MULTILINE)


def _home(work: Work, name: str) -> str:
    """Return the file whose methods are said to include `name`, else the Python file last spoken of."""
    for text in (*reversed(work.known.said("assistant")), work.known.summary):
        for match in _LISTED.finditer(text):
            if _listed(name, (match[2] or match[4]).replace("`", "")):
                return match[1] or match[3]
    last = work.known.last_file(".py")
    return last if last and work.known.excerpt(last) is None and not _searched(work) else ""


def _searched(work: Work) -> bool:
    return any(s.call.name == "grep" for s in work.known.turn)


def _listed(name: str, names: str) -> bool:
    """Say whether `name` is in a list such as "compute1 … compute40"."""
    for first, last in re.findall(r"(\w+) … (\w+)", names):
        stem = first.rstrip("0123456789")
        low, high, number = first[len(stem) :], last.removeprefix(stem), name.removeprefix(stem)
        digits = all(n.isascii() and n.isdigit() and len(n) < 10 for n in (low, high, number))
        if digits and name.startswith(stem) and int(low) <= int(number) <= int(high):
            return True
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", names) is not None


def _grepped_home(work: Work, name: str) -> str:
    found = hits(work.result("grep", pattern=rf"def {name}\b"))
    if not found:
        raise Stuck(f"No file here defines `{name}`.")
    return found[0][0]


# --- searching, listing, reading -----------------------------------------------------------------------------------------


def hits(result: str) -> list[tuple[str, int, str]]:
    """Return the rows of a `grep` result as (path, line, text)."""
    rows = (re.match(r"([^:\n]+):(\d{1,9}):(.*)", row) for row in result.split("\n"))
    return [(m[1], int(m[2]), m[3].strip()) for m in rows if m]


def find(work: Work, question: Question) -> str:
    """Say where a text occurs: line and wording of the first matches."""
    path = work.file(question) if question.files or question.hint else ""
    excerpt = work.known.excerpt(path) if path else None
    if excerpt and excerpt.complete:
        rows = [(excerpt.path, n, t.strip()) for n, t in excerpt.lines.items() if question.what.lower() in t.lower()]
    else:
        rows = hits(_grep(work, question.what, path))
    return _matches(question.what, path, rows)


def _grep(work: Work, what: str, path: str) -> str:
    """Search for `what` letter by letter, in one file or in all."""
    pattern = "(?i)" + re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", what)
    globs = [path, f"**/{path}"] if path else [None]
    for glob in globs:
        result = work.result("grep", **({"pattern": pattern} if glob is None else {"pattern": pattern, "glob": glob}))
        if result.startswith("error:"):
            raise Stuck(f"The search failed: {clipped(result.removeprefix('error: '), 160)}")
        if not result.endswith(" in 0 files"):
            break
    return result


def _matches(what: str, path: str, rows: list[tuple[str, int, str]]) -> str:
    where = f" in `{path}`" if path else ""
    if not rows:
        return f"No line{where} holds “{what}”."
    shown = [f"{'' if path else f'`{p}` '}line {n}: {clipped(text, 160)}" for p, n, text in rows[:SHOWN]]
    more = [f"(and {len(rows) - SHOWN} more)"] if len(rows) > SHOWN else []
    return "\n".join([f"{plural(len(rows), 'matches')} of “{what}”{where}:", *shown, *more])


def list_files(work: Work, question: Question) -> str:
    """Name the files of the workspace."""
    result = work.result("list_files", pattern="**/*")
    if result.startswith(("error:", "no file", "(")):
        return f"There is nothing to list: {clipped(result.removeprefix('error: '), 160)}"
    names = [line.strip() for line in result.split("\n") if line.strip() and not line.startswith("[")]
    return f"There are {plural(len(names), 'files')}: {', '.join(f'`{name}`' for name in names)}."


def read_files(work: Work, question: Question) -> str:
    """Read one file, or several: one a round, or all in one message when asked to."""
    paths = list(question.files) or [work.file(question)]
    unread = [p for p in paths if not any(same_file(s.path, p) for s in work.known.turn if s.call.name == "read_file")]
    if question.at_once and len(unread) > 1:
        work.need(*(("read_file", {"path": p}) for p in unread))
    return " ".join(_read_one(work, path, again=path in unread) for path in paths)


def _read_one(work: Work, path: str, *, again: bool) -> str:
    """Report one file. Asked to read, the model reads, even if an older text of the file is in view."""
    if again:
        work.need(("read_file", {"path": path}))
    try:
        found = work.seen(path)
    except Stuck as stuck:
        return str(stuck)
    if found.complete:
        return f"`{found.path}`: {plural(len(found.lines), 'lines')}, {len(found.text()):,} characters."
    shown = f"{len(found.lines):,} of {found.total:,} lines" if found.total else plural(len(found.lines), "lines")
    return f"`{found.path}`: {shown} came back, {len(found.text()):,} characters; the rest was left out."
