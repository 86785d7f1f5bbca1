"""Prony's copies and products beside plain ones, in turns in one process, so that a busy machine slows both."""

from __future__ import annotations

import os

import pytest

from benchmarks.hardware import rate_copies, rate_products, theory_tflops
from prony.model.device import Cpu

# The best of several turns: only a wrong count of bytes, operations or time is farther off than this.
_WIDE = 3.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the memory test needs fork")
def test_a_copy_is_about_as_fast_as_memcpy() -> None:
    ours, by_hand = rate_copies(16 * 2**20, 12)
    assert 1 / _WIDE < ours / by_hand < _WIDE


def test_a_product_is_about_as_fast_as_that_of_numpy() -> None:
    ours, by_hand = rate_products(384, 12)
    assert 1 / _WIDE < ours / by_hand < _WIDE


def test_two_measurements_of_one_product_are_alike() -> None:
    first, second = (rate_products(384, 6)[0] for _ in range(2))
    assert 1 / _WIDE < first / second < _WIDE


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
