"""Check a target, put Prony there, and remove what was left behind."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path

import prony
from prony.app.placing import RemoteRuns
from prony.app.targets import open_executor
from prony.dispatch.placing import next_look_s, placement_key
from prony.errors import CapacityError, NotFoundError, PronyError
from prony.model.states import OVER
from prony.model.target import (
    CheckLine,
    CleanedTarget,
    Handle,
    Observation,
    Payload,
    PlaceEnding,
    Placement,
    PlacePhase,
    Target,
)
from prony.ports.clock import Clock, SystemClock
from prony.ports.executor import Executor, Interpreter
from prony.runner.job_folder import write_job_folder
from prony.store.home import Home
from prony.store.placements import Placements
from prony.store.store import Store

_PROOF_S = 60.0
_OVER = (PlacePhase.ENDED, PlacePhase.LOST)
# It waits for others, and nobody needs to do anything.
_WAITS = (PlacePhase.SUBMITTED, PlacePhase.QUEUED, PlacePhase.STARTING)


def check_target_lines(
    target: Target,
    home: Home,
    *,
    submits: bool = True,
    patience_s: float = _PROOF_S,
    open_target: Callable[[Target, Home, Clock], Executor] = open_executor,
) -> list[CheckLine]:
    """Say what a target offers and lacks; where it lacks nothing, prove it by a payload without jobs.

    It may wait `patience_s` for its start, which is no fault of the target where it takes longer, and run as long."""
    executor = open_target(target, home, SystemClock())
    lines = executor.check()
    if submits and all(line.status != "failed" for line in lines):
        lines.append(_prove(target, executor, home, patience_s))
    return lines


def _prove(target: Target, executor: Executor, home: Home, patience_s: float) -> CheckLine:
    """Run an empty payload at the target. It is written down first, so that `clean` finds it after a kill."""
    placements, name = Placements(home), f"check-{time.time_ns():x}"
    key = placement_key(name, 1, placements.home_id())
    with placements.own(name):
        made_at = SystemClock().now()
        placements.save(Placement(key=key, experiment_id=name, job_ids=(), target=target, made_at=made_at))
        line = _run_proof(executor, key, patience_s)
        placements.forget(name)
    return line


def _run_proof(executor: Executor, key: str, patience_s: float) -> CheckLine:
    """Send an empty payload, and see it come back: the way there, the folder, the interpreter and the way back."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="prony-check-") as scratch:
        folder = Path(scratch, "out")
        write_job_folder(folder, [], [])
        handle = Handle(key=key)
        try:
            handle = executor.submit(Payload(key=key, folder=str(folder)))
            unproven = _wait_for_proof(executor, handle, patience_s)
            is_whole = unproven is None and executor.fetch(handle, Path(scratch, "in"))
        except PronyError as exc:
            return CheckLine(title="job", status="failed", value=exc.message, hint=exc.hint)
        finally:
            executor.end([handle])
    took_s = time.monotonic() - began_s
    if is_whole:
        return CheckLine(
            title="job", status="ok", value=f"an empty job was submitted, ran and came back in {took_s:.1f} s"
        )
    return unproven or CheckLine(title="job", status="failed", value="the target sent no list of files")


def _wait_for_proof(executor: Executor, handle: Handle, patience_s: float) -> CheckLine | None:
    """Return why it did not come to its end, or nothing; from its start on the wait begins anew."""
    began_s, looks, waits = time.monotonic(), 0, True
    while True:
        seen = executor.look([handle], {})[0]
        if seen.phase in _OVER:
            if seen.ending is PlaceEnding.DONE:
                return None
            return CheckLine(title="job", status="failed", value=seen.reason or str(seen.ending or seen.phase))
        if waits and seen.phase in (PlacePhase.RUNNING, PlacePhase.ENDING):
            began_s, waits = time.monotonic(), False
        if time.monotonic() - began_s >= patience_s:
            return _describe_unended(seen, patience_s)
        time.sleep(next_look_s(PlacePhase.STARTING, looks))
        looks += 1


def _describe_unended(seen: Observation, patience_s: float) -> CheckLine:
    """Say how the proof stood when the wait for it was over; a busy queue is a warning."""
    reason = seen.reason or "no reason given"
    if seen.phase in _WAITS:
        return CheckLine(
            title="job",
            status="warn",
            value=f"still {seen.phase} after {patience_s:g} s: {reason}",
            hint="the test job was cancelled. A run waits in the queue without a limit; check again when the queue is "
            "shorter",
        )
    return CheckLine(title="job", status="failed", value=f"{seen.phase} after {patience_s:g} s: {reason}")


def install_prony(target: Target, home: Home, *, extras: Sequence[str] = (), say: Callable[[str], None]) -> str:
    """Put this version of Prony there with the packages it needs, unless it is there; return the folder.

    Raises:
        CapacityError: the target has no Python that is new enough, or packages for it cannot be had here.
    """
    with tempfile.TemporaryDirectory(prefix="prony-install-") as scratch:

        def build(there: Interpreter) -> Path:
            archive = Path(scratch, "packages.tar")
            _write_packages(there, extras, archive, say)
            say(f"sending {archive.stat().st_size / 2**20:.0f} MiB for Python {there.version} on {there.machine}")
            return archive

        return open_executor(target, home).install(prony.__version__, build)


