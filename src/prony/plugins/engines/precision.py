"""Name the precision that a model computes in, from the types of its weights or layers."""

from __future__ import annotations

from collections.abc import Mapping

# What engines and formats call each type. Integers wider than a byte hold shapes and indices, not weights.
WORDS: Mapping[str, str] = {
    "float": "fp32",
    "float32": "fp32",
    "f32": "fp32",
    "double": "fp64",
    "float64": "fp64",
    "f64": "fp64",
    "float16": "fp16",
    "f16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "bf16": "bf16",
    "int8": "int8",
    "uint8": "int8",
    "i8": "int8",
    "u8": "int8",
    "int4": "int4",
    "uint4": "int4",
    "i4": "int4",
    "u4": "int4",
}


def of_weights(counts: Mapping[str, int]) -> str | None:
    """Return the precision that nearly all elements have; `mixed` where there is none, None where nothing tells.

    In a quantised model the scales and biases stay wide, so half of the elements is enough to name it.
    """
    by_word: dict[str, int] = {}
    for dtype, count in counts.items():
        word = WORDS.get(dtype.lower())
        if word is not None:
            by_word[word] = by_word.get(word, 0) + count
    total = sum(by_word.values())
    if not total:
        return None
    word = max(by_word, key=lambda each: by_word[each])
    needed = 0.5 if word in ("int8", "int4") else 0.9
    return word if by_word[word] >= needed * total else "mixed"


def format_shares(counts: Mapping[str, int]) -> str:
    """Return shares as a person reads them: `f16 90%, f32 10%`."""
    total = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{dtype} {count / total:.0%}" for dtype, count in ordered)
