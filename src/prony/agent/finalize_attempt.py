"""Finish the result folder of an attempt, even where its runner was lost."""

from __future__ import annotations

import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

from prony import __version__
from prony.agent.process import end_runners
from prony.agent.spool import Spool, Work, lease_of
from prony.app.execution import RunnerLostError
from prony.app.printed_lines import JOB_LOG
from prony.app.results import mend
from prony.errors import PronyError
from prony.model.job import Job
from prony.model.result import Failure, Result, ResultState
from prony.ports.clock import SystemClock
from prony.runner.environment import look_around
from prony.runner.folder import ResultFolder, decline
from prony.store.folder import ENVIRONMENT, RESULT, read_noun
from prony.store.home import Home

_DETAIL = 3000


@dataclass(frozen=True)
class Ending:
    """How a runner ended. `cancelled`: because it was asked to, and what there is is all that there will be; `failure`:
    why it left no whole result, where more is known than its exit code."""

    exit_code: int
    cancelled: bool = False
    failure: Failure | None = None


def seal(work: Work, job: Job, home: Home, ending: Ending) -> Result:
    """Make the folder one that can be sent; return its result. A runner that was lost is a failure of Prony's own."""
    whole = _whole(work.folder)
    if whole is not None:
        mend(work.folder)  # it may have been killed while it tidied up
        whole = _clear_stop_failure(work.folder, job, whole) if ending.cancelled else whole
    else:
        whole = _finish_folder(work, job, home, ending)
    _add_log(work)
    return whole


def _clear_stop_failure(folder: Path, job: Job, result: Result) -> Result:
    """Return the result of a job that was stopped within its only repetition: that is no fault of its model."""
    failure = result.failure
    if result.state is not ResultState.FAILED or failure is None or failure.code != "cancelled":
        return result
    kept = ResultFolder(folder, job, result)
    kept.update(state=ResultState.PARTIAL, failure=failure.model_copy(update={"whose": "prony"}))
    kept.save()
    return kept.result


def _whole(folder: Path) -> Result | None:
    """Return the result of a runner that came to its end, or None."""
    if not (folder / RESULT).exists() or not (folder / ENVIRONMENT).exists():
        return None
    try:
        result = read_noun(folder / RESULT, Result)
    except PronyError:  # damaged
        return None
    return result if result.ended_at is not None else None


def _finish_folder(work: Work, job: Job, home: Home, ending: Ending) -> Result:
    """Finish a folder in the runner's stead, with what it had kept where that can be read."""
    now = SystemClock().now()
    try:
        mend(work.folder)
        kept = ResultFolder(work.folder, job, read_noun(work.folder / RESULT, Result))
    except PronyError:  # nothing there, or the disk was full while it wrote
        shutil.rmtree(work.folder, ignore_errors=True)
        kept = ResultFolder.begin(work.folder, job, prony_version=__version__, started_at=now)
        kept.finish(ResultState.PARTIAL, now, [])
    if not (work.folder / ENVIRONMENT).exists():
        kept.write_environment(look_around(home.root))
    state = ResultState.PARTIAL if ending.cancelled else ResultState.FAILED
    kept.update(state=state, failure=_failure(work, ending), ended_at=now)
    kept.save()
    return kept.result


def _failure(work: Work, ending: Ending) -> Failure:
    if ending.cancelled:
        return Failure(code="cancelled", message="stopped before it ended", whose="prony")
    if ending.failure is not None:
        return ending.failure
    return Failure(
        code=RunnerLostError.code,
        message=f"the runner ended with {_describe_exit(ending.exit_code)}",
        hint="run `prony doctor` on that device",
        detail=_tail(work.stderr),
        whose="prony",
    )


def _describe_exit(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"signal {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"signal {-exit_code}"


def _tail(path: Path) -> str:
    try:
        return path.read_bytes()[-_DETAIL:].decode(errors="replace").strip()
    except OSError:
        return ""


def _add_log(work: Work) -> None:
    """Put what was noted of the job beside what its engine printed: a server that was away has not heard it."""
    if work.log.exists():
        try:
            (work.folder / "logs").mkdir(exist_ok=True)
            shutil.copyfile(work.log, work.folder / "logs" / JOB_LOG)
        except OSError:  # a full disk is told when the folder is packed
            return


def decline_work(work: Work, job: Job, home: Home, failure: Failure) -> Result:
    """Write the folder of a job that this agent does not even start."""
    return decline(work.folder, job, look_around(home.root), failure, SystemClock().now())


def salvage(spool: Spool, work: Work) -> bool:
    """Make a late result of what an earlier life left before it was packed, or remove it; say which.

    What was cut short is kept where something had been measured: the job is run again, but may fare worse.
    """
    end_runners(work.folder)
    if lease_of(work) is None or not (work.folder / ENVIRONMENT).exists():
        spool.remove(work)
        return False
    try:
        mend(work.folder)
        is_kept = _whole(work.folder) is not None
    except PronyError as exc:
        if exc.code == "store_busy":
            raise
        is_kept = False  # damaged
    if not is_kept:
        spool.remove(work)
        return False
    spool.keep(work, late=True)
    return True
