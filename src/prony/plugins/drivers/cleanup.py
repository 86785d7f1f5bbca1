"""Call a clean-up function when a block fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from prony.errors import PronyError


@contextmanager
def clean_up_on_failure(finish: Callable[[], None]) -> Iterator[None]:
    """Run the block; where it fails, call `finish`, whose own failure tells less than the first."""
    try:
        yield
    except BaseException:
        with suppress(PronyError, OSError):
            finish()
        raise
