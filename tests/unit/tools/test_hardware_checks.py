"""What the bare hardware's figures count; how fast it is, `benchmarks/hardware.py` says."""

from __future__ import annotations

import os

import pytest

from benchmarks.hardware import rate_copies, rate_products, theory_tflops
from prony.kinds.hardware.child.memory import MemorySuite
from prony.kinds.hardware.child.numpy_gemm import NumpyGemmSuite
from prony.model.device import Cpu


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the memory test needs fork")
def test_a_copy_counts_each_byte_as_read_and_as_written() -> None:
    suite = MemorySuite({"threads": 1, "size": 2**20}, None)
    try:
        copy = next(suite.tests())
        assert copy.value_of(1000.0) == pytest.approx(2 * 2**20 / 1000)
        assert all(ns > 0 for ns in copy.sample(3))
    finally:
        suite.close()


def test_a_product_counts_a_multiplication_and_an_addition_for_each_pair() -> None:
    options = {"precisions": ["fp32"], "shapes": "model", "layers": ["32x48x64"]}
    product = next(NumpyGemmSuite(options, None).tests())
    assert product.value_of(1000.0) == pytest.approx(2 * 32 * 48 * 64 / 1000 / 1e3)
    assert all(ns > 0 for ns in product.sample(3))


def test_rates_by_prony_and_by_hand_are_told_side_by_side() -> None:
    assert all(rate > 0 for rate in (*rate_copies(2**20, 2), *rate_products(64, 2)))


@pytest.mark.parametrize(
    ("cpu", "tflops"),
    [
        (Cpu(model="Intel(R) Xeon(R) Processor @ 2.50GHz", architecture="x86_64", flags=("fma", "avx512f")), 0.32),
        (Cpu(model="AMD EPYC", architecture="x86_64", flags=("fma",), max_mhz=3000), 0.192),
        (Cpu(model="Neoverse-N1", architecture="aarch64", flags=("asimd",)), None),
        (Cpu(model="Old @ 2.00GHz", architecture="x86_64"), None),
    ],
    ids=["clock in its name", "highest clock", "no clock", "no instructions"],
)
def test_theory_needs_a_clock_and_the_instructions(cpu: Cpu, tflops: float | None) -> None:
    assert theory_tflops(cpu, 2) == (None if tflops is None else pytest.approx(tflops))
