"""The exercises of chapter 05: what a cache keeps, in tokens and in blocks, and the work that is left."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.checks.base import Case, Exercise
from agentkit.kv.work import kept, shared_prefix

# --- kept ----------------------------------------------------------------------------------------------------------------

_PROMPT = [11, 12, 13, 14, 15, 16]


def _kept(cached: Sequence[int], prompt: Sequence[int], note: str) -> Case:
    return Case((cached, prompt), kept(cached, prompt), note)


_KEPT = (
    _kept(_PROMPT, [*_PROMPT, 17], "one token more"),
    _kept(_PROMPT, [11, 12, 99, 14, 15, 16], "a token changed: what comes after it counts no more"),
    _kept(_PROMPT, [11, 13, 14, 15, 16], "a token deleted"),
    _kept(_PROMPT, _PROMPT, "the same again: the last token has to run"),
    _kept(_PROMPT, _PROMPT[:4], "a shorter prompt: its last token has to run as well"),
    _kept(_PROMPT, [99, *_PROMPT], "a token put in front"),
    _kept([], _PROMPT, "an empty cache"),
    _kept(_PROMPT, [11], "a prompt of one token"),
)


def _equal_anywhere(cached: Sequence[int], prompt: Sequence[int]) -> int:
    """Count equal tokens at equal places, also behind a change."""
    return min(sum(a == b for a, b in zip(cached, prompt, strict=False)), len(prompt) - 1)


def _known(cached: Sequence[int], prompt: Sequence[int]) -> int:
    return min(sum(token in cached for token in prompt), len(prompt) - 1)


# --- blocks_kept ---------------------------------------------------------------------------------------------------------


def blocks_kept(cached: Sequence[int], prompt: Sequence[int], size: int = 16) -> int:
    """Return how many tokens a cache of whole blocks serves: full blocks of the common prefix, and never the last token."""
    return min(shared_prefix(cached, prompt), len(prompt) - 1) // size * size


def _blocks(shared: int, total: int, size: int, note: str) -> Case:
    cached, prompt = list(range(1000)), [*range(shared), *range(5000, 5000 + total - shared)]
    return Case((cached, prompt, size), blocks_kept(cached, prompt, size), note)


_BLOCKS = (
    _blocks(750, 900, 16, "a change in the middle of a block"),
    _blocks(64, 100, 16, "a change at the start of a block"),
    _blocks(64, 64, 16, "nothing changed, but the last token has to run: three blocks of four"),
    _blocks(65, 65, 16, "one token behind the last full block"),
    _blocks(15, 40, 16, "not one full block in common"),
    _blocks(500, 600, 1, "blocks of one token"),
    _blocks(500, 600, 128, "steps of 128"),
)


def _last_block_too(cached: Sequence[int], prompt: Sequence[int], size: int) -> int:
    return shared_prefix(cached, prompt) // size * size


def _rounded_up(cached: Sequence[int], prompt: Sequence[int], size: int) -> int:
    return -(-min(shared_prefix(cached, prompt), len(prompt) - 1) // size) * size


def _to_the_token(cached: Sequence[int], prompt: Sequence[int], size: int) -> int:
    return kept(cached, prompt)


# --- flops ---------------------------------------------------------------------------------------------------------------


def _flops(layers: int, width: int, weights: int, vocabulary: int, new: int, total: int) -> int:
    return layers * (2 * new * weights + 4 * new * total * width) + 2 * width * vocabulary


def prefill_flops(layers: int, width: int, weights: int, vocabulary: int, new: int, total: int) -> int:
    """Return the operations for `new` tokens at the end of `total`; `weights` are those of one layer."""
    matrices = 2 * new * weights
    attention = 4 * new * total * width
    logits = 2 * width * vocabulary
    return layers * (matrices + attention) + logits


def _only_new(layers: int, width: int, weights: int, vocabulary: int, new: int, total: int) -> int:
    """Let the new tokens look at each other only."""
    return _flops(layers, width, weights, vocabulary, new, new)


def _every_logit(layers: int, width: int, weights: int, vocabulary: int, new: int, total: int) -> int:
    return _flops(layers, width, weights, vocabulary * new, new, total)


def _one_for_two(layers: int, width: int, weights: int, vocabulary: int, new: int, total: int) -> int:
    """Count a multiplication with its addition as one."""
    return _flops(layers, width, weights, vocabulary, new, total) // 2


_TINY = (4, 64, 53_248, 256)
_WORK = tuple(
    Case((*_TINY, new, total), prefill_flops(*_TINY, new, total), note)
    for new, total, note in (
        (1_000, 1_000, "a cold prompt"),
        (50, 1_050, "50 tokens behind 1,000 in the cache"),
        (1, 1_000, "one token of an answer"),
        (1, 1, "a prompt of one token"),
    )
)

EXERCISES = [
    Exercise(
        "kept",
        _KEPT,
        (
            "walk along both lists at once and stop at the first difference",
            "what is equal behind the first difference does not count: it was computed with another past",
            "never return `len(prompt)`: take `min(…, len(prompt) - 1)`, because the answer comes out of the last token",
        ),
        kept,
        {"equal anywhere": _equal_anywhere, "all that is known": _known, "the whole prompt": shared_prefix},
    ),
    Exercise(
        "blocks_kept",
        _BLOCKS,
        (
            "first ask what a cache that is exact to the token would keep",
            "then round down to whole blocks: `// size * size`",
            "keep the order: subtract the last token first, round down afterwards",
        ),
        blocks_kept,
        {"the last token too": _last_block_too, "rounded up": _rounded_up, "to the token": _to_the_token},
    ),
    Exercise(
        "prefill_flops",
        _WORK,
        (
            "three parts: the matrices of a layer, its attention, and at the end the logits",
            "matrices: 2 per weight and new token. Attention: each new token against all tokens, for scores and for values",
            "`layers * (2 * new * weights + 4 * new * total * width) + 2 * width * vocabulary`",
        ),
        prefill_flops,
        {"new tokens alone": _only_new, "logits for every token": _every_logit, "half of it": _one_for_two},
    ),
]
