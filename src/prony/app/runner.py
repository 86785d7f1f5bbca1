"""Run job files and write result folders, with events on standard output: the body of `prony exec`."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from prony import __version__
from prony.app.job_log import RunLogs
from prony.app.stop_request import StopRequest
from prony.errors import InputError, NotFoundError, PronyError, exit_code
from prony.load.processes import ClientProcesses
from prony.model.agent import Capabilities, Fact
from prony.model.event import Event
from prony.model.job import Job
from prony.model.result import Result, ResultState
from prony.model.target import DoneNote
from prony.model.validation_words import describe_invalid
from prony.ports.clock import SystemClock
from prony.ports.models import policy_of
from prony.ports.workload import kind_of
from prony.runner import job_folder
from prony.runner.card_lock import list_usable_cards
from prony.runner.context import RunContext
from prony.runner.environment import look_around
from prony.runner.folder import write_noun
from prony.runner.jobs import run_jobs
from prony.store.home import Home, home

_LOCK_PAUSE_S = 0.1


def run_files(files: Sequence[Path], out: Path, *, calibration_id: str | None, parent: int | None) -> int:
    """Run the jobs; return 0 where each has its numbers, 1 where one failed or was stopped.

    `parent` is the process with which this one ends, if there is one.
    """
    stop = StopRequest()
    if parent is not None:
        from prony.runner.child.parent_end import die_with_parent

        die_with_parent(signal.SIGTERM, parent)  # a polite end: what was measured is kept
    jobs = [_job(file) for file in files]
    results = run_jobs(
        jobs, _folders(jobs, out), _surroundings(home().create(), calibration_id, _emit, stop, ClientProcesses())
    )
    return 0 if all(result.state is ResultState.COMPLETE for result in results) else 1


def run_folder(folder: Path, *, lock: Path | None) -> int:
    """Run the jobs of a folder that was sent here, once, and leave results, events and a list of files in it.

    `lock` is held meanwhile: who sent other jobs to the same machine waits. Nothing is told but into the folder, and
    no network is needed beyond what the jobs name.
    """
    folder = folder.absolute()
    if not job_folder.begin_job_folder(folder):
        return 0
    stop = StopRequest()
    os.chdir(folder)
    note = DoneNote(exit_code=1)
    with _alone_on_machine(lock, folder, stop) as is_alone:
        if is_alone:
            note = _run_sent_jobs(folder, stop)
    job_folder.write_done_note(folder, note.model_copy(update={"stopped": stop.asked}))
    return note.exit_code


def _run_sent_jobs(folder: Path, stop: StopRequest) -> DoneNote:
    """Run them into `result/<job id>`; what is wrong with all of them is told in the note."""
    take_variables(folder)
    try:
        if (folder / job_folder.DESCRIBE).exists():
            _describe_machine(folder / job_folder.RESULT)
        jobs = read_sent_jobs(folder)
        places = [folder / job_folder.RESULT / job.id for job in jobs]
        with (folder / job_folder.EVENTS).open("ab", buffering=0) as events:
            results = _run_logged(jobs, places, _writer_of(events), stop) if jobs else []
    except PronyError as exc:
        return DoneNote(exit_code=exit_code(exc), error=exc.message, hint=exc.hint)
    return DoneNote(exit_code=0 if all(one.state is ResultState.COMPLETE for one in results) else 1)


def _run_logged(
    jobs: Sequence[Job], places: Sequence[Path], write: Callable[[Event], None], stop: StopRequest
) -> list[Result]:
    """Run jobs, keep the log of each beside its result, and write what they print among the events."""
    logs = RunLogs({job.id: place for job, place in zip(jobs, places, strict=True)}, emit=write)

    def stop_asked() -> bool:
        logs.look()
        return stop.asked

    around = _surroundings(home().create(), None, logs.note_first(write), stop, ClientProcesses())
    try:
        return run_jobs(jobs, places, replace(around, stop_asked=stop_asked))
    finally:
        logs.close()


def read_sent_jobs(folder: Path) -> list[Job]:
    """Return the jobs of a folder that was sent here, with their paths on this machine."""
    read = [_job(file) for file in job_folder.read_job_files(folder)]
    return [kind_of(job.workload).prepare.make_paths_absolute(job, folder) for job in read]


def take_variables(folder: Path) -> None:
    """Take over what was sent of the sender's policy; files that came with the jobs may be read in any case."""
    sent = job_folder.read_variables(folder)
    if "PRONY_MODEL_FOLDERS" in sent:
        allowed = [sent["PRONY_MODEL_FOLDERS"], str(folder / job_folder.INPUTS)]
        sent["PRONY_MODEL_FOLDERS"] = os.pathsep.join(filter(None, allowed))
    os.environ.update(sent)


