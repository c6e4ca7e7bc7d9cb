"""Keys and values of every token that a model has read: the KV cache, open to be looked into and changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agentkit.kv.work import Shape, kept

Array = np.ndarray
_FIRST_ROOM = 64


class KVCache:
    """The keys and values of `tokens`, for every layer. The same class serves the tiny model and the real one."""

    def __init__(self, shape: Shape, dtype: type = np.float64) -> None:
        self.shape = shape
        self.tokens: list[int] = []
        self._keys = np.zeros((shape.layers, shape.kv_heads, _FIRST_ROOM, shape.head_size), dtype)
        self._values = np.zeros_like(self._keys)

    @property
    def keys(self) -> Array:
        """Return the keys as [layer, head, token, number]. Writing into them changes the cache."""
        return self._keys[:, :, : len(self.tokens)]

    @property
    def values(self) -> Array:
        """Return the values as [layer, head, token, number]. Writing into them changes the cache."""
        return self._values[:, :, : len(self.tokens)]

    @property
    def size(self) -> int:
        """Return the bytes that the keys and values take."""
        return self.keys.nbytes + self.values.nbytes

    def reuse(self, prompt: Sequence[int]) -> int:
        """Drop everything behind the longest common prefix with `prompt`, and return how many tokens are kept."""
        n = kept(self.tokens, prompt)
        del self.tokens[n:]
        return n

    def put(self, layer: int, keys: Array, values: Array) -> tuple[Array, Array]:
        """Store what one layer computed for new tokens; return its keys and values for all tokens, old and new.

        The tokens count only after `close`: until then an interruption leaves the cache as it was.
        """
        start, stop = len(self.tokens), len(self.tokens) + keys.shape[1]
        self._make_room(stop)
        self._keys[layer, :, start:stop], self._values[layer, :, start:stop] = keys, values
        return self._keys[layer, :, :stop], self._values[layer, :, :stop]

    def close(self, tokens: Sequence[int]) -> None:
        """Say that all layers have stored what belongs to `tokens`."""
        self.tokens += tokens

    def copy(self) -> KVCache:
        """Return a cache of its own with the same content."""
        other = KVCache(self.shape)
        other.tokens, other._keys, other._values = list(self.tokens), self._keys.copy(), self._values.copy()
        return other

    def _make_room(self, tokens: int) -> None:
        # Doubling: a cache that grew by one token at a time would be copied for each of them.
        while self._keys.shape[2] < tokens:
            self._keys, self._values = (np.concatenate((a, np.zeros_like(a)), axis=2) for a in (self._keys, self._values))

    def __repr__(self) -> str:
        layers, heads, tokens, size = self.keys.shape
        return f"KVCache: {tokens} tokens, {layers} layers, {heads} heads of {size} numbers"
