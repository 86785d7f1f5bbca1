"""The recipe that a person writes: one strict schema with a good default for everything but the model and its engine.

What an hour of the machine costs is written under `cost`, or told by a label of the agent or of this machine.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from prony.model.alarm import RecipeAlarm
from prony.model.any_workload import AnyWorkload
from prony.model.base import Noun
from prony.model.cron import Timing
from prony.model.gate import GateText, trouble_of_kind
from prony.model.load import Load
from prony.model.metric import key_of
from prony.model.place import Place
from prony.model.quantity import DurationNs, Share, SizeBytes, duration_text
from prony.model.workload import MissingWorkload, Scalar, W, Workload, kind_packages, work_of, workload_schema

# The label by which an agent, or PRONY_LABELS on this machine, tells its price.
PRICE_LABEL = "cost_per_hour"
CURRENCY_LABEL = "currency"
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Cost(Noun):
    """The price of the machine that runs the jobs."""

    per_hour: Amount = Field(description="price of one hour of the machine")
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$", description="three capital letters, as in USD or EUR")


# Blank lines and comments, then a table's name in brackets, or a key and its equals sign.
_TOML = re.compile(r"\ufeff?(?:[ \t]*+(?:#[^\n]*+)?+\r?\n)*+[ \t]*+(?:\[|[^\s:=#{}][^:=\n]*+=)")


def is_toml(text: str) -> bool:
    """Say whether a recipe is written in TOML, by its first statement; YAML and JSON never begin so."""
    return _TOML.match(text) is not None


# The sections that one job may have otherwise than its sibling.
VARIABLE = ("workload", "measure", "load", "limits", "labels")


def _lasting(default_ns: int, description: str) -> Any:
    """Return the field of a duration whose default reads in the schema as a person would write it."""
    shown: dict[str, Any] = {"default": duration_text(default_ns)}
    return Field(default=default_ns, description=description, json_schema_extra=shown)


MOST_COMBINATIONS = 10_000


class Matrix(Noun):
    """Dotted paths into the recipe with lists of values; one job for each combination that `exclude` leaves.

    People write the axes beside `exclude`, under their own paths, and so does this noun when it is written out.
    """

    axes: dict[str, Annotated[list[Scalar], Field(min_length=1)]] = {}
    exclude: list[dict[str, Scalar]] = Field(
        default=[], description="combinations to leave out: each entry names values of some axes"
    )

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields = {key: value for key, value in data.items() if key in cls.model_fields}
        axes = {key: value for key, value in data.items() if key not in cls.model_fields}
        return fields | {"axes": fields.get("axes", {}) | axes}

    @model_serializer(mode="wrap")
    def _spread(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        axes: dict[str, Any] = written.pop("axes", {})
        return axes | written

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Say which paths may vary, so that an editor underlines the others."""
        schema = handler.resolve_ref_schema(handler(core))
        axis = schema["properties"].pop("axes")["additionalProperties"] | {"description": "the values of one axis"}
        schema["patternProperties"] = {rf"^({'|'.join(VARIABLE)})\..+$": axis}
        nested = {"type": "object", "description": "axes written nested, as the dotted keys of TOML make them"}
        schema["properties"] |= dict.fromkeys(VARIABLE, nested)
        return schema


class Duet(Noun):
    """Two sides of a recipe that take turns on one machine, so that a disturbance affects both."""

    a: dict[str, Scalar] = Field(
        default={}, max_length=50, description="changes for the first side: paths with values, as in the matrix"
    )
    b: dict[str, Scalar] = Field(
        default={}, max_length=50, description="changes for the second side, which is compared with the first"
    )
    pairs: int = Field(default=10, ge=5, le=1000, description="runs per side; five show only large differences")

    @model_validator(mode="after")
    def _two_sides(self) -> Self:
        if self.a == self.b:
            raise ValueError("both sides are the same; give each at least one value of its own")
        return self


class Until(Noun):
    """Continue until the interval of the headline metric is narrow enough."""

    ci: Share = Field(description="relative half-width of the median's interval")
    max_repeats: int = Field(
        default=30,
        ge=6,
        description="most fresh processes, at least `repeats`, and 10 to reach `ci`; twice as many if disturbed",
    )


