"""What the executor for Kubernetes does beyond what every executor must, asked of a real cluster."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from executor_runs import has_ended, is_measuring, look_until, make_executor, target_options

from prony.app.maintain_targets import check_target_lines
from prony.app.results import summary_of
from prony.errors import AccessError, TransportError
from prony.model.estimate import Grade
from prony.model.result import Result
from prony.model.target import OptionValue, Payload, PlaceEnding, PlacePhase, Target
from prony.ports.executor import Executor
from prony.recipe import loads
from prony.runner.job_folder import write_job_folder
from prony.store.home import Home
from servers.kubernetes import SERVICE_IMAGE, Kubernetes
from servers.needs import lack
from servers.waiting import wait_for

pytest_plugins = ["executor_fixtures"]
pytestmark = pytest.mark.clusters


def kubernetes_executor(request: pytest.FixtureRequest, place: Path, tmp_path: Path, **more: OptionValue) -> Executor:
    return make_executor("kubernetes", target_options("kubernetes", request, tmp_path / "there") | more, place)


def test_a_cluster_proves_itself_by_a_job_with_the_rights_that_prony_ships(
    request: pytest.FixtureRequest, tmp_path: Path, prony_home: Path
) -> None:
    options = target_options("kubernetes", request, tmp_path / "there") | {"cpus": 1, "memory": "1Gi"}
    lines = check_target_lines(Target(name="k8s", kind="kubernetes", options=options), Home(prony_home))
    assert [(line.title, line.status) for line in lines] == [
        ("cluster", "ok"),
        ("rights", "ok"),
        ("share", "ok"),
        ("runner", "ok"),
        ("job", "ok"),
    ]


def test_what_a_person_must_mend_is_held_and_what_fits_nowhere_waits(
    request: pytest.FixtureRequest,
    kubernetes: Kubernetes,
    place: Path,
    payload: Callable[..., Payload],
    tmp_path: Path,
) -> None:
    executor = kubernetes_executor(request, place, tmp_path, image="prony.test/other:1")
    handle = executor.submit(payload("prony-image-1-00000000"))
    seen = look_until(executor, handle, lambda one: one.phase is PlacePhase.HELD)
    assert seen.reason.startswith("the image is not on the node, and may not be pulled (ErrImageNeverPull): ")
    executor.end([handle])
    seen = look_until(executor, handle, has_ended)
    assert (seen.phase, seen.ending) == (PlacePhase.ENDED, PlaceEnding.CANCELLED)
    choosy = kubernetes_executor(request, place, tmp_path, node_selector=("disk=fast",))
    handle = choosy.submit(payload("prony-choosy-1-00000000"))
    seen = look_until(choosy, handle, lambda one: bool(one.reason))
    assert seen.phase is PlacePhase.QUEUED
    assert seen.reason.startswith("no suitable node is free (Unschedulable): 0/1 nodes are available")
    choosy.end([handle])
    wait_for(lambda: kubernetes.names() == [], "nothing is left there")


def test_a_pod_that_is_deleted_makes_room_and_its_job_goes_with_all_it_owns(
    request: pytest.FixtureRequest,
    kubernetes: Kubernetes,
    place: Path,
    payload: Callable[..., Payload],
    tmp_path: Path,
) -> None:
    executor = kubernetes_executor(request, place, tmp_path)
    handle = executor.submit(payload("prony-gone-1-00000000", "sleep 1000"))
    look_until(executor, handle, is_measuring)
    (pod,) = kubernetes.names("pods")
    kubernetes.run("delete", pod, "--wait=false")
    seen = look_until(executor, handle, has_ended)
    assert (seen.ending, seen.reason) == (PlaceEnding.PREEMPTED, "its pod was deleted")
    assert executor.fetch(handle, tmp_path / "in") is False
    executor.end([handle])
    wait_for(lambda: kubernetes.names() == [], "nothing is left there")


def test_a_quota_of_cpu_makes_the_number_suspect(
    request: pytest.FixtureRequest,
    kubernetes: Kubernetes,
    place: Path,
    payload: Callable[..., Payload],
    tmp_path: Path,
) -> None:
    executor = kubernetes_executor(request, place, tmp_path, cpus=1, memory="2Gi")
    gate, over = tmp_path / "gate", tmp_path / "over"
    busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    script = f"until [ -e {gate} ]; do sleep 0.1; done; {busy}; touch {over}; echo speed=1"
    handle = executor.submit(payload("prony-quota-1-00000000", f"sh -c '{script}'"))
    look_until(executor, handle, is_measuring)
    (pod,) = kubernetes.names("pods")
    kubernetes.limit_cpu(pod, 5_000)
    gate.touch()
    wait_for(over.exists, "the work to be done")
    kubernetes.limit_cpu(pod, 100_000)
    assert look_until(executor, handle, has_ended).ending is PlaceEnding.DONE
    assert executor.fetch(handle, tmp_path / "in") is True
    folder = tmp_path / "in" / "result" / "exp-001"
    result = Result.read_json((folder / "result.json").read_text())
    assert [(one.noise.quota_throttled_ms or 0.0) > 0 for one in result.repetitions] == [True]
    verdict = summary_of(folder).verdict
    assert verdict.grade in (Grade.SUSPECT, Grade.VOID)
    assert "quota" in {reason.code for reason in verdict.reasons}
    executor.end([handle])


def test_a_runner_that_is_killed_leaves_what_it_measured_with_the_keeper(
    request: pytest.FixtureRequest,
    kubernetes: Kubernetes,
    place: Path,
    payload: Callable[..., Payload],
    tmp_path: Path,
) -> None:
    executor = kubernetes_executor(request, place, tmp_path)
    handle = executor.submit(payload("prony-kill-1-00000000", "sleep 1000"))
    look_until(executor, handle, is_measuring)
    (pod,) = kubernetes.names("pods")
    kubernetes.run("exec", pod, "--container=runner", "--", "/bin/sh", "-c", "pkill -KILL -f 'prony exec --folder'")
    seen = look_until(executor, handle, has_ended)
    assert seen.ending is PlaceEnding.KILLED
    assert seen.reason.startswith("its runner ended with exit code 137")
    assert executor.fetch(handle, tmp_path / "in") is False
    assert '"partial"' in (tmp_path / "in" / "result" / "exp-001" / "result.json").read_text()
    executor.end([handle])


def test_a_submission_that_was_cut_is_found_by_its_key_and_runs_once(
    request: pytest.FixtureRequest,
    kubernetes: Kubernetes,
    place: Path,
    payload: Callable[..., Payload],
    tmp_path: Path,
) -> None:
    cut = tmp_path / "kubectl"
    refusal = 'case "$*" in *secrets*) echo "Unable to connect" >&2; exit 1;; esac'
    cut.write_text(f'#!/bin/sh\n{refusal}\nexec {kubernetes.kubectl} "$@"\n')
    cut.chmod(0o755)
    counted = tmp_path / "count"
    sent = payload("prony-cut-1-00000000", f"sh -c 'echo x >> {counted}; echo speed=1'")
    with pytest.raises(TransportError, match="cannot be reached"):
        kubernetes_executor(request, place, tmp_path, kubectl=str(cut)).submit(sent)
    executor = kubernetes_executor(request, place, tmp_path)
    handle = executor.submit(sent)
    assert executor.submit(sent).native_id == handle.native_id
    assert look_until(executor, handle, has_ended).ending is PlaceEnding.DONE
    assert counted.read_text() == "x\n"
    executor.end([handle])


_SERVED = """\
name: served
workload: {{kind: service, service: redis, restart: each-run,
           settings: {{image: "{image}", program: {program}}}}}
