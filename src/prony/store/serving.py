"""The file by which a home's server says where it is."""

from __future__ import annotations

import json
from pathlib import Path

from prony.store.home import Home


def server_file(home: Home) -> Path:
    return home.root / "server.json"


def running_server(home: Home) -> str | None:
    """Return the address that a running server left in the home; it takes the file away when it ends."""
    try:
        url = json.loads(server_file(home).read_bytes())["url"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return url if isinstance(url, str) else None
