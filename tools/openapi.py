"""Write the server's OpenAPI document to a file; the types of the web pages are generated from it."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from prony.app.fleet.fleet import Fleet
from prony.server.app import create_app
from prony.server.openapi import document
from prony.store.home import Home


def describe_api() -> dict[str, Any]:
    """Return the document, as a server that stores nothing makes it."""
    with tempfile.TemporaryDirectory() as folder:
        return document(create_app(Fleet.open(Home(Path(folder))), open_to_all=True))


def main(to: Path) -> None:
    to.write_text(json.dumps(describe_api(), indent=1, sort_keys=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
