"""Cards of the zoo's language models: Llama's architecture from a million to eight thousand million weights.

Nothing is built or imported to list them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from prony.ports.models import FOLDER, GENAI_FOLDER


@dataclass(frozen=True)
class LlmCard:
    """One language model of the zoo. `is_tied`: the output uses the weights of the embedding."""

    name: str
    description: str
    width: int
    layers: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    context: int
    is_tied: bool = False
    version: int = 1
    formats: ClassVar[tuple[str, ...]] = (FOLDER, ".gguf", GENAI_FOLDER)

    @property
    def parameters(self) -> int:
        return sum(prod(shape) for _, _, shape in tensors(self))

    @property
    def size_bytes(self) -> int:
        """The weights as a GGUF file has them."""
        return 2 * self.parameters

    @property
    def macs(self) -> int:
        """Multiply-accumulates for one token, in its matrix products."""
        return self.parameters - (0 if self.is_tied else self.vocabulary * self.width)


_CARDS = (
    LlmCard("llm-1m", "Llama, 4 layers of 128, for tests", 128, 4, 4, 2, 384, 2048, 2048),
    LlmCard("llm-15m", "Llama, 8 layers of 384", 384, 8, 6, 2, 1024, 2048, 4096),
    LlmCard("llm-135m", "the shape of SmolLM2 135M", 576, 30, 9, 3, 1536, 49_152, 8192, is_tied=True),
    LlmCard("llm-1b", "the shape of Llama 3.2 1B", 2048, 16, 32, 8, 8192, 128_256, 131_072, is_tied=True),
    LlmCard("llm-3b", "the shape of Llama 3.2 3B", 3072, 28, 24, 8, 8192, 128_256, 131_072, is_tied=True),
    LlmCard("llm-8b", "the shape of Llama 3.1 8B", 4096, 32, 32, 8, 14_336, 128_256, 131_072),
)
LLM_ZOO: Mapping[str, LlmCard] = {card.name: card for card in _CARDS}


def tensors(card: LlmCard) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Return every tensor: its name in Hugging Face's layout, in GGUF, and its shape, rows first."""
    head = card.width // card.heads
    square, narrow, wide = (card.width, card.width), (card.kv_heads * head, card.width), (card.inner, card.width)
    yield "model.embed_tokens.weight", "token_embd.weight", (card.vocabulary, card.width)
    for layer in range(card.layers):
        parts: dict[tuple[str, str], tuple[int, ...]] = {
            ("input_layernorm", "attn_norm"): (card.width,), ("self_attn.q_proj", "attn_q"): square,
            ("self_attn.k_proj", "attn_k"): narrow, ("self_attn.v_proj", "attn_v"): narrow,
            ("self_attn.o_proj", "attn_output"): square, ("post_attention_layernorm", "ffn_norm"): (card.width,),
            ("mlp.gate_proj", "ffn_gate"): wide, ("mlp.up_proj", "ffn_up"): wide,
            ("mlp.down_proj", "ffn_down"): wide[::-1],
        }  # fmt: skip
        for (theirs, short), shape in parts.items():
            yield f"model.layers.{layer}.{theirs}.weight", f"blk.{layer}.{short}.weight", shape
    yield "model.norm.weight", "output_norm.weight", (card.width,)
    if not card.is_tied:
        yield "lm_head.weight", "output.weight", (card.vocabulary, card.width)
