"""Make images of what this machine has: Debian with Python, PostgreSQL and Prometheus, where no registry is reached.

Each stands in for an image that deploy/ names, as far as deploy/ uses it: the same programs, paths, user and variables.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

from servers import binaries
from servers.binaries import AbsentError
from servers.podman import Podman
from tools.portable_python import copy_python

PYTHON, POSTGRES, PROMETHEUS = "localhost/python:3-slim", "localhost/postgres:1", "localhost/prometheus:1"
NOTHING = "localhost/nothing:1"
# What a small Debian has: a shell, the usual programs, and what makes users.
_DEBIAN = (
    "base-files", "base-passwd", "bash", "coreutils", "dash", "debianutils", "findutils", "grep", "gzip", "hostname",
    "libc-bin", "libc6", "libgcc-s1", "libstdc++6", "login", "mawk", "passwd", "sed", "tar", "util-linux", "zlib1g",
)  # fmt: skip
_NOT_NEEDED = tuple(f"/usr/share/{name}/" for name in ("doc", "info", "locale", "man"))
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_IS_GLIBC = re.compile(r"^(ld-linux[\w-]*|lib(c|m|dl|rt|pthread|util|resolv|nss_files|nss_dns)\.so)")
# What the image that deploy/ names does at its first start, as far as deploy/compose.yaml counts on it.
_START_POSTGRES = """\
#!/bin/sh
set -eu
data=/var/lib/postgresql/data
become="setpriv --reuid=postgres --regid=postgres --clear-groups"
chown postgres:postgres $data
chmod 0700 $data
if [ ! -s $data/PG_VERSION ]; then
  echo "$POSTGRES_PASSWORD" > /tmp/password
  chown postgres /tmp/password
  $become {bin}/initdb -D $data --username="$POSTGRES_USER" --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8
  rm /tmp/password
  echo "host all all all scram-sha-256" >> $data/pg_hba.conf
  echo "CREATE DATABASE \\"$POSTGRES_DB\\"" | $become {bin}/postgres --single -D $data postgres
