"""What Kubernetes says of Jobs and pods, and whose move each refusal is."""

from __future__ import annotations

from typing import Any

import pytest

from prony.errors import AccessError, CapacityError, InputError, PronyError, TransportError
from prony.model.target import PlaceEnding, PlacePhase
from prony.plugins.executors.kubernetes_text import (
    ENDINGS,
    KEY_LABEL,
    WAITING,
    WARNINGS,
    KubernetesJob,
    KubernetesPod,
    explain_refusal,
    judge_absent,
    judge_pod,
    judge_runner,
    read_objects,
    read_warnings,
)

KEY = "prony-a-1-00000000"
RUNNING = {"running": {"startedAt": "2026-11-18T04:00:00Z"}}


def pod(**status: Any) -> dict[str, Any]:
    metadata = {"name": f"{KEY}-x1", "labels": {KEY_LABEL: KEY}, "creationTimestamp": "2026-11-18T04:00:00Z"}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": "n1"}, "status": status}


def containers(runner: dict[str, Any], keeper: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    return [{"name": "runner", "state": runner}, {"name": "keeper", "state": RUNNING if keeper is None else keeper}]


def read_pod(**status: Any) -> KubernetesPod:
    return read_objects([pod(**status)])[1][KEY]


def test_of_several_pods_of_a_job_the_oldest_counts_which_is_being_deleted() -> None:
    older, newer = pod(phase="Running"), pod(phase="Pending")
    newer["metadata"] = newer["metadata"] | {"name": "new", "creationTimestamp": "2026-11-18T05:00:00Z"}
    jobs, pods = read_objects([newer, older, {"kind": "Job", "metadata": {"labels": {KEY_LABEL: KEY}}, "spec": {}}])
    assert (list(jobs), pods[KEY].name, pods[KEY].phase) == ([KEY], f"{KEY}-x1", "Running")


@pytest.mark.parametrize("reason", [name for name, (phase, _) in WAITING.items() if phase is PlacePhase.HELD])
def test_what_only_a_person_can_mend_is_held_at_once(reason: str) -> None:
    waiting = {"waiting": {"reason": reason, "message": "as the kubelet\n says it"}}
    seen = judge_pod(read_pod(phase="Pending", containerStatuses=containers(waiting, waiting)), None)
    assert seen is not None
    assert (seen.phase, seen.ending) == (PlacePhase.HELD, None)
    assert seen.reason == f"{WAITING[reason][1]} ({reason}): as the kubelet says it"


def test_a_pod_that_fits_nowhere_waits_with_the_scheduler_s_words() -> None:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]
    seen = judge_pod(read_pod(phase="Pending", conditions=conditions), None)
    assert seen == (PlacePhase.QUEUED, None, "no suitable node is free (Unschedulable): 0/3 nodes")


def test_a_pod_that_is_being_made_starts_and_warnings_say_what_keeps_it() -> None:
    waiting = {"waiting": {"reason": "ContainerCreating"}}
    made = read_pod(phase="Pending", containerStatuses=containers(waiting, waiting))
    assert judge_pod(made, None) == (PlacePhase.STARTING, None, "")
    for reason, (_, words) in WARNINGS.items():
        seen = judge_pod(made, (reason, "told"))
        assert seen is not None
        assert seen.reason == f"{words} ({reason}): told"
        assert seen.phase is (PlacePhase.HELD if reason == "FailedCreate" else PlacePhase.STARTING)


@pytest.mark.parametrize("reason", ENDINGS)
def test_a_pod_that_was_ended_says_by_whom(reason: str) -> None:
    of_condition = [{"type": "DisruptionTarget", "status": "True", "reason": reason}]
    killed = {"terminated": {"reason": reason, "exitCode": 137}}
    for status in (
        {"phase": "Failed", "reason": reason},
        {"phase": "Failed", "conditions": of_condition},
        {"phase": "Failed", "containerStatuses": containers(killed, {"terminated": {"exitCode": 0}})},
    ):
        seen = judge_pod(read_pod(**status), None)
        assert seen == (PlacePhase.ENDED, ENDINGS[reason][0], f"{ENDINGS[reason][1]} ({reason})")


def test_a_deleted_pod_is_tried_again_also_on_its_node() -> None:
    deleted = pod(phase="Running", containerStatuses=containers(RUNNING))
    deleted["metadata"]["deletionTimestamp"] = "2026-11-18T04:01:00Z"
    seen = judge_pod(read_objects([deleted])[1][KEY], None)
    assert seen == (PlacePhase.ENDED, PlaceEnding.PREEMPTED, "its pod was deleted")


