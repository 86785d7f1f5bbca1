"""The lists in which Dumont workers look for jobs and leave results, whoever keeps them: a Redis, or this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Queues(Protocol):
    """What fails because the lists cannot be reached is a TransportError; nothing of it was done, or all of it."""

    # Is a job lent in the moment in which it is taken? Then what is in no list, and not lent, was never taken.
    is_exact: bool

    async def push(self, queue: str, job_ids: Sequence[str]) -> None:
        """Add jobs behind those that wait."""
        ...

    async def remove(self, queue: str, job_ids: Sequence[str]) -> None:
        """Take jobs out wherever they stand; those that are not there do no harm."""
        ...

    async def contents(self, queues: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the jobs that wait in each."""
        ...

    async def sizes(self, queues: Sequence[str]) -> dict[str, int]: ...

    async def results(self, most: int) -> tuple[bytes, ...]:
        """Return reports, the oldest first, and leave them where they are."""
        ...

    async def forget_result(self, report: bytes) -> None:
        """Take out one report, which is kept elsewhere now."""
        ...

    async def clear(self, queues: Sequence[str]) -> None: ...

    async def describe(self) -> dict[str, object]:
        """Return where the lists are, and whether they answer."""
        ...

    async def close(self) -> None: ...
