"""Read the numbers, labels and failures of an entry for reports."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from prony.error_codes import name_job
from prony.model.estimate import Estimate, Grade, Missing, Summary, headline_of
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.metric import key_of
from prony.model.result import Failure, Repetition, ResultState
from prony.model.section import Fact
from prony.ports.workload import shown_kind

SYMBOLS = {Grade.VALID: "●", Grade.SUSPECT: "▲", Grade.VOID: "✖"}
ASCII_SYMBOLS = {Grade.VALID: "o", Grade.SUSPECT: "!", Grade.VOID: "x"}
WORST_FIRST = (Grade.VOID, Grade.SUSPECT, Grade.VALID)


def find_estimate(summary: Summary, key: str) -> Estimate | None:
    """Return `inference_ms.p50`; for a metric without statistics (`load_ms`), its own or its middle."""
    names = [key] if "." in key else [key, f"{key}.p50", f"{key}.mean"]
    return next((summary.estimates[name] for name in names if name in summary.estimates), None)


def headline(entry: Entry) -> str:
    """Return the key of the one number that a list shows of this job."""
    return headline_of(entry.summary, entry.job.workload.kind) or ""


def is_load(entry: Entry) -> bool:
    """Does its `load` say how much was measured, so that its samples are requests?"""
    return entry.job.workload.section == "load"


def own_keys(summary: Summary) -> list[str]:
    """Return the keys of what a script told, one for each metric and set of labels, in its order."""
    return [key for key in summary.runs if key_of(key).metric in summary.metrics]


def own_columns(entry: Entry) -> list[str]:
    """Return the keys of the columns that only jobs of this kind have: those that it says, and what it told itself."""
    said = [one.key for one in shown_kind(entry.job.workload.kind).report.columns]
    return list(dict.fromkeys((*said, *own_keys(entry.summary))))


def find_missing(summary: Summary, key: str) -> Missing | None:
    return next((one for one in summary.missing if one.metric == key), None)


def verdict_text(grade: Grade, ended_early: str, *, is_ascii: bool = False) -> str:
    """Return the sign and the word of a grade, and how a load ended that did not send all that was asked for."""
    symbol = (ASCII_SYMBOLS if is_ascii else SYMBOLS)[grade]
    return f"{symbol} {grade}, {ended_early}" if ended_early else f"{symbol} {grade}"


def failures(entry: Entry) -> list[tuple[Repetition | None, Failure]]:
    """Return every failure: of the whole job (with None), then of single repetitions."""
    found: list[tuple[Repetition | None, Failure]] = []
    if entry.result.failure is not None:
        found.append((None, entry.result.failure))
    return found + [(one, one.failure) for one in entry.result.repetitions if one.failure is not None]


def failure_text(failure: Failure, job_id: str = "ID") -> str:
    """Return the decoded reason in one line: the phase, the message, the signal and what to do."""
    where = f"in {failure.phase}: " if failure.phase else ""
    signal = f" ({failure.signal})" if failure.signal and failure.signal not in failure.message else ""
    hint = f"; {name_job(failure.hint, job_id)}" if failure.hint else ""
    return f"{where}{failure.message}{signal}{hint}"


def name_lines(keys: Sequence[tuple[str, ...]], *, only: str) -> list[str]:
    """Name each line of a picture by that in which it differs from the others; `only` is the name of a single one."""
    differing = [place for place in range(len(keys[0])) if len({key[place] for key in keys}) > 1]
    if not differing:
        return [only]
    return [", ".join(key[place].removeprefix("engine ") for place in differing) for key in keys]


def end_sentence(text: str) -> str:
    """Return the text with one mark at its end: a hint may be a question, or end with a dot of its own."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def has_failed(entry: Entry) -> bool:
    return entry.result.state is ResultState.FAILED


def engine_facts(entry: Entry) -> tuple[Fact, ...]:
    """Return which engine ran a model, and which file the model is."""
    effective, model = entry.result.effective, entry.result.model
    told: list[Fact] = []
    if effective is not None:
        engine = f"{effective.engine} {effective.engine_version}"
        told.append(("Engine", f"{engine} on {effective.device}, {effective.precision}"))
    return (*told, *(() if model is None else (("Model", model.source), ("Its SHA-256", model.sha256))))


def label(entry: Entry, skip: Collection[str] = ()) -> str:
    """Return what tells this job from its siblings; `skip` names the matrix paths that the reader knows already."""
    words = [_word(path, value) for path, value in entry.job.cell.items() if path not in skip]
    return " · ".join(words) or entry.summary.title


def varying(entries: Sequence[Entry]) -> set[str]:
    """Return the matrix paths in which these jobs differ."""
    paths = {path for entry in entries for path in entry.job.cell}
    return {path for path in paths if len({str(entry.job.cell.get(path)) for entry in entries}) > 1}


def _word(path: str, value: object) -> str:
    name = axis(path)
    return str(value) if name in {"engine", "model", "unit", "precision"} else f"{name.replace('_', ' ')} {value}"


def axis(path: str) -> str:
    """Return the heading of a matrix path: `workload.batch_size` is `batch_size`, `load.open.rate` is `rate`."""
    return path.removeprefix("load.closed.").removeprefix("load.open.").removeprefix("workload.")


def cell_axes(data: ExperimentData) -> list[str]:
    """Return the paths that any job's cell names, in the order of their first appearance."""
    return list(dict.fromkeys(path for entry in data.entries for path in entry.job.cell))
