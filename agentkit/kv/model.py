"""A causal transformer in numpy, of the kind that Llama and SmolLM2 are, with and without a KV cache.

One pass: tokens become vectors; in every layer each token looks at itself and at the tokens before it (attention), then is
worked on by itself (feed-forward); the last vector is compared with every token of the vocabulary. `tiny` fills it with
random numbers, `agentkit.kv.smollm2` with the weights of a real model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agentkit.kv.cache import Array, KVCache
from agentkit.kv.work import Shape


@dataclass(frozen=True)
class Layer:
    """The weights of one layer. A matrix is multiplied from the right: a row of numbers in, a row of numbers out."""

    before_attention: Array
    query: Array
    key: Array
    value: Array
    out: Array
    before_feed_forward: Array
    gate: Array
    up: Array
    down: Array


class Transformer:
    """A model: shape, weights, and the one method that matters, `forward`.

    `flops` counts every multiplication and addition of the matrix products since it was last set to 0.
    """

    def __init__(
        self, shape: Shape, embedding: Array, layers: Sequence[Layer], last_norm: Array, base: float = 1e4, eps: float = 1e-5
    ) -> None:
        self.shape, self.embedding, self.layers, self.last_norm, self.eps = shape, embedding, layers, last_norm, eps
        # RoPE: pairs of numbers are turned by an angle that grows with the position, each pair at a speed of its own.
        self.speeds = base ** (-np.arange(0, shape.head_size, 2) / shape.head_size)
        self.flops = 0

    def cache(self) -> KVCache:
        """Return an empty cache for this model."""
        return KVCache(self.shape, self.embedding.dtype.type)

    def forward(self, tokens: Sequence[int], cache: KVCache | None = None) -> Array:
        """Run only `tokens`; what stands before them is read from `cache`. Return the logits after the last token.

        Without a cache `tokens` are the whole prompt. Raises `ValueError` for no token, or one outside the vocabulary.
        """
        self._check(tokens)
        cache = self.cache() if cache is None else cache
        positions = len(cache.tokens) + np.arange(len(tokens))
        x = self.embedding[np.asarray(tokens)]
        for number, layer in enumerate(self.layers):
            x = x + self._attention(number, layer, self._norm(x, layer.before_attention), positions, cache)
            x = x + self._feed_forward(layer, self._norm(x, layer.before_feed_forward))
        cache.close(tokens)
        return self._times(self._norm(x[-1:], self.last_norm), self.embedding.T)[0]

    def prefill(self, prompt: Sequence[int], cache: KVCache) -> Array:
        """Read `prompt`, computing only what `cache` cannot serve. Return the logits after its last token."""
        self._check(prompt)
        return self.forward(prompt[cache.reuse(prompt) :], cache)

    def generate(self, prompt: Sequence[int], count: int, cache: KVCache | None = None) -> list[int]:
        """Return the `count` tokens that follow `prompt`, each the likeliest. Without a cache, all is run each time."""
        answer: list[int] = []
        for _ in range(count):
            sent = [*prompt, *answer]
            logits = self.forward(sent) if cache is None else self.prefill(sent, cache)
            answer.append(int(logits.argmax()))
        return answer

    def _attention(self, number: int, layer: Layer, x: Array, positions: Array, cache: KVCache) -> Array:
        shape, new = self.shape, len(x)
        queries = self._turn(self._heads(self._times(x, layer.query), shape.heads), positions)
        keys = self._turn(self._heads(self._times(x, layer.key), shape.kv_heads), positions)
        values = self._heads(self._times(x, layer.value), shape.kv_heads)
        keys, values = cache.put(number, keys, values)
        # Heads that share keys stand behind one another, so each group is one matrix.
        grouped = queries.reshape(shape.kv_heads, -1, shape.head_size)
        scores = self._times(grouped, keys.transpose(0, 2, 1)) * queries.dtype.type(shape.head_size**-0.5)
        later = np.arange(keys.shape[1]) > positions[:, None]  # causal: nobody looks at what comes after it
        scores = np.where(later, -np.inf, scores.reshape(shape.kv_heads, -1, new, keys.shape[1]))
        mixed = self._times(softmax(scores).reshape(shape.kv_heads, -1, keys.shape[1]), values)
        return self._times(mixed.reshape(shape.heads, new, -1).transpose(1, 0, 2).reshape(new, -1), layer.out)

    def _feed_forward(self, layer: Layer, x: Array) -> Array:
        gate = self._times(x, layer.gate)
        open_by = (1 + np.tanh(gate / 2)) / 2  # the logistic function, in a form that does not overflow
        return self._times(gate * open_by * self._times(x, layer.up), layer.down)

    def _heads(self, x: Array, heads: int) -> Array:
        return x.reshape(len(x), heads, -1).transpose(1, 0, 2)

    def _norm(self, x: Array, weight: Array) -> Array:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(self.eps)) * weight

    def _turn(self, x: Array, positions: Array) -> Array:
        angles = (positions[:, None] * self.speeds).astype(x.dtype)
        cos, sin, even, odd = np.cos(angles), np.sin(angles), x[..., ::2], x[..., 1::2]
        return np.stack((even * cos - odd * sin, even * sin + odd * cos), axis=-1).reshape(x.shape)

    def _times(self, a: Array, b: Array) -> Array:
        self.flops += 2 * a.size * b.shape[-1]
        return a @ b

    def _check(self, tokens: Sequence[int]) -> None:
        if len(tokens) == 0:
            raise ValueError("no tokens to run; give at least one")
        if min(tokens) < 0 or max(tokens) >= self.shape.vocabulary:
            raise ValueError(f"a token is not in the vocabulary; give numbers from 0 to {self.shape.vocabulary - 1:,}")


def softmax(scores: Array) -> Array:
    """Return shares that add up to 1 along the last axis, larger for larger scores."""
    shares = scores - scores.max(-1, keepdims=True)
    np.exp(shares, out=shares)  # in place: for a long prompt these are the largest numbers of all
    shares /= shares.sum(-1, keepdims=True)
    return shares


TINY = Shape(layers=4, width=64, heads=4, kv_heads=4, hidden=192, vocabulary=256)
"""Small enough to run in a moment. A token is a byte of UTF-8, so that it needs no vocabulary file."""


def tiny(seed: int = 0, shape: Shape = TINY) -> Transformer:
    """Return a model of random weights: its text is noise, its cache obeys the same law as a large one's."""
    # RandomState's numbers are frozen; those of the newer generators may change with a version of numpy.
    random = np.random.RandomState(seed)

    def matrix(rows: int, columns: int) -> Array:
        return random.standard_normal((rows, columns)) / np.sqrt(rows)

    width, narrow, ones = shape.width, shape.kv_heads * shape.head_size, np.ones(shape.width)
    embedding = random.standard_normal((shape.vocabulary, width))
    attention = ((width, width), (width, narrow), (width, narrow), (width, width))
    feed_forward = ((width, shape.hidden), (width, shape.hidden), (shape.hidden, width))
    layers = [
        Layer(ones, *(matrix(*size) for size in attention), ones, *(matrix(*size) for size in feed_forward))
        for _ in range(shape.layers)
    ]
    return Transformer(shape, embedding, layers, ones)


def encode(text: str) -> list[int]:
    """Return `text` as tokens for the tiny model: its bytes in UTF-8."""
    return list(text.encode("utf-8"))
