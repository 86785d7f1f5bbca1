"""Run a real Kubernetes of one node on this machine, with a kubelet and containerd, in one private folder."""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import psutil

from prony.model.target import OptionValue
from servers.binaries import AbsentError
from servers.ports import free_port
from servers.process import DieWithParent

IMAGE, SERVICE_IMAGE = "prony.test/host:1", "prony.test/service:1"
NAMESPACE = "bench"
ROLE = Path(__file__).parents[2] / "deploy" / "kubernetes" / "role.yaml"
_PAUSE = "prony.test/pause:1"
_READY_S, _STOP_S = 180.0, 30.0
_NETWORK = "10.97.19.0/24"
_PROGRAMS = (
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl", "containerd", "ctr",
    "runc",
)  # fmt: skip
# The kubelet sets these as it likes them.
_TUNED = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
          "kernel/keys/root_maxbytes")  # fmt: skip
_KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 127.0.0.1
port: {kubelet}
readOnlyPort: 0
healthzPort: 0
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: false}}}}
authorization: {{mode: AlwaysAllow}}
evictionHard: {{memory.available: "1%", nodefs.available: "1%", imagefs.available: "1%", nodefs.inodesFree: "1%"}}
imageGCHighThresholdPercent: 100
resolvConf: ""
serverTLSBootstrap: false
nodeStatusUpdateFrequency: 2s
"""
_CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-state"
oom_score = 0
[grpc]
  address = "{folder}/c.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{build}/cni"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "{build}/bin/runc"
"""
_CONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "test",
    "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
}


