"""A busy machine is described by who uses it, and waited for no longer than was asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from prony.instruments.quiet import describe_others, wait_until_quiet
from prony.model.result import Noise

BUSY = Noise(foreign_cpu=0.46, busiest={"make": 0.24, "cc1": 0.2}, window_s=1.0, cpu_resolution=0.02)
QUIET = Noise(foreign_cpu=0.01, busiest={"make": 0.01}, window_s=1.0, cpu_resolution=0.02)


def test_who_uses_the_cpu_is_named_with_shares() -> None:
    assert describe_others(BUSY) == "other programs use 46% of the CPU (make 24%, cc1 20%)"
    assert describe_others(QUIET) == ""
    assert "the hypervisor took 30.0% of the CPU (limit: 1%)" in describe_others(Noise(foreign_cpu=0.0, steal=0.3))


@pytest.mark.parametrize(
    ("seen", "limit_s", "is_quiet", "looks"),
    [
        ((QUIET,), 60, True, 3),
        ((BUSY, BUSY, QUIET), 60, True, 5),
        ((BUSY, QUIET, QUIET, BUSY, QUIET), 60, True, 7),  # a pause is not enough
        ((BUSY,), 10, False, 10),
    ],
)
def test_a_quiet_machine_is_waited_for(seen: Sequence[Noise], limit_s: float, looks: int, *, is_quiet: bool) -> None:
    def each() -> Iterator[Noise]:
        yield from seen
        while True:
            yield seen[-1]

    passed, told, coming = [0.0], [], each()

    def look() -> Noise:
        passed[0] += 1
        return next(coming)

    found = wait_until_quiet(
        limit_s, look=look, now_s=lambda: passed[0], say=lambda text, left: told.append((text, left))
    )
    assert found is is_quiet
    assert passed[0] == looks
    assert all("make 24%" in text and 0 <= left < limit_s for text, left in told)
