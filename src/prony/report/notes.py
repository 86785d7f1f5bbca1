"""Collect the remarks under an experiment's table, each once with the jobs it concerns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prony.error_codes import name_job
from prony.model.calibration import Calibration, describe_disturbance
from prony.model.estimate import DETECTABLE_CHANGE, Grade
from prony.model.experiment_data import Entry, ExperimentData
from prony.ports.metric_titles import metric_title
from prony.report import entry_fields, number
from prony.report.input_shapes import describe_chosen_shapes

# A number that stands alone, not one within a word as in fp16, p99 or 224x224.
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w|\.\d)")
_BRACKETS = re.compile(r" \([^()]*\)")


@dataclass(frozen=True)
class Note:
    """One remark; `grade` is None where it explains and does not judge."""

    grade: Grade | None
    text: str
    jobs: tuple[str, ...]


def notes(data: ExperimentData) -> list[Note]:
    """Return the worst first: what holds for several jobs is said once, the rest in one note a job."""
    found: dict[tuple[Grade | None, str], list[tuple[str, str]]] = {}
    first: dict[tuple[Grade | None, str], str] = {}  # the job whose log is named
    for entry in data.entries:
        for grade, text in _of_entry(entry):
            first.setdefault((grade, _pattern(text)), entry.job.id)
            found.setdefault((grade, _pattern(text)), []).append((text, entry_fields.label(entry)))
    shared: list[Note] = []
    alone: dict[tuple[Grade | None, str], list[str]] = {}
    for (grade, pattern), said in found.items():
        text = name_job(merge_texts([text for text, _ in said]), first[grade, pattern])
        if len(said) > 1:
            shared.append(Note(grade, text, tuple(dict.fromkeys(job for _, job in said))))
        else:
            alone.setdefault((grade, said[0][1]), []).append(text)
    listed = shared + [Note(grade, " ".join(texts), (job,)) for (grade, job), texts in alone.items()]
    order = {grade: place for place, grade in enumerate((*entry_fields.WORST_FIRST, None))}
    # Within a grade what concerns most jobs comes first.
    judged = sorted(listed, key=lambda note: (order[note.grade], -len(note.jobs)))
    return judged + _list_missing(data) + [Note(None, text, ()) for text in data.experiment.notes]


def merge_texts(texts: Sequence[str]) -> str:
    """Return one sentence for texts that differ only in numbers, and in what stands in brackets.

    Numbers become ranges, but the largest after "up to"; brackets are those of the text that has the largest number in
    them.
    """
    numbers = zip(*(_NUMBER.findall(_BRACKETS.sub("", text)) for text in texts), strict=True)

    def widen(found: re.Match[str]) -> str:
        return _number_range(next(numbers), is_limit=found.string[: found.start()].endswith("up to "))

    worst = max(texts, key=_largest_in_brackets)
    parts = re.split(f"({_BRACKETS.pattern})", worst)
    return "".join(part if place % 2 else _NUMBER.sub(widen, part) for place, part in enumerate(parts))


def _largest_in_brackets(text: str) -> float:
    return max((float(one) for part in _BRACKETS.findall(text) for one in _NUMBER.findall(part)), default=0.0)


def _pattern(text: str) -> str:
    """Return a text without its numbers and brackets: what is alike there says the same of other jobs."""
    return _NUMBER.sub("#", _BRACKETS.sub("", text))


def _number_range(written: Sequence[str], *, is_limit: bool) -> str:
    low, high = min(written, key=float), max(written, key=float)
    return high if is_limit or float(low) == float(high) else f"{low} to {high}"


def jobs_named(note: Note, job_count: int, most: int | None = None) -> str:
    """Return the jobs that a remark speaks of, as a reader says it; empty where there is only one job."""
    if job_count < 2:
        return ""
    if len(note.jobs) == job_count:
        return "all jobs"
    more = f" and {len(note.jobs) - most} more" if most is not None and len(note.jobs) > most else ""
    named = ", ".join(note.jobs[:most]) + more
    return f"{len(note.jobs)} of {job_count} jobs ({named})" if len(note.jobs) > 1 else named


def _of_entry(entry: Entry) -> list[tuple[Grade | None, str]]:
    reasons, failed = entry.summary.verdict.reasons, _list_failures(entry)
    # A reason of grade valid explains and does not judge. A failure tells more than that nothing succeeded.
    told: list[tuple[Grade | None, str]] = [(None, text)] if (text := describe_chosen_shapes(entry)) else []
    told += [
        (None if one.grade is Grade.VALID else one.grade, one.text)
        for one in reasons
        if not (one.code == "no_success" and failed)
    ]
    told += failed
    is_told = any(one.code.startswith("precision") or one.code == "different_answer" for one in reasons)
    if not is_told and (precision := _precision(entry)) is not None:
        told.append((None, precision))
    return told


# Where a recipe says how many samples there are in a run.
_COUNTED_BY = {"measure": "measure.runs", "load": "load.requests or load.duration"}


def _list_missing(data: ExperimentData) -> list[Note]:
    """Say once of all jobs which percentiles are not published, how many samples each needs, and what to change."""
    needed: dict[str, dict[str, list[int]]] = {}
    lacking = [entry for entry in data.entries if entry.summary.missing]
    for one in (one for entry in lacking for one in entry.summary.missing):
        metric, _, statistic = one.metric.partition(".")
        needed.setdefault(metric, {}).setdefault(statistic, []).append(one.needed)
    if not needed:
        return []
    listed = [f"{metric_title(metric)} {_list_needed(parts, len(lacking))}" for metric, parts in needed.items()]
    keys = dict.fromkeys(_COUNTED_BY[entry.job.workload.section] for entry in lacking)
    text = f"Too few samples in a run for {'; '.join(listed)}{_count_steady(lacking)}: raise {' and '.join(keys)}."
    return [Note(None, text, tuple(dict.fromkeys(entry_fields.label(entry) for entry in lacking)))]


def _list_needed(parts: Mapping[str, list[int]], jobs: int) -> str:
    """Say what each percentile needs; `parts` has a number for each of the jobs that lack it."""
    counted = sorted((max(each), name, len(each)) for name, each in parts.items())
    return ", ".join(
        f"{name} (needs {count}{'' if lacking == jobs else f', in {lacking} of these jobs'})"
        for count, name, lacking in counted
    )


def _count_steady(lacking: Sequence[Entry]) -> str:
    """Say how many samples count where fewer do than were taken: those from the steady state on."""
    counts = [(_fewest(entry), _most_taken(entry)) for entry in lacking if entry.summary.steady_from]
    count, taken = min(counts, default=(0, 0))
    if count >= taken:
        return ""
    return f", and only {count} of {taken} count in the shortest run (from its steady state on)"


def _fewest(entry: Entry) -> int:
    return min(one.count for one in entry.summary.missing)


def _most_taken(entry: Entry) -> int:
    used = (one for one in entry.result.repetitions if one.index in entry.summary.used and "measure" in one.phases)
    return max((one.phases["measure"].count for one in used), default=0)


def _list_failures(entry: Entry) -> list[tuple[Grade | None, str]]:
    """Return each reason once: what ended the job has usually ended a repetition too."""
    whole = entry.result.failure
    told: list[tuple[Grade | None, str]] = []
    if whole is not None and whole.code != "cancelled":
        told.append((Grade.VOID, entry_fields.end_sentence(f"The job failed {entry_fields.failure_text(whole)}")))
    others = [why for one, why in entry_fields.failures(entry) if one is not None and why != whole]
    return told + [
        (Grade.SUSPECT, entry_fields.end_sentence(f"A repetition failed {entry_fields.failure_text(why)}"))
        for why in others
    ]


def _precision(entry: Entry) -> str | None:
    """Return what the engine computes in, where nobody asked for it and it is not float32."""
    effective, work = entry.result.effective, entry.job.workload
    asked = getattr(work, "precision", "")
    if effective is None or asked != "default" or effective.precision in {"f32", "fp32", "float32"}:
        return None
    check = entry.result.check
    error = check.max_error_of_range if check is not None and check.compared else None
    differs = (
        ""
        if error is None
        else f"; its answers differ from {_reference(entry)} by up to {number.format_share(error)} of their range"
    )
    return f"{effective.engine} computes in {effective.precision}, by default{differs}."


def _reference(entry: Entry) -> str:
    return entry.result.check.reference if entry.result.check is not None else "the reference"


def sensitivity(data: ExperimentData) -> str:
    """Return one line on how small a change such runs would show, from the best to the worst job that is not void.

    Empty where nothing is known, or where a note says it of a job already.
    """
    entries = [entry for entry in data.entries if entry.summary.verdict.grade is not Grade.VOID]
    is_noted = any(one.code == DETECTABLE_CHANGE for entry in entries for one in entry.summary.verdict.reasons)
    seen = [one for entry in entries if (one := entry.summary.sensitivity.get(entry_fields.headline(entry)))]
    if is_noted or not seen:
        return ""
    runs = _range([str(end(one.runs for one in seen)) for end in (min, max)])
    changes = _range([number.format_share(end(one.detectable for one in seen)) for end in (min, max)])
    return f"with {runs} runs on each side that run alternately, a change of {changes} can be detected here"


def _range(ends: list[str]) -> str:
    return " to ".join(dict.fromkeys(ends))


def instrument(calibration: Calibration | None) -> str:
    """Return one line on how good the instrument is on this machine."""
    if calibration is None:
        return "not calibrated when this was measured: run `prony calibrate`"
    parts = []
    overhead = calibration.figures.get("harness_overhead_us")
    noise = calibration.figures.get("kernel_noise")
    if overhead is not None:
        parts.append(f"harness overhead {number.format_number(overhead)} for each inference")
    if noise is not None:
        parts.append(f"machine noise {number.format_share(noise.value)} between fresh processes")
    rate, late = (calibration.figures.get(name) for name in ("load_rate_per_s", "load_sent_late_ms"))
    if rate is not None and late is not None:
        most, behind = number.format_number(rate), number.format_number(late)
        parts.append(f"one client process sends up to {most}, at half of that rate {behind} late (p99)")
    told = "; ".join(parts) or "no value was stored"
    doubt = f"; not reliable: {describe_disturbance(calibration)}" if calibration.disturbed else ""
    return f"{told} (calibrated {calibration.taken_at:%Y-%m-%d}){doubt}"
