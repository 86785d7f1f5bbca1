"""An address that cannot be listened on is told with what to do about its own reason."""

from __future__ import annotations

import errno
import os

import pytest

from prony.errors import CapacityError
from prony.server.listening import _port_taken_error, listening_at


@pytest.mark.parametrize(
    ("port", "code", "hint"),
    [
        (80, errno.EACCES, "use a port above 1023 (--port)"),
        (8000, errno.EADDRNOTAVAIL, "use an address of this machine, such as 127.0.0.1"),
        (8000, errno.EADDRINUSE, "is another server running there? --port 0 takes any free port"),
    ],
)
def test_the_reason_decides_what_to_do(port: int, code: int, hint: str) -> None:
    assert _port_taken_error("127.0.0.1", port, "--port", OSError(code, os.strerror(code))).hint == hint


def test_a_port_that_is_taken_is_told() -> None:
    with listening_at("127.0.0.1", 0) as taken, pytest.raises(CapacityError) as caught:
        listening_at("127.0.0.1", taken.getsockname()[1])
    assert "another server" in caught.value.hint
