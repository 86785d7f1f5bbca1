"""The Job of a payload as the cluster reads it, and the Secrets that carry the payload."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from prony.errors import InputError
from prony.plugins.executors.kubernetes_objects import (
    KubernetesOptions,
    PackedPayload,
    pack_payload,
    render_job,
    render_secrets,
)
from prony.recipe import loads
from prony.runner.job_folder import write_job_folder

KEY = "prony-a-1-00000000"
SERVED = """\
name: served
workload: {kind: service, service: redis, settings: {image: "registry.example/redis:7"}}
load: {closed: {concurrency: 1}, duration: 1s}
"""
PACKED = PackedPayload(KEY, (b"one", b"two"), "0" * 64)
FULL = KubernetesOptions(
    image="registry.example/prony@sha256:0",
    namespace="bench",
    cpus=4,
    memory="8Gi",
    gpus=1,
    node_selector=("nvidia.com/gpu.product=H200",),
    tolerations=("nvidia.com/gpu", "pool=bench:NoSchedule"),
    mounts=("pvc/models:/models:ro", "host//data:/data"),
    service_account="runner",
    pull_secret="login",
    user=1000,
    kueue="research",
    kueue_priority="low",
    minutes=10,
    keep_minutes=5,
)


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = job["spec"]["template"]["spec"]
    return spec


def variables(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"]}


def test_a_job_is_run_once_and_ends_whatever_happens() -> None:
    job = render_job(KubernetesOptions(image="i"), PACKED)
    spec, pod = job["spec"], pod_of(job)
    assert (spec["backoffLimit"], spec["completions"], spec["parallelism"]) == (0, 1, 1)
    assert (pod["restartPolicy"], pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (
        "Never",
        False,
        False,
    )
    # A day to run, four hours to be fetched, and the grace of both ends; waiting in the queue is not counted.
    assert pod["activeDeadlineSeconds"] == 86_400 + 4 * 3600 + 120
    assert spec["activeDeadlineSeconds"] == 14 * 86_400 + pod["activeDeadlineSeconds"]
    assert (spec["ttlSecondsAfterFinished"], pod["terminationGracePeriodSeconds"]) == (86_400, 60)
    assert {one["terminationMessagePolicy"] for one in pod["containers"]} == {"FallbackToLogsOnError"}
    assert "suspend" not in spec


def test_the_node_is_alone_with_it_and_a_failed_one_is_avoided() -> None:
    affinity = pod_of(render_job(KubernetesOptions(image="i"), PACKED, ["n1", "n2"]))["affinity"]
    (rule,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["labelSelector"]["matchLabels"] == {"app.kubernetes.io/managed-by": "prony"}
    (term,) = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["n1", "n2"]
    assert pod_of(render_job(KubernetesOptions(image="i", exclusive=False), PACKED))["affinity"] == {}


def test_what_is_asked_for_is_guaranteed_and_the_keeper_has_limits_too() -> None:
    runner, keeper = pod_of(render_job(FULL, PACKED))["containers"]
    assert runner["resources"]["limits"] == {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}
    for one in (runner, keeper):
        assert one["resources"]["requests"] == one["resources"]["limits"] != {}
    plain, _ = pod_of(render_job(KubernetesOptions(image="i"), PACKED))["containers"]
    assert plain["resources"]["limits"] == {}
    assert variables(plain)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "NVIDIA_VISIBLE_DEVICES" not in variables(runner)


def test_options_of_the_owner_reach_the_pod() -> None:
    job = render_job(FULL, PACKED)
    pod = pod_of(job)
    assert pod["nodeSelector"] == {"nvidia.com/gpu.product": "H200"}
    assert pod["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"key": "pool", "operator": "Equal", "value": "bench", "effect": "NoSchedule"},
    ]
    assert pod["volumes"][3]["persistentVolumeClaim"] == {"claimName": "models", "readOnly": True}
    assert pod["volumes"][4]["hostPath"] == {"path": "/data"}
    assert [one["mountPath"] for one in pod["containers"][0]["volumeMounts"]][-2:] == ["/models", "/data"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["imagePullSecrets"] == [{"name": "login"}]
    assert (job["spec"]["suspend"], job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]) == (True, "research")
    assert job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "low"
    assert pod["activeDeadlineSeconds"] == 600 + 300 + 120


@pytest.mark.parametrize(
    "wrong",
    [
        {"mounts": ("/a:/b",)},
        {"tolerations": ("a:Sometimes",)},
        {"memory": "8 GB"},
        {"node_selector": ("zone",)},
        {"pull_policy": "Maybe"},
        {"namespace": "-x"},
    ],
)
def test_an_option_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        KubernetesOptions(image="i", **wrong)


def test_the_image_of_a_service_is_a_container_beside_the_runner(tmp_path: Path) -> None:
    jobs = loads(SERVED).jobs("exp")
    write_job_folder(tmp_path / "out", jobs, jobs)
    packed = pack_payload(KEY, tmp_path / "out")
    assert packed.images == ("registry.example/redis:7",)
    runner, keeper, service = pod_of(render_job(FULL, packed))["containers"]
    assert (service["name"], service["image"]) == ("service-0", "registry.example/redis:7")
    assert variables(runner)["SERVICE_COUNT"] == "1"
    assert "echo $$$$ > /prony/shell" in runner["command"][2], "a cluster writes $ for $$"
    assert service["resources"]["limits"] == {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}
    assert runner["resources"]["limits"] == {"cpu": "4", "memory": "8Gi"}, "the service has the GPU"
    assert "NVIDIA_VISIBLE_DEVICES" in variables(runner)
    assert all(one["resources"]["limits"] == one["resources"]["requests"] for one in (runner, keeper, service))
    assert {"name": "work", "mountPath": "/prony"} in service["volumeMounts"]
    assert pod_of(render_job(FULL, packed))["shareProcessNamespace"] is True
    assert "shareProcessNamespace" not in pod_of(render_job(FULL, PACKED))


def test_secrets_belong_to_the_job_and_hold_the_payload(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "input").write_text("{}")
    packed = pack_payload(KEY, tmp_path)
    (secret,) = render_secrets(packed, "uid-1")
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", KEY, "uid-1")
    carried = base64.b64decode(secret["data"]["part"])
    assert hashlib.sha256(carried).hexdigest() == packed.sha256
    with tarfile.open(fileobj=io.BytesIO(carried)) as archive:
        assert "./jobs/input" in archive.getnames()
    sources = pod_of(render_job(KubernetesOptions(image="i"), packed))["volumes"][1]["projected"]["sources"]
    assert [one["secret"]["name"] for one in sources] == [secret["metadata"]["name"]]


def test_a_payload_is_cut_into_pieces_that_are_the_same_each_time(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(os.urandom(2 * 2**20))
    first = pack_payload(KEY, tmp_path)
    os.utime(tmp_path / "noise", (1, 1))
    assert pack_payload(KEY, tmp_path) == first
    assert len(first.parts) == 3
    assert all(len(part) <= 2**20 for part in first.parts)


def test_what_is_too_large_for_the_cluster_is_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(os.urandom(17 * 2**20))
    with pytest.raises(InputError, match="17 MiB packed; a cluster takes 16") as caught:
        pack_payload(KEY, tmp_path)
    assert caught.value.code == "payload_too_large"


def test_the_published_schemas_know_every_field() -> None:
    try:
        import kubernetes_validate  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        from servers.needs import lack

        lack("kubernetes_validate", "the package with the published schemas is not installed")
    served = replace(PACKED, images=("registry.example/redis:7",))
    for minor in range(25, 38):
        for document in (render_job(FULL, PACKED, ["n1"]), render_job(FULL, served), *render_secrets(PACKED, "uid-1")):
            kubernetes_validate.validate(document, f"1.{minor}", strict=True)
