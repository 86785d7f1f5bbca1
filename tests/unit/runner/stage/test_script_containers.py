"""Images: which words run a container, by an engine that writes them down; without an engine nothing is run."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from prony.model.container import WITH_APPTAINER
from prony.model.result import ResultState
from prony.runner import containers
from prony.runner.containers import Box, ContainerEngine
from servers.ports import free_port

from .staged_runs import Runs, notes, why

# Writes its words down; what it is to run in a container it runs as it is, where the paths are the same anyway.
RECORDED = """#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
words = sys.argv[2:]
if sys.argv[1] == "info":
    sys.exit({info})
if sys.argv[1] == "ps":
    print("left-behind")
if sys.argv[1:3] == ["image", "inspect"]:
    print(json.dumps([{{"Id": "1" * 64, "RepoDigests": {digests}}}]))
if sys.argv[1] == "run":
    given = dict(word.partition("=")[::2] for word in words if word.startswith("--"))
    inner = words[[word.startswith("--") for word in words].index(False) + 1:]
    names = [word.partition("=")[2] for word in words if word.startswith("--env=")]
    kept = {{name: os.environ[name] for name in (*names, "PATH") if name in os.environ}}
    os.chdir(given.get("--workdir", "/"))
    os.execvpe(given.get("--entrypoint", "echo"), [given.get("--entrypoint", "echo"), *inner], kept)
