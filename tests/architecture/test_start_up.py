"""What is started for every job, result or recipe imports no more than it needs: its start is most of what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

_DATABASE, _SERVER = ("sqlalchemy", "alembic"), ("fastapi", "starlette", "uvicorn")


@pytest.mark.parametrize(
    ("module", "strangers"),
    [
        ("prony.app.fleet.reading", (*_DATABASE, *_SERVER, "numpy", "polars")),
        ("prony.app.fleet.unpack_result", (*_DATABASE, *_SERVER)),
        ("prony.agent.agent", (*_DATABASE, *_SERVER)),
        ("prony.runner.jobs", (*_DATABASE, *_SERVER, "httpx")),
    ],
)
def test_a_process_imports_only_what_it_needs(module: str, strangers: tuple[str, ...]) -> None:
    program = f"import sys, {module}; print(*sorted({set(strangers)!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
