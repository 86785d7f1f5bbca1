"""What this machine has besides engines: found on PATH, asked quickly, with a reason for what is not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from prony.app import abilities
from prony.app.abilities import inspect_abilities
from prony.app.local_device import check_place, facts_here
from prony.errors import CapacityError
from prony.model.device import AbilityReport
from prony.model.place import Place
from prony.ports import plugins

PYTHON = sys.executable


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, the interpreter's own folder left out."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere" / "python"))
    return folder


def program(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def found(kind: str, name: str) -> AbilityReport:
    return next(one for one in inspect_abilities((kind,)) if one.name == name)


@pytest.mark.usefixtures("path")
def test_everything_is_reported_and_what_is_not_there_says_how_to_get_it() -> None:
    reports = inspect_abilities()
    names = {kind: {one.name for one in reports if one.kind == kind} for kind in ("service", "launcher", "probe")}
    assert names["service"] == set(plugins.find_plugins(plugins.SERVICES))
    assert names["probe"] == set(plugins.find_plugins(plugins.PROBES))
    assert names["launcher"] == {"mpirun", "torchrun", "srun"}
    missing = [one for one in reports if one.state != "ready"]
    assert {"vllm", "qdrant", "docker", "mpirun"} <= {one.name for one in missing}
    assert all(len(one.reason.split()) > 3 for one in missing)
    assert all(not one.reason for one in reports if one.state == "ready")


def test_a_program_is_asked_for_its_version_once_and_again_when_it_is_another(path: Path) -> None:
    count = path / "count"
    server = program(path, "redis-server", f"echo x >> {count}; echo 'Redis server v=7.0.15 sha=00000000:0 bits=64'")
    report = found("service", "redis")
    assert (report.state, report.version, report.means) == ("ready", "7.0.15", ("program",))
    assert report.path == str(server)
    found("service", "redis")
    assert count.read_text().split() == ["x"]
    program(path, "redis-server", "echo 'Redis server v=8.2.1'")
    assert found("service", "redis").version == "8.2.1"


@pytest.mark.parametrize(
    ("name", "binary", "said", "version"),
    [
        ("nginx", "nginx", "echo 'nginx version: nginx/1.24.0 (Ubuntu)' >&2", "1.24.0"),
        ("qdrant", "qdrant", "echo qdrant 1.12.4", "1.12.4"),
        ("seaweedfs", "weed", "echo version 30GB 3.80 7b8989b linux amd64", "3.80"),
        ("ollama", "ollama", "echo 'Warning: no server'; echo 'Warning: client version is 0.5.4'", "0.5.4"),
        ("llamacpp", "llama-server", "echo 'compute capability 8.9' >&2; echo 'version: 4567 (abc)' >&2", "4567"),
        ("minio", "minio", "exit 1", None),
        ("qdrant", "qdrant", "exit 3", None),
    ],
)
def test_the_version_is_read_from_what_each_program_says(
    path: Path, name: str, binary: str, said: str, version: str | None
) -> None:
    program(path, binary, said)
    report = found("service", name)
    assert (report.state, report.version) == ("ready", version)


def test_a_program_that_does_not_answer_in_time_is_there_without_a_version(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abilities, "_ASK_S", 0.2)
    program(path, "qdrant", "exec /bin/sleep 60")
    report = found("service", "qdrant")
    assert (report.state, report.version) == ("ready", None)


def test_what_takes_seconds_to_import_is_not_started_for_its_version(tmp_path: Path, path: Path) -> None:
    (tmp_path / "lib" / "python3.12" / "site-packages" / "vllm-0.11.0+cpu.dist-info").mkdir(parents=True)
    program(path, "vllm", f"touch {tmp_path}/started")
    report = found("service", "vllm")
    assert (report.state, report.version, report.means) == ("ready", "0.11.0+cpu", ("package",))
    assert not (tmp_path / "started").exists()


def test_a_container_engine_counts_when_it_answers(path: Path) -> None:
    program(path, "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    docker = found("container", "docker")
    assert (docker.state, docker.reason) == ("broken", "docker does not work: Cannot connect to the Docker daemon")
    assert "image" not in found("service", "redis").means
    program(path, "docker", "echo 28.1.1")
    assert found("container", "docker").version == "28.1.1"


def test_a_service_that_is_not_installed_can_be_started_from_an_image(path: Path) -> None:
    program(path, "podman", "echo 4.9.3")
    qdrant = found("service", "qdrant")
    assert (qdrant.state, qdrant.means) == ("missing", ("image",))
    assert found("service", "command").means == ()
    program(path, "podman", "echo apptainer version 1.3.0").rename(path / "apptainer")
    assert found("service", "qdrant").means == ("image",)


def test_torchrun_is_there_with_the_torch_of_the_interpreter_that_scripts_name(tmp_path: Path, path: Path) -> None:
    packages = tmp_path / "it's a place"
    packages.mkdir()
    program(path, "python3", f'PYTHONPATH="{packages}" exec {PYTHON} -S "$@"')
    assert found("launcher", "torchrun").state == "missing"
    (packages / "torch-2.4.0+cu121.dist-info").mkdir()
    (packages / "torch_geometric-1.0.dist-info").mkdir()
    report = found("launcher", "torchrun")
    assert (report.state, report.version, report.path) == ("ready", "2.4.0+cu121", str(path / "python3"))


def test_a_launcher_tells_its_version(path: Path) -> None:
    program(path, "mpirun", "echo 'mpirun (Open MPI) 4.1.6'")
    assert (found("launcher", "mpirun").state, found("launcher", "mpirun").version) == ("ready", "4.1.6")
    assert found("launcher", "srun").state == "missing"


def test_a_run_here_may_ask_for_abilities_and_only_those_are_looked_for(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path, "qdrant", "echo qdrant 1.12.4")
    place = Place(where={"service.qdrant": ">=1.10", "service.qdrant.means": "program"})
    check_place(place, tmp_path, lambda _: [])
    with pytest.raises(CapacityError, match=r"launcher mpirun \(has none\)"):
        check_place(Place(where={"launcher": "mpirun"}), tmp_path, lambda _: [])
    assert facts_here(["access"], tmp_path, lambda _: [])["access"] == ("gray", "black")
    monkeypatch.setattr("prony.app.local_device.inspect_abilities", lambda kinds: pytest.fail(f"looked for {kinds}"))
    facts_here(["os", "cpu.cores"], tmp_path, lambda _: [])
