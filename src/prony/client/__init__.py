"""HTTP client of a server, with one method for each operation of its API."""

from prony.client.api import Client

__all__ = ["Client"]
