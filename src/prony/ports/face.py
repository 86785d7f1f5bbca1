"""Faces: another program's interface, served beside the server's own over the same fleet."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prony.app.fleet.fleet import Fleet
    from prony.server.connections import Connections


class OpenFace(Protocol):
    """A face that listens and does not answer yet."""

    @property
    def addresses(self) -> Mapping[str, str]:
        """Return its addresses by name, as the server's file lists them."""
        ...

    @property
    def lines(self) -> tuple[str, ...]:
        """Return what the command prints about it."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the events of the fleet that the log shows as warnings."""
        ...

    def serve(self, fleet: Fleet, connections: Connections) -> AbstractAsyncContextManager[object]:
        """Serve a fleet that has started, until the block ends.

        Args:
            fleet: What the server serves.
            connections: The server's own, among which those of the face are counted.

        Returns:
            A block that answers while it runs.
        """
        ...


class FaceOptions(Protocol):
    """What somebody said of a face that is to be served."""

    def open(self) -> AbstractContextManager[OpenFace]:
        """Listen, before anything else is begun.

        Returns:
            A block that holds the face's sockets.

        Raises:
            AccessError: It would let strangers in.
            CapacityError: The port is taken.
        """
        ...


class Face(Protocol):
    """An entry point of `prony.faces`; loaded whenever `prony server` reads its options, so its module is small."""

    def add_options(self, parser: ArgumentParser) -> None:
        """Add the face's options to those of `prony server`.

        Args:
            parser: The command's.
        """
        ...

    def read_options(self, options: Namespace) -> FaceOptions | None:
        """Read the face's options.

        Args:
            options: Those of the command.

        Returns:
            How to serve it; None where nobody asked for it.

        Raises:
            InputError: An option is wrong, or goes with one that is missing.
        """
        ...
