"""Write the Job of a payload and the Secrets that carry it, as Kubernetes reads them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import math
import re
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from prony.errors import InputError
from prony.model.base import Noun
from prony.model.job import Job
from prony.plugins.executors.kubernetes_text import KEEPER, KEY_LABEL, RUNNER
from prony.ports.workload import kind_of
from prony.runner.job_folder import read_job_files
from prony.runner.pod_containers import IMAGES_VARIABLE

PREFIX = "/prony"
MANAGED = {"app.kubernetes.io/managed-by": "prony"}
# A Secret may hold 1 MiB, and all of them lie in the cluster's own database.
_PART_BYTES, _MOST_BYTES = 768 * 1024, 16 * 2**20
_GRACE_S = 60
_LONGEST_QUEUE_S = 14 * 86_400
_FORGET_S = 86_400
_KEEPER_SHARE = {"cpu": "100m", "memory": "64Mi"}
_LOOK_AFTER_S = 15
_MOUNT = r"(pvc|host)/([^:]+):(/[^:]*)(:ro)?"
_TOLERATION = r"([^=:]+)(?:=([^:]*))?(?::(NoSchedule|PreferNoSchedule|NoExecute))?"

# Tells the containers of services that nobody needs them any more. A pipe that is opened both ways blocks nobody.
_TELL_OVER = r"""
tell_over() { for one in /prony/services/*/asked; do [ -p "$one" ] && echo over 1<>"$one"; done; }
"""
# The shell hands a stop on, waits for the runner, and says when it is over: by a stop, by the limit or by itself. A
# stop ends a wait early, and a runner that could not start is gone before the first one: its exit code counts too.
_RUN = (
    _TELL_OVER
    + r"""
umask 077
echo $$ > /prony/shell
trap 'touch /prony/over; tell_over' EXIT
mkdir -p "$PRONY_HOME" /prony/runs/new /prony/bin /prony/services && cd /prony/runs || exit 70
mkdir /prony/tmp && chmod 1777 /prony/tmp && chmod 755 /prony/services || exit 70
n=0
while [ "$n" -lt "$SERVICE_COUNT" ]; do
  mkdir "/prony/services/$n" && chmod 777 "/prony/services/$n" && mkfifo -m 666 "/prony/services/$n/asked" || exit 70
  n=$((n + 1))
done
printf '#!/bin/sh\nexec "%s" -P -m prony.runner.pod_containers "$@"\n' "$RUN_PYTHON" > /prony/bin/prony-pod
chmod 755 /prony/bin/prony-pod
export PATH="/prony/bin:$PATH" TMPDIR=/prony/tmp
cat /prony-in/part-* > payload.tgz
echo "$PAYLOAD_SHA256  payload.tgz" | sha256sum -c - >/dev/null || { echo "the payload arrived incomplete"; exit 71; }
tar -xzf payload.tgz -C new && rm payload.tgz && mv new "$PAYLOAD_KEY" && cd "$PAYLOAD_KEY" || exit 72
"$RUN_PYTHON" -P -m prony exec --folder . &
runner=$!
trap 'kill -TERM $runner' TERM
(trap 'kill $!; exit' TERM; sleep "$RUN_SECONDS" & wait $!; kill -TERM $runner) &
limit=$!
wait $runner; code=$?
while kill -0 $runner 2>/dev/null; do wait $runner; code=$?; done
kill $limit 2>/dev/null
exit $code
"""
)
# Holds the files after the run until they are fetched, which ends with the Job, or until nobody came for too long.
_KEEP = (
    _TELL_OVER
    + r"""
trap 'exit 0' TERM
left=$KEEP_SECONDS
while [ "$left" -gt 0 ]; do
  sleep "$PAUSE_SECONDS" & wait $!
  [ -e /prony/over ] && left=$((left - PAUSE_SECONDS))
done
tell_over
exit 0
"""
)
# Waits in a service's image and starts it as often as the runner asks, by lines in a pipe: nothing is polled while
# something is measured. A start's own pipe ends when all of it has ended, also where this shell was killed with it.
_SERVE = r"""
umask 000
until [ -p "/prony/services/$SERVICE_NUMBER/asked" ]; do sleep 1; done
cd "/prony/services/$SERVICE_NUMBER" && exec 3<>asked || exit 70
echo $$ > up.new && mv up.new up
trap 'exit 0' TERM
while read -r verb name <&3; do
  case "$verb" in
    run) (
      exec 4>"$name.code"
      /bin/sh "./$name.sh" >"$name.out" 2>&1 3>&- 4>&- &
      echo $! > "$name.pid"
      wait $!
      echo $? >&4
    ) & ;;
    stop) kill -TERM "$(cat "$name.pid")" ;;
    kill) kill -KILL "$(cat "$name.pid")" ;;
    over) exit 0 ;;
  esac
done
"""


def _check_all(pattern: str, what: str) -> AfterValidator:
    def check(values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if re.fullmatch(pattern, value) is None:
                raise ValueError(f"{value} is not {what}")
        return values

    return AfterValidator(check)


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=253)]
MaybeName = Annotated[str, Field(pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$", max_length=253)]
Quantity = Annotated[str, Field(pattern=r"^([0-9]+(\.[0-9]+)?([EPTGMk]i?)?)?$")]
Word = Annotated[str, Field(pattern=r"^\S*$")]


class KubernetesOptions(Noun):
    """Of a namespace in a cluster of Kubernetes."""

    image: str = Field(min_length=1, pattern=r"^\S+$", description="an image with Prony, best given by digest")
    namespace: Name = Field(default="default", description="namespace for its Jobs")
    context: Word = Field(default="", description="context of the kubeconfig; default: the current one")
    kubeconfig: str = Field(default="", description="path of the kubeconfig; default: that of kubectl")
    kubectl: str = Field(default="kubectl", min_length=1, description="the kubectl program")
    python: Word = Field(default="python3", min_length=1, description="the Python with Prony in the image")
    cpus: int | None = Field(
        default=None, ge=1, description="whole CPUs, as request and limit; default: as many as are free"
    )
    memory: Quantity = Field(default="", description="memory, as request and limit, for example 8Gi; default: no limit")
    gpus: int = Field(default=0, ge=0, description="number of GPUs")
    gpu_resource: str = Field(
        default="nvidia.com/gpu", pattern=r"^[a-z0-9./-]+$", description="the cluster's resource name of a GPU"
    )
    exclusive: bool = Field(
        default=True, description="never two runs of Prony on one node; other pods may still be there"
    )
    node_selector: Annotated[tuple[str, ...], _check_all(r"[^=\s]+=[^=\s]*", "LABEL=VALUE")] = Field(
        default=(), description="labels that a node must have, as LABEL=VALUE"
    )
    tolerations: Annotated[tuple[str, ...], _check_all(_TOLERATION, "KEY[=VALUE][:EFFECT]")] = Field(
        default=(), description="node taints to tolerate, as KEY[=VALUE][:EFFECT]"
    )
    mounts: Annotated[tuple[str, ...], _check_all(_MOUNT, "pvc/NAME:/PATH[:ro] or host//PATH:/PATH[:ro]")] = Field(
        default=(), description="volumes, for example pvc/models:/models:ro; host//PATH:/PATH is a folder of the node"
    )
    service_account: MaybeName = Field(default="", description="service account of the pod; its token is never mounted")
    pull_secret: MaybeName = Field(default="", description="a Secret for the image's registry")
    pull_policy: Annotated[str, Field(pattern="^(Always|IfNotPresent|Never)$")] = Field(
        default="IfNotPresent", description="Always, IfNotPresent or Never"
    )
    user: int | None = Field(default=None, ge=1, description="run as this user, not root; default: the image's own")
    kueue: MaybeName = Field(default="", description="a Kueue queue that admits the Job; not tested yet")
    kueue_priority: MaybeName = Field(
        default="", description="a WorkloadPriorityClass of Kueue for the Job; not tested yet"
    )
    minutes: int = Field(default=1440, ge=1, description="wall time in minutes; results up to then are kept")
    keep_minutes: int = Field(
        default=240, ge=1, description="how long the pod keeps its node until results are fetched"
    )


@dataclass(frozen=True)
class PackedPayload:
    """A payload's folder as pieces that fit into Secrets; the same folder gives the same pieces."""

    key: str
    parts: tuple[bytes, ...]
    sha256: str
    images: tuple[str, ...] = ()  # of services that its jobs start


def pack_payload(key: str, folder: Path) -> PackedPayload:
    """Pack a folder.

    Raises:
        InputError: it is larger than what a cluster takes this way.
    """
    plain = BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        archive.add(folder, arcname=".", filter=_anonymous)
    packed = gzip.compress(plain.getvalue(), mtime=0)
    if len(packed) > _MOST_BYTES:
        raise InputError(
            f"the files of this recipe are {len(packed) / 2**20:.0f} MiB packed; a cluster takes {_MOST_BYTES >> 20}",
            hint="put large files into the image or on a volume (option mounts) and write their absolute paths, or "
            "a URL",
            code="payload_too_large",
        )
    count = math.ceil(len(packed) / _PART_BYTES)
    parts = tuple(packed[at * _PART_BYTES : (at + 1) * _PART_BYTES] for at in range(count))
    return PackedPayload(key, parts, hashlib.sha256(packed).hexdigest(), _find_images(folder))


def _find_images(folder: Path) -> tuple[str, ...]:
    jobs = [Job.read_json(path.read_bytes()) for path in read_job_files(folder)]
    named = [(job, image) for job in jobs for image in kind_of(job.workload).prepare.service_images(job)]
    return tuple(dict.fromkeys(job.images.get(image, image) for job, image in named))


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mtime, member.uid, member.gid, member.uname, member.gname = 0, 0, 0, "", ""
    return member


def render_secrets(packed: PackedPayload, job_uid: str) -> list[dict[str, Any]]:
    """Return the Secrets that carry a payload; they go when their Job goes."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": packed.key, "uid": job_uid}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": _secret_name(packed.key, number),
                "labels": _labels(packed.key),
                "ownerReferences": [owner],
            },
            "data": {"part": base64.b64encode(part).decode()},
        }
        for number, part in enumerate(packed.parts)
    ]


def render_job(options: KubernetesOptions, packed: PackedPayload, avoid: Sequence[str] = ()) -> dict[str, Any]:
    """Return a Job that runs a payload once and tries nothing again by itself."""
    pod_s = (options.minutes + options.keep_minutes) * 60 + 2 * _GRACE_S
    labels = _labels(packed.key)
    job: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": packed.key, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": _LONGEST_QUEUE_S + pod_s,
            "ttlSecondsAfterFinished": _FORGET_S,
            "template": {"metadata": {"labels": labels}, "spec": _render_pod(options, packed, avoid, pod_s)},
        },
    }
    if options.kueue:
        priority = {"kueue.x-k8s.io/priority-class": options.kueue_priority} if options.kueue_priority else {}
        job["metadata"]["labels"] = labels | priority | {"kueue.x-k8s.io/queue-name": options.kueue}
        job["spec"]["suspend"] = True
    return job


def _render_pod(options: KubernetesOptions, packed: PackedPayload, avoid: Sequence[str], pod_s: int) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": pod_s,
        "terminationGracePeriodSeconds": _GRACE_S,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "containers": [
            _render_runner(options, packed),
            _render_keeper(options),
            *(_render_service(options, number, image) for number, image in enumerate(packed.images)),
        ],
        "volumes": _render_volumes(options, packed),
        "affinity": _render_affinity(options, avoid),
    }
    if packed.images:  # the runner watches what its services use
        pod["shareProcessNamespace"] = True
    if options.service_account:
        pod["serviceAccountName"] = options.service_account
    if options.pull_secret:
        pod["imagePullSecrets"] = [{"name": options.pull_secret}]
    if options.node_selector:
        pod["nodeSelector"] = dict(one.split("=", 1) for one in options.node_selector)
    if options.tolerations:
        pod["tolerations"] = [_render_toleration(one) for one in options.tolerations]
    if options.user is not None:
        pod["securityContext"] = {"runAsUser": options.user, "runAsNonRoot": True, "fsGroup": options.user}
    return pod


def _render_runner(options: KubernetesOptions, packed: PackedPayload) -> dict[str, Any]:
    variables = {
        "PRONY_HOME": f"{PREFIX}/home",
        "RUN_PYTHON": options.python,
        "PAYLOAD_KEY": packed.key,
        "PAYLOAD_SHA256": packed.sha256,
        "RUN_SECONDS": str(options.minutes * 60),
        "SERVICE_COUNT": str(len(packed.images)),
        IMAGES_VARIABLE: "\n".join(packed.images),
    }
    gpus = 0 if packed.images else options.gpus
    payload = {"name": "payload", "mountPath": "/prony-in", "readOnly": True}
    container = _render_container(options, RUNNER, _RUN, _gpu_variables(gpus) | variables, _render_share(options, gpus))
    return container | {"volumeMounts": [payload, *_render_mounts(options)]}


def _render_service(options: KubernetesOptions, number: int, image: str) -> dict[str, Any]:
    """Return the container of a service's image; the first has the GPUs, which the runner does not need then."""
    gpus = options.gpus if number == 0 else 0
    variables = _gpu_variables(gpus) | {"SERVICE_NUMBER": str(number)}
    container = _render_container(options, f"service-{number}", _SERVE, variables, _render_share(options, gpus))
    return container | {"image": image, "volumeMounts": _render_mounts(options)}


def _gpu_variables(gpus: int) -> dict[str, str]:
    """Return what hides the node's GPUs from a container that has none of its own, and may see all."""
    return {} if gpus else {"NVIDIA_VISIBLE_DEVICES": "void"}


def _render_share(options: KubernetesOptions, gpus: int) -> dict[str, str]:
    share = {"cpu": str(options.cpus)} if options.cpus else {}
    share |= {"memory": options.memory} if options.memory else {}
    return share | ({options.gpu_resource: str(gpus)} if gpus else {})


def _render_mounts(options: KubernetesOptions) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [
        {"name": "work", "mountPath": PREFIX},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    for number, text in enumerate(options.mounts):
        _, _, path, read_only = _mount_parts(text)
        mounts.append({"name": f"mount-{number}", "mountPath": path, "readOnly": read_only})
    return mounts


def _render_keeper(options: KubernetesOptions) -> dict[str, Any]:
    variables = {"KEEP_SECONDS": str(options.keep_minutes * 60), "PAUSE_SECONDS": str(_LOOK_AFTER_S)}
    # A pod is guaranteed what it asks for only where each of its containers has limits.
    share = _KEEPER_SHARE if options.cpus and options.memory else {}
    mounts: list[dict[str, Any]] = [{"name": "work", "mountPath": PREFIX}]
    mounts += [
        {"name": f"mount-{number}", "mountPath": _mount_parts(text)[2], "readOnly": True}
        for number, text in enumerate(options.mounts)
    ]
    return _render_container(options, KEEPER, _KEEP, variables, share) | {"volumeMounts": mounts}


def _render_container(
    options: KubernetesOptions, name: str, script: str, variables: dict[str, str], share: dict[str, str]
) -> dict[str, Any]:
    return {
        "name": name,
        "image": options.image,
        "imagePullPolicy": options.pull_policy,
        # The cluster fills in variables of its own, and writes $ for $$.
        "command": ["/bin/sh", "-c", script.replace("$", "$$")],
        "env": [{"name": key, "value": value} for key, value in variables.items()],
        "resources": {"requests": dict(share), "limits": dict(share)},
        # The last words survive in the pod's status, where no log can be read.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False},
    }


def _render_volumes(options: KubernetesOptions, packed: PackedPayload) -> list[dict[str, Any]]:
    parts = [
        {"secret": {"name": _secret_name(packed.key, number), "items": [{"key": "part", "path": f"part-{number:03d}"}]}}
        for number in range(len(packed.parts))
    ]
    volumes: list[dict[str, Any]] = [
        {"name": "work", "emptyDir": {}},
        {"name": "payload", "projected": {"sources": parts}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
    ]
    for number, text in enumerate(options.mounts):
        kind, name, _, read_only = _mount_parts(text)
        claim = {"persistentVolumeClaim": {"claimName": name, "readOnly": read_only}}
        volumes.append({"name": f"mount-{number}"} | (claim if kind == "pvc" else {"hostPath": {"path": name}}))
    return volumes


def _render_affinity(options: KubernetesOptions, avoid: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if avoid:
        term = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": list(avoid)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        found["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    if options.exclusive:
        rule = {"labelSelector": {"matchLabels": MANAGED}, "topologyKey": "kubernetes.io/hostname"}
        found["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}
    return found


def _render_toleration(text: str) -> dict[str, str]:
    matched = re.fullmatch(_TOLERATION, text)
    if matched is None:
        raise InputError(f"{text} is not a toleration", hint="write KEY[=VALUE][:EFFECT]")
    key, value, effect = matched.groups()
    found = {"key": key, "operator": "Exists"} if value is None else {"key": key, "operator": "Equal", "value": value}
    return found | ({"effect": effect} if effect else {})


def _mount_parts(text: str) -> tuple[str, str, str, bool]:
    """Return kind, name or path, path in the container, and whether it is read only."""
    matched = re.fullmatch(_MOUNT, text)
    if matched is None:
        raise InputError(f"{text} is not a mount", hint="write pvc/NAME:/PATH[:ro] or host//PATH:/PATH[:ro]")
    return matched[1], matched[2], matched[3], matched[4] is not None


def _labels(key: str) -> dict[str, str]:
    return {**MANAGED, KEY_LABEL: key}


def _secret_name(key: str, number: int) -> str:
    return f"{key}-{number}"
