"""Run containers by the real podman, with settings, images and a network of their own, in a folder of the test's.

Also a registry on loopback: it is what images are pulled from, and its log tells how often.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from servers.binaries import AbsentError
from servers.ports import free_port
from servers.process import DieWithParent
from servers.redis import find_redis
from servers.waiting import wait_for

BUSYBOX = "localhost/busybox:1"
REDIS = "localhost/redis:7"
_PROGRAMS = ("sh", "cat", "echo", "env", "id", "ls", "sleep", "httpd")
_LIMITS = '[containers]\ndefault_ulimits=["nofile=1024:1024","nproc=1024:1024"]\n'
# As podman is installed, then with what a machine without all rights, or with both kinds of cgroups, needs.
_ENGINES = (
    '[engine]\nevents_logger="file"\n',
    f'[engine]\nevents_logger="file"\nruntime="runc"\ncgroup_manager="cgroupfs"\n{_LIMITS}',
)
_STORAGE = '[storage]\ndriver="overlay"\ngraphroot="{folder}/storage"\nrunroot="{folder}/run"\n'
_REGISTRY = """\
version: 0.1
log: {{accesslog: {{disabled: false}}, level: warn}}
storage: {{filesystem: {{rootdirectory: {folder}/kept}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""
_PATIENCE_S = 120
# podman refuses a longer one where an option names it, as it does to clean up after a container; the one that started
# the container then waits twenty seconds for what nobody writes.
_LONGEST_RUN_FOLDER = 50


@dataclass(frozen=True)
class Podman:
    """`environment` makes every podman that gets it use the folder, and nothing else of this machine's."""

    folder: Path
    environment: Mapping[str, str]
    registry: str  # a host and a port at which nothing but `serve_registry` listens

    def run(self, *words: str | Path, check: bool = True, within_s: float = _PATIENCE_S) -> str:
        done = subprocess.run(
            ["podman", *map(str, words)], env=os.environ | self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=within_s,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.strip()

    def containers(self) -> list[str]:
        """Return the name of every container, whatever became of it."""
        return self.run("ps", "--all", "--format", "{{.Names}}").split()

    def make_image(self, name: str, text: str) -> None:
        """Make an image of busybox that tells itself from others: its file /which has the text."""
        archive = self.folder / f"{secrets.token_hex(4)}.tar"
        _write_busybox(archive, text)
        self.run("import", "--quiet", archive, name)
        archive.unlink()

    def make_redis(self) -> str:
        """Make an image of the Redis of this machine and the libraries that it needs; return its name."""
        archive = self.folder / "redis.tar"
        _write_program(archive, find_redis().resolve(), "usr/bin/redis-server")
        self.run("import", "--quiet", archive, REDIS)
        archive.unlink()
        return REDIS


@contextmanager
def podman_engine() -> Iterator[Podman]:
    """Give a podman that has run a container of busybox; when the block ends, nothing of it is left."""
    for program in ("podman", "busybox"):
        if shutil.which(program) is None:
            raise AbsentError(f"no {program} here: apt-get install podman runc netavark iptables busybox-static")
    folder = Path(tempfile.mkdtemp(prefix="podman-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    if len(str(folder / "run")) > _LONGEST_RUN_FOLDER:
        folder = Path(tempfile.mkdtemp(prefix="podman-", dir="/tmp"))
    port = free_port()
    podman = Podman(folder, _write_settings(folder, port), f"127.0.0.1:{port}")
    try:
        _find_settings_that_work(podman)
        yield podman
    finally:
        podman.run("rm", "--force", "--all", "--time=0", check=False)
        podman.run("image", "rm", "--force", "--all", check=False)
        if os.getuid() != 0:  # files of other users of its own are in there
            podman.run("unshare", "rm", "-rf", folder / "storage", check=False)
        else:
            subprocess.run(["umount", folder / "storage" / "overlay"], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _write_settings(folder: Path, port: int) -> dict[str, str]:
    (folder / "storage.conf").write_text(_STORAGE.format(folder=folder))
    (folder / "registries.conf").write_text(f'[[registry]]\nlocation="127.0.0.1:{port}"\ninsecure=true\n')
    (folder / "networks").mkdir()
    (folder / "networks" / f"prony{port}.json").write_text(json.dumps(_network(port)))
    names = {"CONF": "containers", "STORAGE_CONF": "storage", "REGISTRIES_CONF": "registries"}
    return {f"CONTAINERS_{name}": str(folder / f"{file}.conf") for name, file in names.items()}


def _network(port: int) -> dict[str, object]:
    """Return a network whose interface and addresses no other test has, as none has the port."""
    begin = f"10.{port >> 8}.{port & 255}"
    return {
        "name": f"prony{port}", "id": hashlib.sha256(str(port).encode()).hexdigest(), "driver": "bridge",
        "network_interface": f"prony{port}", "created": "2026-01-01T00:00:00Z",
        "subnets": [{"subnet": f"{begin}.0/24", "gateway": f"{begin}.1"}], "ipv6_enabled": False, "internal": False,
        "dns_enabled": False, "ipam_options": {"driver": "host-local"},
    }  # fmt: skip


def _find_settings_that_work(podman: Podman) -> None:
    (network,) = (podman.folder / "networks").iterdir()
    more = f'[network]\nnetwork_config_dir="{network.parent}"\ndefault_network="{network.stem}"\n'
    said = ""
    for engine in _ENGINES:
        (podman.folder / "containers.conf").write_text(engine + more)
        try:
            podman.make_image(BUSYBOX, "first")
            podman.run("run", "--rm", "--publish=127.0.0.1::80", BUSYBOX, "echo", "hello")
        except (AssertionError, subprocess.SubprocessError) as exc:
            said = str(exc).strip()[-300:]
        else:
            return
    raise AbsentError(f"podman cannot start a container here: {said}")


def _write_busybox(archive: Path, text: str) -> None:
    place = archive.with_suffix(".root")
    (place / "bin").mkdir(parents=True)
    (place / "tmp").mkdir()
    (place / "which").write_text(text)
    _write_program(archive, Path(str(shutil.which("busybox"))).resolve(), "bin/busybox", place)
    shutil.rmtree(place)


def _write_program(archive: Path, program: Path, inside: str, place: Path | None = None) -> None:
    """Write a program, the libraries that it is linked with and all of a folder."""
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    with tarfile.open(archive, "w") as tar:
        if place is not None:
            tar.add(place, ".")
            for name in _PROGRAMS:
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
        tar.add(program, inside)
        for path in re.findall(r"(/\S+)", linked if "=>" in linked else ""):
            tar.add(Path(path).resolve(), path)


@dataclass(frozen=True)
class Registry:
    """A registry that images are pushed to and pulled from. `name` begins the names of its images."""

    name: str
    log: Path

    def count_pulls(self, image: str) -> int:
        """Return how often the layers of an image were asked for."""
        lines = self.log.read_text(errors="replace").splitlines()
        return sum(f'"GET /v2/{image}/manifests/' in line for line in lines)

    def forget(self) -> None:
        self.log.write_text("")


@contextmanager
def serve_registry(podman: Podman) -> Iterator[Registry]:
    """Run a registry while the block runs."""
    program = shutil.which("docker-registry") or shutil.which("registry")
    if program is None:
        raise AbsentError("no registry here: apt-get install docker-registry")
    port = int(podman.registry.rpartition(":")[2])
    folder = podman.folder / "registry"
    folder.mkdir()
    (folder / "config.yml").write_text(_REGISTRY.format(folder=folder, port=port))
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [program, "serve", folder / "config.yml"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            preexec_fn=DieWithParent(signal.SIGKILL),  # noqa: PLW1509 - it makes one system call
        )  # fmt: skip
    try:
        wait_for(lambda: process.poll() is not None or _listens(port), "the registry to listen")
        if process.returncode is not None:
            raise AbsentError(f"the registry does not start: {(folder / 'log').read_text()[-300:]}")
        yield Registry(podman.registry, folder / "log")
    finally:
        process.kill()
        process.wait()


def main() -> int:
    """Say by the exit code whether a container starts on this machine."""
    try:
        with podman_engine():
            return 0
    except AbsentError as exc:
        sys.stderr.write(f"{exc}\n")
        return 1


def _listens(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=10).close()
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
