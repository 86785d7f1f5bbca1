"""Write the server's OpenAPI document to a file; the types of the web pages are generated from it."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from prony.app.fleet.fleet import Fleet
from prony.server.app import create_app
from prony.server.openapi import document
from prony.store.home import Home


def main(to: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet.open(Home(Path(folder)))
        made = document(create_app(fleet, open_to_all=True))
    to.write_text(json.dumps(made, indent=1, sort_keys=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
