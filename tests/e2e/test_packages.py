"""The packages as strangers get them: built, installed where nothing is known of the repository, and used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from prony.cli.main import COMMANDS
from servers.needs import lack
from servers.programs import run_program
from servers.waiting import wait_for
from servers.wheels import build_packages, copy_checkout

RECIPE = """
name: echo
workload: {kind: script, command: "echo '{\\"answer\\": 42}'", metrics: [{name: answer}]}
measure: {repeats: 3, warmup: 0}
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository as it is now, committed; a build writes into the folder that it builds."""
    return copy_checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def packages(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the source archive, and the wheel that was built from it."""
    out = tmp_path_factory.mktemp("dist")
    return build_packages(checkout, out).parent


@pytest.fixture(scope="module")
def installed(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with the wheel and what it asks for."""
    place = tmp_path_factory.mktemp("clean") / "venv"
    run_program(sys.executable, "-m", "venv", place, cwd=packages)
    (wheel,) = packages.glob("*.whl")
    command = [place / "bin/python", "-m", "pip", "install", "--quiet", "--no-compile", f"{wheel}[onnx,server]"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=packages)
    if "No matching distribution" in done.stderr:
        lack("index", "pip finds no packages here")
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def stranger(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of somebody who has installed Prony and nothing else."""
    home = tmp_path_factory.mktemp("stranger")
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "TMPDIR")}
    path = f"{installed / 'bin'}:/usr/bin:/bin"
    return kept | {"HOME": str(home), "PRONY_HOME": str(home / "prony"), "PATH": path}


@pytest.mark.slow
def test_a_wheel_and_its_source_archive_hold_what_was_built(packages: Path) -> None:
    (wheel,), (archive,) = packages.glob("*.whl"), packages.glob("*.tar.gz")
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    with tarfile.open(archive) as tar:
        in_archive = {name.partition("/")[2] for name in tar.getnames()}
    for name in (
        "server/site/index.html", "app/help/index.html", "recipe/examples/quickstart.yaml",
        "recipe/examples/scripts/train.py", "cli/build.json", "app/recordings.tar.gz",
    ):  # fmt: skip
        assert f"prony/{name}" in in_wheel
        assert f"src/prony/{name}" in in_archive
    data = {name.partition(".data/data/")[2] for name in in_wheel}
    pages = {f"share/man/man1/prony-{name}.1" for name in COMMANDS}
    shells = {
        "share/bash-completion/completions/prony", "share/zsh/site-functions/_prony",
        "share/fish/vendor_completions.d/prony.fish",
    }  # fmt: skip
    assert pages | shells <= data
    assert pages | shells <= in_archive
    # What the wheel was built from has nothing that Node.js could build.
    assert not [name for name in in_archive if name.startswith("ui")]


@pytest.mark.slow
def test_an_installed_wheel_tells_its_version_and_measures(
    installed: Path, stranger: dict[str, str], tmp_path: Path
) -> None:
    told = run_program("prony", "--version", cwd=tmp_path, environment=stranger)
    version = ".".join(map(str, sys.version_info[:3]))
    assert re.fullmatch(rf"prony \S+ \(commit [0-9a-f]{{12}}, Python {version}, \w+ \w+\)\n", told)
    where = run_program(installed / "bin/python", "-P", "-c", "import prony; print(prony.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed)
    assert "tiny" in run_program("prony", "bench", "zoo:tiny", "--runs", "2", cwd=tmp_path, environment=stranger)
    assert "workload" in run_program("prony", "examples", "quickstart", cwd=tmp_path, environment=stranger)
    completion = (installed / "share/bash-completion/completions/prony").read_text()
    assert completion == run_program("prony", "completion", "bash", cwd=tmp_path, environment=stranger)


@pytest.mark.slow
def test_an_installed_wheel_serves_pages_runs_jobs_of_agents_and_loads(
    stranger: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "echo.yaml").write_text(RECIPE)
    with background(stranger, tmp_path / "server.log", "server", "--port", "0"):
        url = wait_for_line(tmp_path / "server.log", r"serving at (http://\S+)")
        page = httpx.get(url, trust_env=False)
        assert (page.status_code, "<script" in page.text) == (200, True)
        assert "Prony" in httpx.get(f"{url}/help/index.html", trust_env=False).text
        with background(stranger, tmp_path / "agent.log", "agent", "start", "--kinds", "script", "--server", url):
            said = run_program("prony", "run", "echo.yaml", "--server", url, cwd=tmp_path, environment=stranger)
            assert "42" in said
        said = run_program("prony", "load", f"{url}/help/index.html", "-n", "50", cwd=tmp_path, environment=stranger)
        assert "e2e" in said or "p50" in said


@contextmanager
def background(environment: dict[str, str], log: Path, *words: str) -> Iterator[None]:
    """Run a command of the installed Prony until the block ends."""
    program = shutil.which("prony", path=environment["PATH"])
    assert program is not None
    with log.open("w") as out:
        process = subprocess.Popen([program, *words], env=environment, stdout=out, stderr=out, cwd=log.parent)
    try:
        yield
    finally:
        process.terminate()
        process.wait(120)


def wait_for_line(log: Path, pattern: str) -> str:
    wait_for(lambda: re.search(pattern, log.read_text()) is not None, f"{pattern} in {log.name}")
    found = re.search(pattern, log.read_text())
    assert found is not None
    return found[1]
