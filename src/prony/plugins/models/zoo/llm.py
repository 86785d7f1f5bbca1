"""Write a language model of the zoo: a folder without weights, or a GGUF file with seeded ones."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from prony.errors import CapacityError
from prony.plugins.models.lock import made_once
from prony.plugins.models.zoo.llm_cards import LlmCard, tensors
from prony.plugins.models.zoo.llm_onnx import GRAPH, genai_settings, write_onnx_llm
from prony.ports.llm import SEEDED, seeded_values
from prony.ports.models import FOLDER, GENAI_FOLDER, FetchOptions, ModelFiles

_SEED = 7
_SPECIAL = ("<unk>", "<s>", "</s>")
_EPSILON, _ROPE = 1e-5, 10_000.0
_MOST_IN_GRAPH = 300_000_000  # weights: a file of ONNX ends at 2 GiB, and these are in float32
_TEMPLATE = "{% for message in messages %}{{ message.content }}\n{% endfor %}"


def fetch_llm(card: LlmCard, options: FetchOptions) -> ModelFiles:
    """Return the model as a folder or as a GGUF file, whichever the engine loads; a folder has no weights."""
    base = options.cache / "zoo" / f"{card.name}-{card.version}"
    chosen = choose_llm_format(card, options.formats)
    if chosen == FOLDER:
        found = tuple(made_once(base / name, _writer(text)) for name, text in _documents(card).items())
        return ModelFiles(path=base, files=found)
    if chosen == GENAI_FOLDER:
        return _fetch_graph(card, base.with_name(f"{base.name}-onnx"))
    path = made_once(base.with_suffix(".gguf"), lambda part: write_gguf(card, part))
    return ModelFiles(path=path, files=(path,))


def choose_llm_format(card: LlmCard, formats: Sequence[str]) -> str:
    """Return the format in which a model is made for an engine that loads these.

    Raises:
        CapacityError: It cannot be made in any of them, with the code `format_unavailable`.
    """
    found = next((one for one in card.formats if one in formats), "") if formats else FOLDER
    if not found:
        raise CapacityError(
            f"zoo:{card.name} cannot be built as {' or '.join(formats)}",
            hint="use prony llm with an engine for language models", code="format_unavailable",
        )  # fmt: skip
    if found == GENAI_FOLDER and card.parameters > _MOST_IN_GRAPH:
        raise CapacityError(
            f"zoo:{card.name} is too large for one ONNX file",
            hint="use another engine, or zoo:llm-135m, the largest in this format",
            code="format_unavailable",
        )  # fmt: skip
    return found


def _fetch_graph(card: LlmCard, folder: Path) -> ModelFiles:
    """Return the model as a folder of onnxruntime-genai, with its weights in the graph."""
    texts = {name: text for name, text in _documents(card).items() if name != SEEDED}
    texts["genai_config.json"] = json.dumps(genai_settings(card), indent=1)
    found = [made_once(folder / name, _writer(text)) for name, text in texts.items()]

    def write(part: Path) -> None:
        write_onnx_llm(card, part, _SEED, epsilon=_EPSILON, rope=_ROPE)

    return ModelFiles(path=folder, files=(made_once(folder / GRAPH, write), *found))


def _writer(text: str) -> Any:
    def write(part: Path) -> None:
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text)

    return write


def _documents(card: LlmCard) -> dict[str, str]:
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": card.width,
        "num_hidden_layers": card.layers, "num_attention_heads": card.heads, "num_key_value_heads": card.kv_heads,
        "intermediate_size": card.inner, "vocab_size": card.vocabulary, "max_position_embeddings": card.context,
        "rms_norm_eps": _EPSILON, "rope_theta": _ROPE, "tie_word_embeddings": card.is_tied, "bos_token_id": 1,
        "eos_token_id": 2, "torch_dtype": "float32" if card.parameters < 10**9 else "bfloat16",
    }  # fmt: skip
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>",
        "chat_template": _TEMPLATE, "model_max_length": card.context,
    }  # fmt: skip
    return {
        "config.json": json.dumps(config, indent=1), "tokenizer.json": json.dumps(_tokenizer()),
        "tokenizer_config.json": json.dumps(about, indent=1), SEEDED: json.dumps({"seed": _SEED}),
    }  # fmt: skip


@cache
def _merges() -> tuple[str, ...]:
    """Return the merges of a byte-level tokenizer that was trained on Prony's own documentation."""
    return tuple(files(__package__).joinpath("llm_merges.txt").read_text().splitlines())


@cache
def _words() -> tuple[str, ...]:
    return (*_SPECIAL, *sorted(_byte_letters()), *(merge.replace(" ", "") for merge in _merges()))


