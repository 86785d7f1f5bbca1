"""Merge a script's results from several nodes, with every rank on the server's clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prony.instruments.samples import SAMPLES, read_frame
from prony.kinds.script.samples import own_rows, told_frame
from prony.model.job import Job
from prony.model.result import Failure, MachineUse, RankEnd, Refusal, Repetition, ScriptFacts
from prony.runner.parts import PartFolder, gang_state, phase_of, worst_noise

if TYPE_CHECKING:
    import polars as pl


def merged_script(parts: Sequence[PartFolder], job: Job) -> tuple[pl.DataFrame, list[Repetition]]:
    """Return every number that a rank told, with what Prony measured of all nodes together; and the runs."""
    import polars as pl

    indices = sorted({one.index for part in parts for one in part.result.repetitions})
    repetitions = [_repetition(index, parts, job) for index in indices]
    told = pl.concat([told_frame(0, "measure", []), *(_rows(part) for part in parts)])
    frames = []
    for one in repetitions:
        mine = told.filter(pl.col("repetition") == one.index)
        frames += [mine, _own(one, set(mine["name"]))]
    rows = pl.concat([told.clear(), *frames])
    return rows.with_columns(pl.int_range(pl.len()).over("repetition").cast(pl.Int32).alias("index")), repetitions


def _rows(part: PartFolder) -> pl.DataFrame:
    """Return what the ranks of a node told; what was measured of it alone says nothing of all."""
    import polars as pl

    if not (part.path / SAMPLES).exists() or not part.offsets:
        return told_frame(0, "measure", [])
    by = pl.col("repetition").replace_strict(part.offsets, default=None, return_dtype=pl.Int64)
    frame = read_frame(part.path, SAMPLES).filter(pl.col("origin") != "prony")
    return frame.with_columns((pl.col("at_ns") + by).alias("at_ns")).drop_nulls("at_ns")


def _own(one: Repetition, told: set[str]) -> pl.DataFrame:
    phase = one.phases.get("measure")
    own = own_rows((phase.begin_ns, phase.end_ns), phase.cpu_ns, told) if phase and one.state == "ok" else []
    return told_frame(one.index, one.kind, own)


def _repetition(index: int, parts: Sequence[PartFolder], job: Job) -> Repetition:
    """Return one run of all nodes."""
    each = [(part, one) for part in parts if (one := part.repetition(index)) is not None]
    runs = [one for _, one in each]
    state = gang_state(runs, len(parts), job)
    begun = [(part.offsets[index], one.phases["measure"]) for part, one in each if index in part.offsets]
    phase = phase_of([(offset, found) for offset, found in begun if found.end_ns])
    failures = [part for part, one in each if one.failure is not None and one.failure.code != "cancelled"]
    refused: Counter[tuple[str, str]] = Counter()
    for told in (told for one in runs for told in one.refused):
        refused[told.name, told.reason] += told.count
    return runs[0].model_copy(
        update={
            "state": state,
            "started_at": min(one.started_at for one in runs),
            "phases": {} if phase is None else {"measure": phase},
            "contamination": tuple(dict.fromkeys(text for one in runs for text in one.contamination)),
            # What a machine used says nothing of the others.
            "energy_j": {},
            "use": MachineUse(),
            "noise": worst_noise([one.noise for one in runs]),
            "vram_peak_mib": max((one.vram_peak_mib for one in runs if one.vram_peak_mib is not None), default=None),
            "refused": tuple(Refusal(name=name, reason=why, count=n) for (name, why), n in refused.items()),
            "ends": tuple(_ends(each, index)),
            "strays": sum(one.strays for one in runs),
            "timing": None,
            "failure": _first(failures, index) if state == "failed" else None,
        }
    )


def _ends(each: Sequence[tuple[PartFolder, Repetition]], index: int) -> list[RankEnd]:
    """Return how all ranks ended, in that order."""
    found = []
    for part, one in each:
        offset = part.offsets.get(index)
        for end in one.ends:
            at_ns = None if offset is None or end.end_ns is None else end.end_ns + offset
            found.append(end.model_copy(update={"end_ns": at_ns}))
    return sorted(found, key=lambda end: (end.end_ns is None, end.end_ns or 0))


def first_to_fail(parts: Sequence[PartFolder]) -> Failure | None:
    """Return why all nodes failed: of several failures, that of the node on which the first rank died.

    What went wrong beside the script comes first, and a launcher that only saw that others were gone last."""
    latest = max((one.index for part in parts for one in part.result.repetitions), default=0)
    first = min(parts, key=lambda part: _died_ns(part, latest))
    return _name_part(first, first.result.failure)


def _first(parts: Sequence[PartFolder], index: int) -> Failure | None:
    if not parts:
        return None
    first = min(parts, key=lambda part: _died_ns(part, index))
    one = first.repetition(index)
    return _name_part(first, one.failure) if one is not None else None


def _died_ns(part: PartFolder, index: int) -> float:
    one, offset = part.repetition(index), part.offsets.get(index)
    died = [end.end_ns + (offset or 0) for end in one.ends if end.status and end.end_ns is not None] if one else []
    if died and offset is not None:
        return float(min(died))
    is_by_itself = part.result.failure is not None and part.result.failure.whose != "sut"
    return float("-inf" if is_by_itself else "inf")


def _name_part(part: PartFolder, failure: Failure | None) -> Failure | None:
    if failure is None:
        return None
    return failure.model_copy(update={"message": f"on agent {part.agent}: {failure.message}"})


def script_facts(parts: Sequence[PartFolder]) -> ScriptFacts | None:
    """Return what was executed, with who the nodes were and what each could not honour; None where it is no script."""
    facts = [(part.agent, part.result.script) for part in parts]
    first = next((one for _, one in facts if one is not None), None)
    if first is None:
        return None
    notes = dict.fromkeys(note for _, one in facts if one is not None for note in one.notes)
    return first.model_copy(update={"nodes": tuple(agent for agent, _ in facts), "notes": tuple(notes)})
