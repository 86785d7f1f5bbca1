"""Build the sweep report over load of one or several experiments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from prony.app.results import with_runs
from prony.errors import InputError, NotFoundError, StoreError
from prony.instruments.samples import TELEMETRY, read_frame
from prony.model.experiment_data import Entry
from prony.model.load import Load
from prony.model.sweep import SweepReport
from prony.model.validation_words import describe_invalid

if TYPE_CHECKING:
    import polars as pl

    from prony.analyse.sweep.curves import LoadedJob


def sweep_of(entries: Sequence[Entry]) -> SweepReport | None:
    """Return the sweep of one experiment; None where no two of its jobs differ in load."""
    if sum(entry.job.workload.section == "load" for entry in entries) < 2:
        return None
    from prony.analyse.sweep.curves import is_sweepable
    from prony.analyse.sweep.report import sweep_report

    mine = [entry for entry in entries if is_sweepable(entry)]
    jobs = [load_entry(entry, entry.job.load.slo) for entry in mine]
    return sweep_report(jobs) if len({job.level for job in jobs}) > 1 else None


def sweep_over(entries: Sequence[Entry], slo: Mapping[str, float] | None = None) -> SweepReport:
    """Return the sweep of several experiments, under the limits of their recipes or under these."""
    from prony.analyse.sweep.curves import is_sweepable
    from prony.analyse.sweep.report import sweep_report

    mine = [entry for entry in entries if is_sweepable(entry)]
    levels = {job.level for job in (load_entry(entry, {}) for entry in mine)}
    if len(levels) < 2:
        is_open = bool(mine) and mine[0].job.load.open is not None
        more = "--set 'matrix.load.open.rate=[10, 20, 40]'" if is_open else "--clients 1,2,4,8,16"
        hint = f"prony run RECIPE {more} makes a sweep; or name several experiments"
        raise InputError(f"{_why_none(entries, mine, levels)}, so there is no sweep", hint=hint, code="no_sweep")
    return sweep_report([load_entry(entry, entry.job.load.slo if slo is None else slo) for entry in mine], slo)


def _why_none(entries: Sequence[Entry], mine: Sequence[Entry], levels: Collection[float]) -> str:
    """Say why these jobs are no levels of a sweep."""
    others = [entry.job.load.way for entry in entries if entry.job.workload.section == "load" and entry not in mine]
    ways = ", ".join(f"load.{way}" for way in dict.fromkeys(others))
    said = f"{len(others)}{' more' if mine else ''} {'has' if len(others) == 1 else 'have'} no level"
    aside = f" ({said}: {ways})" if others else ""
    if not mine:
        return f"no job has a level of load{aside}" if others else "no job loads a service"
    if len(mine) == 1:
        return f"there is only one job with a level of load{aside}"
    (level,) = levels
    noun = "requests a second" if mine[0].job.load.open is not None else "user" if level == 1 else "users"
    return f"all {len(mine)} jobs had the same load, {level:g} {noun}{aside}"


def slo_of(texts: Iterable[str]) -> dict[str, float] | None:
    """Read limits as they are written on a command line: `ttft_ms.p99=200`; None where there are none."""
    found: dict[str, float] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--slo {text}: a limit is missing", hint="as in ttft_ms.p99=200", code="slo")
        try:
            found[key.strip()] = float(value)
        except ValueError as exc:
            raise InputError(
                f"--slo {text}: {value!r} is not a number", hint="as in ttft_ms.p99=200", code="slo"
            ) from exc
    if not found:
        return None
    try:
        return dict(Load(slo=found).slo)
    except ValidationError as exc:
        raise InputError(f"--{describe_invalid(exc)}", hint="as in ttft_ms.p99=200", code="slo") from exc


def load_entry(entry: Entry, slo: Mapping[str, float]) -> LoadedJob:
    """Return a job with its telemetry, and with its requests where a limit must be judged on them."""
    from prony.analyse.sweep.curves import LoadedJob
    from prony.instruments.requests import read_requests

    entry = with_runs(entry)
    samples = _read(lambda: read_requests(entry.folder)) if slo else None
    return LoadedJob(entry, samples, _read(lambda: read_frame(entry.folder, TELEMETRY)))


def _read(read: Callable[[], pl.DataFrame]) -> pl.DataFrame | None:
    """Return a file of a result folder; None where it is gone or damaged, which analysis then tells as unknown."""
    try:
        return read()
    except (NotFoundError, StoreError):
        return None
