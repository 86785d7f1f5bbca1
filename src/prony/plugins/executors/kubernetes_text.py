"""Read what Kubernetes says of a Job and its pods, and say in whose words it waits or ended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from prony.errors import AccessError, CapacityError, InputError, PronyError, TransportError
from prony.model.target import PlaceEnding, PlacePhase

KEY_LABEL = "prony.dev/key"
RUNNER, KEEPER = "runner", "keeper"

_Q, _S, _R, _E, _H = PlacePhase.QUEUED, PlacePhase.STARTING, PlacePhase.RUNNING, PlacePhase.ENDED, PlacePhase.HELD

# Why a container does not start. With `held` nothing changes until a person acts, so nobody is to wait for it.
WAITING: dict[str, tuple[PlacePhase, str]] = {
    "ContainerCreating": (_S, "its containers are being created"),
    "PodInitializing": (_S, "its pod is being prepared"),
    "ErrImagePull": (_H, "the image cannot be pulled"),
    "ImagePullBackOff": (_H, "the image cannot be pulled"),
    "ErrImageNeverPull": (_H, "the image is not on the node, and may not be pulled"),
    "InvalidImageName": (_H, "the name of the image is not valid"),
    "ImageInspectError": (_H, "the image cannot be read"),
    "RegistryUnavailable": (_H, "the registry of the image does not answer"),
    "SignatureValidationFailed": (_H, "the image's signature is not accepted"),
    "CreateContainerConfigError": (_H, "something that its pod refers to is missing"),
    "CreateContainerError": (_H, "its container cannot be created"),
    "RunContainerError": (_H, "its container cannot be started"),
    "CrashLoopBackOff": (_H, "its container keeps crashing"),
}

# Why a pod ended that did not come to its own end: of the pod, of its condition DisruptionTarget, or of the Job.
ENDINGS: dict[str, tuple[PlaceEnding, str]] = {
    "DeadlineExceeded": (PlaceEnding.TIME, "it exceeded its time limit"),
    "Evicted": (PlaceEnding.NODE, "its node ran short of memory, disk or processes"),
    "TerminationByKubelet": (PlaceEnding.NODE, "its node ended it: the node ran out of a resource, or was shut down"),
    "NodeLost": (PlaceEnding.NODE, "its node is not reachable any more"),
    "DeletionByTaintManager": (PlaceEnding.NODE, "its node is not ready, or does not accept such pods any more"),
    "DeletionByPodGC": (PlaceEnding.NODE, "its node is gone"),
    "NodeShutdown": (PlaceEnding.NODE, "its node was shut down"),
    "Shutdown": (PlaceEnding.NODE, "its node was shut down"),
    "Terminated": (PlaceEnding.NODE, "its node was shut down"),
    "NodeAffinity": (PlaceEnding.NODE, "its node no longer meets its constraints"),
    "OutOfcpu": (PlaceEnding.NODE, "its node did not have enough CPUs left"),
    "OutOfmemory": (PlaceEnding.NODE, "its node did not have enough memory left"),
    "OutOfpods": (PlaceEnding.NODE, "its node had no room for one more pod"),
    "UnexpectedAdmissionError": (PlaceEnding.NODE, "its node rejected it"),
    "Preempting": (PlaceEnding.PREEMPTED, "it was preempted by another pod"),
    "Preempted": (PlaceEnding.PREEMPTED, "it was preempted by another pod"),
    "PreemptionByScheduler": (PlaceEnding.PREEMPTED, "it was preempted by another pod"),
    "EvictionByEvictionAPI": (PlaceEnding.PREEMPTED, "it was evicted, for example by a drain of its node"),
    "OOMKilled": (PlaceEnding.MEMORY, "it exceeded its memory limit"),
}

# What the cluster warns of while a pod is not there or does not start yet. A quota frees itself, a mount may come.
WARNINGS: dict[str, tuple[PlacePhase, str]] = {
    "FailedScheduling": (_Q, "no suitable node is free"),
    "FailedMount": (_S, "a volume cannot be mounted yet"),
    "FailedAttachVolume": (_S, "a volume cannot be attached yet"),
    "FailedCreatePodSandBox": (_S, "its node cannot create the pod yet"),
    "NetworkNotReady": (_S, "the network of its node is not ready"),
    "FailedCreate": (_H, "the cluster rejects its pod"),
}
_DELETED = "its pod was deleted"
_KEPT_TOO_LONG = "its results were not fetched in time and are lost"


class PlaceStatus(NamedTuple):
    phase: PlacePhase
    ending: PlaceEnding | None = None
    reason: str = ""


@dataclass(frozen=True)
class ContainerState:
    """`state` is waiting, running or terminated; nothing where the node has not told yet."""

    state: str = ""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None


@dataclass(frozen=True)
class KubernetesPod:
    """What the cluster says of a pod."""

    name: str
    key: str
    created_at: str
    phase: str
    node: str = ""
    started_at: str = ""
    reason: str = ""
    message: str = ""
    is_deleted: bool = False
    unscheduled: str = ""
    disruption: str = ""
    containers: Mapping[str, ContainerState] = field(default_factory=dict)

    def container(self, name: str) -> ContainerState:
        return self.containers.get(name, ContainerState())

    @property
    def is_readable(self) -> bool:
        """Can its files be read?"""
        return self.container(KEEPER).state == "running" and not self.is_deleted


@dataclass(frozen=True)
class KubernetesJob:
    """What the cluster says of a Job."""

    key: str
    is_suspended: bool = False
    failed: str = ""
    message: str = ""


def read_objects(items: Iterable[Mapping[str, Any]]) -> tuple[dict[str, KubernetesJob], dict[str, KubernetesPod]]:
    """Return Jobs and pods of a list, by key. A Job on its way out is none.

    Of several pods of a Job the oldest counts: a cluster may start another in place of one that is being deleted.
    """
    jobs: dict[str, KubernetesJob] = {}
    pods: dict[str, KubernetesPod] = {}
    for item in items:
        key = item["metadata"].get("labels", {}).get(KEY_LABEL, "")
        if item["kind"] == "Job" and "deletionTimestamp" not in item["metadata"]:
            jobs[key] = _read_job(key, item)
        elif item["kind"] == "Pod":
            pod = _read_pod(key, item)
            if key not in pods or pod.created_at < pods[key].created_at:
                pods[key] = pod
    return jobs, pods


def _read_job(key: str, item: Mapping[str, Any]) -> KubernetesJob:
    failed = _condition(item, "Failed")
    is_suspended = bool(item.get("spec", {}).get("suspend"))
    return KubernetesJob(key, is_suspended, failed.get("reason", "") or "", failed.get("message", "") or "")


def _read_pod(key: str, item: Mapping[str, Any]) -> KubernetesPod:
    status, metadata = item.get("status", {}), item["metadata"]
    unscheduled = next(
        (
            one.get("message", "") or one.get("reason", "")
            for one in status.get("conditions", ())
            if one["type"] == "PodScheduled" and one["status"] == "False"
        ),
        "",
    )
    return KubernetesPod(
        name=metadata["name"],
        key=key,
        created_at=metadata.get("creationTimestamp", ""),
        phase=status.get("phase", "Pending"),
        node=item.get("spec", {}).get("nodeName", ""),
        started_at=status.get("startTime", ""),
        reason=status.get("reason", ""),
        message=status.get("message", ""),
        is_deleted="deletionTimestamp" in metadata,
        unscheduled=unscheduled,
        disruption=_condition(item, "DisruptionTarget").get("reason", ""),
        containers={one["name"]: _read_container(one["state"]) for one in status.get("containerStatuses", ())},
    )


def _read_container(states: Mapping[str, Any]) -> ContainerState:
    for name, told in states.items():
        return ContainerState(name, told.get("reason", ""), told.get("message", ""), told.get("exitCode"))
    return ContainerState()


def _condition(item: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found = (one for one in item.get("status", {}).get("conditions", ()) if one["type"] == kind)
    return next((one for one in found if one["status"] == "True"), {})


def read_warnings(items: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Return reason and message of the newest warning that keeps something from starting, by the object's name."""
    found: dict[str, tuple[str, str, str]] = {}
    for item in items:
        name = item.get("involvedObject", {}).get("name", "")
        at = item.get("lastTimestamp") or item.get("eventTime") or ""
        if item.get("reason") in WARNINGS and (name not in found or at >= found[name][0]):
            found[name] = at, item.get("reason", ""), item.get("message", "")
    return {name: (reason, message) for name, (_, reason, message) in found.items()}


