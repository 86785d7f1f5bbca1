"""Codes of failures that an older Prony wrote are read by their names of today."""

from __future__ import annotations

import pytest

from prony.error_codes import ERROR_CODES, RENAMED_CODES
from prony.model.result import Failure


@pytest.mark.parametrize(("old", "new"), RENAMED_CODES.items())
def test_a_stored_failure_with_an_old_code_is_read_with_the_new_one(old: str, new: str) -> None:
    assert Failure.read({"code": old, "message": "it ended", "hint": "h"}).code == new
    assert Failure.read_json(f'{{"code": "{old}", "message": "it ended"}}').code == new
    assert new in ERROR_CODES
    assert old not in ERROR_CODES


def test_a_code_that_was_never_renamed_stays() -> None:
    assert Failure.read({"code": "crash", "message": "it ended"}).code == "crash"
    assert Failure.read({"code": "of_a_plugin", "message": "it ended"}).code == "of_a_plugin"
