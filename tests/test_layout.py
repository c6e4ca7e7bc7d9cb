"""The package keeps its shape: floors, imports, sizes, docstrings, hints, and care with files and processes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import layout_rules as rules
import pytest
from layout_rules import Module

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = rules.read_package(ROOT / "agentkit")
MODULES = sorted(PACKAGE)

FLOORS: dict[int, str] = {
    1: "messages",
    2: "providers recovery providers.base protocol settle tokens vocabulary log ledger.* references cache_rules pricing "
    "progress",
    3: "budget break_even caching.* calibration compaction.* kv.* repomap.* "
    "recovery.overflow recovery.learned recovery.retry",
    4: "providers.* simulator.*",
    5: "policies.* tools.* events connect sessions.* recovery.*",
    6: "agent scenarios.* replay.* closed_loop.* sweep observed u_curve strategies",
    7: "kv.record figures.* demos.* panels.* checks.* console environment lab book"
    " replay_cli compare_cli live_cli serve_cli session_cli cli __main__",
}
"""Where each module lives. It imports only from floors below its own, or from its own floor without a circle.

`x.*` is the package x and everything in it; a name of its own goes before that. `providers` itself is empty and low, since
importing `providers.base` runs it.
"""

THIRD_PARTY: dict[str, str] = {
    "httpx": "providers.* simulator.transport kv.server kv.record",
    "httpx_sse": "providers.sse",
    "tiktoken": "vocabulary kv.smollm2",
    "numpy": "kv.* policies.ranking replay.segments replay.optimum figures.frontier",
    "genai_prices": "pricing",
    "matplotlib": "figures.*",
    "tqdm": "progress",
    "bm25s": "policies.ranking",
    "rustworkx": "repomap.graph",
    "tree_sitter": "repomap.symbols",
    "tree_sitter_python": "repomap.symbols",
    "IPython": "figures.* panels.*",
    "ipywidgets": "panels.*",
    "anywidget": "panels.*",
    "traitlets": "panels.*",
    "nbformat": "book",
    "nbclient": "book",
}
"""Who may import what is not in the standard library."""

WITH_THIRD_PARTY = (
    "providers.openai providers.anthropic providers.client providers.sse providers.transport simulator.transport panels.*"
    " kv.cache kv.model kv.opened kv.smollm2 kv.server kv.record replay.segments replay.optimum"
)
"""Modules that cannot even be imported without a third-party package; all others can."""

MOST_LINES, MOST_FUNCTION_LINES = 300, 45


def matches(name: str, patterns: str) -> bool:
    """Say whether a module is among `patterns`, separated by spaces."""
    each = patterns.split()
    return name in each or any(name == p[:-2] or name.startswith(p[:-1]) for p in each if p.endswith(".*"))


def floor(name: str) -> int | None:
    """Return the floor of a module; one named exactly is not where its package is."""
    exact = [n for n, names in FLOORS.items() if name in names.split()]
    return next(iter(exact), next((n for n, names in FLOORS.items() if matches(name, names)), None))


def upward(module: Module, known: set[str]) -> list[str]:
    """Return the imports of `module` that go up."""
    own = floor(module.name)
    targets = sorted(rules.own_imports(module, known) - {""})
    return [target for target in targets if own is None or (floor(target) or 0) > own]


def foreign(module: Module) -> list[str]:
    """Return what `module` imports from outside the standard library and may not."""
    names = {name.split(".")[0] for name, _ in rules.imports(module.tree, module.package)}
    outside = names - sys.stdlib_module_names - {"agentkit"}
    return sorted(name for name in outside if not matches(module.name, THIRD_PARTY.get(name, "")))


# --------------------------------------------------------------------------------------------------------------- imports


def test_there_is_a_package_to_check() -> None:
    assert len(MODULES) > 50


@pytest.mark.parametrize("name", [name for name in MODULES if name])
def test_every_module_has_a_floor_and_imports_only_from_below(name: str) -> None:
    assert floor(name) is not None, f"agentkit.{name} is not in FLOORS; on which floor does it live?"
    assert upward(PACKAGE[name], set(MODULES)) == []


def test_no_circle_of_imports() -> None:
    graph = {name: rules.own_imports(module, set(MODULES)) for name, module in PACKAGE.items()}
    assert rules.find_cycle(graph) == []


@pytest.mark.parametrize("name", MODULES)
def test_third_party_packages_are_imported_only_where_they_may(name: str) -> None:
    assert foreign(PACKAGE[name]) == []


def test_an_upward_import_is_found() -> None:
    for text in (
        "from agentkit.agent import Agent",
        "import agentkit.agent",
        "from agentkit import agent",
        "from . import agent",
    ):
        assert upward(Module("log", text), set(MODULES)) == ["agent"], text
    inside = Module("log", "def f():\n    from agentkit.agent import Agent")
    assert upward(inside, set(MODULES)) == ["agent"]
    relative = Module("providers.base", "from .sse import payloads\nfrom ..messages import Reply")
    assert upward(relative, set(MODULES)) == ["providers.sse"]


def test_an_import_for_types_only_is_none() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from agentkit.agent import Agent\n    import httpx"
    assert upward(Module("log", text), set(MODULES)) == foreign(Module("log", text)) == []


def test_a_circle_is_found() -> None:
    assert rules.find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert rules.find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_a_foreign_import_is_found() -> None:
    assert foreign(Module("log", "import httpx, json\nimport numpy.linalg")) == ["httpx", "numpy"]
    assert foreign(Module("figures.strip", "import ipywidgets as w")) == ["ipywidgets"]
    assert foreign(Module("panels", "def f():\n    import ipywidgets")) == []


def test_a_module_without_a_floor_is_found() -> None:
    assert floor("nowhere") is None
    assert (floor("providers"), floor("providers.base"), floor("providers.sse"), floor("caching")) == (2, 2, 4, 3)


# ------------------------------------------------------------------------------------------------------- what import loads


def python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        capture_output=True,
        cwd=ROOT,
        timeout=60,
        encoding="utf-8",
        errors="replace",
        check=True,
    )


def loaded(code: str) -> dict[str, int]:
    """Return the modules that `code` loads, with the microseconds that each took by itself."""
    log = python(code, "-X", "importtime").stderr
    return {name: int(own) for own, name in re.findall(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)$", log, re.MULTILINE)}


def third_party(names: set[str]) -> set[str]:
    return {name for name in names if name.split(".")[0] not in sys.stdlib_module_names | {"agentkit"}}


def test_import_agentkit_loads_the_standard_library_only() -> None:
    empty, full = loaded("pass"), loaded("import agentkit")
    assert "agentkit" in full
    assert third_party(full.keys() - empty.keys()) == set()
    print(f"import agentkit: {sum(full.values()) / sum(empty.values()):.2f} times an empty interpreter")


def test_the_core_can_be_imported_without_any_third_party_package() -> None:
    light = [f"agentkit.{name}" for name in MODULES if name and name != "__main__" and not matches(name, WITH_THIRD_PARTY)]
    assert {"agentkit.agent", "agentkit.cli", "agentkit.scenarios", "agentkit.tokens"} <= set(light)
    code = "import sys; before = set(sys.modules)\nimport {}\nprint(*(set(sys.modules) - before))"
    names = set(python(code.format(", ".join(light))).stdout.split())
    assert set(light) <= names
    assert third_party(names) == set()


def test_the_check_of_loaded_modules_can_fail() -> None:
    assert "httpx" in third_party(set(loaded("import agentkit.providers.transport")))


# ------------------------------------------------------------------------------------------------------- how it is written


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_says_what_it_does_in_one_sentence(name: str) -> None:
    assert rules.without_docstring(PACKAGE[name].tree) == []


@pytest.mark.parametrize("name", MODULES)
def test_every_function_is_fully_typed(name: str) -> None:
    assert rules.without_hints(PACKAGE[name].tree) == []


@pytest.mark.parametrize("name", MODULES)
def test_modules_and_functions_are_short(name: str) -> None:
    assert len(PACKAGE[name].text.splitlines()) <= MOST_LINES
    assert rules.longer_than(PACKAGE[name].tree, MOST_FUNCTION_LINES) == []


@pytest.mark.parametrize("name", MODULES)
def test_h14_encodings_and_limits_are_said(name: str) -> None:
    assert rules.careless_calls(PACKAGE[name].tree) == []


def test_a_missing_sentence_is_found() -> None:
    text = (
        '"""Fine."""\ndef f(): "No stop"\nclass A:\n    "Fine."\n    def g(self): ...\n    def _h(self): ...\ndef _i(): ...'
    )
    assert rules.without_docstring(Module("x", text).tree) == ["f", "A.g"]
    assert rules.without_docstring(Module("x", "x = 1").tree) == ["module"]


def test_a_missing_hint_is_found() -> None:
    text = "def f(a, *b, c=1, **d) -> int: ...\ndef g(a: int): ...\nclass A:\n    def h(self) -> None: ...\n"
    assert rules.without_hints(Module("x", text).tree) == ["f(a, c, b, d)", "g()"]


def test_a_long_function_is_found() -> None:
    assert rules.longer_than(Module("x", "def f():\n" + "    x = 1\n" * 3).tree, 3) == ["f: 4 lines"]


CARELESS = [
    "open(p)",
    "open(p, 'w')",
    "path.open()",
    "path.read_text()",
    "path.write_text(text)",
    "tempfile.NamedTemporaryFile('w')",
    "tempfile.TemporaryFile(mode='w')",
    "subprocess.run(c)",
    "subprocess.run(c, timeout=9, capture_output=True)",
    "subprocess.run(c, timeout=9, stdout=subprocess.PIPE, encoding='utf-8')",
    "subprocess.check_output(c, timeout=9)",
    "subprocess.Popen(c, stdin=PIPE)",
    "process.wait()",
    "process.communicate()",
    "httpx.Client()",
    "httpx.get(url)",
    "urllib.request.urlopen(url)",
]
CAREFUL = [
    "open(p, 'rb')",
    "open(p, mode='wb')",
    "open(p, encoding='utf-8')",
    "path.open('rb')",
    "path.read_text(encoding='utf-8')",
    "path.read_bytes()",
    "tempfile.NamedTemporaryFile(dir=d)",
    "subprocess.run(c, timeout=9)",
    "subprocess.run(c, timeout=9, input=t, encoding='utf-8', errors='replace')",
    "subprocess.Popen(c, stdout=file)",
    "process.wait(9)",
    "process.communicate(timeout=9)",
    "httpx.Client(timeout=9)",
    "agent.run(question)",
]


@pytest.mark.parametrize("call", CARELESS)
def test_a_careless_call_is_found(call: str) -> None:
    assert len(rules.careless_calls(Module("x", call).tree)) == 1


@pytest.mark.parametrize("call", CAREFUL)
def test_a_careful_call_is_left_alone(call: str) -> None:
    assert rules.careless_calls(Module("x", call).tree) == []


# --------------------------------------------------------------------------------------------------- what is in the checkout

_PLACES = re.compile(r"/work/|/root\b(?!_)|(?<![\w-])shared/")
_SKIPPED = re.compile(r"(?:^|/)(?:\.(?!ci/|github/|git[ai])|__pycache__/|\w+\.egg-info/|tests/|venv/|build/|dist/)")


def published() -> list[Path]:
    """Return the files that a reader gets, but for the tests, which may look beside the checkout."""
    paths = (path for path in ROOT.rglob("*") if path.is_file())
    return [path for path in paths if not _SKIPPED.search(path.relative_to(ROOT).as_posix())]


def test_no_file_names_a_place_of_one_machine() -> None:
    files = published()
    assert {"README.md", "pyproject.toml", ".ci/run", "agentkit/cli.py"} <= {p.relative_to(ROOT).as_posix() for p in files}
    texts = {path: path.read_bytes().decode("utf-8", "replace") for path in files}
    assert {path.name: hit.group() for path, text in texts.items() if (hit := _PLACES.search(text))} == {}


@pytest.mark.parametrize("text", ["cd /work/main", "/root/.cache", "../shared/sessions"])
def test_a_place_of_one_machine_is_found(text: str) -> None:
    assert _PLACES.search(text)


@pytest.mark.parametrize("text", ["--ServerApp.root_dir=x", "share/jupyter", "a-shared/x", "/root_dir", "framework/"])
def test_what_is_no_place_is_left_alone(text: str) -> None:
    assert not _PLACES.search(text)


def test_there_is_no_lock_file_with_addresses_of_a_registry() -> None:
    assert not list(ROOT.glob("*.lock"))
