"""What every executor must do, asked of this machine, a real sshd, a real Slurm and a real Kubernetes."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from executor_runs import PATIENCE_S, has_ended, is_measuring, look_until, make_executor, printed, target_options

from prony.app.maintain_targets import check_target_lines, install_prony
from prony.app.results import mend, summary_of
from prony.app.target_packages import interpreter_here
from prony.errors import AccessError, CapacityError, InputError, TransportError
from prony.model.target import Handle, Observation, OptionValue, Payload, PlaceEnding, PlacePhase, Target
from prony.ports.executor import Executor, Interpreter
from prony.runner.job_folder import write_job_folder
from prony.store.home import Home
from prony.store.lock import try_file_lock
from servers.binaries import AbsentError
from servers.kubernetes import Kubernetes
from servers.needs import lack
from servers.slurm import Slurm
from servers.sshd import Sshd, sshd_server
from servers.waiting import wait_for

pytest_plugins = ["executor_fixtures"]
KINDS = ["local", "ssh", "slurm", pytest.param("kubernetes", marks=pytest.mark.clusters)]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    named: str = request.param
    return named


@pytest.fixture
def left_there(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Callable[[], list[str]]:
    """Return a way to ask which runs still lie at the target."""
    if kind == "kubernetes":
        cluster: Kubernetes = request.getfixturevalue("kubernetes")
        return lambda: sorted({name.partition("/")[2] for name in cluster.names()})
    return lambda: sorted(path.name for path in (tmp_path / "there" / "runs").glob("*"))


@pytest.fixture
def executor(
    request: pytest.FixtureRequest, kind: str, left_there: Callable[[], list[str]], place: Path, tmp_path: Path
) -> Iterator[Executor]:
    made = make_executor(kind, target_options(kind, request, tmp_path / "there"), place)
    yield made
    left = [Handle(key=name) for name in left_there() if name.startswith("prony-")]
    if left:
        made.end(left)


def test_a_payload_runs_once_is_ended_and_comes_back_whole(
    executor: Executor, left_there: Callable[[], list[str]], payload: Callable[..., Payload], tmp_path: Path
) -> None:
    counted, into = tmp_path / "count", tmp_path / "in"
    sent = payload("prony-a-1-00000000", f"sh -c 'echo x >> {counted}; echo speed=1; sleep 0.5'", repeats=1000)
    handle, again = executor.submit(sent), executor.submit(sent)
    assert handle.native_id == again.native_id
    look_until(executor, handle, lambda seen: any(event.done >= 1 and event.state for event in seen.events))
    executor.end([handle])
    seen = look_until(executor, handle, has_ended)
    assert (seen.phase, seen.ending) == (PlacePhase.ENDED, PlaceEnding.DONE)
    assert seen.events[-1].kind == "finished"
    assert [event.kind for event in seen.events].count("started") == 1
    ran = counted.read_text()
    executor.submit(sent)
    absent = Handle(key="prony-a-9-00000000")
    later, unknown = executor.look([handle, absent], {handle.key: seen.offset})
    assert (later.key, later.ending, later.events) == (handle.key, PlaceEnding.DONE, ())
    assert (unknown.key, unknown.ending) == (absent.key, None)
    assert executor.fetch(handle, into) is True
    _damage(into / "result" / "exp-001")
    assert executor.fetch(handle, into) is True
    assert '"partial"' in (into / "result" / "exp-001" / "result.json").read_text()
    executor.end([handle])
    wait_for(lambda: left_there() == [], "nothing is left there")  # a cluster deletes a moment later
    executor.end([handle])  # what is gone already is no fault
    assert counted.read_text() == ran


def test_what_a_job_prints_is_seen_while_it_runs(
    executor: Executor, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    go = tmp_path / "go"
    command = f"sh -c 'echo half way; while [ ! -e {go} ]; do sleep 0.1; done; echo speed=1'"
    handle = executor.submit(payload("prony-says-1-00000000", command))
    seen = look_until(executor, handle, lambda seen: "half way" in printed(seen).values())
    assert seen.phase is PlacePhase.RUNNING
    assert seen.started_at is None or abs((datetime.now(UTC) - seen.started_at).total_seconds()) < PATIENCE_S
    assert printed(seen) == {"run-0000.out": "half way"}
    go.touch()
    later = look_until(executor, handle, has_ended)
    assert [one for one in later.events if one.kind == "printed"][-1].message == "speed=1"
    executor.fetch(handle, tmp_path / "in")
    log = (tmp_path / "in" / "result" / "exp-001" / "logs" / "job.log").read_text()
    assert [line.split(maxsplit=2)[1:] for line in log.splitlines() if "run-0000.out" in line] == [
        ["run-0000.out", "half way"],
        ["run-0000.out", "speed=1"],
    ]
    executor.end([handle])


def _damage(result: Path) -> None:
    """Leave a folder as a fetch does that was cut."""
    (result / "job.json").unlink()
    (result / "result.json").write_text("half")


def test_a_check_leaves_nothing_and_says_what_there_is(
    executor: Executor, left_there: Callable[[], list[str]], tmp_path: Path
) -> None:
    lines = {line.title: line for line in executor.check()}
    assert "failed" not in {line.status for line in lines.values()}
    assert "Prony" in lines["runner"].value
    assert left_there() == []
    assert not (tmp_path / "there" / "runs").exists()


def test_a_runner_that_cannot_start_is_told_with_its_words(
    request: pytest.FixtureRequest, kind: str, place: Path, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    options = target_options(kind, request, tmp_path / kind) | {"python": "/bin/false-python"}
    executor = make_executor(kind, options, place)
    handle = executor.submit(payload(f"prony-{kind}-1-00000000"))
    seen = look_until(executor, handle, has_ended)
    assert seen.ending is PlaceEnding.UNSTARTED
    assert "/bin/false-python" in seen.reason
    executor.end([handle])


# SSH alone


def test_all_commands_of_ssh_share_one_login_and_a_cut_does_not_end_a_run(
    request: pytest.FixtureRequest, sshd: Sshd, place: Path, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    executor = make_executor("ssh", target_options("ssh", request, tmp_path / "there"), place / "cut")
    before = sshd.count_logins()
    handle = executor.submit(payload("prony-cut-1-00000000", "sh -c 'echo speed=1; sleep 0.2'", repeats=8))
    look_until(executor, handle, is_measuring)
    assert sshd.count_logins() == before + 1
    first = executor.look([handle], {})[0]
    for process in psutil.Process(sshd.process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # one ends with another
            process.kill()
    seen = wait_after_cut(executor, handle, first.offset)
    assert sshd.count_logins() == before + 2
    assert seen.ending is PlaceEnding.DONE
    executor.fetch(handle, tmp_path / "in")
    assert '"complete"' in (tmp_path / "in" / "result" / "exp-001" / "result.json").read_text()
    executor.end([handle])


def wait_after_cut(executor: Executor, handle: Handle, offset: int) -> Observation:
    """Look on from where the cut came, and see every later event once."""
    done: list[int] = []
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            seen = executor.look([handle], {handle.key: offset})[0]
        except TransportError:  # the kept connection is gone; the next command makes a new one
            continue
        done += [event.done for event in seen.events if event.kind == "repetition" and event.state]
        offset = seen.offset
        if has_ended(seen):
            # On a busy machine some are disturbed and made again.
            assert done == list(range(done[0], max(8, done[-1]) + 1))
            return seen
        time.sleep(0.4)
    raise AssertionError("it does not end")


@pytest.mark.parametrize("change", ["forget_host", "change_host_key"])
def test_a_host_key_that_is_not_known_is_refused_with_its_fingerprint(
    request: pytest.FixtureRequest, place: Path, tmp_path: Path, change: str
) -> None:
    try:
        with sshd_server(tmp_path / "sshd") as server:
            getattr(server, change)()
            options = target_options("local", request, tmp_path / "there")
            options |= {"ssh": "there", "ssh_options": tuple(server.options)}
            told = subprocess.run(
                ["ssh-keygen", "-lf", server.folder / "host.pub"], capture_output=True, text=True, check=True
            ).stdout
            with pytest.raises(AccessError) as caught:
                make_executor("ssh", options, tmp_path).check()
            assert caught.value.code == "host_key"
            assert told.split()[1] in caught.value.message
            assert not (tmp_path / "there").exists()
    except AbsentError as exc:
        lack("sshd", str(exc))


def test_a_run_waits_for_the_lock_of_its_machine(request: pytest.FixtureRequest, place: Path, tmp_path: Path) -> None:
    executor = make_executor("local", target_options("local", request, tmp_path / "there"), place)
    write_job_folder(tmp_path / "out", [], [])
    with try_file_lock(tmp_path / "lock") as is_held:
        assert is_held
        (tmp_path / "there").mkdir()
        (tmp_path / "there" / "lock").hardlink_to(tmp_path / "lock")
        handle = executor.submit(Payload(key="prony-lock-2-00000000", folder=str(tmp_path / "out")))
        seen = look_until(executor, handle, lambda one: one.phase is PlacePhase.QUEUED)
        assert seen.reason == "another run uses the machine"
    assert look_until(executor, handle, has_ended).ending is PlaceEnding.DONE
    executor.end([handle])


# Slurm alone


def slurm_executor(request: pytest.FixtureRequest, place: Path, tmp_path: Path, **more: OptionValue) -> Executor:
    return make_executor("slurm", target_options("slurm", request, tmp_path / "there") | more, place)


@pytest.mark.slow
def test_slurm_tells_why_a_job_waits_and_that_it_is_held(
    request: pytest.FixtureRequest, slurm: Slurm, place: Path, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    executor = slurm_executor(request, place, tmp_path, exclusive=True)
    slurm.run("sbatch", "--nodes=2", "--exclusive", "--job-name=busy", "--output=/dev/null", "--wrap=sleep 1000")
    handle = executor.submit(payload("prony-wait-1-00000000"))
    seen = look_until(executor, handle, lambda one: bool(one.reason))
    assert seen.phase is PlacePhase.QUEUED
    assert re.match(r"(no suitable node is free yet|jobs with a higher priority go first) \(\w+\)", seen.reason)
    slurm.run("scontrol", "hold", handle.native_id)
    seen = look_until(executor, handle, lambda one: one.phase is PlacePhase.HELD)
    assert f"scontrol release {handle.native_id}" in seen.reason
    slurm.run("scancel", handle.native_id)
    seen = look_until(executor, handle, has_ended)
    assert (seen.ending, seen.state) == (PlaceEnding.CANCELLED, "CANCELLED")
    executor.end([handle])
    slurm.run("scancel", "--name=busy")
    slurm.wait_idle()


def test_a_killed_runner_leaves_what_it_measured(
    request: pytest.FixtureRequest, place: Path, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    executor = slurm_executor(request, place, tmp_path)
    handle = executor.submit(payload("prony-end-1-00000000", "sleep 1000"))
    look_until(executor, handle, is_measuring)
    runner_in(tmp_path / "there" / "runs" / handle.key).kill()
    seen = look_until(executor, handle, has_ended)
    assert (seen.ending, seen.state) == (PlaceEnding.KILLED, "FAILED")
    assert executor.fetch(handle, tmp_path / "in") is False
    came = tmp_path / "in" / "result" / "exp-001"
    assert '"partial"' in (came / "result.json").read_text()
    mend(came)
    assert summary_of(came).job_id == "exp-001"
    executor.end([handle])


@pytest.mark.slow
def test_a_failed_node_is_told_from_a_failed_job(
    request: pytest.FixtureRequest, slurm: Slurm, place: Path, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    executor = slurm_executor(request, place, tmp_path)
    handle = executor.submit(payload("prony-node-1-00000000", "sleep 1000"))
    look_until(executor, handle, is_measuring)
    (node,) = look_until(executor, handle, lambda one: bool(one.nodes)).nodes
    slurm.kill_node(node)
    seen = look_until(executor, handle, has_ended)
    assert (seen.ending, seen.state) == (PlaceEnding.NODE, "NODE_FAIL")
    slurm.start_node(node)
    executor.end([handle])
    slurm.wait_idle()


def runner_in(folder: Path) -> psutil.Process:
    """Return the process that runs a job folder."""
    everyone = psutil.process_iter(["cmdline", "cwd"])  # what has ended meanwhile has neither
    return next(one for one in everyone if "--folder" in (one.info["cmdline"] or ()) and one.info["cwd"] == str(folder))


def test_what_sbatch_refuses_names_the_option(
    request: pytest.FixtureRequest, slurm: Slurm, place: Path, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    wrong = slurm_executor(request, place, tmp_path, partition="nowhere")
    with pytest.raises(InputError, match=r"the option partition of the target slurm: .*Invalid partition name"):
        wrong.submit(payload("prony-no-1-00000000"))
    assert list((tmp_path / "there" / "runs").iterdir()) == []
    large = slurm_executor(request, place, tmp_path, native=("--mem=900000",))
    with pytest.raises(CapacityError, match="Requested node configuration is not available"):
        large.submit(payload("prony-no-2-00000000"))


@pytest.mark.slow
def test_what_was_measured_before_the_time_limit_is_kept(
    request: pytest.FixtureRequest, place: Path, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    executor = slurm_executor(request, place, tmp_path, minutes=1)
    handle = executor.submit(payload("prony-time-1-00000000", "sh -c 'echo speed=1; sleep 1'", repeats=600))
    seen = look_until(executor, handle, has_ended, within_s=180)
    assert seen.ending is PlaceEnding.DONE
    assert executor.fetch(handle, tmp_path / "in") is True
    result = (tmp_path / "in" / "result" / "exp-001" / "result.json").read_text()
    assert '"partial"' in result
    assert result.count('"started_at"') > 2
    executor.end([handle])


@pytest.mark.slow
@pytest.mark.parametrize("partition", ["test", "cheap"])  # preempted jobs are queued again, or cancelled
def test_a_job_that_makes_room_for_another_is_told_from_one_that_ended(
    request: pytest.FixtureRequest,
    slurm: Slurm,
    place: Path,
    payload: Callable[..., Payload],
    tmp_path: Path,
    partition: str,
) -> None:
    executor = slurm_executor(request, place, tmp_path, partition=partition, exclusive=True)
    handle = executor.submit(payload(f"prony-{partition}-1-00000000", "sleep 1000"))
    look_until(executor, handle, is_measuring)
    slurm.run("sbatch", "--partition=first", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=true")
    seen = look_until(executor, handle, has_ended)
    assert (seen.ending, seen.state) == (PlaceEnding.PREEMPTED, "PREEMPTED")
    assert seen.reason == f"Slurm says PREEMPTED on {seen.nodes[0]}"
    assert executor.fetch(handle, tmp_path / "in") is True
    executor.end([handle])
    slurm.wait_idle()


@pytest.mark.slow
def test_a_suspension_is_known_although_nobody_looked_meanwhile(
    request: pytest.FixtureRequest, slurm: Slurm, place: Path, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    executor = slurm_executor(request, place, tmp_path)
    gate = tmp_path / "gate"
    handle = executor.submit(payload("prony-sus-1-00000000", f"sh -c 'until [ -e {gate} ]; do sleep 0.05; done'"))
    look_until(executor, handle, is_measuring)
    slurm.run("scontrol", "suspend", handle.native_id)
    stopped_at = time.monotonic()
    while time.monotonic() < stopped_at + 2:  # Slurm counts whole seconds
        time.sleep(0.1)
    slurm.run("scontrol", "resume", handle.native_id)
    gate.touch()
    seen = look_until(executor, handle, has_ended)
    assert (seen.ending, seen.is_suspect) == (PlaceEnding.DONE, True)
    executor.end([handle])


@pytest.mark.slow
def test_a_runner_that_does_not_hear_of_its_time_limit_leaves_what_it_measured(
    request: pytest.FixtureRequest, slurm: Slurm, place: Path, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    deaf = tmp_path / "deaf"
    deaf.write_text(
        f"#!{sys.executable}\nimport os, signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])\n"
    )
    deaf.chmod(0o700)
    executor = slurm_executor(request, place, tmp_path, python=str(deaf))
    handle = executor.submit(payload("prony-deaf-1-00000000", "sh -c 'echo speed=1; sleep 0.5'", repeats=10_000))
    look_until(executor, handle, is_measuring)
    slurm.run("scontrol", "update", f"JobId={handle.native_id}", "EndTime=now")  # looked at every half minute
    seen = look_until(executor, handle, has_ended, within_s=180)
    assert (seen.ending, seen.state) == (PlaceEnding.TIME, "TIMEOUT")
    assert executor.fetch(handle, tmp_path / "in") is False
    assert '"partial"' in (tmp_path / "in" / "result" / "exp-001" / "result.json").read_text()
    executor.end([handle])


@pytest.mark.slow
def test_a_job_that_another_cancels_keeps_what_it_measured_and_says_so(
    request: pytest.FixtureRequest, slurm: Slurm, place: Path, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    executor = slurm_executor(request, place, tmp_path)
    handle = executor.submit(payload("prony-gone-1-00000000", "sleep 1000"))
    look_until(executor, handle, is_measuring)
    slurm.run("scancel", handle.native_id)
    seen = look_until(executor, handle, has_ended)
    assert (seen.ending, seen.reason) == (PlaceEnding.DONE, f"Slurm says CANCELLED on {seen.nodes[0]}")
    assert executor.fetch(handle, tmp_path / "in") is True
    executor.end([handle])


# Installing


def packages(folder: Path, *, is_whole: bool) -> Path:
    """Return an archive with a package that can be imported, and the mark of its end unless it was cut."""
    (folder / "prony").mkdir(parents=True)
    (folder / "prony" / "__init__.py").write_text("")
    (folder / "complete").write_text("")
    with tarfile.open(folder / "packages.tar", "w") as archive:
        for name in ("prony", "complete") if is_whole else ("prony",):
            archive.add(folder / name, arcname=name)
    return folder / "packages.tar"


def test_a_release_is_installed_once_and_a_half_of_it_is_never_used(
    request: pytest.FixtureRequest, place: Path, tmp_path: Path
) -> None:
    executor = make_executor("ssh", target_options("ssh", request, tmp_path / "there"), place)
    with pytest.raises(TransportError, match="the upload was cut short"):
        executor.install("9", (), lambda *_: packages(tmp_path / "half", is_whole=False))
    assert list((tmp_path / "there").iterdir()) == []
    built: list[tuple[Interpreter, list[str]]] = []

    def build(there: Interpreter, extras: Sequence[str]) -> Path:
        built.append((there, list(extras)))
        return packages(tmp_path / f"whole-{len(built)}", is_whole=True)

    folder = executor.install("9", (), build)
    assert executor.install("9", (), build) == folder
    assert built == [(interpreter_here(), [])]
    assert Path(folder, "bin", "python").exists()
    # An extra that is not there yet brings a whole release again, with those that were there.
    assert executor.install("9", ["onnx"], build) == folder
    assert executor.install("9", ["redis"], build) == folder
    for present in ([], ["onnx"], ["redis", "onnx"]):
        assert executor.install("9", present, build) == folder
    assert [extras for _, extras in built] == [[], ["onnx"], ["onnx", "redis"]]
    assert [path.name for path in (tmp_path / "there").iterdir()] == [Path(folder).name]
    assert Path(folder, "bin", "python").exists()


@pytest.mark.slow
def test_a_check_of_a_cluster_whose_queue_is_long_warns_and_leaves_nothing(
    request: pytest.FixtureRequest, slurm: Slurm, tmp_path: Path, prony_home: Path
) -> None:
    options = target_options("slurm", request, tmp_path / "there") | {"native": ("--begin=now+1hour",)}
    target = Target(name="busy", kind="slurm", options=options)
    *others, line = check_target_lines(target, Home(prony_home), patience_s=3)
    assert "failed" not in {one.status for one in others}
    assert line.status == "warn"
    assert line.value.startswith("still queued after 3 s: its start time has not come yet (BeginTime), expected to")
    assert slurm.run("squeue", "--noheader") == ""
    assert list((tmp_path / "there" / "runs").iterdir()) == []


@pytest.mark.slow
def test_prony_itself_is_installed_and_proves_its_target(
    request: pytest.FixtureRequest, place: Path, tmp_path: Path, prony_home: Path
) -> None:
    options = {**target_options("ssh", request, tmp_path / "there"), "python": ""}
    target = Target(name="box", kind="ssh", options=options)
    said: list[str] = []
    install_prony(target, Home(prony_home), say=said.append)
    install_prony(target, Home(prony_home), say=said.append)
    assert len(said) == 1
    lines = check_target_lines(target, Home(prony_home))
    assert [line.status for line in lines if line.title in ("runner", "job")] == ["ok", "ok"]
