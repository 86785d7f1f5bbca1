"""Targets of a server's stand-in agents, and what was placed there."""

from __future__ import annotations

from prony.client.connection import ApiRequests
from prony.model.queue import Page
from prony.model.target import PlacementView, ServedTarget


class RemoteTargets:
    """Targets: list them, and list what was placed at one."""

    def __init__(self, requests: ApiRequests) -> None:
        self._requests = requests

    def page(self, *, limit: int = 100, cursor: str | None = None) -> Page[ServedTarget]:
        """Return the targets that stand-in agents go to, a page at a time."""
        return self._requests.get(Page[ServedTarget], "targets", limit=limit, cursor=cursor)

    def placements(self, target: str, *, limit: int = 100, cursor: str | None = None) -> Page[PlacementView]:
        """Return what was placed at a target, the newest first, a page at a time."""
        return self._requests.get(Page[PlacementView], "targets", target, "placements", limit=limit, cursor=cursor)
