"""Student's test of a ratio agrees with scipy's where nothing is cut, and one outlier does not hide a change."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from prony.stats.student import paired_student_ratio_p, student_ratio_p


@pytest.mark.parametrize("sizes", [(5, 5), (6, 11)])
def test_without_outliers_it_is_welchs_test_of_logarithms(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    before, after = (np.exp(rng.uniform(-0.1, 0.1, size)) for size in sizes)
    wanted = scipy.stats.ttest_ind(np.log(before), np.log(after), equal_var=False).pvalue
    assert student_ratio_p(before, after) == pytest.approx(wanted)


def test_without_outliers_it_is_the_paired_test_of_logarithms() -> None:
    rng = np.random.default_rng(3)
    before, after = np.exp(rng.uniform(-0.1, 0.1, (2, 9)))
    assert paired_student_ratio_p(before, after) == pytest.approx(
        scipy.stats.ttest_rel(np.log(before), np.log(after)).pvalue
    )


def test_one_outlier_does_not_hide_a_doubled_metric() -> None:
    before, after = np.array([1.0, 1.01, 0.99, 1.02, 1.8]), np.array([2.0, 2.02, 1.98, 2.01, 2.03])
    assert scipy.stats.ttest_ind(np.log(before), np.log(after)).pvalue > 0.0005
    assert student_ratio_p(before, after) < 1e-6


def test_numbers_without_noise_differ_surely_or_not_at_all() -> None:
    same, other = np.full(5, 2.0), np.full(5, 3.0)
    assert student_ratio_p(same, same) == 1.0
    assert student_ratio_p(same, other) == 0.0