"""
BUILT_HERE = f"sha256:{'1' * 64}"  # as the engine knows it
BOX = Box(
    image="org/image:1",
    command=["python3", "train.py"],
    arguments=["--lr", "3"],
    folder=Path("/work"),
    shared=[(Path("/work"), "/work", True), (Path("/cache/x"), "/data/x", False)],
    names=["A", "RANK"],
    label="abc",
)


class Recorded:
    """An engine of a name on the path."""

    def __init__(self, folder: Path, name: str, info: int = 0, digests: Sequence[str] = ()) -> None:
        self._log = folder / "words.jsonl"
        path = folder / name
        path.write_text(RECORDED.format(python=sys.executable, log=str(self._log), info=info, digests=[*digests]))
        path.chmod(0o755)

    def words(self, verb: str) -> list[list[str]]:
        said = [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []
        return [line[1:] for line in said if line[0] == verb]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all programs of this system but its container engines."""
    folder = tmp_path_factory.mktemp("programs")
    for path in Path("/usr/bin").iterdir():
        if path.name not in WITH_APPTAINER:
            (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture
def engines(runs: Runs, programs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path, for engines; the real ones are not found."""
    folder = runs.base / "engines-on-path"
    folder.mkdir()
    monkeypatch.setattr("prony.kinds.script.runner.staging.WITH_APPTAINER", ("podman", "docker"))
    monkeypatch.setenv("PATH", f"{folder}:{programs}")
    return folder


def test_the_words_for_podman_and_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "catatonit").touch(0o755)
    monkeypatch.setattr(containers, "_INIT_FOLDERS", str(tmp_path))
    monkeypatch.setattr(containers, "_half_of_memory", lambda: 1024)
    monkeypatch.setattr(containers, "_has_gpus", lambda: True)
    shared = [
        "--network=host", "--shm-size=1024", "--label=prony.runner=abc", "--workdir=/work", "--volume=/work:/work",
        "--volume=/cache/x:/data/x:ro", "--env=A", "--env=RANK",
    ]  # fmt: skip
    inner = ["--entrypoint=python3", "org/image:1", "train.py", "--lr", "3"]
    assert ContainerEngine("/usr/bin/docker").argv(BOX) == [
        "/usr/bin/docker", "run", "--rm", "--init", *shared, "--gpus=all", *inner
    ]  # fmt: skip
    assert ContainerEngine("/usr/bin/podman").argv(BOX, "mine") == [
        "/usr/bin/podman", "run", "--rm", "--init", f"--init-path={tmp_path}/catatonit", "--name=mine", *shared,
        "--security-opt=label=disable", "--device=nvidia.com/gpu=all", *inner,
    ]  # fmt: skip


def test_podman_without_an_init_is_not_asked_for_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(containers, "_INIT_FOLDERS", str(tmp_path))
    assert not [word for word in ContainerEngine("/usr/bin/podman").argv(BOX) if word.startswith("--init")]


CLEAN = ["--containall", "--cleanenv", "--no-home"]


def test_the_words_for_apptainer() -> None:
    words = ContainerEngine("/usr/bin/apptainer").argv(BOX)
    assert words[3:5] == ["sh", "A RANK"]
    gpus = [word for word in words if word in ("--nv", "--rocm")]  # where this machine has such a card
    assert words[5:] == [
        "/usr/bin/apptainer", "exec", *CLEAN, *gpus, "--pwd=/work", "--bind=/work:/work", "--bind=/cache/x:/data/x:ro",
        "docker://org/image:1", "python3", "train.py", "--lr", "3",
    ]  # fmt: skip
    own = Box(image="/images/x.sif", command=None, arguments=["--lr"], writes=True)
    found = ContainerEngine("/usr/bin/apptainer").argv(own)
    assert found[5:7] == ["/usr/bin/apptainer", "run"]
    assert found[-3:] == ["--writable-tmpfs", "/images/x.sif", "--lr"]


def test_apptainer_gets_named_variables_by_its_environment_and_no_value_by_words(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    program = tmp_path / "apptainer"
    program.write_text(f"#!/bin/sh\nenv > {seen}\n")
    program.chmod(0o755)
    box = Box(image="x.sif", command=["true"], names=["A", "EMPTY", "MISSING", "odd-name"])
    given = {"PATH": "/usr/bin:/bin", "A": 'it\'s $HOME; "x" `id`', "EMPTY": "", "SECRET": "not named"}
    words = ContainerEngine(str(program)).argv(box)
    subprocess.run(words, env=given, check=True, timeout=60)
    handed = dict(line.split("=", 1) for line in seen.read_text().splitlines() if line.startswith("APPTAINERENV_"))
    assert handed == {"APPTAINERENV_A": given["A"], "APPTAINERENV_EMPTY": ""}
    assert [word for word in words if "it's" in word] == []


def test_the_digest_of_an_image_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    image = tmp_path / "x.sif"
    image.write_bytes(b"image")
    engine = ContainerEngine("/usr/bin/apptainer")
    assert engine.digest_of_image(str(image)) == f"sha256:{hashlib.sha256(b'image').hexdigest()}"
    assert engine.digest_of_image("org/image:1") is None


def test_without_a_command_the_image_says_what_runs() -> None:
    words = ContainerEngine("/usr/bin/docker").argv(Box(image="org/image:1", command=None, arguments=["--lr", "3"]))
    assert words[-3:] == ["org/image:1", "--lr", "3"]
    assert not [word for word in words if word.startswith("--entrypoint")]


def test_a_script_with_an_image_runs_in_a_container_where_an_engine_is_at_hand(runs: Runs, engines: Path) -> None:
    podman = Recorded(engines, "podman")
    runs.write("scripts/tell.py", "import os, prony\nprony.emit({'seen': float(os.environ['N'])})\n")
    data = runs.write("data.bin", "123")
    result = runs.run(
        command=[sys.executable, "tell.py"],
        image="org/image:1",
        directory=str(runs.base / "scripts"),
        environment={"N": "7"},
        sources=[{"source": str(data), "path": "/data/x.bin"}],
    )
    assert result.state is ResultState.COMPLETE, result.failure
    assert runs.told()["seen"] == [7]
    (words,) = podman.words("run")
    assert f"--volume={data}:/data/x.bin:ro" in words
    assert {"--env=N", "--env=PYTHONPATH", "--env=PRONY_EMIT_FILE", "--env=PRONY_DIRECTORY"} <= {*words}
    assert words[words.index(BUILT_HERE) :] == [BUILT_HERE, "tell.py"]
    assert notes(result) == ""
    # Whatever is left of it is removed by its label.
    assert podman.words("rm") == [["--force", "--volumes", "left-behind"]]


def test_a_result_says_which_image_ran_by_a_name_that_can_be_run_again(runs: Runs, engines: Path) -> None:
    named = f"registry.example/org/image@sha256:{'2' * 64}"
    podman = Recorded(engines, "podman", digests=[named])
    result = runs.run(command=[sys.executable, "-c", "print()"], image="org/image:1")
    assert result.state is ResultState.COMPLETE, result.failure
    assert [named in words for words in podman.words("run")] == [True]
    kept = json.loads((runs.folder / "environment.json").read_text())["checksums"]
    assert kept == {"image org/image:1": named}


def test_an_image_that_was_built_here_is_known_by_its_own_digest(engines: Path) -> None:
    Recorded(engines, "docker")
    assert ContainerEngine(str(engines / "docker")).digest_of_image("mine:latest") == f"sha256:{'1' * 64}"
    assert ContainerEngine("/usr/bin/apptainer").digest_of_image("mine:latest") is None
    assert ContainerEngine(str(engines / "podman")).digest_of_image("mine:latest") is None


def test_without_an_engine_an_image_is_refused_and_its_command_does_not_run_here(runs: Runs, engines: Path) -> None:
    assert not list(engines.iterdir())
    mark = runs.base / "mark"
    result = runs.run(command=["touch", str(mark)], image="org/image:1")
    assert (result.state, why(result).code, why(result).whose) == (ResultState.FAILED, "no_container", "capacity")
    assert why(result).message == "image org/image:1 needs a container engine, but no container engine is on PATH"
    assert "--no-container" in why(result).hint
    assert not mark.exists()


def test_a_command_that_may_do_without_a_container_is_a_process_even_where_an_engine_is(
    runs: Runs, engines: Path
) -> None:
    podman = Recorded(engines, "podman")
    result = runs.run(command=["true"], image="org/image:1", container=False)
    assert result.state is ResultState.COMPLETE
    assert notes(result) == "image org/image:1 was not used: the command ran directly on the machine, as allowed"
    assert podman.words("run") == []


def test_an_engine_that_does_not_work_is_none(runs: Runs, engines: Path) -> None:
    Recorded(engines, "docker", info=1)
    result = runs.run(command=["true"], image="org/image:1")
    assert "docker does not work: exit code 1" in why(result).message


def test_an_image_alone_cannot_do_without_a_container(runs: Runs) -> None:
    with pytest.raises(ValueError, match="needs a command: with container: false, the image is not used"):
        runs.run(image="org/image:1", container=False)


def test_a_server_with_an_image_needs_an_engine_too(runs: Runs, engines: Path) -> None:
    assert not list(engines.iterdir())
    server = {"command": "serve", "ports": [free_port()], "image": "org/server:1"}
    result = runs.run(command=["true"], server=server)
    assert "image org/server:1 needs a container engine" in why(result).message


def test_an_image_alone_needs_an_engine(runs: Runs, engines: Path) -> None:
    assert not list(engines.iterdir())
    result = runs.run(image="org/image:1", arguments="--lr 3")
    assert (result.state, why(result).code) == (ResultState.FAILED, "no_container")


def test_a_server_with_an_image_runs_in_a_container_of_a_name_and_is_removed(runs: Runs, engines: Path) -> None:
    docker = Recorded(engines, "docker")
    port = free_port()
    server = {"command": [sys.executable, "-m", "http.server", str(port)], "image": "org/server:1", "ports": [port]}
    result = runs.run(command=["true"], server=server)
    assert result.state is ResultState.COMPLETE, result.failure
    (words,) = docker.words("run")
    name = next(word for word in words if word.startswith("--name=")).removeprefix("--name=")
    assert words[words.index(BUILT_HERE) :] == [BUILT_HERE, "-m", "http.server", str(port)]
    assert ["--force", "--volumes", name] in docker.words("rm")


def test_each_rank_has_a_container_of_its_own(runs: Runs, engines: Path) -> None:
    podman = Recorded(engines, "podman")
    code = "import os, prony\nprony.emit({'rank': float(os.environ['RANK'])})\n"
    runs.write("scripts/tell.py", code)
    result = runs.run(
        command=[sys.executable, "tell.py"], image="org/image:1", directory=str(runs.base / "scripts"),
        launch={"kind": "process", "processes": 2},
    )  # fmt: skip
    assert result.state is ResultState.COMPLETE, result.failure
    assert sorted(runs.told()["rank"]) == [0, 1]
    assert len(podman.words("run")) == 2
