"""Check a target, put Prony there, and remove what was left behind."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import prony
from prony.app.placing import RemoteRuns
from prony.app.target_packages import expand_extras, write_packages
from prony.app.targets import open_executor
from prony.dispatch.placing import next_look_s, placement_key
from prony.errors import NotFoundError, PronyError
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
    """Put this version of Prony there with the packages that it and its extras need, unless they are there.

    Returns the folder there.

    Raises:
        InputError: Prony has no such extra.
        CapacityError: the target has no Python that is new enough, or packages for it cannot be had here.
    """
    wanted = expand_extras(extras)
    with tempfile.TemporaryDirectory(prefix="prony-install-") as scratch:

        def build(there: Interpreter, extras: Sequence[str]) -> Path:
            archive = Path(scratch, "packages.tar")
            write_packages(there, extras, archive, say)
            say(f"sending {archive.stat().st_size / 2**20:.0f} MiB for Python {there.version} on {there.machine}")
            return archive

        return open_executor(target, home).install(prony.__version__, wanted, build)


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
