"""A faster but different answer is shown as such."""

from __future__ import annotations

import numpy as np
import pytest

from prony.runner.child.compare import compare_outputs


def array(*values: float, dtype: str = "float32") -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.asarray(values, dtype=dtype)


class TestFloats:
    def test_the_same_answer_has_no_error(self) -> None:
        found = compare_outputs({"y": array(1, 2, 3)}, {"y": array(1, 2, 3)})
        assert (found["finite"], found["compared"], found["note"]) == (True, True, "")
        assert (found["max_abs_error"], found["max_error_of_range"], found["cosine"]) == (0, 0, 1)

    def test_the_error_is_told_absolutely_and_by_the_range_of_the_reference(self) -> None:
        found = compare_outputs({"y": array(0, 5, 10.5)}, {"y": array(0, 5, 10)})
        assert found["max_abs_error"] == pytest.approx(0.5)
        assert found["max_error_of_range"] == pytest.approx(0.05)
        assert 0.99 < found["cosine"] < 1

    def test_the_worst_output_decides(self) -> None:
        good, bad = array(0, 1), array(0, 100)
        found = compare_outputs({"a": good, "b": array(0, 90)}, {"a": good, "b": bad})
        assert found["max_error_of_range"] == pytest.approx(0.1)
        found = compare_outputs({"a": array(1, 0), "b": bad}, {"a": array(0, 1), "b": bad})
        assert found["cosine"] == pytest.approx(0)

    def test_half_precision_is_compared_in_double(self) -> None:
        found = compare_outputs({"y": array(60000, 60000, dtype="float16")}, {"y": array(-60000, 60000)})
        assert found["max_abs_error"] == 120000
        assert found["finite"]

    def test_huge_numbers_keep_their_cosine(self) -> None:
        huge = array(1e300, 2e300, dtype="float64")
        assert compare_outputs({"y": huge}, {"y": huge})["cosine"] == pytest.approx(1)

    def test_a_constant_reference_is_judged_by_its_magnitude(self) -> None:
        # Its cosine with any other constant is 1: without this, a wrong single number would pass.
        found = compare_outputs({"y": array(5, 5)}, {"y": array(4, 4)})
        assert (found["max_abs_error"], found["max_error_of_range"]) == (1, 0.25)
        assert compare_outputs({"y": array(300)}, {"y": array(3)})["max_error_of_range"] == 99
        assert compare_outputs({"y": array(1, 1)}, {"y": array(0, 0)})["max_error_of_range"] is None

    def test_complex_numbers_are_compared(self) -> None:
        one = np.asarray([1 + 1j, 2 - 1j])
        assert compare_outputs({"y": one + 0.5}, {"y": one})["max_abs_error"] == pytest.approx(0.5)


class TestNotFinite:
    def test_a_nan_that_the_reference_lacks_is_infinitely_wrong(self) -> None:
        found = compare_outputs({"y": array(1, np.nan, 3)}, {"y": array(1, 2, 3)})
        assert not found["finite"]
        assert found["compared"]
        assert found["max_abs_error"] == float("inf")
        assert found["note"] == "y: 1 of 3 not finite, 0 in the reference, not the same"

    def test_the_same_infinities_are_no_difference(self) -> None:
        same = array(1, -np.inf, 3)
        found = compare_outputs({"y": same}, {"y": same})
        assert not found["finite"]
        assert found["max_abs_error"] == 0
        assert found["note"].endswith("the same")


class TestMatching:
    def test_other_names_are_matched_by_position_and_said(self) -> None:
        found = compare_outputs({"a": array(1), "b": array(2)}, {"x": array(1), "z": array(2)})
        assert found["compared"]
        assert found["max_abs_error"] == 0
        assert "by position" in found["note"]

    def test_another_count_is_not_compared(self) -> None:
        found = compare_outputs({"a": array(1)}, {"x": array(1), "z": array(2)})
        assert not found["compared"]
        assert found["note"] == "1 outputs, but the reference has 2"

    def test_another_shape_is_not_compared(self) -> None:
        found = compare_outputs({"y": array(1, 2)}, {"y": array(1, 2, 3)})
        assert not found["compared"]
        assert found["max_abs_error"] is None
        assert found["note"] == "y has the shape [2], but the reference has [3]"


class TestOtherKinds:
    def test_whole_numbers_are_told_by_the_share_that_agrees(self) -> None:
        found = compare_outputs({"ids": np.asarray([1, 2, 3, 4])}, {"ids": np.asarray([1, 2, 3, 5])})
        assert found["compared"]
        assert found["max_abs_error"] is None
        assert found["note"] == "ids: 75.00% of 4 elements equal"

    def test_nearly_all_is_never_rounded_to_all(self) -> None:
        ours = np.zeros(10**6, dtype=np.int64)
        theirs = ours.copy()
        theirs[0] = 1
        assert "99.99%" in compare_outputs({"y": ours}, {"y": theirs})["note"]

    def test_text_is_equal_or_not(self) -> None:
        found = compare_outputs({"t": np.asarray(["a", "b"])}, {"t": np.asarray(["a", "c"])})
        assert found["note"] == "t: 50.00% of 2 elements equal"

    def test_an_empty_output_says_nothing(self) -> None:
        found = compare_outputs({"y": array()}, {"y": array()})
        assert (found["compared"], found["max_abs_error"], found["note"]) == (True, None, "")
