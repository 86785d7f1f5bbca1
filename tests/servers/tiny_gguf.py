"""Write a GGUF file of a byte-level Llama with random weights. Run where `gguf` and numpy are installed."""

import sys

import gguf  # type: ignore[import-not-found]
import numpy as np

WIDTH, LAYERS, HEADS, INNER, CONTEXT = 64, 2, 4, 128, 2048
# The whole vocabulary: nothing, begin, end, and every byte.
TOKENS = [b"<unk>", b"<s>", b"</s>", *(b"<0x%02X>" % byte for byte in range(256))]
TYPES = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}"


def main(path: str) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.0] * len(TOKENS))
    writer.add_token_types(TYPES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(TEMPLATE)
    for name, shape in shapes().items():
        writer.add_tensor(name, values(name, shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def shapes() -> dict[str, tuple[int, ...]]:
    square = (WIDTH, WIDTH)
    found: dict[str, tuple[int, ...]] = {"token_embd.weight": (len(TOKENS), WIDTH)}
    for layer in range(LAYERS):
        parts = {
            **{f"attn_{part}": square for part in ("q", "k", "v", "output")},
            "attn_norm": (WIDTH,),
            "ffn_norm": (WIDTH,),
            "ffn_gate": (INNER, WIDTH),
            "ffn_up": (INNER, WIDTH),
            "ffn_down": (WIDTH, INNER),
        }
        found |= {f"blk.{layer}.{part}.weight": shape for part, shape in parts.items()}
    return found | {"output_norm.weight": (WIDTH,), "output.weight": (len(TOKENS), WIDTH)}


def values(name: str, shape: tuple[int, ...]) -> np.ndarray:
    if "norm" in name:
        return np.ones(shape, dtype=np.float32)
    return np.random.default_rng(len(name)).normal(0, 0.05, shape).astype(np.float32)


if __name__ == "__main__":
    main(sys.argv[1])
