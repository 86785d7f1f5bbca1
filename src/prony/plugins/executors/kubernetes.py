"""Run payloads as Jobs of Kubernetes, by the user's own kubectl."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from prony.errors import InputError, PronyError, TransportError
from prony.model.target import CheckLine, Handle, Observation, Payload, PlaceEnding, PlacePhase, Target
from prony.plugins.executors.folders import FolderOptions, FolderStatus, RemoteFolders
from prony.plugins.executors.kubectl import Kubectl, PodShell
from prony.plugins.executors.kubernetes_objects import (
    MANAGED,
    PREFIX,
    KubernetesOptions,
    pack_payload,
    render_job,
    render_secrets,
)
from prony.plugins.executors.kubernetes_text import (
    KEY_LABEL,
    RUNNER,
    KubernetesJob,
    KubernetesPod,
    PlaceStatus,
    judge_absent,
    judge_pod,
    judge_runner,
    read_objects,
    read_time,
    read_warnings,
)
from prony.ports.executor import BuildPackages, ExecutorSite

_FILES_S = 5.0  # what reads a pod's files runs on the node that measures
_READ_S = 0.5  # of many pods so often one: each reading is a connection through the API server
_WARNINGS_S = 10.0  # a pod that is made just now has nothing to say yet
_AT_ONCE = 8
_NAMED_KEYS = 50
_STOP_S = 30
_RIGHTS = (
    "create jobs.batch",
    "get jobs.batch",
    "list jobs.batch",
    "delete jobs.batch",
    "list pods",
    "get pods",
    "create pods --subresource=exec",
    "create secrets",
    "list events",
)
# The runner hears of it by the shell that started it, and then writes down what it has.
_STOP = r"""kill -TERM "$(cat /prony/shell)" """
_WAIT_OVER = r"""
n=0
while [ ! -e "$prefix/runs/$key/DONE" ] && [ ! -e "$prefix/over" ] && [ "$n" -lt $((seconds * 5)) ]; do
  sleep 0.2; n=$((n + 1))
