"""Where there is no GPU, an engine's build for the CPU is installed, from an index that answers."""

from __future__ import annotations

import functools
import hashlib
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from prony.runner import engines
from servers.ports import free_port

VARIABLE = "PRONY_TORCH_CPU_INDEX"


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called there
        pass


def add_wheel(index: Path, name: str, version: str) -> None:
    """Write a package without contents into an index."""
    folder = index / name
    folder.mkdir(parents=True)
    info = f"{name}-{version}.dist-info"
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "index.html").write_text(f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>')


@pytest.fixture
def indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve a usual index and one of builds for the CPU; pip knows no other."""
    add_wheel(tmp_path / "usual", "numpy", "9.0")
    add_wheel(tmp_path / "usual", "torch", "9.9")
    add_wheel(tmp_path / "cpu", "torch", "9.8+cpu")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    for name, value in {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": f"{address}/usual"}.items():
        monkeypatch.setenv(name, value)
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(engines, "management", lambda: None)  # whatever this machine has
    yield address
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_the_build_for_the_cpu_is_installed_and_its_size_is_said_before(
    indexes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, f"{indexes}/cpu")
    said: list[str] = []
    python = engines.add_engine("torch", tmp_path / "engines", say=said.append)
    ask = "from importlib.metadata import version; print(version('torch'), version('numpy'))"
    found = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    assert found == ["9.8+cpu", "9.0"]
    assert f"no NVIDIA GPU found: installing the CPU build from {indexes}/cpu" in said
    size = next(place for place, text in enumerate(said) if text.startswith("installing torch 9.8+cpu: "))
    fetched = said.index("  Installing collected packages: torch")
    assert said[size].endswith(" MB to fetch")
    assert size < fetched


def test_an_index_that_does_not_answer_is_told_with_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "management", lambda: None)
    monkeypatch.setattr(engines, "run_command", lambda *_: None)
    asked: list[list[str]] = []
    monkeypatch.setattr(engines, "install_packages", lambda _, words, __: asked.append(list(words)))
    monkeypatch.setenv(VARIABLE, f"http://127.0.0.1:{free_port()}/cpu")
    said: list[str] = []
    engines.add_engine("torch", tmp_path, say=said.append)
    assert asked == [["numpy", "torch"]]
    assert any("does not answer" in text and VARIABLE in text for text in said)
    monkeypatch.setenv(VARIABLE, "")
    said.clear()
    engines.add_engine("torch", tmp_path, say=said.append)
    assert not any("GPU" in text for text in said)
