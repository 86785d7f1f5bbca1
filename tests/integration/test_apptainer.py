"""Redis in a real Apptainer: it starts from an image of Debian's, serves, and leaves nothing.

`PRONY_TEST_APPTAINER` names a folder with `bin/apptainer` and `image`, as tests/clusters/build_apptainer.sh makes it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil
import pytest

from prony.plugins.services.redis import Redis
from prony.runner.containers import Box, ContainerEngine
from prony.runner.services.host import Wish, start_service
from servers.needs import lack

pytestmark = pytest.mark.clusters


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Path:
    named = os.environ.get("PRONY_TEST_APPTAINER", str(Path.home() / ".cache/prony-test/apptainer"))
    if not (Path(named) / "complete").exists():
        lack("apptainer", f"no Apptainer in {named}")
    monkeypatch.setenv("PATH", f"{named}/bin:/usr/bin:/bin")
    return Path(named)


def test_a_container_gets_the_named_variables_and_no_others(place: Path) -> None:
    box = Box(image=str(place / "image"), command=["env"], names=["MINE"])
    words = ContainerEngine(str(place / "bin" / "apptainer")).argv(box)
    given = {"PATH": os.environ["PATH"], "MINE": "a b", "SECRET": "no"}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=given, timeout=120)
    assert "MINE=a b" in done.stdout.splitlines()
    assert "SECRET" not in done.stdout


def test_redis_starts_from_an_image_and_leaves_nothing(place: Path, tmp_path: Path) -> None:
    options = Redis.Options(image=str(place / "image"))
    with start_service(Redis(), options, Wish(tmp_path / "log", tmp_path, 120)) as running:
        assert running.facts["version"]
        (inside,) = [one for one in psutil.process_iter(["cmdline"]) if _serves(one, running.endpoint.port)]
    psutil.wait_procs([inside], timeout=30)
    assert not inside.is_running()
    assert not running.folder.exists()


def _serves(process: psutil.Process, port: int) -> bool:
    words = process.info["cmdline"] or [""]
    return "redis-server" in words[0] and f":{port}" in " ".join(words)
