"""What every executor must do, asked of this machine, of a real sshd and of a real Slurm with two nodes."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from prony.model.target import Handle, Observation, OptionValue, Payload, PlaceEnding, PlacePhase, Target
from prony.ports import plugins
from prony.ports.clock import SystemClock
from prony.ports.executor import Executor, ExecutorSite
from prony.recipe import loads
from prony.runner.job_folder import write_job_folder
from servers.binaries import AbsentError
from servers.needs import lack
from servers.slurm import Slurm, slurm_cluster
from servers.sshd import Sshd, sshd_server

_PATIENCE_S = 90.0
_SHORT = """\
name: short
workload: {{kind: script, command: "{command}", metrics: [{{name: speed, pattern: "speed=([0-9]+)"}}]}}
measure: {{repeats: {repeats}, warmup: 0}}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A short path: sockets lie below."""
    made = tmp_path_factory.mktemp("x")
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="module")
def sshd(place: Path) -> Iterator[Sshd]:
    with ExitStack() as block:
        try:
            server = block.enter_context(sshd_server(place / "sshd"))
        except AbsentError as exc:
            lack("sshd", str(exc))
        yield server


@pytest.fixture(scope="module")
def slurm(place: Path) -> Iterator[Slurm]:
    with ExitStack() as block:
        try:
            cluster = block.enter_context(slurm_cluster(place / "slurm"))
        except AbsentError as exc:
            lack("slurm", str(exc))
        yield cluster


def target_options(kind: str, request: pytest.FixtureRequest, folder: Path) -> dict[str, OptionValue]:
    """Return the options of a target of a kind, in a folder of its own, with a server that was started for it."""
    options: dict[str, OptionValue] = {"prefix": str(folder), "python": sys.executable}
    if kind != "slurm":
        options["lock"] = str(folder / "lock")
    if kind == "ssh":
        options |= {"ssh": "there", "ssh_options": tuple(request.getfixturevalue("sshd").options)}
    if kind == "slurm":
        options |= {"setup": tuple(request.getfixturevalue("slurm").setup), "files_late_s": 2, "exclusive": False}
    return options


def make_executor(kind: str, options: dict[str, OptionValue], place: Path) -> Executor:
    site = ExecutorSite(folder=place / "c", clock=SystemClock())
    made: Executor = plugins.load_plugin(plugins.EXECUTORS, kind)(Target(name=kind, kind=kind, options=options), site)
    return made


@pytest.fixture(params=["local", "ssh", "slurm"])
def executor(request: pytest.FixtureRequest, place: Path, tmp_path: Path) -> Iterator[Executor]:
    made = make_executor(request.param, target_options(request.param, request, tmp_path / "there"), place)
    yield made
    left = [Handle(key=path.name) for path in (tmp_path / "there" / "runs").glob("prony-*")]
    if left:
        made.end(left)


@pytest.fixture
def payload(tmp_path: Path) -> Callable[..., Payload]:
    """Return a maker of payloads of one script job each."""

    def make(key: str, command: str = "echo speed=42", repeats: int = 1) -> Payload:
        folder = tmp_path / f"{key}.out"
        jobs = loads(_SHORT.format(command=command, repeats=repeats)).jobs("exp")
        write_job_folder(folder, jobs, jobs)
        return Payload(key=key, folder=str(folder))

    return make


def wait_for(
    executor: Executor, handle: Handle, wanted: Callable[[Observation], bool], within_s: float = _PATIENCE_S
) -> Observation:
    """Look again and again until what is wanted is seen."""
    deadline = time.monotonic() + within_s
    while True:
        seen = executor.look([handle], {})[0]
        if wanted(seen):
            return seen
        assert time.monotonic() < deadline, seen
        time.sleep(0.1)


def has_ended(seen: Observation) -> bool:
    return seen.phase in (PlacePhase.ENDED, PlacePhase.LOST)


def is_measuring(seen: Observation) -> bool:
    return any(event.kind == "started" for event in seen.events)


def test_a_payload_runs_once_and_its_results_come_back_whole(
    executor: Executor, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    counted, into = tmp_path / "count", tmp_path / "in"
    sent = payload("prony-a-1-00000000", f"sh -c 'echo x >> {counted}; echo speed=1'")
    handle, again = executor.submit(sent), executor.submit(sent)
    assert handle.native_id == again.native_id
    seen = wait_for(executor, handle, has_ended)
    assert (seen.phase, seen.ending) == (PlacePhase.ENDED, PlaceEnding.DONE)
    assert seen.events[-1].kind == "finished"
    executor.submit(sent)
    absent = Handle(key="prony-a-9-00000000")
    later, unknown = executor.look([handle, absent], {handle.key: seen.offset})
    assert (later.key, later.ending, later.events) == (handle.key, PlaceEnding.DONE, ())
    assert (unknown.key, unknown.ending) == (absent.key, None)
    assert executor.fetch(handle, into) is True
    _damage(into / "result" / "exp-001")
    assert executor.fetch(handle, into) is True
    assert '"complete"' in (into / "result" / "exp-001" / "result.json").read_text()
    executor.end([handle])
    assert list((tmp_path / "there" / "runs").iterdir()) == []
    assert counted.read_text() == "x\n"


def _damage(result: Path) -> None:
    """Leave a folder as a fetch does that was cut."""
    (result / "job.json").unlink()
    (result / "result.json").write_text("half")


def test_a_payload_that_is_ended_stops_and_keeps_what_was_measured(
    executor: Executor, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    handle = executor.submit(payload("prony-c-1-00000000", "sh -c 'echo speed=1; sleep 0.2'", repeats=1000))
    wait_for(executor, handle, lambda seen: any(event.done >= 1 and event.state for event in seen.events))
    executor.end([handle])
    seen = wait_for(executor, handle, has_ended)
    assert seen.ending is PlaceEnding.DONE
    assert executor.fetch(handle, tmp_path / "in") is True
    assert '"partial"' in (tmp_path / "in" / "result" / "exp-001" / "result.json").read_text()
    executor.end([handle])
    assert list((tmp_path / "there" / "runs").iterdir()) == []
    executor.end([handle])  # what is gone already is no fault


def test_a_check_leaves_nothing_and_says_what_there_is(executor: Executor, tmp_path: Path) -> None:
    lines = {line.title: line for line in executor.check()}
    assert {line.status for line in lines.values()} == {"ok"}
    assert "Prony" in lines["prony"].value
    assert not (tmp_path / "there" / "runs").exists()


def test_a_runner_that_cannot_start_is_told_with_its_words(
    request: pytest.FixtureRequest, place: Path, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    for kind in ("local", "ssh", "slurm"):
        options = target_options(kind, request, tmp_path / kind) | {"python": "/bin/false-python"}
        executor = make_executor(kind, options, place)
        handle = executor.submit(payload(f"prony-{kind}-1-00000000"))
        seen = wait_for(executor, handle, has_ended)
        assert seen.ending is PlaceEnding.UNSTARTED
        assert "/bin/false-python" in seen.reason
        executor.end([handle])
