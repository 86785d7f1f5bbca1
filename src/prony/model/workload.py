"""The workload of a recipe: what every kind of it says, and the kinds that are installed.

A kind is a package that the entry point group `prony.kinds` names. Its module `schema` holds one subclass of `Workload`
called `SCHEMA`: the part of the recipe that is its own. The other modules of a kind are loaded by `ports/workload.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeVar, get_args

from pydantic import ConfigDict, Field

from prony.errors import CapacityError, InputError, NotFoundError
from prony.model.base import Noun
from prony.model.entry_points import find_entry_points

if TYPE_CHECKING:
    from prony.model.load import Load

GROUP = "prony.kinds"
Finite = Annotated[float, Field(allow_inf_nan=False)]
Scalar = str | int | Finite | bool
Option = Scalar | list[Scalar] | dict[str, Scalar]
# The sections of a recipe of which each kind uses one to say how much is measured.
Section = Literal["measure", "load"]


class Workload(Noun):
    """What is measured. A kind of workload is a subclass; what it does not say is true of most."""

    kind: str = Field(description="which kind of workload this is")

    # The section that says how often it is repeated; the other one must be left out of its recipes.
    section: ClassVar[Section] = "measure"
    # The keys of `measure` that it honours; None: all of them.
    measure_keys: ClassVar[tuple[str, ...] | None] = None
    # What a recipe is told that has a section, or a key of `measure`, of another kind; {} is the key.
    wrong_section: ClassVar[str] = ""
    wrong_measure_key: ClassVar[str] = ""
    # The key of the number that stands for a job; None: each summary says it.
    headline: ClassVar[str | None] = None
    # The metrics that a job may have; None: any, as their names are its own.
    metric_names: ClassVar[tuple[str, ...] | None] = None
    # Metrics that rise and fall together, by the family's name: the key that decides a comparison, and all of them.
    families: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = MappingProxyType({})
    # What one of its samples is, and what its throughput counts.
    sample_noun: ClassVar[str] = "run"
    unit_noun: ClassVar[str] = "runs"
    # Whether jobs in which it is the same do the same work, so that the fastest of them may be named.
    is_rankable: ClassVar[bool] = True
    # Whether an agent runs it unless its owner says otherwise.
    is_allowed_by_default: ClassVar[bool] = False
    # Whether each of its jobs runs commands of whoever submits it: an owner who allows the kind allows commands.
    runs_commands: ClassVar[bool] = False
    # Whether it runs in the process that asks for it, and not in a runner's process of its own.
    runs_in_place: ClassVar[bool] = False
    # The columns that its samples have beside repetition, index and phase.
    sample_columns: ClassVar[tuple[str, ...]] = ("begin_ns", "end_ns")
    # Which of its fields hold a name of the catalogue, and of which list there.
    named_fields: ClassVar[Mapping[str, str]] = MappingProxyType({})
    # Keys that came after series of results were first named, by path, with the values that make no other series.
    later_keys: ClassVar[Mapping[str, Scalar]] = MappingProxyType({})
    # Where its recipe says how many agents run a job together, and how many processes each has.
    agents_path: ClassVar[str] = "load.clients.agents"
    processes_path: ClassVar[str] = "load.clients.processes"

    @classmethod
    def name(cls) -> str:
        """Return what this kind is called."""
        (name,) = get_args(cls.model_fields["kind"].annotation)
        return str(name)

    @property
    def subject(self) -> str:
        """What is measured, in one word."""
        return self.kind

    @property
    def tool(self) -> str:
        """By what."""
        return ""

    @property
    def variant(self) -> str:
        """What a sentence adds to the subject, such as ` with batch size 4`."""
        return ""

    @property
    def folder(self) -> str | None:
        """The folder of files that travels with a job, as written or by its checksum; None where there is none."""
        return None

    @property
    def metric_units(self) -> Mapping[str, str] | None:
        """The units of the metrics that it names itself; None where all its metrics are those of the glossary."""
        return None

    @property
    def has_own_command(self) -> bool:
        """Whether this one names a command to run, although most of its kind do not."""
        return False

    def count_agents(self, load: Load) -> int:
        """Return how many agents run a job together."""
        return load.clients.agents

    @property
    def needs_its_agents(self) -> bool:
        """Whether so many agents are needed, and one machine alone cannot stand for all."""
        return True


class MissingWorkload(Workload):
    """A workload whose kind is not installed here: it can be listed and shown, and not be run."""

    model_config = ConfigDict(extra="allow")

    is_rankable: ClassVar[bool] = False

    @property
    def subject(self) -> str:
        return f"a {self.kind} (this kind is not installed here)"

    @property
    def metric_units(self) -> Mapping[str, str]:
        return {}  # its metrics may have any name


W = TypeVar("W", bound=Workload)


def work_of(workload: Workload, kind: type[W], whose: str) -> W:
    """Return a workload that must be of one kind."""
    if not isinstance(workload, kind):
        raise InputError(
            f"{whose} is a {workload.kind}, not a {kind.name()}", hint=f"choose one whose workload is a {kind.name()}"
        )
    return workload


@cache
def kind_packages() -> dict[str, str]:
    """Return the package of every installed kind by its name.

    Raises:
        CapacityError: There is none: Prony's sources are here, and Prony is not installed.
    """
    found = {name: entry.value for name, entry in find_entry_points(GROUP).items()}
    if not found:
        raise CapacityError(
            "Prony is not installed for this Python: none of its plug-ins is found, as when a copy of its sources runs",
            hint=f"{sys.executable} -m pip install FOLDER_WITH_PYPROJECT",
            code="not_installed",
        )
    return found


def kind_package(name: str) -> str:
    """Return the package of one kind.

    Raises:
        NotFoundError: no package that is installed here brings this kind.
    """
    known = kind_packages()
    if name not in known:
        near = get_close_matches(name, list(known), n=1)
        hint = f"did you mean {near[0]}?" if near else f"install the package that has it; installed: {', '.join(known)}"
        raise NotFoundError(f"the kind of workload {name!r} is not installed here", hint=hint, code="unknown_kind")
    return known[name]


@cache
def workload_schema(name: str) -> type[Workload]:
    """Return the noun of one kind's part of the recipe."""
    found: type[Workload] = import_module(f"{kind_package(name)}.schema").SCHEMA
    return found


def workload_class(name: str) -> type[Workload]:
    """The same, with a stand-in for a kind that is not installed."""
    return workload_schema(name) if name in kind_packages() else MissingWorkload