done
exit 0
"""


class KubernetesExecutor:
    """A Job for each payload. Its pod has the runner, and a keeper beside it that holds the files until they are
    fetched; Secrets that the Job owns carry the payload."""

    Options: ClassVar[type[KubernetesOptions]] = KubernetesOptions
    joins_nodes: ClassVar[bool] = False

    def __init__(self, target: Target, site: ExecutorSite) -> None:
        options = KubernetesOptions.model_validate(target.options)
        self._options = options
        self._name = target.name
        self._clock = site.clock
        self._kubectl = Kubectl(
            options.kubectl,
            target.name,
            kubeconfig=str(Path(options.kubeconfig).expanduser()) if options.kubeconfig else "",
            context=options.context,
            namespace=options.namespace,
        )
        self._files: dict[str, tuple[float, FolderStatus]] = {}
        self._pod_names: dict[str, str] = {}
        self._warnings: dict[str, tuple[str, str]] = {}
        self._warned_s = float("-inf")
        self._silent_s: float | None = None

    def check(self) -> list[CheckLine]:
        """Look at the cluster and at what this user may do in the namespace."""
        lines = [self._check_server()]
        if lines[0].status == "failed":
            return lines
        lines += self._check_rights()
        lines.append(_describe_share(self._options))
        told = f"Prony must be in the image {self._options.image}, for its {self._options.python}"
        return [*lines, CheckLine(title="runner", status="ok", value=told)]

    def submit(self, payload: Payload) -> Handle:
        """Create the Job and then what it carries, unless they are there.

        Raises:
            InputError: an option is wrong, the files are too large, or the cluster refuses them.
            CapacityError: a quota is used up.
            TransportError: the cluster is not reached.
        """
        packed = pack_payload(payload.key, Path(payload.folder))
        root = f"/apis/batch/v1/namespaces/{self._kubectl.namespace}/jobs"
        job = self._kubectl.create(root, render_job(self._options, packed, payload.avoid))
        job = job or json.loads(self._kubectl.run("get", f"--raw={root}/{payload.key}"))
        # Its pod waits for these. They come second, so that from their first instant they go when the Job goes.
        for secret in render_secrets(packed, job["metadata"]["uid"]):
            self._kubectl.create(f"/api/v1/namespaces/{self._kubectl.namespace}/secrets", secret)
        return Handle(
            key=payload.key,
            native_id=payload.key,
            submitted_at=self._clock.now(),
            wall_minutes=self._options.minutes,
        )

    def look(self, handles: Sequence[Handle], offsets: Mapping[str, int]) -> list[Observation]:
        """Ask for all Jobs and pods at once, and then read the files of those that run or ended."""
        jobs, pods = self._read_state([handle.key for handle in handles])
        self._ask_warnings(jobs, pods)
        readable = [pods[handle.key] for handle in handles if handle.key in pods]
        readable = [pod for pod in readable if self._judge_pod(pod) is None]
        turn_s = len(readable) * _READ_S
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            told = pool.map(lambda pod: self._read_files(pod, offsets.get(pod.key, 0), turn_s), readable)
            found = dict(zip((pod.key for pod in readable), told, strict=True))
        return [self._observe(handle, jobs, pods, found.get(handle.key), offsets) for handle in handles]

    def fetch(self, handle: Handle, into: Path) -> bool:
        """Bring the results; True where the runner came to its end. Without its pod nothing is left to bring."""
        pod = self._read_state([handle.key])[1].get(handle.key)
        if pod is None or not pod.is_readable:
            return False
        return self._folders(pod).fetch(handle.key, into) is not None

    def end(self, handles: Sequence[Handle]) -> None:
        """Stop what runs, and delete what was fetched or measured nothing; the Job's pod and Secrets go with it."""
        if not handles:
            return
        pods = self._read_state([handle.key for handle in handles])[1]
        keys = [handle.key for handle in handles]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            has_results = list(pool.map(lambda key: self._stop(key, pods.get(key)), keys))
        gone = [key for key, keeps in zip(keys, has_results, strict=True) if not keeps]
        if gone:
            self._kubectl.run(
                "delete", "jobs.batch", *gone, "--ignore-not-found", "--wait=false", "--cascade=background"
            )

    def install(self, release: str, extras: Sequence[str], build: BuildPackages) -> str:
        """Refuse: what runs in a cluster is in an image."""
        del extras, build
        raise InputError(
            f"Prony {release} cannot be installed on {self._name}: it must be in the image",
            hint="build an image like deploy/Containerfile, and set the target's option image",
            code="image_needed",
        )

    def _stop(self, key: str, pod: KubernetesPod | None) -> bool:
        """Stop a run in order, so that what it measured can be fetched; True where there is such."""
        if pod is None or not pod.is_readable:
            return False
        folders = self._folders(pod)
        status = folders.look({key: 0})[key]
        if pod.container(RUNNER).state == "running" and status.has("begun") and not status.has("DONE"):
            PodShell(self._kubectl, pod.name, RUNNER).run(_STOP, {})
            folders.run(_WAIT_OVER, key=key, seconds=str(_STOP_S), timeout_s=30 + _STOP_S)
            status = folders.look({key: 0})[key]
        self._files.pop(key, None)
        return status.has("result") and not status.has("fetched")

    def _read_state(self, keys: Sequence[str]) -> tuple[dict[str, KubernetesJob], dict[str, KubernetesPod]]:
        selector = f"{KEY_LABEL} in ({','.join(keys)})"
        if len(keys) > _NAMED_KEYS:  # an address may not be too long
            selector = ",".join(f"{name}={value}" for name, value in MANAGED.items())
        return read_objects(self._kubectl.read("jobs.batch,pods", f"--selector={selector}"))

    def _ask_warnings(self, jobs: Mapping[str, KubernetesJob], pods: Mapping[str, KubernetesPod]) -> None:
        """Read the cluster's warnings where something does not start for a while and says not why."""
        silent = any(key not in pods for key in jobs)
        silent = silent or any(judge_pod(pod, None) == PlaceStatus(PlacePhase.STARTING) for pod in pods.values())
        if not silent:
            self._silent_s = None
            return
        now_s = self._now_s()
        self._silent_s = now_s if self._silent_s is None else self._silent_s
        if now_s - self._silent_s >= _WARNINGS_S and now_s - self._warned_s >= _WARNINGS_S:
            self._warned_s = now_s
            self._warnings = read_warnings(self._kubectl.read("events", "--field-selector=type=Warning"))

    def _judge_pod(self, pod: KubernetesPod) -> PlaceStatus | None:
        return judge_pod(pod, self._warnings.get(pod.name))

    def _read_files(self, pod: KubernetesPod, offset: int, turn_s: float) -> FolderStatus:
        """Read how far a run is, or say what was read last where it is not its turn."""
        key = pod.key
        if self._pod_names.setdefault(key, pod.name) != pod.name:  # another pod began from the beginning
            self._pod_names[key], offset = pod.name, 0
        seen_s, before = self._files.get(key, (float("-inf"), FolderStatus(frozenset())))
        is_over = pod.container(RUNNER).state == "terminated"
        pause_s = max(_FILES_S, turn_s) if offset else turn_s  # its first event is waited for
        is_read = before.has("DONE") and offset >= before.offset  # nothing more will come
        if is_read or (not is_over and self._now_s() - seen_s < pause_s):
            return FolderStatus(before.flags, offset=offset)
        try:
            status = self._folders(pod).look({key: offset})[key]
        except TransportError:  # a node that does not answer: the cluster will say so, and others are looked at
            return FolderStatus(before.flags, offset=offset)
        self._files[key] = (self._now_s(), status)
        return status

    def _observe(
        self,
        handle: Handle,
        jobs: Mapping[str, KubernetesJob],
        pods: Mapping[str, KubernetesPod],
        status: FolderStatus | None,
        offsets: Mapping[str, int],
    ) -> Observation:
        key = handle.key
        job, pod = jobs.get(key), pods.get(key)
        phase, ending, reason = self._judge(handle, job, pod, status)
        return Observation(
            key=key,
            phase=phase,
            ending=ending,
            reason=reason,
            state=_describe_state(pod),
            native_id=handle.native_id,
            nodes=(pod.node,) if pod and pod.node else (),
            started_at=_started_at(pod) if phase is PlacePhase.RUNNING else None,
            events=status.events if status else (),
            offset=status.offset if status else offsets.get(key, 0),
        )

    def _judge(
        self, handle: Handle, job: KubernetesJob | None, pod: KubernetesPod | None, status: FolderStatus | None
    ) -> PlaceStatus:
        # A cluster does not lose a Job: somebody deleted it, and its pod goes a moment later.
        if job is None and handle.native_id and (pod is None or pod.is_deleted):
            return PlaceStatus(PlacePhase.ENDED, PlaceEnding.CANCELLED, "its Job was deleted")
        if pod is None:
            if job is not None:
                return judge_absent(job, self._warnings.get(job.key))
            return PlaceStatus(PlacePhase.LOST, None, "its Job was not found in the cluster")
        if status is None:
            return self._judge_pod(pod) or PlaceStatus(PlacePhase.STARTING)
        return judge_runner(pod, is_begun=status.has("begun"), is_done=status.has("DONE"))

    def _folders(self, pod: KubernetesPod) -> RemoteFolders:
        return RemoteFolders(
            PodShell(self._kubectl, pod.name), FolderOptions(prefix=PREFIX, python=self._options.python)
        )

    def _check_server(self) -> CheckLine:
        words = ("get", "--raw=/version")
        command = shlex.join(self._kubectl.words(*words))
        try:
            told = json.loads(self._kubectl.run(*words))
        except PronyError as exc:
            value = f"{exc.message}; tried: {command}"
            return CheckLine(title="cluster", status="failed", value=value, hint=exc.hint, command=command)
        return CheckLine(title="cluster", status="ok", value=f"Kubernetes {told['gitVersion']}", command=command)

    def _check_rights(self) -> list[CheckLine]:
        """Return a line for each right that is missing, or one that says that none is."""
        missing = []
        for right in _RIGHTS:
            words = ("auth", "can-i", *right.split())
            code, told, complaint = self._kubectl.attempt(*words)
            if code:
                command = shlex.join(self._kubectl.words(*words))
                answer = told.decode(errors="replace").strip() or complaint.strip()[-300:]
                hint = "give this user the Role in deploy/kubernetes/role.yaml"
                missing.append(
                    CheckLine(
                        title=f"may {right}", status="failed", value=f"{answer}: {command}", hint=hint, command=command
                    )
                )
        all_there = f"all required rights in the namespace {self._kubectl.namespace}"
        return missing or [CheckLine(title="rights", status="ok", value=all_there)]

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / 1e9


def _describe_state(pod: KubernetesPod | None) -> str:
    if pod is None:
        return ""
    runner = pod.container(RUNNER)
    return pod.reason or runner.reason or pod.phase


def _started_at(pod: KubernetesPod | None) -> datetime | None:
    return read_time(pod.started_at) if pod else None


def _describe_share(options: KubernetesOptions) -> CheckLine:
    """Say whether the pod owns what it measures with."""
    if options.cpus and options.memory:
        told = f"{options.cpus} CPUs and {options.memory}, guaranteed; exclusive cores only if the nodes' CPU "
        return CheckLine(title="share", status="ok", value=f"{told}manager is static")
    return CheckLine(
        title="share",
        status="warn",
        value="the pod reserves nothing: other pods on its node may take CPU and memory from it",
        hint="set cpus (whole CPUs) and memory to reserve them",
    )
