"""Make a project of 15 modules with tests, the same bytes every time: the workspace of the long scenarios.

It is the depot of a bicycle hire. Its modules have the forms of ordinary code (constants, functions, a class or two,
comments here and docstrings there), two of its tests fail for a reason, and some of its names are bad enough to be changed.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from string import Template

from agentkit.scenarios.base_module import BASE, BASE_TEST
from agentkit.scenarios.parts import PARTS, SUMMARY, Part
from agentkit.scenarios.subjects import SUBJECTS, Subject

PACKAGE = "depot"
MODULES: tuple[str, ...] = (f"{PACKAGE}/base.py", *(f"{PACKAGE}/{subject.name}.py" for subject in SUBJECTS))
"""The 15 modules, in the order of the README."""

SEED = 20
BARE = 0.6
"""The share of functions without a docstring, as the project starts."""

_BUGS = {
    "deposits": ("sum(amounts) / len(amounts)", "sum(amounts) / (len(amounts) - 1)"),
    "transfers": ("max(amounts) - min(amounts)", "min(amounts) - max(amounts)"),
}
"""In each of these modules one line is wrong, and one test says so."""


def make_project(folder: Path) -> None:
    """Write the project into `folder`, which is made. Raises `FileExistsError` when it is there."""
    folder.mkdir(parents=True)
    for name, text in project_files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def project_files(seed: int = SEED) -> dict[str, str]:
    """Return the text of every file of the project by its path."""
    files = {
        "README.md": _readme(),
        "pytest.ini": "[pytest]\npythonpath = .\ntestpaths = tests\n",
        f"{PACKAGE}/__init__.py": '"""The depot of a bicycle hire."""\n',
        f"{PACKAGE}/base.py": BASE,
        "tests/test_base.py": BASE_TEST,
    }
    for number, subject in enumerate(SUBJECTS):
        chosen = _chosen(subject, random.Random(seed * 100 + number))
        files[f"{PACKAGE}/{subject.name}.py"] = _module(subject, chosen, random.Random(seed * 100 + 50 + number))
        files[f"tests/test_{subject.name}.py"] = _tests(subject, chosen)
    return files


def _readme() -> str:
    rows = [f"- `{subject.name}.py`: {subject.about}" for subject in SUBJECTS]
    opening = "# Depot\n\nKeeps the books of a bicycle hire. Amounts are whole numbers: cents, minutes, pieces.\n"
    return "\n".join([opening, "- `base.py`: what every other module needs.", *rows, "", "Tests: `pytest`.", ""])


_Filled = tuple[Part, dict[str, str]]
"""A part and the names to fill into it."""


def _chosen(subject: Subject, chance: random.Random) -> list[_Filled]:
    """Return the parts of a module in their order. A part comes once for each thing at most, so no name comes twice."""
    names = [_names(subject, thing, things) for thing, things in subject.things]
    possible = [(part, filled) for filled in names for part in PARTS]
    must = [pair for pair in possible[: len(PARTS)] if subject.name in _BUGS and _BUGS[subject.name][0] in pair[0].source]
    # `random()` alone: of its methods, only this one gives the same numbers in every version of Python.
    rest = sorted((pair for pair in possible if pair not in must), key=lambda pair: chance.random())
    picked = must + rest[: subject.parts - len(must)]
    return [*sorted(picked, key=lambda pair: chance.random()), (SUMMARY, names[0])]


def _names(subject: Subject, thing: str, things: str) -> dict[str, str]:
    low, high, limit = (name for name, _, _ in subject.constants[:3])
    made = "".join(word.capitalize() for word in thing.split("_"))
    return {
        "thing": thing,
        "things": things,
        "Thing": made,
        "unit": subject.unit,
        "LOW": low,
        "HIGH": high,
        "LIMIT": limit,
    }


def _module(subject: Subject, chosen: list[_Filled], chance: random.Random) -> str:
    body = "\n\n".join(_bare(Template(part.source).substitute(names), chance) for part, names in chosen)
    if subject.name in _BUGS:
        body = body.replace(*_BUGS[subject.name], 1)
    constants = [f'{name} = {value:_}\n"""{meaning}"""\n' for name, value, meaning in subject.constants]
    constants += ['PAGE = 25\n"""Rows of one page."""\n'] if "PAGE" in body else []
    used = [name for name in ("chk_pos", "fmt") if re.search(rf"\b{name}\(", body)]
    head = [f'"""{subject.about}"""', "", "from __future__ import annotations", ""]
    head += [f"from {PACKAGE}.base import {', '.join(used)}", ""]
    return "\n".join([*head, *constants]) + "\n\n" + body.rstrip("\n") + "\n"


def _bare(source: str, chance: random.Random) -> str:
    """Take the docstring off some functions; a class keeps its own."""
    rows = [line for line in source.split("\n") if not _docstring(line, source) or chance.random() >= BARE]
    return "\n".join(rows).lstrip("\n")


def _docstring(line: str, source: str) -> bool:
    return line.strip().startswith('"""') and not (source.lstrip().startswith("class") and line.startswith('    """'))


def _tests(subject: Subject, chosen: list[_Filled]) -> str:
    cases, used = [], set()
    for part, names in chosen:
        if not part.test:
            continue
        source, test = Template(part.source).substitute(names), Template(part.test).substitute(names)
        found = re.search(r"^(?:def|class) (\w+)", source, re.MULTILINE)
        name = found[1] if found else ""
        used |= {name} | ({"PAGE"} if "PAGE" in test else set())
        cases.append(f"def test_{re.sub(r'(?<!^)(?=[A-Z])', '_', name).lower()}():\n    {test}\n")
    head = ["import pytest", ""] if any("pytest." in case for case in cases) else []
    head += [f"from {PACKAGE}.{subject.name} import (", *(f"    {name}," for name in sorted(used)), ")", "", ""]
    return "\n".join(head) + "\n" + "\n\n".join(cases)
