"""What a test lacks in, a skip with the reason out, or a failure where it must be there."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def lack(what: str, reason: str) -> NoReturn:
    """Skip the test, or fail it where what it lacks must be there."""
    if what in os.environ.get("PRONY_TEST_REQUIRES", "").split(","):
        pytest.fail(f"required, but {reason}")
    pytest.skip(reason)
