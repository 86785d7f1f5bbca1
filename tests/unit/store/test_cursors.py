"""What a page gives to go on with is read back, and nothing else is."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.errors import InputError
from prony.store.cursors import read_number_cursor, read_time_cursor, write_time_cursor

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@given(st.timedeltas(timedelta(0), timedelta(days=9000)), st.from_regex(r"[A-Za-z0-9._-]{0,60}", fullmatch=True))
def test_an_instant_and_a_name_are_read_back(after: timedelta, name: str) -> None:
    assert read_time_cursor(write_time_cursor(AT + after, name)) == (AT + after, name)


NAIVE = datetime(2026, 3, 1)  # noqa: DTZ001 - a time without its zone
NO_TIME = base64.urlsafe_b64encode(b"yesterday a").decode()
STRANGE = [write_time_cursor(AT)[:-5], write_time_cursor(AT, "a b"), write_time_cursor(NAIVE, "a"), NO_TIME]


@pytest.mark.parametrize("text", ["", "?", "é", *STRANGE])
def test_what_is_no_place_in_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a valid cursor") as caught:
        read_time_cursor(text)
    assert caught.value.code == "bad_cursor"


@pytest.mark.parametrize("text", ["", "-1", "1.5", "²", "9" * 19, "x" * 500])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_number_cursor(text)
    assert len(str(caught.value)) < 200
    assert read_number_cursor("9" * 18) == 10**18 - 1
