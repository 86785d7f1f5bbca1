"""What everybody is told who still waits for a server that ends."""

from __future__ import annotations

from prony.errors import CapacityError


class ClosingError(CapacityError):
    """The server goes down while somebody waits for an answer."""

    code = "server_stopping"

    def __init__(self) -> None:
        super().__init__("the server is shutting down", hint="try again when it is back")
