"""Build the command line that runs an image with the available container engine.

Paths and ports are the same inside as outside, so that a command line means the same in both.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.errors import CapacityError
from prony.model.container import ENGINES, POD, WITH_APPTAINER
from prony.runner.checksum import sha256_of

__all__ = ["ENGINES", "NO_ENGINE", "POD", "PROOF", "WITH_APPTAINER", "Box", "ContainerEngine", "engine_at_hand"]

NO_ENGINE = "an image needs podman, docker or apptainer, but none is on PATH; to get one: apt-get install podman"
# Engines whose containers are no children of whoever starts them: what these use is counted for a daemon.
DAEMONS = frozenset(("docker", POD))
# What shows whether one of them works. `podman info` also asks which packages its parts are from: ten times as long.
PROOF = {"podman": ("ps", "--quiet"), "docker": ("info",)}
_LABEL = "prony.runner"
_ASK_S = 60.0
# Static programs that reap what a command leaves and hand signals on. podman brings none; docker does.
_INITS = ("catatonit", "tini-static")
_INIT_FOLDERS = "/usr/libexec/podman:/usr/local/libexec/podman:/usr/lib/podman:/usr/local/lib/podman:/usr/bin"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Apptainer takes a variable into a clean container by a name with a prefix; the older name is Singularity's.
_HAND_ON = """names=$1; shift
for name in $names; do
  eval "[ -n \\"\\${$name+x}\\" ] && export APPTAINERENV_$name=\\"\\$$name\\" SINGULARITYENV_$name=\\"\\$$name\\""
done
exec "$@"
"""
# What a killed client of the engine leaves behind is still in its list.
_REMOVE_LABELLED = """found=$("$1" ps --all --quiet --filter "$2") || exit
[ -z "$found" ] || exec "$1" rm --force --volumes $found
"""


@dataclass(frozen=True)
class Box:
    """What a container has: `shared` are paths of this machine by where they are inside, the last word says whether
    they may be written; `names` are the variables that it gets, by whose values the engine itself is started."""

    image: str
    command: Sequence[str] | None  # None: what the image runs, with the arguments
    arguments: Sequence[str] = ()
    folder: Path | None = None  # where the command is run; None: where the image says
    shared: Sequence[tuple[Path, str, bool]] = ()
    names: Sequence[str] = ()
    label: str = ""  # by which it is found again
    writes: bool = False  # to its own root, which Apptainer makes read-only


@dataclass(frozen=True)
class ContainerEngine:
    """A program that runs containers."""

    path: str

    @property
    def name(self) -> str:
        return Path(self.path).name

    def trouble(self) -> str | None:
        """Return why it cannot run anything now, or None: a program on the path may lack the server that it needs."""
        try:
            asked = [self.path, *PROOF.get(self.name, ("--version",))]
            done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=_ASK_S)
        except (OSError, subprocess.SubprocessError) as exc:
            return f"{self.name} does not answer: {exc}"
        if done.returncode == 0:
            return None
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return f"{self.name} does not work: {said[-1][:200] if said else f'exit code {done.returncode}'}"

    def argv(self, box: Box, name: str = "") -> list[str]:
        """Return the words that run the box to its end, in the foreground, under a name of its own if one is given."""
        if self.name in ENGINES:
            named = [f"--name={name}"] if name else []
            return [self.path, "run", "--rm", *self._init(), *named, *self._options(box), *_words(box)]
        # All that it would hand on of its own environment is left out; named values go by variables, and not by words.
        handed = [name for name in box.names if _VARIABLE.fullmatch(name)]
        return ["sh", "-c", _HAND_ON, "sh", " ".join(handed), self.path, "run" if box.command is None else "exec",
                "--containall", "--cleanenv", "--no-home", *self._binds(box), image_uri(box.image),
                *(box.command or ()), *box.arguments]  # fmt: skip

    def _init(self) -> list[str]:
        """Return the words that put an init before the command; podman refuses to run one that is not installed."""
        if self.name != "podman":
            return ["--init"]
        found = next((path for name in _INITS if (path := shutil.which(name, path=_INIT_FOLDERS))), None)
        return [] if found is None else ["--init", f"--init-path={found}"]

    def _options(self, box: Box) -> list[str]:
        mounts = [f"--volume={path}:{inside}{'' if writes else ':ro'}" for path, inside, writes in box.shared]
        found = [
            "--network=host",
            f"--shm-size={_half_of_memory()}",
            *([f"--label={_LABEL}={box.label}"] if box.label else []),
            *([f"--workdir={box.folder}"] if box.folder is not None else []),
            *mounts,
            # Names only: the values come from the engine's own environment, and no secret stands in a command line.
            *(f"--env={name}" for name in box.names),
            *(["--security-opt=label=disable"] if self.name == "podman" else []),
        ]
        if _has_gpus():
            found.append("--device=nvidia.com/gpu=all" if self.name == "podman" else "--gpus=all")
        return found

    def _binds(self, box: Box) -> list[str]:
        mounts = [f"--bind={path}:{inside}{'' if writes else ':ro'}" for path, inside, writes in box.shared]
        where = [f"--pwd={box.folder}"] if box.folder is not None else []
        # It finds the drivers itself, without the toolkit that the others need.
        cards = (("--nv", "/dev/nvidia0"), ("--rocm", "/dev/kfd"))
        gpus = [option for option, device in cards if Path(device).exists()]
        return [*gpus, *(["--writable-tmpfs"] if box.writes else []), *where, *mounts]

    def clearing(self, name: str) -> list[list[str]]:
        """Return the commands that remove the container of a name."""
        return [[self.path, "rm", "--force", "--volumes", name]] if self.name in ENGINES else []

    def clearing_of_label(self, label: str) -> list[list[str]]:
        """Return the commands that remove every container of this label, whoever left it behind."""
        if self.name not in ENGINES:
            return []  # a process like any other, which has ended with its parent
        return [["sh", "-c", _REMOVE_LABELLED, "sh", self.path, f"label={_LABEL}={label}"]]

    def digest_of_image(self, image: str) -> str | None:
        """Return the name by which just this image can be run again, whatever its tag comes to mean; None where the
        engine does not tell, as of one that was never pulled."""
        if self.name not in ENGINES:
            return f"sha256:{sha256_of(Path(image))}" if Path(image).is_file() else None
        found = self._inspect(image)
        named = found.get("RepoDigests") or []
        # One that was built here has no name in a registry.
        return str(named[0]) if named else _own_digest(found)

    def id_of_image(self, image: str) -> str | None:
        """Return the digest by which this machine alone knows an image, of podman or docker; None where it has none."""
        return _own_digest(self._inspect(image))

    def _inspect(self, image: str) -> dict[str, Any]:
        try:
            (found,) = json.loads(_ask([self.path, "image", "inspect", image]))
        except (OSError, subprocess.SubprocessError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def _own_digest(found: Mapping[str, Any]) -> str | None:
    own = found.get("Id")
    return f"sha256:{str(own).removeprefix('sha256:')}" if own else None


def _ask(words: Sequence[str]) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=_ASK_S).stdout


def engine_at_hand(among: Sequence[str] = ENGINES) -> ContainerEngine | None:
    """Return the first engine that is on the path."""
    found = next((path for name in among if (path := shutil.which(name))), None)
    return ContainerEngine(found) if found else None


def engine_of_services() -> ContainerEngine | None:
    """Return what starts a service's image: the containers of this pod, or the first engine that is on the path."""
    return engine_at_hand((POD, *WITH_APPTAINER))


