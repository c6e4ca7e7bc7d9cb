"""The rules of the book that nbval does not check, as pure functions.

Each rule takes a notebook (the dict that nbformat reads) and returns a list of problems, each one line that says which cell
and what to do. `problems` applies them all. Cells are counted from 0, as their ids are (`cell-07`).
"""

from __future__ import annotations

import ast
import copy
import io
import math
import re
import statistics
import symtable
import tokenize
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from notebook_reading import (
    Html,
    Notebook,
    code_cells,
    headings,
    prose_cells,
    section_of,
    sections,
    tags,
    texts,
    without_fences,
)

from agentkit.book import clean

Rule = Callable[[Notebook], list[str]]

ANATOMY = (
    "What you will be able to do",
    "Where we are",
    "See it fail",
    "Predict",
    "Build it",
    "Compare with the package",
    "Look inside",
    "What it costs",
    "Trade-offs",
    "Recap and pitfalls",
    "Exercises",
    "Next",
)
"""The level-2 headings of a chapter, in this order and no others (design, section 7)."""

WIDGET_VIEW = "application/vnd.jupyter.widget-view"

TAGS = {"raises-exception", "widget", "nbval-ignore-output"}

MOST_LINES, MEDIAN_LINES, NINE_IN_TEN_LINES = 25, 5, 15
"""Non-blank lines of a code cell: of every one, of the median one, of nine in ten."""

MOST_WORDS = 120

MEASURED = ("Look inside", "What it costs", "Recap and pitfalls")
"""The sections that report what was measured: every number there must be shown by the notebook itself."""


def _tokens(source: str) -> list[tokenize.TokenInfo]:
    try:
        return list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return []


