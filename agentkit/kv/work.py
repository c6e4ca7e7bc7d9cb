"""What the law of the cache says, without running anything: how much is kept, and how much work is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """The sizes of a transformer. `kv_heads` heads share their keys and values among `heads` heads of queries."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int

    @property
    def head_size(self) -> int:
        """Return how many numbers one head's query, key or value has."""
        return self.width // self.heads

    @property
    def layer_weights(self) -> int:
        """Return the weights in the matrices of one layer: attention (q, k, v, o) and the three of the feed-forward part."""
        narrow = self.kv_heads * self.head_size
        return 2 * self.width * self.width + 2 * self.width * narrow + 3 * self.width * self.hidden

    @property
    def cache_numbers(self) -> int:
        """Return how many numbers the cache holds for one token: a key and a value per layer and shared head."""
        return 2 * self.layers * self.kv_heads * self.head_size


def shared_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many first tokens `a` and `b` have in common."""
    size = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        size += 1
    return size


def kept(cached: Sequence[int], prompt: Sequence[int]) -> int:
    """Return how many tokens of `prompt` a cache that holds `cached` can serve.

    It is the longest common prefix, but never the whole prompt: the answer comes out of the last token, so it has to run.
    """
    return min(shared_prefix(cached, prompt), max(0, len(prompt) - 1))


def flops(shape: Shape, new: int, total: int) -> int:
    """Return the multiplications and additions for `new` tokens at the end of a prompt of `total` tokens.

    Matrices: 2 per weight and new token. Attention: every new token against all tokens, once for scores and once for values.
    At the end, logits for the last token only. What the mask throws away is counted, because it is computed.
    """
    matrices = 2 * new * shape.layer_weights
    attention = 4 * new * total * shape.width
    return shape.layers * (matrices + attention) + 2 * shape.width * shape.vocabulary


def work_ratio(shape: Shape, total: int, cached: int) -> float:
    """Return the work for a prompt of `total` tokens, `cached` of them kept, as a share of the work for all of it."""
    return flops(shape, total - cached, total) / flops(shape, total, total)