def test_results_that_nobody_fetched_in_time_are_told() -> None:
    over = {"terminated": {"reason": "Completed", "exitCode": 0}}
    seen = judge_pod(read_pod(phase="Succeeded", containerStatuses=containers(over, over)), None)
    assert seen is not None
    assert "were not fetched" in seen.reason


@pytest.mark.parametrize(
    ("runner", "begun", "done", "phase", "ending", "reason"),
    [
        (RUNNING, False, False, PlacePhase.STARTING, None, ""),
        (RUNNING, True, False, PlacePhase.RUNNING, None, ""),
        (RUNNING, True, True, PlacePhase.ENDED, PlaceEnding.DONE, ""),
        ({"exitCode": 1}, True, True, PlacePhase.ENDED, PlaceEnding.DONE, ""),
        ({"exitCode": 9}, True, False, PlacePhase.ENDED, PlaceEnding.KILLED, "its runner ended with exit code 9"),
        (
            {"exitCode": 127, "message": "sh: 1:\nno-python: not found\n"},
            False,
            False,
            PlacePhase.ENDED,
            PlaceEnding.UNSTARTED,
            "its runner did not start: sh: 1: / no-python: not found",
        ),
        (
            {"exitCode": 137, "reason": "OOMKilled"},
            True,
            False,
            PlacePhase.ENDED,
            PlaceEnding.MEMORY,
            "it exceeded its memory limit (OOMKilled)",
        ),
    ],
)
def test_the_files_are_the_first_witness(
    runner: dict[str, Any], begun: bool, done: bool, phase: PlacePhase, ending: PlaceEnding | None, reason: str
) -> None:
    state = runner if runner is RUNNING else {"terminated": runner}
    found = read_pod(phase="Running", containerStatuses=containers(state))
    assert judge_pod(found, None) is None
    assert judge_runner(found, is_begun=begun, is_done=done) == (phase, ending, reason)


@pytest.mark.parametrize(
    ("job", "warning", "phase", "words"),
    [
        (KubernetesJob(KEY), None, PlacePhase.QUEUED, ""),
        (KubernetesJob(KEY, is_suspended=True), None, PlacePhase.QUEUED, "suspended"),
        (
            KubernetesJob(KEY),
            ("FailedCreate", "forbidden: exceeded quota: q"),
            PlacePhase.QUEUED,
            "the quota of the name",
        ),
        (KubernetesJob(KEY), ("FailedCreate", "violates PodSecurity"), PlacePhase.HELD, "the cluster rejects its pod"),
        (KubernetesJob(KEY, failed="DeadlineExceeded"), None, PlacePhase.ENDED, "it exceeded its time limit"),
        (KubernetesJob(KEY, failed="BackoffLimitExceeded"), None, PlacePhase.ENDED, "its pod was deleted"),
    ],
)
def test_a_job_without_a_pod_says_why(
    job: KubernetesJob, warning: tuple[str, str] | None, phase: PlacePhase, words: str
) -> None:
    seen = judge_absent(job, warning)
    assert seen.phase is phase
    assert words in seen.reason


def test_the_newest_warning_that_keeps_an_object_from_starting_counts() -> None:
    def event(at: str, reason: str) -> dict[str, Any]:
        return {
            "type": "Warning",
            "reason": reason,
            "message": at,
            "lastTimestamp": at,
            "involvedObject": {"name": "p"},
        }

    told = read_warnings([event("2", "FailedMount"), event("1", "FailedScheduling"), event("3", "MissingClusterDNS")])
    assert told == {"p": ("FailedMount", "2")}


@pytest.mark.parametrize(
    ("told", "error", "code"),
    [
        ('Error from server (Forbidden): jobs.batch is forbidden: User "x"', AccessError, "kubernetes_forbidden"),
        ("error: You must be logged in to the server (Unauthorized)", AccessError, "kubernetes_forbidden"),
        ('Error from server (Forbidden): jobs "a" is forbidden: exceeded quota: q', CapacityError, "kubernetes_full"),
        ('Error from server (NotFound): namespaces "x" not found', InputError, "kubernetes_option"),
        ('error: context "x" does not exist', InputError, "kubernetes_option"),
        ("The connection to the server localhost:8080 was refused", TransportError, "transport"),
        ("Unable to connect to the server: net/http: TLS handshake timeout", TransportError, "transport"),
        ("Error from server (ServiceUnavailable): the server is shutting down", TransportError, "transport"),
        ('Error from server (Invalid): Job.batch "a" is invalid: spec.template', InputError, "kubernetes_refused"),
    ],
)
def test_a_refusal_says_whose_move_it_is_and_which_request_it_was(
    told: str, error: type[PronyError], code: str
) -> None:
    found = explain_refusal(told, "kubectl create x", "k8s")
    assert type(found) is error
    assert found.code == code
    assert code == "kubernetes_option" or found.hint == "the request was: kubectl create x"
