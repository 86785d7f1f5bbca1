"""What the executor asks of kubectl, and what it makes of the answers: with a kubectl that answers from files."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from prony.errors import AccessError, CapacityError, InputError
from prony.model.target import Handle, Payload, PlaceEnding, PlacePhase, Target
from prony.plugins.executors.kubernetes import KubernetesExecutor
from prony.plugins.executors.kubernetes_text import KEY_LABEL
from prony.ports.clock import SystemClock
from prony.ports.executor import ExecutorSite
from prony.runner.job_folder import write_question

KEY = "prony-a-1-00000000"
# Every call is noted; the first line of `answers` whose first word is in the call is its answer: WORD CODE FILE.
_KUBECTL = f"""#!{sys.executable}
import os, pathlib, sys
here = pathlib.Path(__file__).parent
call = " ".join(sys.argv[1:])
sent = sys.stdin.read() if "--filename=-" in call else ""
with (here / "calls").open("a") as calls:
    calls.write(call + "\\n")
if "exec" in sys.argv:  # on this machine, where nothing of a run is
    os.execv("/bin/sh", sys.argv[sys.argv.index("--") + 1:])
for line in (here / "answers").read_text().splitlines():
    word, code, name = line.split()
    if word in call:
        (sys.stderr if int(code) else sys.stdout).write((here / name).read_text())
        sys.exit(int(code))
"""


class MovedClock(SystemClock):
    """A clock that a test moves on."""

    seconds = 0.0

    def monotonic_ns(self) -> int:
        return int(self.seconds * 1e9)


class Cluster:
    """A folder with a kubectl and its answers."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, MovedClock()
        folder.mkdir()
        (folder / "kubectl").write_text(_KUBECTL)
        (folder / "kubectl").chmod(0o755)
        (folder / "answers").touch()
        self.answer("jobs.batch,pods", items=[])

    def answer(self, word: str, code: int = 0, text: str = "", **document: Any) -> None:
        """Answer calls that have a word in them; what was said last of it counts."""
        name = f"answer-{len((self.folder / 'answers').read_text().splitlines())}"
        (self.folder / name).write_text(text or json.dumps(document))
        before = (self.folder / "answers").read_text()
        (self.folder / "answers").write_text(f"{word} {code} {name}\n{before}")

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()

    def executor(self, **options: Any) -> KubernetesExecutor:
        given = {"image": "i", "kubectl": str(self.folder / "kubectl"), "context": "mine", "namespace": "bench"}
        target = Target(name="k8s", kind="kubernetes", options=given | options)
        return KubernetesExecutor(target, ExecutorSite(folder=self.folder, clock=self.clock))


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path / "cluster")


@pytest.fixture
def payload(tmp_path: Path) -> Payload:
    write_question(tmp_path / "out")
    return Payload(key=KEY, folder=str(tmp_path / "out"))


def job(**more: Any) -> dict[str, Any]:
    return {"kind": "Job", "metadata": {"name": KEY, "uid": "u1", "labels": {KEY_LABEL: KEY}}, "spec": {}, **more}


def test_the_job_comes_before_what_it_owns_and_one_that_is_there_is_found(cluster: Cluster, payload: Payload) -> None:
    cluster.answer("create", **job())
    handle = cluster.executor(minutes=7).submit(payload)
    assert (handle.native_id, handle.wall_minutes) == (KEY, 7)
    made = cluster.calls  # two calls in all
    assert ["/jobs?" in call for call in made] == [True, False]
    assert "/secrets?fieldValidation=Strict" in made[1]
    assert all("--context=mine" in call and "--namespace=bench" in call for call in cluster.calls)
    cluster.answer("create", 1, 'Error from server (AlreadyExists): jobs.batch "x" already exists')
    cluster.answer(f"jobs/{KEY}", **job())
    assert cluster.executor().submit(payload).native_id == KEY


def test_a_refusal_has_the_request_that_was_refused(cluster: Cluster, payload: Payload) -> None:
    cluster.answer("create", 1, "Error from server (Forbidden): jobs.batch is forbidden: User x cannot create")
    with pytest.raises(AccessError, match="forbids it") as caught:
        cluster.executor().submit(payload)
    assert "create '--raw=/apis/batch/v1/namespaces/bench/jobs?fieldValidation=Strict'" in caught.value.hint