@dataclass
class Kubernetes:
    """A cluster; `admin` and `user` are its kubeconfigs, the user has nothing but the Role that Prony ships."""

    folder: Path
    build: Path
    ports: dict[str, int]
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    tuned: dict[str, str] = field(default_factory=dict)
    reaches_pods: bool = False  # whether this machine has an address in the network of the pods, as probes need it

    @property
    def admin(self) -> Path:
        return self.folder / "admin.json"

    @property
    def user(self) -> Path:
        return self.folder / "user.json"

    @property
    def kubectl(self) -> str:
        return str(self.build / "bin" / "kubectl")

    @property
    def bridge(self) -> str:
        return f"pt{self.ports['api']}"

    @property
    def mounts(self) -> tuple[str, ...]:
        """What a pod needs of this machine to have its Python: the image is empty."""
        places = {"/usr", str(Path(sys.base_prefix).resolve()), str(Path(__file__).parents[2])}
        return tuple(f"host/{place}:{place}" for place in sorted(places))

    def options(self, folder: Path) -> dict[str, OptionValue]:
        """Return the options of a target there, whose pods have this machine's Python and a folder of the test."""
        return {
            "kubectl": self.kubectl,
            "kubeconfig": str(self.user),
            "namespace": NAMESPACE,
            "image": IMAGE,
            "pull_policy": "Never",
            "python": sys.executable,
            "mounts": (*self.mounts, f"host/{folder}:{folder}"),
        }

    def run(self, *words: str, stdin: str = "") -> str:
        """Run kubectl as an administrator and return what it prints."""
        command = [self.kubectl, f"--kubeconfig={self.admin}", f"--namespace={NAMESPACE}", *words]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=120)
        return done.stdout + done.stderr

    def names(self, kinds: str = "jobs,pods,secrets") -> list[str]:
        """Return what is there with Prony's label."""
        told = self.run("get", kinds, "--selector=app.kubernetes.io/managed-by=prony", "--output=name")
        return [line for line in told.split("\n") if "/" in line]

    def import_image(self, archive: Path) -> None:
        """Give the node an image that was saved as docker saves it."""
        told = self._ctr("images", "import", str(archive))
        assert "saved" in told or "done" in told, told

    def limit_cpu(self, pod: str, microseconds: int) -> None:
        """Let a pod's runner have so much of every tenth of a second: less than a busy machine gives it."""
        wanted = '{.status.containerStatuses[?(@.name=="runner")].containerID}'
        container = self.run("get", pod, f"--output=jsonpath={wanted}").rpartition("/")[2].strip()
        old = Path("/sys/fs/cgroup/cpu/k8s.io", container, "cpu.cfs_quota_us")
        if old.exists():
            old.write_text(str(microseconds))
        else:
            Path("/sys/fs/cgroup/k8s.io", container, "cpu.max").write_text(f"{microseconds} 100000")

    def start(self) -> None:
        self._write_files()
        etcd = self.ports["etcd"]
        self._start(
            "etcd", f"--data-dir={self.folder}/etcd", f"--listen-client-urls=http://127.0.0.1:{etcd}",
            f"--advertise-client-urls=http://127.0.0.1:{etcd}", f"--listen-peer-urls=http://127.0.0.1:{self.ports['peer']}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{self.ports['peer']}",
            f"--initial-cluster=default=http://127.0.0.1:{self.ports['peer']}", "--unsafe-no-fsync",
        )  # fmt: skip
        self.start_api()
        self._start(
            "kube-controller-manager", f"--kubeconfig={self.admin}",
            "--controllers=*,-nodeipam,-cloud-node-lifecycle,-route,-service",
            f"--service-account-private-key-file={self.folder}/sa.key", "--leader-elect=false", "--port=0",
            f"--secure-port={self.ports['manager']}", "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder}/certificates",
        )  # fmt: skip
        self._start(
            "kube-scheduler", f"--kubeconfig={self.admin}", "--leader-elect=false", "--port=0",
            f"--secure-port={self.ports['scheduler']}", "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder}/certificates",
        )  # fmt: skip
        self._start("containerd", f"--config={self.folder}/containerd.toml")
        self._wait((self.folder / "c.sock").exists, "containerd")
        for name in ("pause", "host", "service"):
            self._ctr("images", "import", str(self.folder / f"{name}.tar"))
        self._start_kubelet()
        self._wait(lambda: " Ready" in self.run("get", "nodes", "--no-headers"), "node")
        self.run("create", "namespace", NAMESPACE)
        self._wait(lambda: "default" in self.run("get", "serviceaccounts"), "service account")
        self.run("apply", f"--filename={ROLE}")

    def start_api(self) -> None:
        """Start the API server; a test may have stopped it."""
        self._start(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.ports['etcd']}", "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1", f"--secure-port={self.ports['api']}", "--insecure-port=0",
            f"--cert-dir={self.folder}/certificates", "--service-account-issuer=https://127.0.0.1",
            f"--service-account-key-file={self.folder}/sa.pub",
            f"--service-account-signing-key-file={self.folder}/sa.key", f"--token-auth-file={self.folder}/tokens.csv",
            "--authorization-mode=RBAC", "--service-cluster-ip-range=10.99.0.0/24", "--allow-privileged=true",
        )  # fmt: skip
        self._wait(lambda: self.run("get", "--raw=/readyz").strip() == "ok", "API server")

    def stop_api(self) -> None:
        self.daemons["kube-apiserver"].kill()
        self.daemons["kube-apiserver"].wait()

    def _start_kubelet(self) -> None:
        for name in _TUNED:
            self.tuned[name] = Path("/proc/sys", name).read_text()
        self._start(
            "kubelet", f"--config={self.folder}/kubelet.yaml", f"--kubeconfig={self.admin}",
            f"--root-dir={self.folder}/kubelet", "--container-runtime=remote",
            f"--container-runtime-endpoint=unix://{self.folder}/c.sock", f"--hostname-override={socket.gethostname()}",
            f"--cert-dir={self.folder}/certificates", "--runtime-cgroups=/", "--kubelet-cgroups=/",
        )  # fmt: skip

    def _wait_without_pods(self) -> None:
        deadline = time.monotonic() + _STOP_S
        while self._ctr("containers", "list", "--quiet").split() and time.monotonic() < deadline:
            time.sleep(0.2)

    def _start(self, program: str, *options: str) -> None:
        path = f"{self.build}/bin:{os.environ['PATH']}"
        with (self.folder / "log" / f"{program}.out").open("ab") as log:
            self.daemons[program] = subprocess.Popen(
                [str(self.build / "bin" / program), *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | {"PATH": path},
                preexec_fn=DieWithParent(signal.SIGKILL),  # noqa: PLW1509 - nothing but a system call
            )  # fmt: skip

    def _ctr(self, *words: str) -> str:
        command = [str(self.build / "bin" / "ctr"), f"--address={self.folder}/c.sock", "--namespace=k8s.io", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        return done.stdout + done.stderr

    def _wait(self, is_ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _READY_S
        while not is_ready():
            ended = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
            if ended or time.monotonic() > deadline:
                name = ended[0] if ended else "kubelet"
                log = self.folder / "log" / f"{name}.out"
                told = log.read_text(errors="replace")[-800:] if log.exists() else ""
                raise AbsentError(f"{what} of Kubernetes not ready; {name} says: {told}")
            time.sleep(0.1)

    def _write_files(self) -> None:
        for part in ("log", "certificates", "cni", "kubelet"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        for words in (["genrsa", "-out", "sa.key", "2048"], ["rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"]):
            subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, check=True)
        (self.folder / "tokens.csv").write_text('admintoken,admin,admin,"system:masters"\nusertoken,prony,prony\n')
        server = {"server": f"https://127.0.0.1:{self.ports['api']}", "insecure-skip-tls-verify": True}
        for path, token in ((self.admin, "admintoken"), (self.user, "usertoken")):
            users = [{"name": "test", "user": {"token": token}}]
            path.write_text(json.dumps(_CONFIG | {"users": users, "clusters": [{"name": "test", "cluster": server}]}))
            path.chmod(0o600)
        values = {"folder": self.folder, "build": self.build, "pause": _PAUSE, **self.ports}
        (self.folder / "kubelet.yaml").write_text(_KUBELET.format(**values))
        (self.folder / "containerd.toml").write_text(_CONTAINERD.format(**values))
        addresses = {"type": "host-local", "subnet": _NETWORK, "dataDir": f"{self.folder}/addresses"}
        network = {
            "type": "bridge",
            "bridge": self.bridge,
            "isGateway": self.reaches_pods,
            "ipMasq": False,
            "ipam": addresses,
        }
        (self.folder / "cni" / "10-test.conflist").write_text(
            json.dumps({"cniVersion": "0.3.1", "name": "test", "plugins": [network]})
        )
        busybox = (self.build / "bin" / "busybox").read_bytes()
        write_image(self.folder / "pause.tar", _PAUSE, {"sleep": busybox}, ["/sleep", "1000000"])
        links = {name: f"usr/{name}" for name in ("bin", "sbin", "lib", "lib64") if Path("/", name).is_symlink()}
        write_image(self.folder / "host.tar", IMAGE, {}, ["/bin/sh"], links)
        write_image(self.folder / "service.tar", SERVICE_IMAGE, {}, ["/bin/sh"], links)

    def stop(self) -> None:
        """End everything, pods first, and leave neither mounts nor a network behind."""
        if "kubelet" in self.daemons:
            # While the kubelet lives, it takes their networks down as well.
            self.run("delete", "jobs,pods", "--all", "--grace-period=1", "--timeout=30s")
            self._wait_without_pods()
            self.daemons["kubelet"].kill()
            self.daemons["kubelet"].wait()
            for name in self._ctr("tasks", "list", "--quiet").split():
                self._ctr("tasks", "kill", "--signal=SIGKILL", name)
        for daemon in reversed(self.daemons.values()):
            daemon.kill()
            daemon.wait()
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or ()
            if f"{self.folder}/c.sock" in words:  # the shims, which keep what ran in a pod
                for one in (*process.children(recursive=True), process):
                    with suppress(psutil.NoSuchProcess):
                        one.kill()
        mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in sorted((one for one in mounted if one.startswith(f"{self.folder}/")), reverse=True):
            subprocess.run(["umount", "--lazy", place], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", self.bridge], capture_output=True, check=False)
        for name, value in self.tuned.items():
            with suppress(OSError):
                Path("/proc/sys", name).write_text(value)


def write_image(
    path: Path, name: str, files: dict[str, bytes], command: list[str], links: dict[str, str] | None = None
) -> None:
    """Write an image as `docker save` does: one layer with these files and links, and folders to mount on."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        for folder in ("proc", "sys", "dev", "etc", "usr", "tmp"):
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            archive.addfile(member)
        for file, content in files.items():
            _add(archive, file, content)
        for link, target in (links or {}).items():
            member = tarfile.TarInfo(link)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    digest = f"sha256:{sha256(layer.getvalue()).hexdigest()}"
    machine = {"aarch64": "arm64", "x86_64": "amd64"}.get(platform.machine(), platform.machine())
    config = {"architecture": machine, "os": "linux", "config": {"Cmd": command, "Env": ["PATH=/usr/bin:/bin"]},
              "rootfs": {"type": "layers", "diff_ids": [digest]}}  # fmt: skip
    with tarfile.open(path, "w") as archive:
        _add(archive, "layer.tar", layer.getvalue())
        _add(archive, "config.json", json.dumps(config).encode())
        manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o755
    archive.addfile(member, io.BytesIO(content))


def build_folder() -> Path:
    """Return where `make test-clusters` builds Kubernetes."""
    named = os.environ.get("PRONY_TEST_KUBERNETES")
    return Path(named) if named else Path.home() / ".cache" / "prony-test" / "kubernetes"


@contextmanager
def kubernetes_cluster(folder: Path, *, reaches_pods: bool = False) -> Iterator[Kubernetes]:
    """Run one until the block ends."""
    build = build_folder()
    missing = [name for name in _PROGRAMS if not (build / "bin" / name).exists()]
    if missing:
        raise AbsentError(f"no {missing[0]} in {build / 'bin'}")
    for name in ("openssl", "ip"):
        if shutil.which(name) is None:
            raise AbsentError(f"no {name} here: apt-get install openssl iproute2")
    if os.getuid() != 0:
        raise AbsentError("a private Kubernetes needs root: its kubelet runs as it")
    folder.mkdir(parents=True, exist_ok=True)
    names = ("etcd", "peer", "api", "manager", "scheduler", "kubelet")
    cluster = Kubernetes(folder, build, {name: free_port() for name in names}, reaches_pods=reaches_pods)
    with ExitStack() as block:
        block.callback(cluster.stop)
        cluster.start()
        yield cluster
