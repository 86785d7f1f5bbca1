"""What a person writes: one strict schema with a good default for everything but the model and its engine."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator

from prony.model.base import Noun
from prony.model.quantity import DurationNs, Share, SizeBytes

Scalar = str | int | float | bool
Precision = Literal["default", "fp32", "fp16", "bf16", "int8"]


class Values(Noun):
    """What to fill one input with; exactly one of `constant`, `low`/`high` and `file`."""

    constant: float | str | bool | None = None
    low: float | None = None
    high: float | None = None
    file: str | None = Field(default=None, description="a .npy file with the whole tensor")


class Inputs(Noun):
    """Sizes and contents for what the model leaves open."""

    axes: dict[str, int] = Field(default={}, description="size of a dynamic axis, by its name")
    shapes: dict[str, tuple[int, ...]] = Field(default={}, description="whole shape of an input, by its name")
    values: dict[str, Values] = Field(default={}, description="contents of an input, by its name")
    seed: int = Field(default=0, ge=0)


class ModelWorkload(Noun):
    """A model file on an engine in a process of its own (white box)."""

    kind: Literal["model"]
    model: str = Field(min_length=1, description="zoo:NAME, a path, or https://")
    checksum: str | None = Field(default=None, pattern=r"^sha256:[0-9a-f]{64}$")
    engine: str = Field(min_length=1)
    unit: str = Field(default="cpu", description="compute unit: cpu, cuda, coreml-gpu, neural-engine, directml, ...")
    batch_size: int = Field(default=1, ge=1)
    threads: int | None = Field(default=None, ge=1, description="default: every CPU this process may use")
    precision: Precision = Field(default="default", description="default: whatever the engine chooses; it is shown")
    inputs: Inputs = Inputs()
    options: dict[str, Scalar] = Field(default={}, description="handed to the engine as they are")


Workload = Annotated[ModelWorkload, Field(description="what is measured, chosen by `kind`")]


class Matrix(Noun):
    """Dotted paths into the recipe with lists of values; one job for each combination that `exclude` leaves."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, list[Scalar]]

    exclude: list[dict[str, Scalar]] = []

    @property
    def axes(self) -> dict[str, list[Scalar]]:
        return dict(self.__pydantic_extra__ or {})


class Until(Noun):
    """Go on until the interval of the headline number is this tight, at the run level."""

    ci: Share = Field(description="relative half-width of the interval of the median")
    max_repeats: int = Field(default=30, ge=6)


class Measure(Noun):
    """How much is measured and what counts as warm."""

    runs: int = Field(default=100, ge=1, description="warm inferences in each repetition")
    warmup: Literal["auto"] | int = Field(default="auto", description="auto: until the last medians agree")
    repeats: int = Field(default=5, ge=1, description="fresh processes, each one run of the statistics")
    cold_starts: int | None = Field(default=None, ge=1, description="model loads in fresh processes; default: repeats")
    until: Until | None = None
    page_cache: Literal["as-is", "warm", "cold"] = "as-is"
    isolation: Literal["fork", "exec"] = Field(default="fork", description="exec: a fresh interpreter each time")
    max_time: DurationNs = Field(default=60 * 10**9, description="cap on the measured phase of one repetition")
    check: bool = Field(default=True, description="compare outputs with a float32 reference")

    @field_validator("warmup")
    @classmethod
    def _not_negative(cls, value: str | int) -> str | int:
        if isinstance(value, int) and value < 0:
            raise ValueError("warmup is auto or a count of inferences, 0 or more")
        return value


class Limits(Noun):
    """What one repetition may take before it is ended and recorded as a failure."""

    timeout: DurationNs = Field(default=10 * 60 * 10**9, description="for one repetition, all phases together")
    memory: SizeBytes | None = Field(default=None, description="resident memory of the engine's process")


class Recipe(Noun):
    """One recipe; an unknown key is an error."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    description: str = ""
    workload: Workload
    matrix: Matrix = Matrix()
    measure: Measure = Measure()
    limits: Limits = Limits()
    labels: dict[str, str] = {}


def json_schema() -> dict[str, Any]:
    """Return the recipe's JSON Schema, for editors."""
    schema = Recipe.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Prony recipe"} | schema
