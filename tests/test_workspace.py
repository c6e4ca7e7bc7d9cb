"""The facts about `chapters/workspace` that the workbook relies on, and the one repair that the agent makes there."""

from __future__ import annotations

import ast
import base64
import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from agentkit.messages import ToolCall
from agentkit.tools import Toolbox, workspace_tools

WORKSPACE = Path(__file__).parents[1] / "chapters" / "workspace"


def text_of(name: str) -> str:
    return (WORKSPACE / name).read_bytes().decode("utf-8")


@pytest.fixture(scope="module")
def service():
    spec = importlib.util.spec_from_file_location("big_service", WORKSPACE / "big_service.py")
    module = importlib.util.module_from_spec(spec)
    exec(compile(text_of("big_service.py"), "big_service.py", "exec"), module.__dict__)
    return module.BigService()


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    shutil.copytree(WORKSPACE, tmp_path / "w", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return workspace_tools(tmp_path / "w")


def run(box: Toolbox, name: str, **arguments: object) -> str:
    message = box.run(ToolCall("c1", name, json.dumps(arguments)))
    assert not message.is_error, message.content
    return message.content


def test_big_service_has_285_lines_and_40_methods() -> None:
    text = text_of("big_service.py")
    assert text.count("\n") == 285 and text.endswith("\n") and "\r" not in text
    (cls,) = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    methods = [node.name for node in cls.body if isinstance(node, ast.FunctionDef)]
    assert cls.name == "BigService" and methods == [f"compute{n}" for n in range(1, 41)]


def test_compute7_of_3_is_91(service) -> None:
    body = text_of("big_service.py").partition("def compute7(self, x: int) -> int:\n")[2].partition("def ")[0]
    assert "base = x * 7\n" in body and "shifted = base << 2\n" in body and "return shifted + 7\n" in body
    assert service.compute7(3) == (3 * 7 << 2) + 7 == 91


def test_every_method_runs(service) -> None:
    assert [getattr(service, f"compute{n}")(0) for n in range(1, 41)] == list(range(1, 41))
    assert len({getattr(service, f"compute{n}")(5) for n in range(1, 41)}) == 40


def test_exactly_one_test_fails_and_one_edit_repairs_it(box: Toolbox) -> None:
    before = run(box, "run_tests")
    assert before.endswith("\n1 failed, 13 passed") and "FAILED tests/test_stats.py::test_median_of_an_even" in before
    old, new = "(ordered[middle] + ordered[middle + 1]) / 2", "(ordered[middle - 1] + ordered[middle]) / 2"
    assert run(box, "edit_file", path="stats.py", old=old, new=new) == "edited stats.py at line 18"
    assert run(box, "run_tests").endswith("\n14 passed")


def test_the_log_hides_one_error_in_its_middle(box: Toolbox) -> None:
    lines = text_of("build.log").splitlines()
    (at,) = [n for n, line in enumerate(lines) if "error" in line.lower()]
    assert len(lines) >= 1_500 and len(lines) / 3 < at < 2 * len(lines) / 3
    assert len({line[13:] for line in lines}) > 0.95 * len(lines)
    assert lines[at] not in run(box, "read_file", path="build.log")
    assert run(box, "grep", pattern="ERROR") == f"build.log:{at + 1}:{lines[at]}"


def test_the_error_in_the_log_is_true() -> None:
    config = json.loads(text_of("config.json"))
    gaps = [(name, band) for name, zone in config["zones"].items() for band in config["bands"].keys() - zone["rates"]]
    assert gaps == [("islands", "XL")] and text_of("config.json").count("\n") >= 60


def test_the_one_line_files() -> None:
    bundle, logo = text_of("bundle.min.js"), text_of("logo.b64")
    assert len(bundle) >= 30_000 and bundle.count("\n") == 1
    assert len(logo) >= 20_000 and logo.count("\n") == 1 and len(base64.b64decode(logo, validate=False)) == 15_600
    windows = [bundle[i : i + 60] for i in range(0, len(bundle), 60)]
    assert len(set(windows)) == len(windows)


def test_the_bundle_is_clipped_though_it_is_one_line(box: Toolbox) -> None:
    text = run(box, "read_file", path="bundle.min.js")
    assert len(text) <= 16_000 and "of 33,400 characters left out" in text


def test_the_notes_are_chinese() -> None:
    text = text_of("notes_zh.txt")
    assert 35 <= text.count("\n") <= 45
    assert sum("\u4e00" <= char <= "\u9fff" for char in text) > 0.6 * len(text)


def test_the_folder_is_small_and_has_these_files(box: Toolbox) -> None:
    names = run(box, "list_files").split("\n")
    assert names == [
        "README.md",
        "big_service.py",
        "build.log",
        "bundle.min.js",
        "config.json",
        "logo.b64",
        "notes_zh.txt",
        "pytest.ini",
        "stats.py",
        "tests/test_big_service.py",
        "tests/test_stats.py",
    ]
    assert sum((WORKSPACE / name).stat().st_size for name in names) < 300_000
    assert text_of("README.md").count("\n") == 3
