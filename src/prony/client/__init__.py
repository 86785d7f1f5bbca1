"""The use cases of a server over HTTP: one method for each operation of its API, nouns in and nouns out."""

from prony.client.api import Client

__all__ = ["Client"]
