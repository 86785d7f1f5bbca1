"""Prony and its Python in one file run a job in a container that has a shell, tar and glibc, and nothing else."""

from __future__ import annotations

import json
import platform
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest

from servers import images
from servers.binaries import AbsentError
from servers.needs import lack
from servers.podman import Podman, podman_engine
from servers.wheels import build_packages, copy_checkout, fetch_wheels
from tools.one_file import write_one_file

pytestmark = pytest.mark.slow
_PATIENCE_S = 600  # each container unpacks the file anew
SCRIPT = """\
name: echo
workload: {kind: script, command: "echo '{\\"answer\\": 42}'", metrics: [{name: answer}]}
measure: {repeats: 3, warmup: 0}
"""
MODEL = """\
name: relu
workload: {kind: model, model: /out/relu.onnx, engine: onnxruntime, threads: 1}
measure: {runs: 5, repeats: 2, warmup: 1}
"""


@dataclass(frozen=True)
class Bare:
    """A container without Python and without a network; it has the folder with the file at /out, read-only."""

    podman: Podman
    folder: Path
    file: Path

    def run(self, *commands: str) -> str:
        """Run commands after each other in one container."""
        return self.podman.run(
            "run", "--rm", "--network=none", "--read-only", "--tmpfs=/tmp:exec,size=3g", "--env=HOME=/tmp",
            "--env=PIP_NO_INDEX=1", "--env=PIP_FIND_LINKS=/out/wheels", f"--volume={self.folder}:/out:ro",
            images.NOTHING, "sh", "-euc", "; ".join(commands), within_s=_PATIENCE_S,
        )  # fmt: skip


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    folder = tmp_path_factory.mktemp("one-file")
    out = folder / "out"
    (out / "wheels").mkdir(parents=True)
    wheel = build_packages(copy_checkout(folder / "checkout"), folder)
    fetch_wheels(wheel, "onnx", out / "wheels")
    file = out / f"prony-linux-{platform.machine()}"
    write_one_file(wheel, file)
    (out / "script.yaml").write_text(SCRIPT)
    (out / "model.yaml").write_text(MODEL)
    write_model(out / "relu.onnx")
    try:
        with podman_engine() as podman:
            images.make_nothing(podman, folder)
            yield Bare(podman, out, file)
    except AbsentError as exc:
        lack("podman", str(exc))


def write_model(path: Path) -> None:
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 8]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "relu", values[:1], values[1:])
    opset = onnx.helper.make_opsetid("", 17)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), path)


def test_the_file_runs_a_job_where_there_is_no_python(bare: Bare) -> None:
    file = f"/out/{bare.file.name}"
    said = bare.run(
        "! which python3 2>/dev/null", f"{file} --version", f"{file} run /out/script.yaml --json --no-report"
    )
    version, _, result = said.partition("\n")
    assert version.startswith("prony ")
    (job,) = json.loads(result)["jobs"]
    assert (job["state"], job["estimates"]["answer.p50"]["value"]) == ("complete", 42)


def test_an_engine_is_added_to_it_and_measures(bare: Bare) -> None:
    file = f"/out/{bare.file.name}"
    said = bare.run(f"{file} engines add onnxruntime >/dev/null", f"{file} run /out/model.yaml --json --no-report")
    (job,) = json.loads(said)["jobs"]
    assert job["state"] == "complete"


def test_the_file_of_an_agent_is_an_agent(bare: Bare) -> None:
    said = bare.run(f"ln -s /out/{bare.file.name} /tmp/prony-agent-linux", "/tmp/prony-agent-linux start --help")
    assert said.startswith("usage: prony agent start")


def test_a_second_start_unpacks_nothing(bare: Bare) -> None:
    file, place = f"/out/{bare.file.name}", "/tmp/.cache/prony-one-file"
    said = bare.run(f"{file} --version", f"ls {place}", f"{file} --version", f"ls {place}").splitlines()
    assert said[:2] == said[2:]


def test_a_damaged_file_says_so_and_leaves_nothing(bare: Bare) -> None:
    (bare.folder / "damaged").write_bytes(bare.file.read_bytes()[:200_000])
    said = bare.run("sh /out/damaged 2>&1 || echo code $?", "ls -A /tmp/.cache/prony-one-file").splitlines()
    assert said[-1] == "code 3"
    assert any(line.startswith("error: cannot unpack /out/damaged") for line in said)


def test_the_same_wheel_gives_the_same_file(bare: Bare, tmp_path: Path) -> None:
    (wheel,) = bare.folder.parent.glob("prony-*.whl")
    again = tmp_path / bare.file.name
    write_one_file(wheel, again)
    if again.read_bytes() != bare.file.read_bytes():
        pytest.fail(f"these differ: {_differing(again, bare.file)}")


def _differing(one: Path, other: Path) -> list[str]:
    """Return the names of the files that are not the same in both archives."""

    def read(path: Path) -> dict[str, bytes]:
        content = path.read_bytes()
        plain = path.with_suffix(".tar.gz")
        plain.write_bytes(content[content.index(b"\x1f\x8b") :])
        with tarfile.open(plain) as tar:
            return {entry.name: found.read() for entry in tar if (found := tar.extractfile(entry)) is not None}

    first, second = read(one), read(other)
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