def _describe_machine(into: Path) -> None:
    """Write what this machine is and has, for whoever is to decide which jobs it can run."""
    from prony.app.abilities import inspect_abilities, inspect_engines
    from prony.instruments.device import detect

    engines, abilities = inspect_engines(home().create()), inspect_abilities()
    cards = list_usable_cards()
    facts: dict[str, Fact] = {"gpu.uuid": cards} if cards else {}
    found = Capabilities(
        device=detect(), engines=tuple(engines), abilities=tuple(abilities), facts=facts, version=__version__
    )
    into.mkdir(exist_ok=True)
    write_noun(into / job_folder.DESCRIPTION, found)


def _writer_of(events: BinaryIO) -> Callable[[Event], None]:
    def write(event: Event) -> None:
        with suppress(OSError):  # a disk that is full; the work goes on and the folder tells
            events.write(event.model_dump_json(exclude_defaults=True).encode() + b"\n")

    return write


@contextmanager
def _alone_on_machine(lock: Path | None, folder: Path, stop: StopRequest) -> Iterator[bool]:
    """Hold the machine's lock for as long as the block runs; False where a stop was asked for before it was free."""
    if lock is None or sys.platform == "win32":
        yield True
        return
    import fcntl

    held = _open_shared(lock)
    waiting = folder / job_folder.WAITING
    try:
        while not stop.asked:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting.touch()
                time.sleep(_LOCK_PAUSE_S)
            else:
                break
        waiting.unlink(missing_ok=True)
        yield not stop.asked
    finally:
        os.close(held)


def _open_shared(lock: Path) -> int:
    """Open a lock file that may be another user's: a descriptor for reading can be locked too."""
    try:
        return os.open(lock, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except PermissionError:  # in a folder for all, systems refuse to create over another user's file
        return os.open(lock, os.O_RDONLY | os.O_CLOEXEC)


def run_here(  # noqa: PLR0913 - what is run, where, and who hears of it
    jobs: Sequence[Job],
    out: Path,
    home: Home,
    *,
    on_event: Callable[[Event], None],
    on_idle: Callable[[], None] = lambda: None,
    calibration_id: str | None = None,
    clients: ClientProcesses,
) -> bool:
    """Run jobs in this very process; return whether they were stopped early. `on_idle` is called whenever the runner
    looks whether to stop: it waits then, and times nothing.

    For loads, whose clients are processes of their own anyway, and which somebody waits for: a process less to start.
    The first Ctrl-C (or SIGTERM, or the end of the terminal) asks the load to stop, the second ends it at once.
    """
    stop = StopRequest(then_interrupts=True)
    told = _Told(on_event, stop)

    def stop_asked() -> bool:
        on_idle()
        return stop.asked

    around = replace(_surroundings(home, calibration_id, told, stop, clients), stop_asked=stop_asked)
    try:
        run_jobs(jobs, _folders(jobs, out), around)
    finally:
        stop.close()
    told.complain()
    # What a load leaves in circles would stand beside its summary, which takes the most memory of all.
    from prony.instruments.memory import give_back_memory

    gc.collect()
    give_back_memory()
    return stop.asked


def _folders(jobs: Sequence[Job], out: Path) -> list[Path]:
    return [out] if len(jobs) == 1 else [out / job.id for job in jobs]


class _Told:
    """Hands on events. When whoever shows them has gone, the load stops as if asked to, and what it measured is kept
    before anybody complains."""

    def __init__(self, on_event: Callable[[Event], None], stop: StopRequest) -> None:
        self._on_event = on_event
        self._stop = stop
        self._trouble: BaseException | None = None

    def __call__(self, event: Event) -> None:
        if self._trouble is not None:
            return
        try:
            self._on_event(event)
        except (KeyboardInterrupt, OSError) as exc:
            if self._stop.asked and isinstance(exc, KeyboardInterrupt):
                raise  # the second time
            self._trouble, self._stop.asked = exc, True

    def complain(self) -> None:
        if self._trouble is not None:
            raise self._trouble


def _surroundings(
    here: Home, calibration_id: str | None, emit: Callable[[Event], None], stop: StopRequest, clients: ClientProcesses
) -> RunContext:
    base = Path.cwd()
    return RunContext(
        cache=here.cache,
        engines=here.engines,
        base=base,
        clock=SystemClock(),
        environment=lambda: look_around(here.root, calibration_id, here.cache),
        emit=emit,
        stop_asked=lambda: stop.asked,
        interruptible=stop.interrupting,
        address=os.environ.get("PRONY_ADDRESS", ""),
        policy=policy_of(os.environ),
        clients=clients,
    )


def _job(file: Path) -> Job:
    try:
        return Job.read_json(file.read_bytes())
    except FileNotFoundError as exc:
        raise NotFoundError(f"no job file at {file}", hint="give the path of a job.json") from exc
    except ValidationError as exc:
        raise InputError(
            f"{file}: {describe_invalid(exc)}", hint="give a job.json that Prony wrote", code="bad_job"
        ) from exc


def _emit(event: Event) -> None:
    line = event.model_dump_json(exclude_defaults=True).encode() + b"\n"
    try:
        os.write(1, line)
    except OSError:  # nobody listens, or what listens is full; the work goes on and the folder tells
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