def test_all_jobs_are_asked_for_at_once_and_warnings_only_where_one_is_silent(cluster: Cluster) -> None:
    handles = [Handle(key=f"prony-{number}", native_id="x") for number in range(60)]
    executor = cluster.executor()
    seen = executor.look(handles, {"prony-1": 7})
    assert len(cluster.calls) == 1
    assert "--selector=app.kubernetes.io/managed-by=prony" in cluster.calls[0]
    assert {(one.phase, one.ending, one.reason) for one in seen} == {
        (PlacePhase.ENDED, PlaceEnding.CANCELLED, "its Job was deleted")
    }
    assert seen[1].offset == 7
    cluster.answer("jobs.batch,pods", items=[job()])
    about = {"name": KEY}
    warning = {"type": "Warning", "reason": "FailedCreate", "message": "exceeded quota: q", "involvedObject": about}
    cluster.answer("events", items=[warning])
    assert executor.look([Handle(key=KEY)], {})[0].reason == ""
    for _ in range(3):
        cluster.clock.seconds += 10 / 3 + 4
        (one,) = executor.look([Handle(key=KEY)], {})
    assert (one.phase, one.reason) == (
        PlacePhase.QUEUED,
        "the quota of the namespace is used up (FailedCreate): exceeded quota: q",
    )
    assert sum("events" in call for call in cluster.calls) == 1, "asked after ten seconds, and not soon again"


def test_files_of_many_pods_are_read_in_turns(cluster: Cluster) -> None:
    keys = [f"prony-{number}" for number in range(6)]
    running: list[dict[str, Any]] = [{"name": name, "state": {"running": {}}} for name in ("runner", "keeper")]
    status = {"phase": "Running", "containerStatuses": running}
    named = [{"name": f"{key}-x", "labels": {KEY_LABEL: key}} for key in keys]
    cluster.answer("jobs.batch,pods", items=[{"kind": "Pod", "metadata": one, "status": status} for one in named])
    executor = cluster.executor()
    for second in range(7):
        cluster.clock.seconds = second
        seen = executor.look([Handle(key=key) for key in keys], {})
    assert {one.phase for one in seen} == {PlacePhase.STARTING}
    read = sum("exec --stdin" in call for call in cluster.calls)
    assert read == 6 * 3, "each at once, after 3 s and after 6 s: two a second over all"


def test_what_waits_is_deleted_with_all_that_it_owns(cluster: Cluster) -> None:
    cluster.answer("jobs.batch,pods", items=[job()])
    cluster.answer("delete", text="deleted")
    cluster.executor().end([Handle(key=KEY)])
    assert f"delete jobs.batch {KEY} --ignore-not-found" in cluster.calls[-1]
    assert "--cascade=background" in cluster.calls[-1]


def test_without_its_pod_nothing_is_fetched(cluster: Cluster, tmp_path: Path) -> None:
    assert cluster.executor().fetch(Handle(key=KEY), tmp_path / "in") is False


def test_a_check_names_each_right_that_is_missing_with_the_command(cluster: Cluster) -> None:
    cluster.answer("/version", gitVersion="v1.20.2")
    cluster.answer("can-i", text="yes")
    assert [line.status for line in cluster.executor(cpus=2, memory="4Gi").check()] == ["ok"] * 4
    cluster.answer("subresource=exec", 1, "no")
    lines = {line.title: line for line in cluster.executor().check()}
    assert lines["may create pods --subresource=exec"].status == "failed"
    assert lines["may create pods --subresource=exec"].value.endswith("auth can-i create pods --subresource=exec")
    assert lines["share"].status == "warn"
    cluster.answer("/version", 1, 'error: context "mine" does not exist')
    (line,) = cluster.executor().check()
    assert (line.status, "get --raw=/version" in line.value) == ("failed", True)


def test_what_kubectl_is_missing_and_what_cannot_be_installed_are_told(cluster: Cluster, payload: Payload) -> None:
    with pytest.raises(InputError, match="it must be in the image"):
        cluster.executor().install("1", (), lambda *_: Path())
    shutil.rmtree(cluster.folder)
    with pytest.raises(CapacityError, match=r".*kubectl not found"):
        cluster.executor().submit(payload)
