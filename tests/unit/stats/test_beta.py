"""The distributions of the incomplete beta function are scipy's, for few and for many degrees of freedom."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from prony.stats.beta import binomial_cdf, f_survival, incomplete_beta, student_cdf, student_quantile

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("freedom", [1, 2, 2.5, 7.3, 30, 499, 500, 5_000, 10_000_000])
def test_students_probability_is_scipys(freedom: float) -> None:
    for t in (-40.0, -6.5, -2.0, -0.3, -1e-5, 0.0, 0.7, 3.0):
        assert student_cdf(freedom, t) == pytest.approx(float(scipy.special.stdtr(freedom, t)), rel=1e-9, abs=1e-290)


@pytest.mark.parametrize("freedom", [1, 2, 3, 30, 499, 500, 5_000, 10_000_000])
@pytest.mark.parametrize("share", [0.0005, 0.3, 0.5, 0.95, 0.975, 0.995, 0.99999])
def test_students_quantile_is_scipys(freedom: int, share: float) -> None:
    assert student_quantile(freedom, share) == pytest.approx(float(scipy.special.stdtrit(freedom, share)), rel=1e-9)


def test_the_binomial_probability_is_scipys() -> None:
    for trials in (1, 2, 10, 333, 24_576, 270_336):
        for share in (0.001, 0.01, 0.1, 0.5):
            middle, spread = trials * share, np.sqrt(trials * share * (1 - share))
            for at in np.clip(RNG.normal(middle, 3 * spread + 1, 20), 0, trials).astype(int):
                expected = float(scipy.special.bdtr(int(at), trials, share))
                assert binomial_cdf(int(at), trials, share) == pytest.approx(expected, rel=1e-8, abs=1e-12)


def test_the_tail_of_f_is_scipys() -> None:
    for _ in range(300):
        above, below = (int(value) for value in np.exp(RNG.uniform(0, 7, 2)))
        f = float(np.exp(RNG.normal(0, 1)))
        assert f_survival(above, below, f) == pytest.approx(
            float(scipy.special.fdtrc(above, below, f)), rel=1e-9, abs=1e-280
        )


def test_the_incomplete_beta_function_is_scipys_and_ends_at_zero_and_one() -> None:
    assert (incomplete_beta(2, 3, 0.0, 1.0), incomplete_beta(2, 3, 1.0, 0.0)) == (0.0, 1.0)
    for _ in range(300):
        a, b = (float(value) for value in np.exp(RNG.uniform(-2, 9, 2)))
        x = float(np.clip(RNG.normal(a / (a + b), np.sqrt(a * b / (a + b)) / (a + b)), 1e-9, 1 - 1e-9))
        assert incomplete_beta(a, b, x, 1 - x) == pytest.approx(
            float(scipy.special.betainc(a, b, x)), rel=1e-9, abs=1e-12
        )
