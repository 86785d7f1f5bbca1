"""deploy/kubernetes on a real cluster of one node: the server starts, an agent comes with its token, a recipe finishes.

The cluster has neither DNS nor a proxy for services, so the agent is told the address of the server's pod.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from servers import images
from servers.binaries import AbsentError
from servers.kubernetes import Kubernetes, kubernetes_cluster
from servers.needs import lack
from servers.podman import podman_engine
from servers.waiting import wait_for
from servers.wheels import ROOT, build_packages, copy_checkout, fetch_wheels

pytestmark = pytest.mark.clusters
VOLUME = """\
apiVersion: v1
kind: PersistentVolume
metadata: {{name: test}}
spec:
  capacity: {{storage: 20Gi}}
  accessModes: [ReadWriteOnce]
  hostPath: {{path: {folder}}}
"""
RECIPE = """\
name: clustered
workload: {kind: model, model: "zoo:noop", engine: onnxruntime, threads: 1}
measure: {runs: 5, repeats: 2, warmup: 1}
"""
# What a person does after `kubectl apply`, but for the address.
RUN = """\
cat > /tmp/recipe.yaml
export PRONY_TOKEN=$(prony tokens add test --role submitter 2>/dev/null)
prony run /tmp/recipe.yaml --server http://127.0.0.1:7337 --no-report
"""


@dataclass(frozen=True)
class Deployed:
    cluster: Kubernetes

    def run(self, *words: str, stdin: str = "") -> str:
        """Run kubectl in the namespace of the folder."""
        command = [self.cluster.kubectl, f"--kubeconfig={self.cluster.admin}", "--namespace=prony", *words]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def is_ready(self, kind: str, counted: str) -> bool:
        return self.run("get", kind, f"--output=jsonpath={{.status.{counted}}}") == "1"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    folder = tmp_path_factory.mktemp("deployed")
    with ExitStack() as block:
        short = Path(block.enter_context(tempfile.TemporaryDirectory(prefix="k", ignore_cleanup_errors=True)))
        try:
            cluster = block.enter_context(kubernetes_cluster(short, reaches_pods=True))
            with podman_engine() as podman:
                images.make_images(podman, folder)
                checkout = copy_checkout(folder / "checkout")
                (checkout / "dist").mkdir()
                fetch_wheels(build_packages(checkout, folder), "server,postgres,redis,onnx", checkout / "dist")
                for name in ("server", "agent"):
                    images.build_target(podman, checkout, name, f"localhost/prony-{name}:test")
                    archive = folder / f"{name}.tar"
                    podman.run("save", "--output", archive, f"localhost/prony-{name}:test")
                    cluster.import_image(archive)
                    archive.unlink()
        except AbsentError as exc:
            lack("kubernetes", str(exc))
        yield Deployed(cluster)


def test_the_folder_is_applied_and_a_recipe_finishes(deployed: Deployed, tmp_path: Path) -> None:
    folder = tmp_path / "kubernetes"
    shutil.copytree(ROOT / "deploy" / "kubernetes", folder)
    kustomization = folder / "kustomization.yaml"
    text = kustomization.read_text().replace("registry.example/", "localhost/").replace("newTag: 0.1.0", "newTag: test")
    kustomization.write_text(text)
    home = deployed.cluster.folder / "home"
    home.mkdir()
    os.chown(home, 10001, 10001)
    deployed.run("apply", "--filename=-", stdin=VOLUME.format(folder=home))
    applied = deployed.run("apply", "--kustomize", str(folder)).splitlines()
    assert sorted(applied) == [
        "daemonset.apps/prony-agent created",
        "deployment.apps/prony-server created",
        "namespace/prony created",
        "persistentvolumeclaim/prony-server created",
        "role.rbac.authorization.k8s.io/prony created",
        "rolebinding.rbac.authorization.k8s.io/prony created",
        "service/prony-server created",
    ]
    wait_for(lambda: deployed.is_ready("deployment/prony-server", "readyReplicas"), "the server to be ready")
    token = deployed.run("exec", "deploy/prony-server", "--", "prony", "tokens", "add", "cluster", "--role", "agent")
    secret = tmp_path / "token"
    secret.write_text(token)
    deployed.run("create", "secret", "generic", "prony-agent-token", f"--from-file={secret}")
    server = "--selector=app.kubernetes.io/name=prony-server"
    address = deployed.run("get", "pods", server, "--output=jsonpath={.items[0].status.podIP}")
    deployed.run("set", "env", "daemonset/prony-agent", f"PRONY_SERVER=http://{address}:7337")
    wait_for(lambda: deployed.is_ready("daemonset/prony-agent", "numberReady"), "the agent to be ready")
    said = deployed.run("exec", "--stdin", "deploy/prony-server", "--", "sh", "-euc", RUN, stdin=RECIPE)
    assert "clustered  " in said
    assert "complete" in said
