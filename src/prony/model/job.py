"""One cell of an experiment's matrix: everything the runner needs, and nothing else."""

from __future__ import annotations

from typing import Literal

from prony.model.any_workload import AnyWorkload
from prony.model.base import Noun
from prony.model.gang import Part
from prony.model.git import Git
from prony.model.load import Load
from prony.model.recipe import Limits, Measure
from prony.model.workload import Scalar, W, work_of


class Job(Noun):
    """One cell of a matrix: all that a runner needs but the model."""

    id: str
    experiment_id: str
    name: str
    cell: dict[str, Scalar] = {}
    workload: AnyWorkload
    measure: Measure = Measure()
    load: Load = Load()
    limits: Limits = Limits()
    labels: dict[str, str] = {}
    seed: int = 0
    # Of a duet: which side it is, and, where each run is a job of its own, which pair.
    side: Literal["a", "b"] | None = None
    pair: int | None = None
    # The change in a history that it is to confirm.
    confirms: str | None = None
    # What its history watches besides the headline.
    watch: tuple[str, ...] = ()
    # Of a job that several agents run together: which of them this is.
    part: Part | None = None
    # The repository that its recipe lies in, as it was when the recipe was submitted.
    git: Git | None = None
    # Of a rerun: which image a name meant in the earlier run.
    images: dict[str, str] = {}
    # The trace that its submission belongs to, as W3C's `traceparent`; empty where nobody traces.
    traceparent: str = ""

    def work(self, kind: type[W]) -> W:
        """Return the workload of a job that is known to be of this kind.

        Raises:
            InputError: it is of another kind.
        """
        return work_of(self.workload, kind, f"job {self.id}")

    @property
    def agents(self) -> int:
        """How many agents run it together."""
        return self.workload.count_agents(self.load)

    @property
    def machines(self) -> int:
        """How many machines it needs at once: as many as agents, unless one machine may stand for all."""
        return self.agents if self.workload.needs_its_agents else 1

    @property
    def title(self) -> str:
        """What tells this job from its siblings, as a person would say it."""
        cell = ", ".join(f"{path.removeprefix('workload.')}={value}" for path, value in self.cell.items())
        if self.side is None:
            return cell or self.name
        pair = "" if self.pair is None else f" of pair {self.pair + 1}"
        return f"side {self.side}{pair}: {cell or 'as written'}"
