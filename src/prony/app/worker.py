"""Start a process of a server's pool: `python -P -m prony.app.worker MODULE` calls that module's `main`.

The module is imported by its own name, so that both ends of the pipe pickle the same classes.
"""

from __future__ import annotations

import importlib
import sys

if __name__ == "__main__":
    importlib.import_module(sys.argv[1]).main()
