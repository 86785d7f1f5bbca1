"""Merge the requests of agents that loaded one service together, on the server's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from prony.instruments.requests import CAUSES, OK, REQUEST_PHASES, empty_frame, phases, read_requests, request_schema
from prony.instruments.samples import SAMPLES
from prony.instruments.window import Sent, find_window
from prony.model.clients import ClientSide, Member
from prony.model.job import Job
from prony.model.result import MachineUse, Repetition
from prony.runner.clients import merged_side
from prony.runner.parts import PartFolder, gang_state, phase_of, worst_noise

if TYPE_CHECKING:
    import polars as pl

Array = np.ndarray[Any, np.dtype[Any]]
_STAMPS = ("begin_ns", "end_ns", "due_ns", "sent_ns", "first_ns", "content_ns")


@dataclass(frozen=True)
class Rows:
    """The requests of one part, what to add to its stamps in each repetition, and how many processes sent them."""

    frame: pl.DataFrame
    offsets: Mapping[int, int]
    processes: int = 1


@dataclass(frozen=True)
class _Run:
    records: Mapping[str, Array]
    begin_ns: int
    end_ns: int


def merge_load(parts: Sequence[PartFolder], job: Job) -> tuple[pl.DataFrame, list[Repetition]]:
    """Return the requests of all parts, and the runs that they make."""
    rows = merged_rows([Rows(_one_rows(part), part.offsets, part.processes) for part in parts])
    indices = sorted({one.index for part in parts for one in part.result.repetitions})
    repetitions = [_repetition(index, parts, rows, job) for index in indices]
    return _with_phases(rows, repetitions, job), repetitions


def _one_rows(part: PartFolder) -> pl.DataFrame:
    """Return the requests of one part; none where it did not come so far."""
    return read_requests(part.path) if (part.path / SAMPLES).exists() and part.offsets else empty_frame()


def merged_rows(parts: Sequence[Rows]) -> pl.DataFrame:
    """Return the rows of all parts on one clock, by repetition and index; those of a repetition whose offset nobody
    knows are left out. Client processes are numbered through all parts."""
    import polars as pl

    moved, clients = [], 0
    for part in parts:
        offsets = part.offsets
        known = part.frame.filter(pl.col("repetition").is_in(list(offsets)))
        by = pl.col("repetition").replace_strict(offsets, default=0, return_dtype=pl.Int64)
        # Zero is no instant: nothing came, or nothing was sent.
        changes = [pl.when(pl.col(name) > 0).then(pl.col(name) + by).otherwise(pl.col(name)) for name in _STAMPS]
        tokens = _moved_lists(known, offsets)
        changes.append((pl.col("client") + clients).cast(request_schema()["client"]))
        clients += part.processes
        moved.append(known.with_columns(changes).with_columns(tokens))
    return pl.concat(moved or [empty_frame()]).sort("repetition", "index", maintain_order=True)


def _moved_lists(frame: pl.DataFrame, offsets: Mapping[int, int]) -> pl.Series:
    """Return `token_ns` with each stamp moved by its row's offset."""
    import polars as pl

    by = frame["repetition"].replace_strict(dict(offsets), default=0, return_dtype=pl.Int64)
    table = pl.DataFrame({"token_ns": frame["token_ns"], "by": by}).with_row_index("row")
    flat = table.filter(pl.col("token_ns").list.len() > 0).explode("token_ns")
    lists = flat.group_by("row", maintain_order=True).agg((pl.col("token_ns") + pl.col("by")).alias("moved"))
    joined = table.join(lists, on="row", how="left", maintain_order="left")
    return joined.select(pl.coalesce("moved", "token_ns").alias("token_ns")).to_series()


def _repetition(index: int, parts: Sequence[PartFolder], rows: pl.DataFrame, job: Job) -> Repetition:
    """Return one run of all parts."""
    import polars as pl

    each = [(part, one) for part in parts if (one := part.repetition(index)) is not None]
    placed = [(part, one, side) for part, one in each if (side := one.client) is not None and side.timing is not None]
    failures = [one.failure for _, one in each if one.failure is not None]
    changes: dict[str, object] = {
        "state": gang_state([one for _, one in each], len(parts), job),
        "started_at": min(one.started_at for _, one in each),
        "contamination": tuple(dict.fromkeys(text for _, one in each for text in one.contamination)),
        "noise": worst_noise([one.noise for _, one in each]),
        "failure": failures[0] if failures else None,
        "cache": next((one.cache for _, one in each if one.cache is not None), None),
        "timing": None,
        # What a machine used says nothing of the others.
        "energy_j": {},
        "use": MachineUse(),
        "phases": {},
        "client": None,
    }
    phase = phase_of(
        [(part.offsets[index], one.phases["measure"]) for part, one, _ in placed if "measure" in one.phases]
    )
    if phase is not None:
        if job.load.is_cut_at(phase.count) and changes["state"] == "ok":
            changes["stopped_by"] = "time"
        if job.load.users.requests is not None and job.load.warmup != "none":
            # Each part ends when its first user is done; from the first of all on there are fewer users.
            first = min(part.offsets[index] + one.phases["measure"].end_ns for part, one, _ in placed)
            phase = phase.model_copy(update={"end_ns": first})
        mine = rows.filter(pl.col("repetition") == index)
        run = _Run(_records(mine), phase.begin_ns, phase.end_ns)
        members = [_member(part.agent, side, one) for part, one, side in placed]
        changes |= {"phases": {"measure": phase}, "client": merged_side(members, [one[2] for one in placed], run)}
    return each[0][1].model_copy(update=changes)


def _member(agent: str, side: ClientSide, one: Repetition) -> Member:
    return Member(
        agent=agent,
        requests=one.phases["measure"].count if "measure" in one.phases else 0,
        timing=side.timing,
        delivered_rate_per_s=side.delivered_rate_per_s,
        sent_late_p99_ms=side.sent_late_p99_ms,
        loop_lag_p99_ms=side.loop_lag_p99_ms,
        kernel_lag_p99_ms=side.kernel_lag_p99_ms,
        cpu_shares=side.cpu_shares,
        connections_asked=side.connections_asked,
        connections_opened=side.connections_opened,
    )


def _records(rows: pl.DataFrame) -> dict[str, Array]:
    names = ("index", "begin_ns", "end_ns", "due_ns", "sent_ns", "lag_ns")
    return {name: rows[name].to_numpy() for name in names} | {"cause": rows["cause"].to_physical().to_numpy()}


def _with_phases(rows: pl.DataFrame, repetitions: Sequence[Repetition], job: Job) -> pl.DataFrame:
    """Say anew of each row whether it counts: what is steady is seen in all rows together."""
    import polars as pl

    found: Array = np.full(rows.height, REQUEST_PHASES.index("warmup"), dtype=np.uint8)
    numbers = rows["repetition"].to_numpy()
    good = CAUSES.index(OK)
    for one in repetitions:
        phase = one.phases.get("measure")
        if phase is None:
            continue
        mine = numbers == one.index
        records = {name: values[mine] for name, values in _records(rows).items()}
        begins, ends = records["begin_ns"], records["end_ns"]
        sent = Sent(begins, ends, records["cause"] == good, (phase.begin_ns, phase.end_ns))
        found[mine] = phases(begins, ends, find_window(sent, job.load).pair)
    return rows.with_columns(pl.Series("phase", REQUEST_PHASES, dtype=request_schema()["phase"]).gather(found))
