"""Start a service in a container of this pod, with the words of podman that services use: the program `prony-pod`.

The containers are there from the pod's beginning, one for each image, and wait in a shell for what they are to run.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from prony.runner.services.process_tree import TOKEN, carrying, descendants, kill_all

IMAGES_VARIABLE = "PRONY_POD_IMAGES"  # one a line; the number of its line is that of its container
SERVICES = Path("/prony/services")
_REFUSED, _KILLED = 125, 137
_UP_S, _KILL_S = 120.0, 5.0


class PodContainer:
    """One container of this pod: a folder that it shares with us, with a pipe for what is asked of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ask(self, verb: str, name: str) -> None:
        """Write a line to it; a pipe that is opened both ways waits for nobody."""
        pipe = os.open(self._folder / "asked", os.O_RDWR | os.O_CLOEXEC)
        try:
            os.write(pipe, f"{verb} {name}\n".encode())
        finally:
            os.close(pipe)

    def is_up(self, within_s: float) -> bool:
        """Wait for its shell."""
        deadline = time.monotonic() + within_s
        while not (self._folder / "up").exists():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def run(self, name: str, script: str) -> int:
        """Run a script there to its end and print what it prints; return its exit code."""
        for part in ("code", "out"):
            os.mkfifo(self._folder / f"{name}.{part}")
            (self._folder / f"{name}.{part}").chmod(0o666)
        (self._folder / f"{name}.sh").write_text(script)
        (self._folder / f"{name}.sh").chmod(0o644)
        self.ask("run", name)
        with (self._folder / f"{name}.code").open("rb") as ended:
            with (self._folder / f"{name}.out").open("rb", buffering=0) as said:
                while piece := said.read(2**16):
                    os.write(sys.stdout.fileno(), piece)
            code = ended.read().strip()
        return int(code) if code else _KILLED

    def kill(self, name: str) -> None:
        """End all of a start, whoever it left to others as well, and remove its files."""
        with suppress(FileNotFoundError, ValueError):  # its shell did not come so far
            shell = int((self._folder / "up").read_text())
            if kill_all(lambda: descendants(shell) | carrying(name), within_s=_KILL_S):
                self.ask("kill", name)  # another user's, who can do it
        for path in self._folder.glob(f"{name}.*"):
            path.unlink(missing_ok=True)


def find_containers() -> dict[str, PodContainer]:
    """Return the containers of services that this pod has, by image."""
    images = os.environ.get(IMAGES_VARIABLE, "").splitlines()
    return {image: PodContainer(SERVICES / str(number)) for number, image in enumerate(images)}


def main(words: Sequence[str]) -> int:
    """Do what podman would do."""
    options = _parser().parse_args(words)
    if options.verb == "rm":
        for container in find_containers().values():
            container.kill(options.name)
    return _run(options) if options.verb == "run" else 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="prony-pod")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("info")
    parser_of_rm = verbs.add_parser("rm")
    for name in ("--force", "--volumes"):
        parser_of_rm.add_argument(name, action="store_true")
    parser_of_rm.add_argument("name")
    parser_of_run = verbs.add_parser("run")
    # Folders are shared and ports open in a pod as they are.
    parser_of_run.add_argument("--rm", action="store_true")
    for name in ("--volume", "--publish", "--env"):
        parser_of_run.add_argument(name, action="append", default=[])
    for name in ("--name", "--entrypoint"):
        parser_of_run.add_argument(name, default="")
    parser_of_run.add_argument("image")
    parser_of_run.add_argument("words", nargs=REMAINDER)
    return parser


def _run(options: Namespace) -> int:
    container = find_containers().get(options.image)
    if container is None:
        return _refuse(f"this pod has no container of {options.image}")
    if not options.entrypoint:
        return _refuse(f"{options.image} starts by its own entry point, which a container of a pod does not have")
    if not container.is_up(_UP_S):
        return _refuse(f"the container of {options.image} did not start; it needs /bin/sh")

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        container.ask("stop", options.name)

    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, stop)
    # By the token it is found again where its parent has ended.
    variables = {name: os.environ[name] for name in options.env if name in os.environ} | {TOKEN: options.name}
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    lines += [f"cd {shlex.quote(str(Path.cwd()))}", f"exec {shlex.join([options.entrypoint, *options.words])}"]
    return container.run(options.name, "\n".join(["umask 022", *lines, ""]))


def _refuse(message: str) -> int:
    sys.stderr.write(f"prony-pod: {message}\n")
    return _REFUSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
