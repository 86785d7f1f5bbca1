"""The seam of executors: what goes to machines that others own, and brings results back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from prony.model.target import CheckLine, Handle, Observation, Payload, Target
from prony.ports.clock import Clock


@dataclass(frozen=True)
class ExecutorSite:
    """What an executor may use: a folder of this home for its sockets, and the time."""

    folder: Path
    clock: Clock


@dataclass(frozen=True)
class Interpreter:
    """The Python of a target: as in 3.11, x86_64, glibc."""

    version: str
    machine: str
    libc: str

    @property
    def tag(self) -> str:
        """What tells one build of Prony from another, as part of a folder's name."""
        return f"py{self.version.replace('.', '')}-{self.machine}-{self.libc}"


# Returns a tar archive of the packages that the interpreter can import: Prony with these extras.
BuildPackages = Callable[[Interpreter, Sequence[str]], Path]


class Executor(Protocol):
    """Verbs that are all blocking and safe to repeat. One object goes to one target.

    Every verb raises a TransportError where the target is not reached, and then nothing is known of what it did.
    """

    Options: ClassVar[type[Any]]
    joins_nodes: ClassVar[bool]  # may a payload ask for several nodes, which share its folder and reach each other?

    def __init__(self, target: Target, site: ExecutorSite) -> None: ...

    def check(self) -> list[CheckLine]:
        """Look at what the target offers and what is missing; leaves nothing there."""

    def submit(self, payload: Payload) -> Handle:
        """Send a payload and have it run, once: one whose key is there already is found and not sent again.

        Raises:
            InputError: the target refuses an option of its own file.
            CapacityError: nothing there fits, or more than it takes at once.
            TransportError: it is not reached.
        """

    def look(self, handles: Sequence[Handle], offsets: Mapping[str, int]) -> list[Observation]:
        """Observe all of them in one query, with the events after each one's offset. Absent is not ended."""

    def fetch(self, handle: Handle, into: Path) -> bool:
        """Bring the result folders into `into`; True where all came and were verified.

        What was brought before is kept, so a fetch that was cut goes on where it was.
        """

    def end(self, handles: Sequence[Handle]) -> None:
        """Stop what runs and remove what is left there, except results that were not fetched."""

    def install(self, release: str, extras: Sequence[str], build: BuildPackages) -> str:
        """Put a release of Prony below the target's prefix, unless it is there with these extras; return its folder.

        Args:
            release: The version, part of the folder's name.
            extras: What it must have; those that were installed before stay.
            build: Packs a release for the interpreter of the target, with extras.

        Raises:
            CapacityError: there is no Python that is new enough.
            TransportError: it is not reached.
        """