def judge_absent(job: KubernetesJob, warning: tuple[str, str] | None) -> PlaceStatus:
    """Judge a Job that has no pod."""
    if job.failed:
        return _judge_end(job.failed, job.message, _DELETED)
    if job.is_suspended:
        return PlaceStatus(_Q, None, "it is suspended until its queue or a person releases it")
    if warning is None:
        return PlaceStatus(_Q)
    reason, message = warning
    phase, words = WARNINGS.get(reason, (_Q, ""))
    if "exceeded quota" in message:
        phase, words = _Q, "the quota of the namespace is used up"
    return PlaceStatus(phase, None, _say(words, reason, message))


def judge_pod(pod: KubernetesPod, warning: tuple[str, str] | None) -> PlaceStatus | None:
    """Judge a pod by what the cluster says of it; None where its files decide."""
    if pod.is_deleted or pod.phase in ("Failed", "Succeeded", "Unknown"):
        return _judge_over(pod)
    if pod.unscheduled:
        return PlaceStatus(_Q, None, _say("no suitable node is free", "Unschedulable", pod.unscheduled))
    waiting = next((one for one in pod.containers.values() if one.state == "waiting"), None)
    if waiting is not None and WAITING.get(waiting.reason, (_S,))[0] is _H:
        return PlaceStatus(_H, None, _say(WAITING[waiting.reason][1], waiting.reason, waiting.message))
    if pod.is_readable:
        return None
    if warning is None:
        return PlaceStatus(_S)
    phase, words = WARNINGS.get(warning[0], (_S, ""))
    return PlaceStatus(_S if phase is _Q else phase, None, _say(words, *warning))