def _write_packages(there: Interpreter, extras: Sequence[str], archive: Path, say: Callable[[str], None]) -> None:
    """Write everything that goes into the target's site-packages; its last file is `complete`."""
    with tarfile.open(archive, "w") as out, tempfile.TemporaryDirectory(prefix="prony-wheels-") as wheels:
        if there == interpreter_here():
            for found in _required_distributions(extras):
                for path, name in _files_of(found):
                    out.add(path, arcname=name, recursive=False)
        else:
            say(f"fetching packages for Python {there.version} on {there.machine}")
            _fetch_packages(there, extras, Path(wheels))
            out.add(wheels, arcname=".")
        for path in sorted(Path(prony.__path__[0]).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                out.add(path, arcname=f"prony/{path.relative_to(prony.__path__[0])}", recursive=False)
        for path, name in _files_of(distribution("prony")):
            if ".dist-info/" in name:
                out.add(path, arcname=name, recursive=False)
        out.addfile(tarfile.TarInfo("complete"), BytesIO())


def interpreter_here() -> Interpreter:
    """Return the Python of this process, as a target tells its own."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return Interpreter(version, platform.machine(), "glibc" if platform.libc_ver()[0] else "other")


def _required_distributions(extras: Sequence[str]) -> list[Distribution]:
    """Return what Prony needs, as it is installed here, without Prony itself."""
    found: dict[str, Distribution] = {}
    waiting = _requirements(distribution("prony"), extras)
    while waiting:
        name = waiting.pop()
        if name in found or name == "prony":
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # wanted on another system than this
            continue
        waiting += _requirements(found[name], ())
    return list(found.values())


def _requirements(found: Distribution, extras: Sequence[str]) -> list[str]:
    """Return the names that a distribution requires, with those of its extras."""
    names = []
    for text in found.requires or ():
        wanted = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", text)
        name = re.match(r"[A-Za-z0-9._-]+", text)
        if name is not None and (wanted is None or wanted[1] in extras):
            names.append(re.sub(r"[-_.]+", "-", name[0]).lower())
    return names


def _files_of(found: Distribution) -> Iterator[tuple[Path, str]]:
    """Return the files of a distribution with their names in site-packages; scripts beside it stay behind."""
    for file in found.files or ():
        path = Path(str(found.locate_file(file)))
        if ".." not in file.parts and "__pycache__" not in file.parts and path.is_file():
            yield path, str(file)


def _fetch_packages(there: Interpreter, extras: Sequence[str], into: Path) -> None:
    """Fetch wheels for another interpreter than this one, unpacked."""
    needed = [text for text in distribution("prony").requires or () if "extra ==" not in text]
    needed += [text for text in distribution("prony").requires or () for one in extras if f'extra == "{one}"' in text]
    tags = [f"manylinux_2_28_{there.machine}", f"manylinux2014_{there.machine}", f"manylinux_2_17_{there.machine}"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:"]
    command += ["--target", str(into), "--python-version", there.version, "--implementation", "cp"]
    command += [word for tag in tags for word in ("--platform", tag)]
    done = subprocess.run(
        [*command, *(text.split(";")[0].strip() for text in needed)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise CapacityError(
            f"no packages for Python {there.version} on {there.machine}: {done.stderr.strip()[-300:]}",
            hint="set the target's option python to a version like this one, or run this where pip has a network",
            code="no_packages",
        )


def clean_target(
    target: Target, store: Store, *, open_target: Callable[[Target, Home, Clock], Executor] = open_executor
) -> CleanedTarget:
    """Remove what no experiment needs, bring home what has ended or was cancelled, and leave what waits or runs."""
    runs = RemoteRuns(store, open_target=open_target)
    removed: list[str] = []
    fetched: list[str] = []
    left: list[str] = []
    for placement in runs.placements.open():
        if placement.target.name != target.name:
            continue
        if not _is_given_up(store, placement.experiment_id):
            is_home = runs.collect(placement.experiment_id)
            (fetched if is_home else left).append(placement.key)
            continue
        with runs.placements.try_own(placement.experiment_id) as taken:
            if taken:
                _discard(placement, open_target(target, store.home, SystemClock()))
                runs.placements.save(placement.model_copy(update={"phase": PlacePhase.CLEARED}))
            (removed if taken else left).append(placement.key)
    return CleanedTarget(removed=tuple(removed), fetched=tuple(fetched), left=tuple(left))


def _discard(placement: Placement, executor: Executor) -> None:
    """Stop a run and remove all of it: what was fetched may be removed, so it is fetched and thrown away."""
    handle = placement.handle or Handle(key=placement.key)
    with tempfile.TemporaryDirectory(prefix="prony-clean-") as scratch:
        executor.end([handle])
        executor.fetch(handle, Path(scratch))
        executor.end([handle])


def _is_given_up(store: Store, experiment_id: str) -> bool:
    try:
        return store.experiment(experiment_id).state in OVER
    except NotFoundError:
        return True
