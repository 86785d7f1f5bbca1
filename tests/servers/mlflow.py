"""A real MLflow server with a database and artifacts of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from servers.needs import lack
from servers.ports import free_port
from servers.waiting import wait_for


@contextmanager
def mlflow_server(folder: Path) -> Iterator[str]:
    """Yield where it answers; skip the test where MLflow is not installed."""
    program = shutil.which("mlflow")
    if program is None:
        lack("mlflow", "no program of this name")
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [program, "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
               "--backend-store-uri", f"sqlite:///{folder}/mlflow.db",
               "--artifacts-destination", str(folder / "artifacts")]  # fmt: skip
    # Neither words to its makers nor a process for jobs of language models.
    told = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | told
    with (folder / "mlflow.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
    try:
        wait_for(lambda: _is_well(url), "MLflow", 240)
        yield url
    finally:
        server.terminate()
        server.wait(60)


def _is_well(url: str) -> bool:
    try:
        with urlopen(f"{url}/health", timeout=10) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False