def _byte_letters() -> list[str]:
    """Return the letter that stands for each byte in byte-level vocabularies: itself where it can be printed."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return [chr(byte) for byte in plain] + [chr(256 + place) for place in range(len(others))]


def _tokenizer() -> dict[str, Any]:
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    special = [
        {"id": place, "content": word, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": True}
        for place, word in enumerate(_SPECIAL)
    ]  # fmt: skip
    vocabulary = {word: place for place, word in enumerate(_words())}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
             "vocab": vocabulary, "merges": [merge.split(" ") for merge in _merges()]}  # fmt: skip
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": level, "post_processor": None, "decoder": level | {"add_prefix_space": True}, "model": model,
    }  # fmt: skip


# GGUF, version 3: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
_ALIGNMENT = 32
_U32, _F32, _TEXT, _LIST, _I32 = 4, 6, 8, 9, 5
_F32_TENSOR, _F16_TENSOR = 0, 1


def write_gguf(card: LlmCard, path: Path) -> None:
    """Write the model as a GGUF file: matrices in float16, norms in float32."""
    listed = [(theirs, ours, shape, len(shape) == 1) for theirs, ours, shape in tensors(card)]
    with path.open("wb") as file:
        pairs = _metadata(card)
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(pairs)))
        for key, (kind, value) in pairs.items():
            file.write(_text(key) + struct.pack("<I", kind) + _value(kind, value))
        offset = 0
        for _, ours, shape, is_norm in listed:
            sizes = struct.pack(f"<{len(shape)}Q", *reversed(shape))
            kind = _F32_TENSOR if is_norm else _F16_TENSOR
            file.write(_text(ours) + struct.pack("<I", len(shape)) + sizes + struct.pack("<IQ", kind, offset))
            offset += _round_to_alignment(int(np.prod(shape)) * (4 if is_norm else 2))
        _pad(file)
        for theirs, _, shape, is_norm in listed:
            values = _reorder_heads(seeded_values(theirs, shape, _SEED), theirs, card)
            file.write(np.ascontiguousarray(values, np.float32 if is_norm else np.float16).tobytes())
            _pad(file)


def _reorder_heads(values: Any, name: str, card: LlmCard) -> Any:
    """Return queries and keys in GGUF's order: the pairs that are rotated together lie side by side there."""
    heads = {"q_proj": card.heads, "k_proj": card.kv_heads}.get(name.rpartition(".weight")[0].rpartition(".")[2])
    if heads is None:
        return values
    rows, columns = values.shape
    return values.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def _metadata(card: LlmCard) -> dict[str, tuple[int, Any]]:
    words = [*_words(), *(f"<unused{place}>" for place in range(card.vocabulary - len(_words())))]
    types = [3 if word in _SPECIAL else 5 if word.startswith("<unused") else 1 for word in words]
    return {
        "general.architecture": (_TEXT, "llama"), "general.name": (_TEXT, card.name),
        "llama.context_length": (_U32, card.context), "llama.embedding_length": (_U32, card.width),
        "llama.block_count": (_U32, card.layers), "llama.feed_forward_length": (_U32, card.inner),
        "llama.attention.head_count": (_U32, card.heads), "llama.attention.head_count_kv": (_U32, card.kv_heads),
        "llama.rope.dimension_count": (_U32, card.width // card.heads), "llama.rope.freq_base": (_F32, _ROPE),
        "llama.attention.layer_norm_rms_epsilon": (_F32, _EPSILON), "llama.vocab_size": (_U32, card.vocabulary),
        "general.file_type": (_U32, 1), "tokenizer.ggml.model": (_TEXT, "gpt2"), "tokenizer.ggml.pre": (_TEXT, "gpt-2"),
        "tokenizer.ggml.tokens": (_LIST, (_TEXT, words)), "tokenizer.ggml.token_type": (_LIST, (_I32, types)),
        "tokenizer.ggml.merges": (_LIST, (_TEXT, _merges())), "tokenizer.ggml.bos_token_id": (_U32, 1),
        "tokenizer.ggml.eos_token_id": (_U32, 2), "tokenizer.chat_template": (_TEXT, _TEMPLATE),
    }  # fmt: skip


def _value(kind: int, value: Any) -> bytes:
    if kind == _TEXT:
        return _text(value)
    if kind == _LIST:
        inner, values = value
        return struct.pack("<IQ", inner, len(values)) + b"".join(_value(inner, one) for one in values)
    return struct.pack({_U32: "<I", _I32: "<i", _F32: "<f"}[kind], value)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _round_to_alignment(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _pad(file: BinaryIO) -> None:
    file.write(b"\0" * (_round_to_alignment(file.tell()) - file.tell()))
