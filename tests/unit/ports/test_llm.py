"""What a user reads of a language model that an engine could not load."""

from __future__ import annotations

import pytest

from prony.ports.llm import describe_load_failure


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("std::bad_alloc", "out of memory (std::bad_alloc)"),
        ("load of m.onnx failed: std::bad_alloc", "load of m.onnx failed: out of memory (std::bad_alloc)"),
        (
            "[enforce fail at alloc_cpu.cpp:113] data. DefaultCPUAllocator: not enough memory: you asked for 8.",
            "DefaultCPUAllocator: not enough memory: you asked for 8",
        ),
        ("CUDA out of memory. Tried to allocate 2.00 GiB\nmore", "CUDA out of memory. Tried to allocate 2.00 GiB"),
    ],
)  # fmt: skip
def test_lack_of_memory_is_told_in_words_and_not_as_a_damaged_model(said: str, reason: str) -> None:
    found = describe_load_failure("engine", "model", said)
    assert found.code == "out_of_memory"
    assert found.message == f"engine cannot load model: {reason}"
    assert "more memory" in str(found.hint)


def test_another_reason_is_a_damaged_model() -> None:
    found = describe_load_failure("engine", "model", "size mismatch for lm_head.weight.")
    assert found.code == "damaged_model"
    assert found.message == "engine cannot load model: size mismatch for lm_head.weight"