fi
exec $become {bin}/postgres -D $data -c listen_addresses='*' -c unix_socket_directories=/tmp
"""


def make_images(podman: Podman, folder: Path) -> None:
    """Make all three images."""
    debian = folder / "debian"
    _copy_debian(debian)
    for name, add, changes in (
        (PYTHON, _add_python, ()),
        (POSTGRES, _add_postgres, ('ENTRYPOINT ["/start-postgres"]', "VOLUME /var/lib/postgresql/data")),
        (PROMETHEUS, _add_prometheus, (
            "USER nobody", 'ENTRYPOINT ["/usr/bin/prometheus"]',
            'CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]',
        )),
    ):  # fmt: skip
        place = folder / "root"
        subprocess.run(["cp", "-a", debian, place], check=True)
        add(place)
        _import(podman, place, name, changes)
        shutil.rmtree(place)


def build_target(podman: Podman, checkout: Path, target: str, name: str) -> None:
    """Build a target of deploy/Containerfile from the wheels in a checkout's dist/."""
    arguments = (f"PYTHON_IMAGE={PYTHON}", "PIP_NO_INDEX=1", "ENGINES=onnx")
    words = ["podman", "build", "--quiet", "--isolation=chroot", "--format=docker", "--target", target, "--tag", name]
    words += [f"--build-arg={one}" for one in arguments]
    words += ["--file", str(checkout / "deploy/Containerfile"), str(checkout)]
    done = subprocess.run(words, env=os.environ | podman.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def make_nothing(podman: Podman, folder: Path) -> None:
    """Make an image of glibc and busybox alone: a shell, tar and gzip, but no Python and no other library."""
    root = folder / "nothing"
    busybox = shutil.which("busybox")
    if busybox is None:
        raise AbsentError("no busybox here: apt-get install busybox-static")
    _make_root(root)
    (root / "tmp").mkdir()
    _copy(root, [Path(busybox).resolve()])
    place = root / "bin"
    place.mkdir(parents=True, exist_ok=True)
    for name in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if not (place / name).exists():
            (place / name).symlink_to(Path(busybox).resolve())
    # What the loader finds for a program that needs all of glibc.
    _copy(root, [path for path in _linked([Path(sys.executable).resolve()]) if _IS_GLIBC.search(path.name)])
    library = Path(next(path for path in _linked([Path("/bin/sh")]) if path.name == "libc.so.6")).parent
    _copy(root, [path for path in library.glob("lib*.so.*") if _IS_GLIBC.search(path.name)])
    _import(podman, root, NOTHING, ())


def _make_root(root: Path) -> None:
    """Make a folder whose bin and lib lead to those of usr, as this machine's do."""
    root.mkdir()
    for name in _MERGED:
        if Path("/", name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
            (root / "usr" / name).mkdir(parents=True)


def _import(podman: Podman, place: Path, name: str, changes: Iterable[str]) -> None:
    archive = place.with_suffix(".tar")
    with tarfile.open(archive, "w") as tar:
        tar.add(place, ".")
    podman.run("import", "--quiet", *(word for one in changes for word in ("--change", one)), archive, name)
    archive.unlink()


def _copy_debian(root: Path) -> None:
    """Copy the files of a small Debian from this machine's packages."""
    if shutil.which("dpkg-query") is None or not Path("/bin").is_symlink():
        raise AbsentError("images are made of the packages of a Debian 12 or newer, and this is none")
    listed = subprocess.run(["dpkg-query", "--listfiles", *_DEBIAN], capture_output=True, text=True, check=True).stdout
    _make_root(root)
    for folder in ("dev", "etc", "proc", "sys", "tmp", "run", "root", "home", "var/lib", "var/tmp"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for folder in ("tmp", "var/tmp"):
        (root / folder).chmod(0o1777)
    files = [Path(line) for line in listed.splitlines() if line.startswith("/") and not line.startswith(_NOT_NEEDED)]
    _copy(root, [path for path in files if path.is_symlink() or path.is_file()])
    for name in ("passwd", "group"):
        shutil.copy(f"/usr/share/base-passwd/{name}.master", root / "etc" / name)
    for name in ("/usr/bin/which", "/usr/bin/awk"):
        _copy(root, [Path(name)])


def _add_python(root: Path) -> None:
    made = root / "usr" / "made"
    copy_python(made)
    subprocess.run(["cp", "-a", f"{made}/.", root / "usr" / "local"], check=True)
    shutil.rmtree(made)


def _add_postgres(root: Path) -> None:
    programs = binaries.find()
    folder = programs.folder.resolve()
    parts = [folder, folder.parent / "lib", folder.parent / "share"]
    share = Path("/usr/share/postgresql", folder.parent.name)
    parts += [share] if share.is_dir() else []
    _copy(root, [path for part in parts for path in part.rglob("*") if path.is_file()])
    if not folder.is_relative_to("/usr"):
        # A package's, or a copy of it in memory, which a container's own /dev/shm hides: it finds its parts anywhere.
        package = folder.parents[2]
        (root / "opt").mkdir(exist_ok=True)
        (root / str(package).lstrip("/")).rename(root / "opt/postgres")
        folder = Path("/opt/postgres", folder.relative_to(package))
    for name in ("pg_isready", "psql"):
        if (root / str(folder / name).lstrip("/")).exists():
            (root / "usr/bin" / name).unlink(missing_ok=True)
            (root / "usr/bin" / name).symlink_to(folder / name)
    with (root / "etc/passwd").open("a") as passwd, (root / "etc/group").open("a") as group:
        passwd.write("postgres:x:999:999::/var/lib/postgresql:/bin/sh\n")
        group.write("postgres:x:999:\n")
    start = root / "start-postgres"
    start.write_text(_START_POSTGRES.format(bin=folder))
    start.chmod(0o755)
    (root / "var/lib/postgresql/data").mkdir(parents=True)


def _add_prometheus(root: Path) -> None:
    program = shutil.which("prometheus")
    if program is None:
        raise AbsentError("no prometheus here: apt-get install prometheus")
    _copy(root, [Path(program)])
    (root / "etc/prometheus").mkdir()
    place = root / "prometheus"
    place.mkdir()
    os.chown(place, 65534, 65534)


def _copy(root: Path, files: Iterable[Path]) -> None:
    """Copy files with the libraries that they are linked with, each to its own path."""
    wanted = list(files)
    for path in [*wanted, *_linked(wanted)]:
        place = root / str(path).lstrip("/")
        if place.is_symlink() or place.exists():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place, follow_symlinks=False)
        if path.is_symlink() and path.is_file():
            _copy(root, [path.resolve()])


def _linked(files: list[Path]) -> set[Path]:
    """Return the libraries that the loader finds for programs and libraries."""
    words = [str(path) for path in files if os.access(path, os.X_OK) or ".so" in path.name]
    found = set()
    for start in range(0, len(words), 200):
        told = subprocess.run(["ldd", *words[start : start + 200]], capture_output=True, text=True, check=False).stdout
        lines = (line.replace("=>", " ").split() for line in told.splitlines())
        found |= {Path(word) for line in lines for word in line if word.startswith("/") and not word.endswith(":")}
    return found
