"""Combine what a gang's agents report about one run, for any kind of job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prony.model.job import Job
from prony.model.result import Noise, Phase, Repetition, Result


@dataclass(frozen=True)
class PartFolder:
    """What one agent brought; `offsets` are by repetition, of those that it began."""

    agent: str
    path: Path
    result: Result

    @property
    def offsets(self) -> dict[int, int]:
        found = {
            one.index: one.client.timing if one.client is not None else one.timing for one in self.result.repetitions
        }
        return {index: timing.offset_ns for index, timing in found.items() if timing is not None}

    @property
    def processes(self) -> int:
        return max((one.client.processes for one in self.result.repetitions if one.client is not None), default=0)

    def repetition(self, index: int) -> Repetition | None:
        return next((one for one in self.result.repetitions if one.index == index), None)


def gang_state(each: Sequence[Repetition], wanted: int, job: Job) -> str:
    """Return how a run of all parts ended, of which these were brought."""
    states = {one.state for one in each}
    if "failed" in states:
        return "failed"
    wanted = max(wanted, job.agents)
    return "cancelled" if "cancelled" in states or len(each) < wanted else "ok"


def phase_of(each: Sequence[tuple[int, Phase]]) -> Phase | None:
    """Return the phase from where the first began to where the last ended, by the server's clock."""
    if not each:
        return None
    return Phase(
        begin_ns=min(one.begin_ns + offset for offset, one in each),
        end_ns=max(one.end_ns + offset for offset, one in each),
        cpu_ns=sum(one.cpu_ns for _, one in each),
        count=sum(one.count for _, one in each),
        rss_peak_kib=max((one.rss_peak_kib for _, one in each if one.rss_peak_kib is not None), default=None),
    )


def worst_noise(each: Sequence[Noise]) -> Noise:
    """Return the worst that any machine of a gang saw: what is not known on one is not known of the whole."""
    numbers = [name for name in Noise.model_fields if name not in ("busiest", "unwatched")]
    known = {name: [value for one in each if (value := getattr(one, name)) is not None] for name in numbers}
    worst: dict[str, object] = {name: max(values) if values else None for name, values in known.items()}
    if blind := [one for one in each if one.foreign_cpu is None and one.unwatched]:
        return Noise.read(worst | {"foreign_cpu": None, "unwatched": blind[0].unwatched})
    busiest = max(each, key=lambda one: one.foreign_cpu or 0.0, default=Noise()).busiest
    # The machine of the service is watched where one of the agents runs on it.
    is_watched = any(not one.unwatched for one in each)
    return Noise.read(worst | {"busiest": busiest, "unwatched": "" if is_watched else each[0].unwatched})
