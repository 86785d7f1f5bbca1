"""Pair the jobs to be compared, list those without a partner, and say which differences forbid comparing their numbers.

The machine, the bytes of the model and the settings must be the same; software may differ, for that is what one mostly
compares. How many runs there are, where files lie and what a job is called do not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

from prony.errors import InputError
from prony.model.comparison import Difference
from prony.model.experiment_data import Entry

Kind = Literal["hardware", "model", "settings", "software"]
Flat = dict[str, str]

# A name under which a whole group may differ.
_GROUPS = {"device": "hardware", "hardware": "hardware", "model": "model", "checksum": "model",
           "workload.model": "model"}  # fmt: skip
# Where an engine or a unit may differ, what it says of itself will; another model has other inputs.
_BROUGHT_ALONG = {
    "workload.model": ("inputs",),
    "workload.engine": (
        "effective.engine",
        "effective.device",
        "effective.outputs_at",
        "effective.gradients",
        "workload.options",
    ),
    "workload.batch_size": ("inputs",),
    "workload.inputs": ("inputs",),
    "workload.unit": ("effective.device", "effective.outputs_at"),
    "workload.outputs": ("effective.outputs_at",),
    "workload.precision": ("effective.precision",),
    "workload.threads": ("effective.threads",),
    "workload.service": ("workload.settings", "workload.driver", "service.name"),
}
# They decide how many runs there are, how long one may take and how many samples it has: one number a run decides.
_NO_MATTER = (
    "measure.runs",
    "measure.repeats",
    "measure.until",
    "measure.cold_starts",
    "measure.max_time",
    "measure.check",
    "measure.energy_window",
    "load.repeats",
    "load.drain",
    "load.errors",
    "workload.checksum",
    "workload.prompts.scorer",
    "workload.prompts.scorer_limit",
)

# It is told and hinders nothing: the same is measured, in a process that was made otherwise.
_MAY_DIFFER = ("measure.isolation", "workload.restart", "service.restart")


def differences(baseline: Entry, candidate: Entry, across: Sequence[str] = ()) -> tuple[Difference, ...]:
    """Return them in the order machine, model, settings, software."""
    groups, paths = _split_allowed(across)
    found: list[Difference] = []
    for kind, (before, after) in _sides(baseline, candidate).items():
        for path, first, second in _unlike(before, after):
            may = kind == "software" or path in _MAY_DIFFER or kind in groups or _is_under(path, paths)
            found.append(Difference(kind=kind, path=path, baseline=first, candidate=second, allowed=may))
    return tuple(found)


def _sides(baseline: Entry, candidate: Entry) -> dict[Kind, tuple[Flat, Flat]]:
    makers = {"hardware": _hardware, "model": _model, "settings": _settings, "software": _software}
    made: dict[Kind, tuple[Flat, Flat]] = {}
    for kind in ("hardware", "model", "settings", "software"):
        made[kind] = (makers[kind](baseline), makers[kind](candidate))
    if made["model"][0] and made["model"][1]:  # the same bytes are the same model, wherever they lay
        for flat in made["settings"]:
            flat.pop("workload.model", None)
    if baseline.environment.device.hardware_id == candidate.environment.device.hardware_id:
        made["hardware"] = ({}, {})
    return made


def check_across(across: Sequence[str], entries: Sequence[Entry]) -> None:
    """Refuse a path that no job has: it would allow nothing and be taken for a permission."""
    known = {path for entry in entries for path in _settings(entry)} | {path for e in entries for path in e.job.cell}
    parents = {path[:end] for path in known for end in range(len(path)) if path[end] == "."}
    for text in across:
        if text not in _GROUPS and not {text, f"workload.{text}"} & (known | parents):
            near = get_close_matches(text, [*_GROUPS, *(one.removeprefix("workload.") for one in known)], n=1)
            hint = f"did you mean {near[0]}?" if near else "name a setting of the recipe, such as engine or threads"
            raise InputError(f"no job has {text!r}", hint=hint, code="unknown_path")


def across_name(difference: Difference) -> str:
    """Return the name that lets this differ."""
    if difference.kind in ("hardware", "model"):
        return "device" if difference.kind == "hardware" else "model"
    brings = (whole for whole, brought in _BROUGHT_ALONG.items() if _is_under(difference.path, set(brought)))
    return next(brings, difference.path).removeprefix("workload.")


def _is_across(path: str, across: Sequence[str]) -> bool:
    """Is a path of a cell one that may differ?"""
    groups, paths = _split_allowed(across)
    return _is_under(path, paths) or (path == "workload.model" and "model" in groups)


def _split_allowed(across: Sequence[str]) -> tuple[set[str], set[str]]:
    groups = {_GROUPS[text] for text in across if text in _GROUPS}
    paths = {whole for text in across for whole in (text, f"workload.{text}")}
    paths |= {more for path in paths for more in _BROUGHT_ALONG.get(path, ())}
    return groups, paths


def _is_under(path: str, paths: set[str]) -> bool:
    return any(path == one or path.startswith(f"{one}.") for one in paths)


def _unlike(before: Flat, after: Flat) -> Iterator[tuple[str, str, str]]:
    for path in dict.fromkeys((*before, *after)):
        first, second = before.get(path, "nothing"), after.get(path, "nothing")
        if first != second and not _is_under(path, set(_NO_MATTER)):
            yield path, first, second


def _hardware(entry: Entry) -> Flat:
    device = entry.environment.device
    return {"hardware_id": device.hardware_id} | _flat(device.hardware.model_dump(mode="json"), "hardware")


def _model(entry: Entry) -> Flat:
    return {} if entry.result.model is None else {"model.sha256": entry.result.model.sha256}


def _settings(entry: Entry) -> Flat:
    job, effective = entry.job, entry.result.effective
    sections = {"workload": job.workload, "measure": job.measure, "load": job.load}
    other = "load" if job.workload.section == "measure" else "measure"
    mine = [name for name in sections if name != other]
    found: Flat = {}
    for name in mine:
        found |= _flat(sections[name].model_dump(mode="json", exclude_none=True), name)
    for fed in entry.result.inputs:
        found[f"inputs.{fed.name}"] = f"{fed.dtype} {list(fed.shape)} sha256:{fed.sha256[:12]}"
    if effective is not None:
        told = {"engine": effective.engine, "device": effective.device, "precision": effective.precision}
        found |= {f"effective.{name}": value for name, value in told.items()}
        if effective.outputs_at is not None:
            # Results of before version 2 have none: a GPU's times then counted a copy to the host, and are others.
            found["effective.outputs_at"] = effective.outputs_at
        if effective.gradients is not None:
            # PyTorch's results of before version 3 have none, and recorded gradients in every timed call.
            found["effective.gradients"] = effective.gradients
        if effective.threads is not None:
            found["effective.threads"] = str(effective.threads)
    service = entry.result.service
    if service is not None and service.name:
        # Older results do not tell when their services were started: once for all runs.
        found |= {"service.name": service.name, "service.restart": service.restart or "once"}
    return found


def _software(entry: Entry) -> Flat:
    software, result, git = entry.environment.device.software, entry.result, entry.environment.git
    found = _flat(software.model_dump(mode="json", exclude_none=True), "software")
    if result.effective is not None:
        found["engine_version"] = result.effective.engine_version
    if result.service is not None and result.service.version:
        found["service.version"] = result.service.version
    if git is not None:
        found["git.commit"] = git.commit + (" (changed)" if git.dirty else "")
    return found


def _flat(value: Any, path: str) -> Flat:
    """Return the leaves of nested mappings by their dotted paths; a list is a leaf."""
    if not isinstance(value, Mapping):
        return {path: str(value)}
    found: Flat = {}
    for key, inner in value.items():
        found |= _flat(inner, f"{path}.{key}")
    return found


@dataclass(frozen=True)
class Side:
    """What a person named, an experiment or one job of it, and the entries that it has."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Matched:
    pairs: tuple[tuple[Entry, Entry], ...]
    unmatched: tuple[str, ...]


