"""Bootstrap intervals over items: seeded, as wide as scipy's, and paired."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy

from prony.stats.bootstrap import bootstrap_difference, bootstrap_mean, bootstrap_ratio

DOCUMENTS = np.random.default_rng(36).normal(0.4, 0.1, 36)


def test_ten_thousand_resamples_of_36_documents_take_less_than_a_second_of_cpu() -> None:
    before = time.process_time()
    bootstrap_mean(DOCUMENTS)
    assert time.process_time() - before < 1.0


def test_the_same_numbers_give_the_same_interval() -> None:
    assert bootstrap_mean(DOCUMENTS) == bootstrap_mean(DOCUMENTS.copy())


@pytest.mark.parametrize("draw", ["normal", "exponential"])
def test_the_interval_is_about_scipys(draw: str) -> None:
    values = getattr(np.random.default_rng(7), draw)(size=40) + 5
    found = bootstrap_mean(values)
    known = scipy.stats.bootstrap((values,), np.mean, n_resamples=10_000, rng=1).confidence_interval
    assert found.low == pytest.approx(known.low, abs=0.02 * values.std())
    assert found.high == pytest.approx(known.high, abs=0.05 * values.std())


def test_pairs_take_out_how_hard_the_items_are() -> None:
    rng = np.random.default_rng(3)
    better = DOCUMENTS + 0.02 + rng.normal(0, 0.01, 36)
    found, alone = bootstrap_difference(DOCUMENTS, better), bootstrap_mean(DOCUMENTS)
    assert found.low is not None
    assert found.high is not None
    assert alone.low is not None
    assert alone.high is not None
    assert found.low > 0
    assert found.high - found.low < (alone.high - alone.low) / 5
    ratio = bootstrap_ratio(DOCUMENTS, better)
    assert ratio.value == pytest.approx(better.mean() / DOCUMENTS.mean())
    assert ratio.low is not None
    assert ratio.low > 1


def test_equal_items_have_an_interval_of_no_width_and_two_items_have_none() -> None:
    assert bootstrap_difference(DOCUMENTS, DOCUMENTS) == (0.0, 0.0, 0.0)
    assert bootstrap_mean(np.array([0.1, 0.2])).low is None
    assert bootstrap_ratio(np.zeros(5), np.ones(5)).low is None
