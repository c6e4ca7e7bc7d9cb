"""Open a cache, compare it with another one, change it: for the tiny model and for the real one alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from agentkit.kv.cache import KVCache
from agentkit.kv.model import Transformer
from agentkit.kv.recorded import Editing, LayerRow

if TYPE_CHECKING:
    from agentkit.kv.smollm2 import SmolLM2

TEXT, QUESTION = "The meeting is in Paris. It begins at noon and lasts for two hours.", "\nThe meeting is in"
WORD, OTHER_WORD = " Paris", " Rome"


def differences(
    a: KVCache, b: KVCache, start: int, stop: int | None = None, shift: int = 0
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for every layer how much keys and values differ, token by token, from `start` to before `stop` of `a`.

    `shift` is how much further the same tokens stand in `b`: -1 after one was deleted before them.
    """
    stop = len(a.tokens) if stop is None else stop
    here, there = slice(start, stop), slice(start + shift, stop + shift)
    keys = np.abs(a.keys[:, :, here] - b.keys[:, :, there]).max((1, 3))
    values = np.abs(a.values[:, :, here] - b.values[:, :, there]).max((1, 3))
    return list(zip(keys, values, strict=True))


def layers_after(a: KVCache, b: KVCache, start: int, shift: int = 0, least: float = 1e-9) -> list[LayerRow]:
    """Return `differences` as counts: for every layer the tokens whose key, or value, differs by more than `least`."""
    return [
        LayerRow(n, len(keys), int((keys > least).sum()), int((values > least).sum()), float(max(keys.max(), values.max())))
        for n, (keys, values) in enumerate(differences(a, b, start, shift=shift), 1)
    ]


def filled(model: Transformer, tokens: Sequence[int]) -> KVCache:
    """Return a cache that holds `tokens`."""
    cache = model.cache()
    model.forward(tokens, cache)
    return cache


def patched(cache: KVCache, other: KVCache, position: int) -> KVCache:
    """Return a copy of `cache` with the one token at `position` taken from `other`; everything after it stays stale."""
    copy = cache.copy()
    copy.keys[:, :, position], copy.values[:, :, position] = other.keys[:, :, position], other.values[:, :, position]
    copy.tokens[position] = other.tokens[position]
    return copy


def blanked(cache: KVCache, position: int) -> KVCache:
    """Return a copy of `cache` in which key and value of one token are 0."""
    copy = cache.copy()
    copy.keys[:, :, position] = copy.values[:, :, position] = 0
    return copy


def editings(real: SmolLM2) -> list[Editing]:
    """Change one word's memory in the real model's cache, and return what it would say next."""
    tokens, word = real.encode(TEXT), real.encode(WORD)
    position = tokens.index(word[0])
    one = filled(real.model, tokens)
    two = filled(real.model, real.encode(TEXT.replace(WORD, OTHER_WORD)))
    caches = {
        f"the text says{WORD}": one,
        f"{WORD.strip()}: key and value set to 0": blanked(one, position),
        f"{WORD.strip()}: key and value taken from{OTHER_WORD}": patched(one, two, position),
        f"the text says{OTHER_WORD}": two,
    }
    question = real.encode(QUESTION)
    return [Editing(name, tuple(real.probabilities(real.model.forward(question, c)))) for name, c in caches.items()]


def real_layers(real: SmolLM2, tokens: Sequence[int], position: int) -> list[LayerRow]:
    """Return `layers_after` of the real model, with the token at `position` replaced by another one."""
    changed = [*tokens[:position], (tokens[position] + 1) % real.model.shape.vocabulary, *tokens[position + 1 :]]
    # Single precision, and sums of hundreds of numbers: anything below this may be rounding.
    return layers_after(filled(real.model, tokens), filled(real.model, changed), position + 1, least=1e-4)