def find_engine(among: Sequence[str] = WITH_APPTAINER) -> tuple[ContainerEngine | None, str]:
    """Return the engine that containers of scripts run by, or else why there is none that works."""
    engine = engine_at_hand(among)
    reason = "no container engine is on PATH" if engine is None else engine.trouble() or ""
    return (None if reason else engine), reason


def no_engine(image: str, reason: str) -> CapacityError:
    """Return what is raised where an image cannot be run: its command is never run on the machine itself instead."""
    return CapacityError(
        f"image {image} needs a container engine, but {reason}",
        hint="install podman or docker; or run its command directly on the machine: "
        "--no-container, or workload.container: false",
        code="no_container",
    )


def _words(box: Box) -> list[str]:
    if box.command is None:
        return [box.image, *box.arguments]
    return [f"--entrypoint={box.command[0]}", box.image, *box.command[1:], *box.arguments]


def is_image_file(image: str) -> bool:
    """Tell a path, or an address that names its own kind, from a name in a registry."""
    return image.endswith(".sif") or image.startswith(("/", "./")) or "://" in image


def image_uri(image: str) -> str:
    """Return an image as Apptainer wants it: a file or a URI stays, a name is one of a registry."""
    return image if is_image_file(image) else f"docker://{image}"


def _half_of_memory() -> int:
    """Return how large shared memory may grow, as large as Linux makes it by itself: an engine gives 64 MiB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _has_gpus() -> bool:
    """Tell whether GPUs are here and can be handed to a container."""
    return Path("/dev/nvidia0").exists() and any(map(shutil.which, ("nvidia-ctk", "nvidia-container-cli")))