# From here on `measure.runs` means as many as fit in `max_time`: nobody misses those that did not.
UNLIMITED_RUNS = 1_000_000


# The first is enough for a median. A p99 with an interval needs 368, and not all of them are of the steady state.
_LEAST_RUNS, _MOST_RUNS = 100, 2000


class Measure(Noun):
    """How much to measure, and what counts as warm."""

    runs: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        default="auto",
        description="warm inferences per repetition; auto: 100, then more for up to 2s, at most 2000 (a p99 needs "
        "368); 1000000 or more: as many as fit in `max_time`",
    )
    warmup: Literal["auto"] | Annotated[int, Field(ge=0)] = Field(
        default="auto", description="inferences before measuring; auto: until the last medians agree"
    )
    repeats: int = Field(default=5, ge=1, description="fresh processes; each gives one run")
    cold_starts: int | None = Field(
        default=None, ge=1, description="model loads in fresh processes; default: as `repeats`"
    )
    until: Until | None = Field(
        default=None, description="continue after `repeats` until the interval is narrow enough"
    )
    page_cache: Literal["as-is", "warm", "cold"] = Field(
        default="as-is", description="state of the model file in the page cache before it is loaded"
    )
    isolation: Literal["fork", "exec"] = Field(
        default="exec",
        description="how a repetition gets its process: a fresh interpreter (exec), or a copy of one (fork)",
    )
    max_time: DurationNs = _lasting(60 * 10**9, "limit on the measured phase of one repetition")
    check: bool = Field(default=True, description="compare outputs with a float32 reference")
    energy_window: DurationNs = _lasting(
        2 * 10**9,
        "how long a GPU works without a pause for throughput, power and energy: 2s gives energy to about 5 %, 10s to "
        "1 %; below 2s there is no energy",
    )

    @property
    def least_runs(self) -> int:
        """How many inferences a repetition has, where its time allows."""
        return _LEAST_RUNS if self.runs == "auto" else self.runs

    @property
    def most_runs(self) -> int:
        """How many inferences a repetition has where they are quick enough."""
        return _MOST_RUNS if self.runs == "auto" else self.runs

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.until is not None and self.until.max_repeats < self.repeats:
            raise ValueError(f"until.max_repeats ({self.until.max_repeats}) is less than repeats ({self.repeats})")
        return self


class Limits(Noun):
    """Limits of one repetition; beyond them it is stopped and counts as a failure."""

    timeout: DurationNs = _lasting(
        10 * 60 * 10**9, "for one repetition, all phases together; of a service: for its start"
    )
    memory: SizeBytes | None = Field(
        default=None, description="resident memory of the engine's process; default: no limit"
    )


# What a key was where it was left out, before its default was another: stored recipes hold every key.
_FORMER_DEFAULTS = ((Load, "repeats", 3), (Measure, "isolation", "fork"), (Measure, "runs", 100))


def _keys_said(section: Measure | Load) -> list[str]:
    """Return the keys of a section that somebody wrote, as far as that can be told from their values."""
    kind, usual = type(section), type(section)()
    return [
        name
        for name in kind.model_fields
        if (value := getattr(section, name)) != getattr(usual, name) and (kind, name, value) not in _FORMER_DEFAULTS
    ]


def _check_sections(workload: Workload, measure: Measure, load: Load) -> None:
    """Refuse a section, or a key of `measure`, that a workload of this kind cannot honour."""
    if isinstance(workload, MissingWorkload):
        return
    if _keys_said(load if workload.section == "measure" else measure):
        raise ValueError(workload.wrong_section)
    if workload.section != "measure" or workload.measure_keys is None:
        return
    for name in _keys_said(measure):
        if name not in workload.measure_keys:
            raise ValueError(workload.wrong_measure_key.format(name))


WatchedMetric = Annotated[str, Field(min_length=1, max_length=200)]


_UNIT = "workload.unit"


