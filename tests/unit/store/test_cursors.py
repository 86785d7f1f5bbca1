"""What a page gives to go on with is read back, and nothing else is."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.errors import InputError
from prony.store.cursors import read_instant, read_number, write_instant

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@given(st.timedeltas(timedelta(0), timedelta(days=9000)), st.from_regex(r"[A-Za-z0-9._-]{0,60}", fullmatch=True))
def test_an_instant_and_a_name_are_read_back(after: timedelta, name: str) -> None:
    assert read_instant(write_instant(AT + after, name)) == (AT + after, name)


@pytest.mark.parametrize(
    "text",
    ["", "?", "é", write_instant(AT)[:-5], write_instant(AT, "a b"), write_instant(datetime(2026, 3, 1), "a"),  # noqa: DTZ001
     base64.urlsafe_b64encode(b"yesterday a").decode()],
)  # fmt: skip
def test_what_is_no_place_in_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a valid cursor") as caught:
        read_instant(text)
    assert caught.value.code == "bad_cursor"


@pytest.mark.parametrize("text", ["", "-1", "1.5", "²", "9" * 19, "x" * 500])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_number(text)
    assert len(str(caught.value)) < 200
    assert read_number("9" * 18) == 10**18 - 1
