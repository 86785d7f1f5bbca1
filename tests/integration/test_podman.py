"""Scripts and services in containers of the real podman, with images that are made here and a registry on loopback.

Prony's own commands are asked, as a person types them; what is left afterwards is asked of podman.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lanes import only_slowly
from servers.binaries import AbsentError
from servers.commands import call_prony
from servers.needs import lack
from servers.podman import BUSYBOX, Podman, Registry, podman_engine, serve_registry
from servers.waiting import wait_for

SCRIPT = """\
name: boxed
workload: {{kind: script, image: "{image}", command: {command}, metrics: [{{name: speed, pattern: "speed=([0-9]+)"}}]}}
measure: {{repeats: {repeats}, warmup: 0}}
"""
SERVICE = """\
name: boxed
workload: {{kind: service, service: redis, settings: {{image: "{image}", {more}}}, restart: each-run}}
load: {{closed: {{concurrency: 1}}, {length}, repeats: 2}}
"""
SAYS_WHICH = """[sh, -c, 'cat /which; echo speed=42']"""


@pytest.fixture(scope="module")
def shared_podman() -> Iterator[Podman]:
    try:
        with podman_engine() as found:
            yield found
    except AbsentError as exc:
        lack("podman", str(exc))


@pytest.fixture
def podman(shared_podman: Podman, monkeypatch: pytest.MonkeyPatch) -> Iterator[Podman]:
    """A podman that is the one which Prony finds; each test ends without containers."""
    for name, value in shared_podman.environment.items():
        monkeypatch.setenv(name, value)
    yield shared_podman
    assert shared_podman.containers() == []


@pytest.fixture(scope="module")
def shared_registry(shared_podman: Podman) -> Iterator[Registry]:
    try:
        with serve_registry(shared_podman) as found:
            yield found
    except AbsentError as exc:
        lack("docker-registry", str(exc))


@pytest.fixture
def registry(podman: Podman, shared_registry: Registry) -> Registry:
    podman.run("image", "prune", "--force")
    shared_registry.forget()
    return shared_registry


def write_script(folder: Path, image: str | Path, command: str = SAYS_WHICH, repeats: int = 1) -> Path:
    path = folder / "boxed.yaml"
    path.write_text(SCRIPT.format(image=image, command=command, repeats=repeats))
    return path


def run_here(*words: str | Path, code: int = 0) -> Any:
    return json.loads(call_prony(*words, "--no-report", "--json", code=code).stdout)


def read_output(home: Path) -> list[str]:
    """Return what all scripts in containers said, the oldest first."""
    logs = sorted((home / "results").glob("*/*/logs/run-*.out"), key=lambda path: path.stat().st_mtime_ns)
    return [path.read_text() for path in logs]


def read_digests(home: Path) -> set[str]:
    """Return every digest that results of scripts name."""
    found = [json.loads(path.read_text()) for path in (home / "results").glob("*/*/environment.json")]
    return {text for one in found for name, text in one["checksums"].items() if name.startswith("image ")}


def push(podman: Podman, name: str, text: str) -> str:
    """Have the registry mean a new image by a name, and this machine none; return its digest there."""
    podman.make_image(name, text)
    kept = podman.folder / "digest"
    podman.run("push", f"--digestfile={kept}", name)
    podman.run("image", "rm", "--force", name)
    return f"{name.rpartition(':')[0]}@{kept.read_text().strip()}"


# Scripts


def test_a_script_in_a_container_tells_its_metrics(podman: Podman, tmp_path: Path, prony_home: Path) -> None:
    (job,) = run_here("run", write_script(tmp_path, BUSYBOX, repeats=2))["jobs"]
    assert job["result"].get("failure") is None
    assert read_output(prony_home) == ["firstspeed=42\n"] * 2
    (own,) = read_digests(prony_home)
    assert own.rpartition("@")[2] in podman.run("image", "inspect", BUSYBOX)


@pytest.mark.slow
def test_a_container_has_the_named_variables_and_none_of_ours(
    podman: Podman, tmp_path: Path, prony_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "hidden")
    path = write_script(tmp_path, BUSYBOX, "[env]")
    call_prony("run", path, "--no-report", "--set", "workload.environment.MINE=a b", code=None)
    (said,) = read_output(prony_home)
    given = dict(line.split("=", 1) for line in said.splitlines())
    assert given["MINE"] == "a b"
    own = {name for name in given if name.startswith("PRONY_")}
    engines = {"PATH", "HOME", "HOSTNAME", "TERM", "container", "SHLVL", "PWD"}
    assert set(given) <= own | engines | {"MINE", "PYTHONPATH"}
    assert own == {"PRONY_EMIT_FILE", "PRONY_DIRECTORY"}


def test_a_script_that_fails_in_a_container_leaves_nothing(podman: Podman, tmp_path: Path) -> None:
    found = run_here("run", write_script(tmp_path, BUSYBOX, "[sh, -c, 'exit 3']"), code=1)
    assert "exit code 3" in found["jobs"][0]["result"]["failure"]["message"]


def start_run(path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "prony", "run", str(path), "--no-report"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill_run(podman: Podman, path: Path, number: signal.Signals) -> None:
    """Start a run, send it a signal when a container runs, and wait until podman has none."""
    process = start_run(path)
    try:
        wait_for(lambda: bool(podman.run("ps", "--quiet")), "a container", 60)
        process.send_signal(number)
        process.wait(60)
        wait_for(lambda: podman.containers() == [], "no container", 60)
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, *only_slowly(signal.SIGINT)])
def test_a_killed_run_leaves_no_container_of_its_script(podman: Podman, tmp_path: Path, number: signal.Signals) -> None:
    # A shell ends when it is asked to only where it says so: it is the container's first process.
    kill_run(podman, write_script(tmp_path, BUSYBOX, "[sh, -c, 'trap exit TERM; sleep 600 & wait']"), number)


# Services


def test_a_service_in_a_container_is_loaded_and_stopped(podman: Podman, tmp_path: Path) -> None:
    path = tmp_path / "redis.yaml"
    path.write_text(SERVICE.format(image=podman.make_redis(), more="config: {maxmemory: 64mb}", length="requests: 200"))
    found = run_here("run", path)
    (job,) = found["jobs"]
    assert job["result"].get("failure") is None
    facts = job["result"]["service"]
    assert facts["settings"]["maxmemory"] == str(64 * 2**20)
    digest = facts["settings"]["image localhost/redis:7"]
    assert digest in facts["command"]


@pytest.mark.slow
def test_a_service_that_cannot_start_leaves_nothing(podman: Podman, tmp_path: Path) -> None:
    path = tmp_path / "redis.yaml"
    path.write_text(SERVICE.format(image=podman.make_redis(), more="config: {maxmemory: wrong}", length="requests: 9"))
    (job,) = run_here("run", path, code=1)["jobs"]
    assert job["result"]["failure"]["code"] == "service_failed"


@pytest.mark.parametrize("number", [signal.SIGKILL, *only_slowly(signal.SIGINT)])
def test_a_killed_run_leaves_no_container_of_its_service(
    podman: Podman, tmp_path: Path, number: signal.Signals
) -> None:
    path = tmp_path / "redis.yaml"
    path.write_text(SERVICE.format(image=podman.make_redis(), more="", length="duration: 600s"))
    kill_run(podman, path, number)


# Images


@pytest.mark.slow
def test_a_rerun_uses_the_digest_though_the_tag_has_moved(
    podman: Podman, registry: Registry, tmp_path: Path, prony_home: Path
) -> None:
    name = f"{registry.name}/org/moved:1"
    first = push(podman, name, "one ")
    path = write_script(tmp_path, name)
    run_here("run", path)
    assert read_digests(prony_home) == {first}
    push(podman, name, "two ")
    assert run_here("rerun", "last")["experiment"]["notes"] == []
    run_here("run", path)
    assert [text.split()[0] for text in read_output(prony_home)] == ["one", "one", "two"]


@pytest.mark.slow
def test_two_jobs_at_the_same_moment_pull_an_image_once(
    podman: Podman, registry: Registry, tmp_path: Path, prony_home: Path
) -> None:
    name = f"{registry.name}/org/wanted:1"
    push(podman, name, "one ")
    registry.forget()
    path = write_script(tmp_path, name)
    runs = [start_run(path) for _ in range(2)]
    assert [process.wait(120) for process in runs] == [0, 0]
    assert len(read_output(prony_home)) == 2
    assert registry.count_pulls("org/wanted") == 1


def test_an_image_comes_from_the_mirror_of_its_registry(
    podman: Podman, registry: Registry, tmp_path: Path, prony_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = push(podman, f"{registry.name}/copies/org/tool:1", "mirrored ")
    monkeypatch.setenv("PRONY_CONTAINER_MIRRORS", f"registry.example={registry.name}/copies")
    run_here("run", write_script(tmp_path, "registry.example/org/tool:1"))
    assert read_output(prony_home)[0].startswith("mirrored")
    assert read_digests(prony_home) == {there}


@pytest.mark.slow
def test_an_image_comes_from_a_folder_that_is_a_mirror(
    podman: Podman, tmp_path: Path, prony_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "registry.example/org/saved:1"
    podman.make_image(name, "saved ")
    podman.run("save", "--quiet", f"--output={tmp_path}/registry-example-org-saved-1.tar", name)
    podman.run("image", "rm", name)
    monkeypatch.setenv("PRONY_CONTAINER_MIRRORS", f"registry.example={tmp_path}")
    run_here("run", write_script(tmp_path, name))
    assert read_output(prony_home)[0].startswith("saved")


def test_an_image_is_a_file(podman: Podman, tmp_path: Path, prony_home: Path) -> None:
    name = "registry.example/org/filed:1"
    podman.make_image(name, "filed ")
    podman.run("save", "--quiet", f"--output={tmp_path}/image.tar", name)
    podman.run("image", "rm", name)
    run_here("run", write_script(tmp_path, tmp_path / "image.tar"))
    assert read_output(prony_home)[0].startswith("filed")
    assert run_here("rerun", "last")["experiment"]["notes"] == []


@pytest.mark.slow
def test_an_image_that_nobody_has_is_told_by_name(podman: Podman, registry: Registry, tmp_path: Path) -> None:
    found = call_prony("run", write_script(tmp_path, f"{registry.name}/org/nothing:1"), "--no-report", code=None)
    assert found.returncode != 0
    assert "org/nothing:1" in found.stdout + found.stderr
