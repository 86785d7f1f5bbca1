"""One cell of an experiment's matrix: everything the runner needs, and nothing else."""

from __future__ import annotations

from typing import Literal

from prony.errors import InputError
from prony.model.base import Noun
from prony.model.gang import Part
from prony.model.load import Load
from prony.model.recipe import Limits, Measure, ModelWorkload, Scalar, ServiceWorkload, Workload, agents_of, model_of
from prony.model.script import ScriptWorkload


class Job(Noun):
    id: str
    experiment_id: str
    name: str
    cell: dict[str, Scalar] = {}
    workload: Workload
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
    # Of a job that several agents run together: which of them this is.
    part: Part | None = None

    @property
    def model(self) -> ModelWorkload:
        """The workload of a job that runs a model; asked only where that is known."""
        return model_of(self.workload, f"job {self.id}")

    @property
    def service(self) -> ServiceWorkload:
        """The same of a job that loads a service."""
        if not isinstance(self.workload, ServiceWorkload):
            raise InputError(f"job {self.id} is a {self.workload.kind} and no service")
        return self.workload

    @property
    def script(self) -> ScriptWorkload:
        """The same of a job that executes a script."""
        if not isinstance(self.workload, ScriptWorkload):
            raise InputError(f"job {self.id} is a {self.workload.kind} and no script")
        return self.workload

    @property
    def agents(self) -> int:
        """How many agents run it together."""
        return agents_of(self.workload, self.load)

    @property
    def title(self) -> str:
        """What tells this job from its siblings, as a person would say it."""
        cell = ", ".join(f"{path.removeprefix('workload.')}={value}" for path, value in self.cell.items())
        if self.side is None:
            return cell or self.name
        pair = "" if self.pair is None else f" of pair {self.pair + 1}"
        return f"side {self.side}{pair}: {cell or 'as written'}"