def _tree(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Module(body=[], type_ignores=[])


# ----------------------------------------------------------------------------------------------------- order and state


def counts_in_order(notebook: Notebook) -> list[str]:
    """Execution counts are 1 to n; a `widget` cell has none and no output, and no other cell is without."""
    found, count = [], 0
    for i, cell in code_cells(notebook):
        if "widget" in tags(cell):
            if cell["execution_count"] is not None or cell["outputs"]:
                found.append(f"cell {i}: a widget cell is stored without output and count; run `agentkit book`")
            continue
        count += 1
        if cell["execution_count"] != count:
            found.append(f"cell {i}: execution count {cell['execution_count']} instead of {count}; run `agentkit book`")
    return found


def errors_are_tagged(notebook: Notebook) -> list[str]:
    """An error output needs the tag `raises-exception`, and the tag needs an error output."""
    found = []
    for i, cell in code_cells(notebook):
        failed = any(o["output_type"] == "error" for o in cell["outputs"])
        if failed and "raises-exception" not in tags(cell):
            found.append(f"cell {i}: a stored error; mend the cell, or tag it raises-exception")
        if not failed and "raises-exception" in tags(cell):
            found.append(f"cell {i}: tagged raises-exception, but no error is stored")
    return found


def tags_are_known(notebook: Notebook) -> list[str]:
    """Only the three tags that the book uses."""
    cells = enumerate(notebook["cells"])
    return [f"cell {i}: unknown tag {tag!r}" for i, cell in cells for tag in sorted(tags(cell) - TAGS)]


def no_marker_comments(notebook: Notebook) -> list[str]:
    """nbval is steered by tags; a comment for it would be in the student's way."""
    cells = code_cells(notebook)
    return [f"cell {i}: an nbval comment; use a tag" for i, c in cells if re.search(r"(?i)#\s*nbval", c["source"])]


def no_stderr(notebook: Notebook) -> list[str]:
    """Nothing is stored from stderr: a warning changes with every release of whoever gives it."""
    return [
        f"cell {i}: output on stderr; remove its cause"
        for i, cell in code_cells(notebook)
        if any(o["output_type"] == "stream" and o["name"] == "stderr" for o in cell["outputs"])
    ]


def metadata_is_clean(notebook: Notebook) -> list[str]:
    """Metadata, ids and counts are as `agentkit book` leaves them."""
    wanted = copy.deepcopy(notebook)
    clean(wanted)
    if wanted["metadata"] != notebook["metadata"]:
        return ["metadata of the notebook: not as `agentkit book` leaves it"]
    pairs = zip(notebook["cells"], wanted["cells"], strict=True)
    return [f"cell {i}: id or metadata not as `agentkit book` leaves it" for i, (is_, to) in enumerate(pairs) if is_ != to]


def panels_have_a_picture(notebook: Notebook) -> list[str]:
    """A panel is followed by a code cell with a static picture, in the same section; no other cell stores a widget."""
    found, titles, cells = [], section_of(notebook), notebook["cells"]
    for i, cell in code_cells(notebook):
        if "widget" in tags(cell):
            after = next((n for n in range(i + 1, len(cells)) if cells[n]["cell_type"] == "code"), None)
            shown = after is not None and "widget" not in tags(cells[after]) and _shows_something(cells[after])
            if not shown or titles[after] != titles[i]:
                found.append(f"cell {i}: no static picture after the panel; show its default state in the next cell")
        elif any(WIDGET_VIEW in kind for o in cell["outputs"] for kind in o.get("data", ())):
            found.append(f"cell {i}: a widget in the stored output opens as 'model not found'; tag the cell widget")
    return found


def _shows_something(cell: Any) -> bool:
    return any(o["output_type"] in ("display_data", "execute_result") for o in cell["outputs"])


# ---------------------------------------------------------------------------------------------------------------- code


def no_semicolons(notebook: Notebook) -> list[str]:
    """No line ends in a semicolon: it hides a value in JupyterLab only, not under nbval."""
    found = []
    for i, cell in code_cells(notebook):
        tokens = _tokens(cell["source"])
        ends = (tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT, tokenize.ENDMARKER)
        hit = any(a.string == ";" and b.type in ends for a, b in zip(tokens, tokens[1:], strict=False))
        if hit or (not tokens and re.search(r";[ \t]*$", cell["source"], re.MULTILINE)):
            found.append(f"cell {i}: a line ends in ';'; assign the value to _ instead")
    return found


_NOT_FOR_NBVAL = {
    "interact": "its output goes into a widget, which nbval does not follow",
    "interactive": "its output goes into a widget, which nbval does not follow",
    "interactive_output": "its output goes into a widget, which nbval does not follow",
    "interact_manual": "its output goes into a widget, which nbval does not follow",
    "Output": "its output goes into a widget, which nbval does not follow",
    "clear_output": "nbval does not apply it",
    "update_display": "nbval does not apply it",
    "display_id": "nbval does not apply it",
}


def plain_python(notebook: Notebook) -> list[str]:
    """Code cells are plain synchronous Python: no magics, no shell, no `await`, nothing that nbval cannot follow."""
    found = []
    for i, cell in code_cells(notebook):
        try:
            tree = ast.parse(cell["source"])
        except SyntaxError as error:
            found.append(f"cell {i}, line {error.lineno}: not plain Python (a magic, a shell command?)")
            continue
        nodes = list(ast.walk(tree))
        if any(isinstance(n, ast.Await | ast.AsyncFor | ast.AsyncWith | ast.AsyncFunctionDef) for n in nodes):
            found.append(f"cell {i}: await or async; the package is synchronous")
        used = {name for n in nodes for name in _names_called(n)}
        found += [f"cell {i}: {name}: {_NOT_FOR_NBVAL[name]}" for name in sorted(used & _NOT_FOR_NBVAL.keys())]
    return found


def _names_called(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("ipywidgets", "IPython"):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return [name, *(k.arg or "" for k in node.keywords)]
    return []


def code_lines(source: str) -> int:
    """Return the non-blank lines of a code cell."""
    return sum(1 for line in source.splitlines() if line.strip())


def code_is_short(notebook: Notebook) -> list[str]:
    """Code cells have at most 25 non-blank lines, nine in ten at most 15, the median at most 5."""
    sizes = [(code_lines(c["source"]), i) for i, c in code_cells(notebook)]
    if not sizes:
        return []
    found = [f"cell {i}: {n} lines of code, at most {MOST_LINES}" for n, i in sizes if n > MOST_LINES]
    lines = sorted(n for n, _ in sizes)
    nine_in_ten = lines[math.ceil(0.9 * len(lines)) - 1]
    if (middle := statistics.median(lines)) > MEDIAN_LINES:
        found.append(f"code cells: the median has {middle:g} lines, at most {MEDIAN_LINES}")
    if nine_in_ten > NINE_IN_TEN_LINES:
        found.append(f"code cells: nine in ten have up to {nine_in_ten} lines, at most {NINE_IN_TEN_LINES}")
    return found


def exercises_stand_alone(notebook: Notebook) -> list[str]:
    """An exercise needs no other exercise, and its cells can be run twice.

    An exercise starts at a level-3 heading. Its cells may use what was made before the exercises, and what they make.
    """
    before, exercises = _exercises(notebook)
    made = [{name for _, source in cells for name in global_names(source)[0]} for cells in exercises]
    found = []
    for number, cells in enumerate(exercises):
        others = set().union(*made[:number], *made[number + 1 :]) - before - made[number]
        for i, source in cells:
            found += [f"cell {i}: uses {n}, made in another exercise" for n in sorted(global_names(source)[1] & others)]
            found += [f"cell {i}: changes {n} on each run; give the new value a new name" for n in _rebound(source)]
    return found


def _exercises(notebook: Notebook) -> tuple[set[str], list[list[tuple[int, str]]]]:
    """Return the names made before the exercises, and for every exercise the sources of its cells."""
    titles, starts = section_of(notebook), {i for i, level, _ in headings(notebook) if level == 3}
    before: set[str] = set()
    exercises: list[list[tuple[int, str]]] = [[]]
    for i, cell in enumerate(notebook["cells"]):
        if titles[i] == "Exercises" and i in starts:
            exercises.append([])
        if cell["cell_type"] == "code" and titles[i] == "Exercises":
            exercises[-1].append((i, cell["source"]))
        elif cell["cell_type"] == "code" and "Exercises" not in titles[:i]:
            before |= global_names(cell["source"])[0]
    return before, [cells for cells in exercises if cells]


def global_names(source: str) -> tuple[set[str], set[str]]:
    """Return the global names that a cell makes, and those that it uses, also inside its functions."""
    try:
        top = symtable.symtable(source, "cell", "exec")
    except SyntaxError:
        return set(), set()
    made = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    used = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    inside = list(top.get_children())
    while inside:
        table = inside.pop()
        used |= {s.get_name() for s in table.get_symbols() if s.is_global() and s.is_referenced()}
        inside += table.get_children()
    return made, used


def _rebound(source: str) -> list[str]:
    """Return the names that a cell gives a new value made from the old one, which it did not make itself."""
    made: set[str] = set()
    found = []
    for statement in _tree(source).body:
        bound, used = global_names(ast.unparse(statement))
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            found += sorted(bound & used - made)
        found += sorted(_augmented(statement) - made)
        made |= bound
    return found


def _augmented(statement: ast.stmt) -> set[str]:
    """Return the names that `+=` and its like change outside functions."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return set()
    changes = (n.target for n in ast.walk(statement) if isinstance(n, ast.AugAssign))
    return {target.id for target in changes if isinstance(target, ast.Name)}


# --------------------------------------------------------------------------------------------------------------- prose


def no_empty_cells(notebook: Notebook) -> list[str]:
    """No cell is empty, and all are code or markdown."""
    found = []
    for i, cell in enumerate(notebook["cells"]):
        if not cell["source"].strip():
            found.append(f"cell {i}: empty; remove it")
        if cell["cell_type"] not in ("code", "markdown"):
            found.append(f"cell {i}: a {cell['cell_type']} cell; only code and markdown")
    return found


def words(text: str) -> int:
    """Return the words of markdown: fenced blocks, HTML tags and addresses do not count."""
    text = re.sub(r"<!--[\s\S]*?-->|</?[a-zA-Z][^>]*>", " ", without_fences(text))
    text = re.sub(r"\]\([^)]*\)|https?://\S+", "]", text)
    return sum(1 for word in text.split() if any(c.isalnum() for c in word))


def prose_is_short(notebook: Notebook) -> list[str]:
    """Prose cells have at most 120 words."""
    sizes = [(i, words(c["source"])) for i, c in prose_cells(notebook)]
    return [f"cell {i}: {n} words, at most {MOST_WORDS}; split it" for i, n in sizes if n > MOST_WORDS]


def headings_in_steps(notebook: Notebook) -> list[str]:
    """Exactly one level-1 heading, at the start; no level is skipped on the way down."""
    all_headings = headings(notebook)
    found = (
        [] if all_headings and all_headings[0][:2] == (0, 1) else ["cell 0: the notebook starts with its title, a # heading"]
    )
    found += [f"cell {i}: a second title ({title!r}); use ##" for i, level, title in all_headings[1:] if level == 1]
    for (_, above, _), (i, level, title) in zip(all_headings, all_headings[1:], strict=False):
        if level > above + 1:
            found.append(f"cell {i}: heading {title!r} is of level {level} under one of level {above}")
    return found


def anatomy(notebook: Notebook, wanted: Sequence[str] = ANATOMY) -> list[str]:
    """The level-2 headings are the `wanted` ones in their order. Fewer than all: then only the start must be so."""
    titles = [title for _, level, title in headings(notebook) if level == 2]
    compared = titles if tuple(wanted) == ANATOMY else titles[: len(wanted)]
    if compared == list(wanted):
        return []
    missing = [t for t in wanted if t not in titles]
    more = [t for t in titles if t not in ANATOMY] if tuple(wanted) == ANATOMY else []
    if missing or more:
        return [f"no section {t!r}" for t in missing] + [f"section {t!r} is not one of the anatomy; use ###" for t in more]
    return [f"sections are not in the order of the anatomy: {', '.join(titles)}"]


def pictures_have_text(notebook: Notebook) -> list[str]:
    """Every picture says in words what it shows: in markdown, in HTML and in outputs."""
    found = []
    for i, cell in prose_cells(notebook):
        text = re.sub(r"`[^`\n]*`", "", without_fences(cell["source"]))
        empty = [alt for alt in re.findall(r"!\[([^\]]*)\][(\[]", text) if not alt.strip()]
        empty += [p for p in Html(text).pictures if not (p.get("alt") or "").strip()]
        found += [f"cell {i}: a picture without alternative text"] * len(empty)
    for i, cell in code_cells(notebook):
        found += [f"cell {i}: {fault}" for output in cell["outputs"] for fault in _faults_of_pictures(output)]
    return found


def _faults_of_pictures(output: Any) -> Iterator[str]:
    data = output.get("data", {})
    html = Html(data.get("text/html", ""))
    if any(not (p.get("alt") or "").strip() for p in html.pictures):
        yield "a picture in the output without alternative text"
    if html.names & {"svg", "script", "style"}:
        yield "the output has <svg>, <script> or <style>, which an untrusted copy does not show; use <img alt src=data:…>"
    for kind in data:
        described = bool(html.read) or (output["metadata"].get(kind) or {}).get("alt")
        if kind.startswith("image/") and not described:
            yield f"{kind} without text/html beside it; show it through an object with an alternative text"


_SECRETS = re.compile(r"(?<![A-Za-z])sk-(?=[\w-])|Bearer |TEST-KEY|(?i:authorization:)")
_MACHINE = re.compile(
    r"/(?:home|root|tmp|Users)/|\b[A-Z]:\\|site-packages|dist-packages|(?<![\w.~/-])/(?:[\w.-]+/)+[\w-]+\.(?:py|ipynb)\b"
)
_ADDRESS = re.compile(r"\bat 0x[0-9A-Fa-f]+|\b0x[0-9A-Fa-f]{6,}")


def nothing_private(notebook: Notebook) -> list[str]:
    """No path of a machine, no address in memory, nothing that looks like a key, in sources and outputs."""
    found = []
    for i, cell in enumerate(notebook["cells"]):
        pieces = [("source", cell["source"])]
        pieces += [("output", text) for o in cell.get("outputs", ()) for _, text in texts(o)]
        for place, text in pieces:
            text = re.sub(r"https?://[^\s)>\"]+|data:[\w/+.-]+;base64,[\w+/=]+", "", text)
            for what, pattern in (("a path of one machine", _MACHINE), ("an address", _ADDRESS), ("a key", _SECRETS)):
                if hit := pattern.search(text):
                    found.append(f"cell {i}, {place}: {what}: {hit.group()!r}")
    return found


# ------------------------------------------------------------------------------------------------- numbers in the prose

_NUMBER = re.compile(
    "(?<![\\w.,#])(?<![A-Za-z][-/])"  # not inside a name, a version, UTF-8, chars/4, #123
    "(\\d{1,3}(?:[,_\u00a0\u2009\u202f]\\d{3})+(?!\\d)|\\d+)(\\.\\d+)?"
    "(?:[ \u00a0\u2009\u202f]?(%)|([kM])(?![A-Za-z]))?"
)

_THINGS = r"(?:token|character|line|message|word|request|round|turn)"
_NOT_MEASURED = re.compile(
    r"https?://\S+|\]\([^)]*\)"  # addresses
    r"|<!--[\s\S]*?-->|</?[a-zA-Z][^>]*>"  # comments and tags of HTML
    r"|^\s*\|.*$|^#+ .*$|^\s*\d+[.)]\s"  # tables, headings, the numbers of a list
    r"|\b\d\d_\w+(?:\.ipynb)?"  # names of notebooks
    r"|\b[Cc]hapters?\s+\d\d(?:\s*(?:,|–|-|and|to|or)\s*\d\d)*"
    rf"|\b20[0-4]\d-\d\d(?:-\d\d)?|\b20[0-4]\d\b(?![.,]\d)(?!\s+{_THINGS})"  # dates and years
    rf"|\bHTTP [1-5]\d\d\b|\bstatus [1-5]\d\d\b|\ba [45]\d\d\b(?!\s*-?{_THINGS})"  # a server's answers
    r"|\bPython 3\.\d+|\b\d+ minutes?\b",  # versions, and how long a chapter takes
    re.MULTILINE,
)

_INSTRUCTION = re.compile(r"\W*(?:Set|Move|Try|Drag|Choose|Put|Change|Type|Press|Play|Raise|Lower|Give|Start with)\b")


def numbers_are_shown(notebook: Notebook, measured: Sequence[str] = MEASURED) -> list[str]:
    """Every number that prose states in a `measured` section is in an output or in the code.

    Single digits are free, unless with a decimal point or a percent sign. A percentage may be shown as its fraction.
    Questions and instructions state nothing; years, chapters, HTTP status codes, versions and tables are no measurements.
    """
    shown = _shown(notebook)
    found = []
    for title, i, text in sections(notebook):
        if title in measured:
            found += [f"cell {i}: {quoted} is in no output and no code" for quoted in _claims(text, shown)]
    return found


def _claims(text: str, shown: set[tuple[Decimal, bool]]) -> Iterator[str]:
    """Yield the numbers in `text` that are not `shown`, as they are written."""
    text = _NOT_MEASURED.sub(" ", text)
    for sentence in re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*[-*+] ", text):
        if sentence.rstrip().rstrip("*_)").endswith("?") or _INSTRUCTION.match(sentence):
            continue
        for match in _NUMBER.finditer(sentence):
            value, percent = _value(match)
            digits, fraction, sign, unit = match.groups()
            if len(digits) < 2 and not fraction and not sign and not unit:
                continue
            as_fraction = percent and ((value / 100, False) in shown)
            if not ((value, percent) in shown or (not percent and (value, True) in shown) or as_fraction):
                yield match.group().strip()


def _value(match: re.Match[str]) -> tuple[Decimal, bool]:
    digits, fraction, percent, unit = match.groups()
    value = Decimal(re.sub(r"\D", "", digits) + (fraction or ""))
    return value * {"k": 1000, "M": 1_000_000, None: 1}[unit], bool(percent)


def _shown(notebook: Notebook) -> set[tuple[Decimal, bool]]:
    """Return every number in code and compared outputs, each with whether a percent sign follows."""
    pieces = []
    for _, cell in code_cells(notebook):
        pieces.append(cell["source"])
        for output in [] if "nbval-ignore-output" in tags(cell) else cell["outputs"]:
            pieces += ["\n".join(Html(t).read) if kind == "text/html" else t for kind, t in texts(output)]
    return {_value(match) for piece in pieces for match in _NUMBER.finditer(piece)}


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        counts_in_order,
        errors_are_tagged,
        tags_are_known,
        no_marker_comments,
        no_stderr,
        metadata_is_clean,
        panels_have_a_picture,
        no_semicolons,
        plain_python,
        code_is_short,
        exercises_stand_alone,
        no_empty_cells,
        prose_is_short,
        headings_in_steps,
        anatomy,
        pictures_have_text,
        nothing_private,
        numbers_are_shown,
    )
}


def problems(notebook: Notebook, wanted: Sequence[str] = ANATOMY) -> list[str]:
    """Apply every rule and return what they find; `wanted` are the sections that this notebook must have.

    A notebook without the whole anatomy has no sections set apart for measurements, so there all are.
    """
    found = [problem for name, rule in RULES.items() if name not in _WITH_SECTIONS for problem in rule(notebook)]
    whole = tuple(wanted) == ANATOMY
    measured = MEASURED if whole else tuple({title for title, _, _ in sections(notebook)} - set(wanted))
    return found + anatomy(notebook, wanted) + numbers_are_shown(notebook, measured)


_WITH_SECTIONS = ("anatomy", "numbers_are_shown")