def _judge_over(pod: KubernetesPod) -> PlaceStatus:
    """Judge a pod whose files cannot be read any more."""
    runner = pod.container(RUNNER)
    for told, message in ((pod.disruption, ""), (pod.reason, pod.message), (runner.reason, runner.message)):
        if told in ENDINGS:
            return _judge_end(told, message, "")
    if pod.is_deleted:
        return PlaceStatus(_E, PlaceEnding.PREEMPTED, _DELETED)
    if pod.phase == "Unknown":
        return PlaceStatus(_E, PlaceEnding.NODE, ENDINGS["NodeLost"][1])
    if pod.phase == "Succeeded" or runner.exit_code == 0:
        return PlaceStatus(_E, PlaceEnding.KILLED, _KEPT_TOO_LONG)
    return PlaceStatus(
        _E, PlaceEnding.KILLED, f"its pod failed: {pod.message or runner.message or pod.reason}".strip(": ")
    )


def _judge_end(told: str, message: str, otherwise: str) -> PlaceStatus:
    ending, words = ENDINGS.get(told, (PlaceEnding.PREEMPTED, otherwise))
    return PlaceStatus(_E, ending, _say(words, told, message))


def judge_runner(pod: KubernetesPod, *, is_begun: bool, is_done: bool) -> PlaceStatus:
    """Judge a run whose files can be read: they are the first witness, whatever the cluster says."""
    runner = pod.container(RUNNER)
    if is_done:
        return PlaceStatus(_E, PlaceEnding.DONE)
    if runner.state != "terminated":
        return PlaceStatus(_R if is_begun else _S)
    if runner.reason in ENDINGS:
        return _judge_end(runner.reason, runner.message, "")
    said = " / ".join(line.strip() for line in runner.message.splitlines()[-3:] if line.strip())
    ended = f"its runner ended with exit code {runner.exit_code}" if is_begun else "its runner did not start"
    return PlaceStatus(_E, PlaceEnding.KILLED if is_begun else PlaceEnding.UNSTARTED, f"{ended}: {said}".rstrip(": "))


def _say(words: str, reason: str, message: str) -> str:
    text = " ".join(message.split())[:500]
    named = f"{words} ({reason})" if words else reason
    return f"{named}: {text}" if text else named


def read_time(text: str) -> datetime | None:
    """Return an instant as Kubernetes writes it."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


_NOT_REACHED = re.compile(
    r"Unable to connect|was refused|timeout|timed out|deadline exceeded|no route to host|EOF|connection reset|"
    r"\((ServiceUnavailable|Timeout|InternalError|TooManyRequests|ServerTimeout|Expired|Unknown)\)|"
    r"error dialing backend|unable to upgrade connection|no such host|http2: "
)
_WRONG_CONFIG = re.compile(
    r"context \S+ does not exist|no context exists|no configuration has been provided|stat \S+: no such file"
)


def explain_refusal(told: str, command: str, target: str) -> PronyError:
    """Turn what kubectl printed into whose move it is."""
    text = " ".join(told.split())[-600:].removeprefix("Error from server ") or "no output from kubectl"
    hint = f"the request was: {command}"
    if "exceeded quota" in told:
        return CapacityError(f"the cluster has no room for it: {text}", hint=hint, code="kubernetes_full")
    if "(Forbidden)" in told or "(Unauthorized)" in told or "must be logged in" in told:
        return AccessError(f"the cluster of {target} forbids it: {text}", hint=hint, code="kubernetes_forbidden")
    if _WRONG_CONFIG.search(told) or re.search(r'namespaces? "?\S+"? not found', told):
        return InputError(
            f"an option of the target {target} is wrong: {text}",
            hint="check its options context, kubeconfig and namespace",
            code="kubernetes_option",
        )
    if _NOT_REACHED.search(told):
        return TransportError(f"the cluster of {target} cannot be reached: {text}", hint=hint)
    return InputError(f"the cluster of {target} rejects it: {text}", hint=hint, code="kubernetes_refused")