class Recipe(Noun):
    """One recipe; an unknown key is an error."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
        description="what this recipe is called: letters, digits, '.', '_' and '-', at most 100",
        examples=["yolo-here"],
    )
    description: str = Field(default="", description="what this recipe is for")
    workload: AnyWorkload
    matrix: Matrix = Field(default=Matrix(), description="what to vary: one job for each combination")
    units: Annotated[tuple[str, ...], Field(max_length=64)] = Field(
        default=(),
        description="compute units, each with its own jobs; `units: [cuda-0, cuda-1]` is short for the axis "
        "`workload.unit`",
        examples=[["cuda-0", "cuda-1"]],
    )
    duet: Duet | None = Field(default=None, description="two sides to run in turns and compare")
    measure: Measure = Field(default=Measure(), description="how much to measure")
    load: Load = Field(default=Load(), description="for a service: how requests come")
    limits: Limits = Field(default=Limits(), description="limits of one repetition")
    place: Place = Field(default=Place(), description="which devices may run the jobs")
    schedule: Timing | None = Field(default=None, description="when a server runs the recipe again")
    alarms: Annotated[tuple[RecipeAlarm, ...], Field(max_length=20)] = Field(
        default=(), description="whom a server notifies, and when"
    )
    labels: dict[str, str] = Field(default={}, description="your own text by name, stored with every result")
    gates: tuple[GateText, ...] = Field(
        default=(),
        max_length=100,
        description="conditions for every job, such as `inference_ms.p99 <= 20`; if one fails, the exit code is 1",
    )
    watch: Annotated[tuple[WatchedMetric, ...], Field(max_length=3)] = Field(
        default=(),
        description="up to three more metrics to watch in its history, such as `inference_ms.p99`",
    )
    cost: Cost | None = Field(default=None, description="what the machine costs; default: its label `cost_per_hour`")

    def work(self, kind: type[W]) -> W:
        """Return the workload of a recipe that is known to be of this kind.

        Raises:
            InputError: it is of another kind.
        """
        return work_of(self.workload, kind, self.name)

    @property
    def variation(self) -> Matrix:
        """What is varied: the matrix, and the units as its last axis."""
        if not self.units:
            return self.matrix
        return self.matrix.model_copy(update={"axes": self.matrix.axes | {_UNIT: list(self.units)}})

    @model_validator(mode="after")
    def _has_one_list_of_units(self) -> Self:
        if self.units and _UNIT in self.matrix.axes:
            raise ValueError(f"`units` and the axis {_UNIT} of `matrix` say the same: remove one of them")
        return self

    @model_validator(mode="after")
    def _own_section(self) -> Self:
        _check_sections(self.workload, self.measure, self.load)
        if self.duet is not None and (self.measure.until is not None or self.load.search is not None):
            raise ValueError("a duet has a fixed number of pairs: `until` and `search` cannot be used with it")
        return self

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.workload.count_agents(self.load) > 1:
            several = self.workload.agents_path
            if self.place.devices == "each":
                raise ValueError(
                    f"{several} cannot be used with `place.devices: each`: its agents run one job together"
                )
            if self.duet is not None:
                raise ValueError(f"a duet runs on one machine: {several} cannot be used with it")
        return self

    @model_validator(mode="after")
    def _own_watch(self) -> Self:
        known = self.workload.metric_names
        for key in self.watch:
            if known is not None and key_of(key).metric not in known:
                raise ValueError(f"watch: {key!r}: a {self.workload.kind} has no {key_of(key).metric}")
        if len(set(self.watch)) < len(self.watch):
            raise ValueError("watch: one metric is listed twice")
        return self

    @model_validator(mode="after")
    def _own_gates(self) -> Self:
        for gate in self.gates:
            if (trouble := trouble_of_kind(gate, self.workload)) is not None:
                raise ValueError(f"gates: {trouble}")
        return self


def json_schema() -> dict[str, Any]:
    """Return the recipe's JSON Schema, for editors."""
    schema = Recipe.model_json_schema()
    # A JSON file has no comment in which an editor could find its schema.
    own = {"$schema": {"type": "string", "description": "where this schema is, for editors; not part of the recipe"}}
    schema["properties"] = schema["properties"] | own
    # The matrix may supply what the workload leaves out, so an editor must not ask for it in the workload.
    for name in kind_packages():
        schema["$defs"][workload_schema(name).__name__]["required"] = ["kind"]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Prony recipe"}
    return head | {key: value for key, value in schema.items() if key not in head}
