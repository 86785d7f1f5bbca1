"""Quantities as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from prony.model.quantity import DurationNs, Share, SizeBytes, duration_text, share_text, size_text

DURATION: TypeAdapter[int] = TypeAdapter(DurationNs)
SIZE: TypeAdapter[int] = TypeAdapter(SizeBytes)
SHARE: TypeAdapter[float] = TypeAdapter(Share)


@given(st.integers(1, 2**63 - 1))
def test_a_duration_and_a_size_read_back_as_written(value: int) -> None:
    assert DURATION.validate_python(duration_text(value)) == value
    assert SIZE.validate_python(size_text(value)) == value


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_a_share_reads_back_as_exactly_the_same_float(value: float) -> None:
    assert SHARE.validate_python(share_text(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("60s", 60 * 10**9), ("1.5 h", 5400 * 10**9), ("0.1s", 10**8), ("250us", 250_000), (" 2d ", 172800 * 10**9)]
)  # fmt: skip
def test_durations_are_exact(text: str, value: int) -> None:
    assert DURATION.validate_python(text) == value


@pytest.mark.parametrize(("text", "value"), [("2GiB", 2**31), ("2GB", 2 * 10**9), ("1.5KiB", 1536), ("7B", 7)])
def test_sizes_are_exact(text: str, value: int) -> None:
    assert SIZE.validate_python(text) == value


@pytest.mark.parametrize(
    "value", [60, 60.0, True, None, "60", "60 seconds", "1h30m", "-5s", "0s", "9" * 30 + "s", "٣s", [], "5s\n5"]
)
def test_what_is_no_duration_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        DURATION.validate_python(value)


@pytest.mark.parametrize("value", [0.02, 2, "2", "0%", "100%", "-1%", "9" * 400 + "%"])
def test_what_is_no_share_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        SHARE.validate_python(value)


def test_a_bare_number_is_answered_with_what_to_write() -> None:
    with pytest.raises(ValidationError, match="write 60s, not 60"):
        DURATION.validate_python(60)
    with pytest.raises(ValidationError, match="write 512MiB, not 512"):
        SIZE.validate_python(512)
    with pytest.raises(ValidationError, match=r"write 2%, not 0\.02"):
        SHARE.validate_python(0.02)
