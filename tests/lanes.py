"""Which form of a test is run: the short one by `make test`, the thorough one by `make test-slow`.

A test that takes long is marked `slow` where a shorter one tries the same; a property is tried with few examples by the
short form, always the same ones, and with all of them by the thorough one.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

THOROUGH = os.environ.get("PRONY_TEST_THOROUGH") == "1"
_FEW_EXAMPLES = 25


def count_examples(most: int) -> int:
    """Return how many examples of a property to try."""
    return most if THOROUGH else min(most, _FEW_EXAMPLES)


def only_slowly(*values: Any) -> list[Any]:
    """Return parameters that only the thorough form tries, beside others that both try; a tuple is several of one."""
    several = (value if isinstance(value, tuple) else (value,) for value in values)
    return [pytest.param(*each, marks=pytest.mark.slow) for each in several]
