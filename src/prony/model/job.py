"""One cell of an experiment's matrix: everything the runner needs, and nothing else."""

from __future__ import annotations

from prony.model.base import Noun
from prony.model.recipe import Limits, Measure, Scalar, Workload


class Job(Noun):
    id: str
    experiment_id: str
    name: str
    cell: dict[str, Scalar] = {}
    workload: Workload
    measure: Measure = Measure()
    limits: Limits = Limits()
    labels: dict[str, str] = {}
    seed: int = 0

    @property
    def title(self) -> str:
        """What tells this job from its siblings, as a person would say it."""
        if not self.cell:
            return self.name
        return ", ".join(f"{path.removeprefix('workload.')}={value}" for path, value in self.cell.items())
