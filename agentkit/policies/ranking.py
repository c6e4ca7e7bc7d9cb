"""Which earlier texts are most like a query: BM25 in place of embeddings, or plain word overlap where bm25s is missing."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any, Protocol

_WORD = re.compile(r"[A-Za-z]+|\d+|[⺀-\U0010ffff]")
LONGEST = 4_000
"""Characters of a text that are looked at. An embedding has a limit too."""
STEP = 32
"""Texts between two makings of the large index; the newest ones are in a small index of their own."""


class Ranker(Protocol):
    """Anything that finds the texts most like a query. `name` is shown to the reader."""

    name: str

    def best(self, query: str, texts: Sequence[str], k: int) -> list[int]:
        """Return the positions of the `k` texts most like `query`, the best first. Same texts, same answer."""
        ...


def words(text: str) -> list[str]:
    """Return the words of `text` in small letters; a Chinese or Japanese character counts as a word."""
    return _WORD.findall(text[:LONGEST].lower())


class WordOverlap:
    """Count the words that text and query share, by the square root of the text's length."""

    name = "word overlap (bm25s is not installed)"

    def __init__(self) -> None:
        self._known: dict[str, frozenset[str]] = {}

    def best(self, query: str, texts: Sequence[str], k: int) -> list[int]:
        """Return the positions of the `k` best texts."""
        wanted = frozenset(words(query))
        return _highest([self._score(wanted, text) for text in texts], k)

    def _score(self, wanted: frozenset[str], text: str) -> float:
        if text not in self._known:
            self._known[text] = frozenset(words(text))
        found = self._known[text]
        return len(wanted & found) / max(1, len(found)) ** 0.5


class Bm25:
    """BM25 by the package bm25s. It ranks by rare words in common, not by meaning as an embedding does."""

    name = "BM25 (bm25s)"

    def __init__(self) -> None:
        self._words: dict[str, list[str]] = {}
        self._texts: list[str] = []
        self._index: Any = None
        self._newest = Newest()

    def best(self, query: str, texts: Sequence[str], k: int) -> list[int]:
        """Return the positions of the `k` best texts."""
        texts, wanted = list(texts), list(dict.fromkeys(words(query)))
        size = len(texts) // STEP * STEP
        if texts[:size] != self._texts:
            self._texts, self._index = texts[:size], self._made(texts[:size])
        newest = texts[size:]
        known = self._newest.texts
        if newest[: len(known)] != known:
            self._newest, known = Newest(), []
        for text in newest[len(known) :]:
            self._newest.add(text, self._split(text))
        return _highest([*_scores(self._index, wanted), *self._newest.scores(wanted)], k)

    def _made(self, texts: Sequence[str]) -> Any:
        import bm25s

        if not texts:
            return None
        index = bm25s.BM25()
        index.index([self._split(text) for text in texts], show_progress=False)
        return index

    def _split(self, text: str) -> list[str]:
        if text not in self._words:
            self._words[text] = words(text) or [""]
        return self._words[text]


class Newest:
    """A small index that grows by one text at a time, with the scores that bm25s would give for an index made anew.

    The formula is bm25s' own default (Lucene's variant, k1 = 1.5, b = 0.75), rounded where it rounds.
    """

    k1, b = 1.5, 0.75

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._lengths: list[int] = []
        self._places: dict[str, list[tuple[int, int]]] = {}  # of each word: in which text, and how often

    def add(self, text: str, found: Sequence[str]) -> None:
        """Add `text`, whose words are `found`."""
        for word, often in Counter(found).items():
            self._places.setdefault(word, []).append((len(self.texts), often))
        self.texts.append(text)
        self._lengths.append(len(found))

    def scores(self, wanted: Sequence[str]) -> list[float]:
        """Return the score of each text for the words `wanted`."""
        import numpy as np

        total = len(self.texts)
        scores = np.zeros(total, np.float32)
        lists = [places for word in wanted if (places := self._places.get(word))]
        if not lists:
            return scores.tolist()
        rare = [math.log(1 + (total - len(places) + 0.5) / (len(places) + 0.5)) for places in lists]
        weights = np.repeat(np.array(rare, np.float32), [len(places) for places in lists])
        rows, often = np.array([place for places in lists for place in places]).T
        lengths = np.array(self._lengths)
        by_length = self.k1 * ((1 - self.b) + self.b * lengths / lengths.mean())
        np.add.at(scores, rows, (weights * (often / (by_length[rows] + often))).astype(np.float32))
        return scores.tolist()


def _scores(index: Any, wanted: Sequence[str]) -> Iterable[float]:
    if index is None:
        return ()
    known = [word for word in wanted if word in index.vocab_dict]
    return index.get_scores(known).tolist() if known else [0.0] * index.scores["num_docs"]


def _highest(scores: Sequence[float], k: int) -> list[int]:
    """Return the positions of the `k` highest scores; of equal ones the newer text goes first."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], -i))[:k]


def ranker() -> Ranker:
    """Return the ranking that this machine has: BM25, or word overlap without bm25s."""
    return Bm25() if find_spec("bm25s") else WordOverlap()
