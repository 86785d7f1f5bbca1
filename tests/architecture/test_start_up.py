"""What is started for every job, result or recipe imports no more than it needs: its start is most of what it costs."""

from __future__ import annotations

import subprocess
import sys

_DATABASE, _SERVER = ("sqlalchemy", "alembic"), ("fastapi", "starlette", "uvicorn")
_ARRAYS = ("numpy", "polars")


# In the order in which one process can import them: what a later one may import, an earlier one may not have.
_STRANGERS = {
    "prony.app.fleet.reading": (*_DATABASE, *_SERVER, *_ARRAYS, "httpx"),
    "prony.runner.jobs": (*_DATABASE, *_SERVER, *_ARRAYS, "httpx"),
    "prony.app.fleet.unpack_result": (*_DATABASE, *_SERVER, *_ARRAYS),
    "prony.agent.agent": (*_DATABASE, *_SERVER, *_ARRAYS),
}


def test_a_process_imports_only_what_it_needs() -> None:
    program = f"""
import importlib, sys
for module, strangers in {_STRANGERS!r}.items():
    importlib.import_module(module)
    found = set(strangers) & set(sys.modules)
    if found:
        sys.exit(f"{{module}} imports {{sorted(found)}}")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
