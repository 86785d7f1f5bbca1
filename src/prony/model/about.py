"""What a server says of itself to whoever asks."""

from __future__ import annotations

from prony.model.access import Role
from prony.model.base import Noun


class About(Noun):
    """`name` and `role` are those of who asks; `prometheus` and `grafana` are where its figures are."""

    version: str
    url: str
    asks_tokens: bool
    name: str
    role: Role
    prometheus: str = ""
    grafana: str = ""
