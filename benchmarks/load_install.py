"""Nothing in; the programs that Prony is measured beside, each in an environment of its own, out.

Each is tried for a limited time. One that cannot be had here is told with the reason, and is left out of the benchmark.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prony.load.mock.script import WORDS

ROOT = Path(__file__).parents[1]
PEERS = ROOT / ".peers"
TOKENIZER = PEERS / "tokenizer"
_READY = ".ready"
# From Debian: the ceiling of what a client can do, and the servers' own load generators.
_PACKAGES = {"wrk": "wrk", "redis-benchmark": "redis-tools"}


@dataclass(frozen=True)
class Package:
    """`least`: the oldest Python that it takes; `beside`: what is said with it, so that pip takes a light build.

    `project`: what pip calls it, where that is another name.
    """

    name: str
    version: str
    least: tuple[int, int]
    beside: tuple[str, ...] = ()
    project: str = ""


ALL = (
    Package("aiperf", "0.13.0", (3, 10)),
    Package("inference-perf", "0.7.0", (3, 12)),
    # Finds changes in histories; it has its own ideas of which numpy.
    Package("otava", "0.8.0", (3, 9), project="apache-otava"),
    # Where pip finds a build of this torch for the CPU, that is newer than the plain one; else it is gigabytes.
    Package("guidellm", "0.8.1", (3, 10), (f"torch=={os.environ.get('TORCH_VERSION', '2.13.0')}",)),
)


def folder(name: str) -> Path:
    return PEERS / name


def is_ready(name: str) -> bool:
    return (folder(name) / _READY).exists()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the one whose name holds this")
    parser.add_argument("--limit", type=float, default=720.0, metavar="SECONDS", help="for each (720)")
    options = parser.parse_args()
    PEERS.mkdir(exist_ok=True)
    (PEERS / ".gitignore").write_text("*\n")
    for package in ALL:
        if options.only in package.name:
            print(f"{package.name} {package.version}: {_install(package, options.limit)}", flush=True)
    for program, package_name in _PACKAGES.items():
        if options.only in program:
            print(f"{program}: {_from_debian(program, package_name)}", flush=True)
    return 0


def _install(package: Package, limit_s: float) -> str:
    """Return what came of it, in words."""
    if is_ready(package.name):
        return "is there"
    python = next(_pythons(package.least), None)
    if python is None:
        return f"skipped: it takes Python {package.least[0]}.{package.least[1]} or newer, and none was found"
    began, place = time.monotonic(), folder(package.name)
    asked = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        f"{package.project or package.name}=={package.version}",
    ]
    asked += package.beside
    try:
        subprocess.run([python, "-m", "venv", "--clear", str(place)], check=True, capture_output=True)
        subprocess.run(
            [str(place / "bin" / "python"), "-m", "pip", *asked], check=True, capture_output=True, timeout=limit_s
        )
        if not package.project and not (TOKENIZER / "tokenizer.json").exists():
            maker = Path(__file__).with_name("load_tokenizer.py")
            words = [str(place / "bin" / "python"), str(maker), str(TOKENIZER), *WORDS]
            subprocess.run(words, check=True, capture_output=True)
    except subprocess.TimeoutExpired:
        return f"skipped: not installed within {limit_s:g} s"
    except subprocess.CalledProcessError as exc:
        return f"skipped: {_last_line(exc.stderr)}"
    (place / _READY).touch()
    return f"installed in {time.monotonic() - began:.0f} s"


def _pythons(least: tuple[int, int]) -> Iterator[str]:
    """Give interpreters that are new enough, our own kind first."""
    names = [sys.executable, *(f"python3.{minor}" for minor in range(11, 15))]
    kept = sorted(Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python3"))
    for name in [*names, *map(str, kept)]:
        asked = [name, "-c", f"import sys; sys.exit(sys.version_info < {least})"]
        found = shutil.which(name)
        if found and subprocess.run(asked, check=False, capture_output=True).returncode == 0:
            yield found


def _from_debian(program: str, package: str) -> str:
    if shutil.which(program):
        return "is there"
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return f"skipped: only root on Debian can install it here; its package is called {package}"
    done = subprocess.run(["apt-get", "install", "--yes", package], check=False, capture_output=True)
    return "installed" if done.returncode == 0 else f"skipped: {_last_line(done.stderr)}"


def _last_line(content: bytes | None) -> str:
    lines = (content or b"").decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no reason was given"


if __name__ == "__main__":
    sys.exit(main())