def match(sides: Sequence[Side], across: Sequence[str]) -> Matched:
    """Pair the jobs of the first side with those of each other; of one side alone, its jobs along `across`."""
    for side in sides:
        if not side.entries:
            hint = "`prony show ID` shows its state; on a server, `prony watch ID` waits"
            raise InputError(f"{side.name} has no result yet", hint=hint, code="no_result")
    if len(sides) == 1:
        return _inside(sides[0], across)
    pairs: list[tuple[Entry, Entry]] = []
    alone: list[str] = []
    for other in sides[1:]:
        found = _between(sides[0], other, across)
        pairs += found.pairs
        alone += found.unmatched
    if not pairs:
        raise InputError(
            f"no job of {sides[0].name} has a partner: {'; '.join(alone)}",
            hint="jobs are matched by their matrix settings; use --across NAME to allow a difference, or name two jobs",
            code="not_comparable",
        )
    return Matched(tuple(pairs), tuple(alone))


def _between(first: Side, second: Side, across: Sequence[str]) -> Matched:
    if len(first.entries) == len(second.entries) == 1:  # whatever differs between them is told
        return Matched(((first.entries[0], second.entries[0]),), ())
    before, after = _by_cell(first, across), _by_cell(second, across)
    pairs = tuple((entry, after[cell]) for cell, entry in before.items() if cell in after)
    alone = [f"{entry.job.title} is only in {first.name}" for cell, entry in before.items() if cell not in after]
    alone += [f"{entry.job.title} is only in {second.name}" for cell, entry in after.items() if cell not in before]
    return Matched(pairs, tuple(alone))


def _inside(side: Side, across: Sequence[str]) -> Matched:
    if not across:
        raise InputError(
            f"only {side.name} was given",
            hint="name a second experiment or job, or the setting that differs, for example --across engine",
        )
    groups: dict[str, list[Entry]] = {}
    for entry in side.entries:
        groups.setdefault(_cell(entry, across), []).append(entry)
    pairs = tuple((group[0], other) for group in groups.values() for other in group[1:])
    alone = tuple(f"{group[0].job.title} has no partner" for group in groups.values() if len(group) == 1)
    if not pairs:
        raise InputError(
            f"no two jobs of {side.name} differ in {' and '.join(across)} alone", code="not_comparable",
            hint=f"`prony show {side.entries[0].job.experiment_id}` lists its jobs",
        )  # fmt: skip
    return Matched(pairs, alone)


def _by_cell(side: Side, across: Sequence[str]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for entry in side.entries:
        cell = _cell(entry, across)
        if cell in found:
            raise InputError(
                f"{side.name} has several jobs that differ only in {' and '.join(across)}",
                hint=f"name one: {found[cell].job.id} or {entry.job.id}", code="ambiguous",
            )  # fmt: skip
        found[cell] = entry
    return found


def _cell(entry: Entry, across: Sequence[str]) -> str:
    kept = {path: value for path, value in entry.job.cell.items() if not _is_across(path, across)}
    return ", ".join(f"{path}={value}" for path, value in sorted(kept.items()))