load: {{closed: {{concurrency: 2}}, duration: 500ms, warmup: none, repeats: 2}}
"""


def test_a_service_runs_in_its_own_image_beside_the_runner_and_ends_with_its_pod(
    request: pytest.FixtureRequest, kubernetes: Kubernetes, place: Path, tmp_path: Path
) -> None:
    program = shutil.which("redis-server", path="/usr/bin")  # which a pod has of this machine
    if program is None:
        lack("redis", "no redis-server in /usr/bin: apt-get install redis-server")
    jobs = loads(_SERVED.format(image=SERVICE_IMAGE, program=program)).jobs("exp")
    write_job_folder(tmp_path / "out", jobs, jobs)
    executor = kubernetes_executor(request, place, tmp_path)
    handle = executor.submit(Payload(key="prony-served-1-00000000", folder=str(tmp_path / "out")))
    look_until(executor, handle, is_measuring)
    (pod,) = kubernetes.names("pods")
    assert kubernetes.run("get", pod, "--output=jsonpath={.spec.containers[2].image}") == SERVICE_IMAGE
    assert look_until(executor, handle, has_ended).ending is PlaceEnding.DONE
    assert executor.fetch(handle, tmp_path / "in") is True
    folder = tmp_path / "in" / "result" / "exp-001"
    result = Result.read_json((folder / "result.json").read_text())
    assert (result.state, result.failure) == ("complete", None)
    logs = "".join(path.read_text() for path in folder.rglob("service*.log"))
    assert logs.count("Ready to accept connections") >= 2, "each run has a new start"
    executor.end([handle])
    wait_for(lambda: kubernetes.names() == [], "nothing is left there")


def count_calls(kubernetes: Kubernetes, folder: Path) -> tuple[Path, Callable[[], Counter[str]]]:
    """Return a kubectl that notes its calls, and how many of which there were since they were asked for last."""
    counting, calls = folder / "kubectl-counting", folder / "calls"
    note = f'for word; do case "$word" in -*) ;; *) echo "$word" >> {calls}; break;; esac; done'
    counting.write_text(f'#!/bin/sh\n{note}\nexec {kubernetes.kubectl} "$@"\n')
    counting.chmod(0o755)

    def take() -> Counter[str]:
        found = Counter(calls.read_text().split())
        calls.write_text("")
        return found

    return counting, take


def test_fifty_jobs_at_once_cost_few_calls(
    request: pytest.FixtureRequest, kubernetes: Kubernetes, place: Path, tmp_path: Path
) -> None:
    kubectl, take_calls = count_calls(kubernetes, tmp_path)
    executor = kubernetes_executor(
        request, place, tmp_path, kubectl=str(kubectl), exclusive=False, node_selector=("disk=fast",)
    )
    write_job_folder(tmp_path / "out", [], [])
    sent = [Payload(key=f"prony-many-{number}-00000000", folder=str(tmp_path / "out")) for number in range(50)]
    handles = [executor.submit(one) for one in sent]
    assert take_calls() == {"create": 100}
    assert {one.phase for one in executor.look(handles, {})} <= {PlacePhase.QUEUED, PlacePhase.STARTING}
    assert take_calls() == {"get": 1}
    cancelled, kept = handles[:38], handles[38:]  # twelve interpreters at once are enough for one machine
    executor.end(cancelled)
    assert take_calls() == {"get": 1, "delete": 1}
    kubernetes.run("label", "node", "--all", "disk=fast", "--overwrite")
    looks, began_s = 0, time.monotonic()

    def have_ended() -> bool:
        nonlocal looks
        looks += 1
        return all(one.ending is PlaceEnding.DONE for one in executor.look(kept, {}))

    wait_for(have_ended, "all of them to end")
    calls, took_s = take_calls(), time.monotonic() - began_s
    kubernetes.run("label", "node", "--all", "disk-")
    assert calls["get"] <= looks + 1 + took_s / 10
    assert calls["exec"] <= len(kept) + 2 * took_s, "one for each that ended, and two a second"
    assert [executor.fetch(handle, tmp_path / handle.key) for handle in kept] == [True] * len(kept)
    take_calls()
    executor.end(kept)
    assert take_calls() == {"get": 1, "exec": len(kept), "delete": 1}
    wait_for(lambda: kubernetes.names() == [], "nothing is left there")


def test_a_run_goes_on_while_the_api_is_away(
    request: pytest.FixtureRequest,
    kubernetes: Kubernetes,
    place: Path,
    payload: Callable[..., Payload],
    tmp_path: Path,
) -> None:
    executor = kubernetes_executor(request, place, tmp_path)
    gate = tmp_path / "gate"
    handle = executor.submit(payload("prony-away-1-00000000", f"sh -c 'until [ -e {gate} ]; do sleep 0.2; done'"))
    look_until(executor, handle, is_measuring)
    kubernetes.stop_api()
    with pytest.raises(TransportError, match="cannot be reached"):
        executor.look([handle], {})
    gate.touch()
    kubernetes.start_api()
    assert look_until(executor, handle, has_ended).ending is PlaceEnding.DONE
    assert executor.fetch(handle, tmp_path / "in") is True
    executor.end([handle])


def test_who_has_no_rights_is_told_so_with_the_request(
    request: pytest.FixtureRequest,
    kubernetes: Kubernetes,
    place: Path,
    payload: Callable[..., Payload],
    tmp_path: Path,
) -> None:
    elsewhere = kubernetes_executor(request, place, tmp_path, namespace="kube-system")
    with pytest.raises(AccessError, match="forbids it") as caught:
        elsewhere.submit(payload("prony-no-1-00000000"))
    assert "/namespaces/kube-system/jobs" in caught.value.hint
    assert {line.title for line in elsewhere.check() if line.status == "failed"} >= {"may create jobs.batch"}


def test_what_was_measured_before_the_wall_time_is_kept_there_too(
    request: pytest.FixtureRequest, place: Path, payload: Callable[..., Payload], tmp_path: Path
) -> None:
    executor = kubernetes_executor(request, place, tmp_path, minutes=1)
    handle = executor.submit(payload("prony-time-1-00000000", "sh -c 'echo speed=1; sleep 1'", repeats=600))
    assert look_until(executor, handle, has_ended, within_s=240).ending is PlaceEnding.DONE
    assert executor.fetch(handle, tmp_path / "in") is True
    result = (tmp_path / "in" / "result" / "exp-001" / "result.json").read_text()
    assert '"partial"' in result
    assert result.count('"started_at"') > 2
    executor.end([handle])
