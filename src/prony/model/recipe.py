"""What a person writes: one strict schema with a good default for everything but the model and its engine."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from prony.errors import InputError
from prony.model.alarm import RecipeAlarm
from prony.model.base import Noun
from prony.model.cost import Cost
from prony.model.gate import GateText, trouble_of_kind
from prony.model.load import Load
from prony.model.place import Place
from prony.model.quantity import DurationNs, Share, SizeBytes, duration_text
from prony.model.script import ScriptWorkload
from prony.model.timing import Timing

Finite = Annotated[float, Field(allow_inf_nan=False)]
Scalar = str | int | Finite | bool
Precision = Literal["default", "fp32", "fp16", "bf16", "int8"]
AxisSize = Annotated[int, Field(ge=0)]  # 0 is real: the empty cache of a decoder's first step
# The sections that one job may have otherwise than its sibling.
VARIABLE = ("workload", "measure", "load", "limits", "labels")


def _lasting(default_ns: int, description: str) -> Any:
    """Return the field of a duration whose default reads in the schema as a person would write it."""
    shown: dict[str, Any] = {"default": duration_text(default_ns)}
    return Field(default=default_ns, description=description, json_schema_extra=shown)


class Values(Noun):
    """What to fill one input with; exactly one of `constant`, `low` with `high`, and `file`."""

    constant: Finite | str | bool | None = Field(default=None, description="the same value everywhere")
    low: Finite | None = Field(default=None, description="smallest of the random values; goes with high")
    high: Finite | None = Field(default=None, description="the random values lie below it; goes with low")
    file: str | None = Field(
        default=None, min_length=1, description="a .npy file with the whole tensor", json_schema_extra={"path": True}
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high go together")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low ({self.low:g}) lies above high ({self.high:g})")
        ways = [way for way in (self.constant, self.low, self.file) if way is not None]
        if len(ways) != 1:
            raise ValueError("choose exactly one of constant, low with high, and file")
        return self


class Inputs(Noun):
    """Sizes and contents for what the model leaves open."""

    axes: dict[str, AxisSize] = Field(default={}, description="size of a dynamic axis, by its name")
    shapes: dict[str, tuple[AxisSize, ...]] = Field(default={}, description="whole shape of an input, by its name")
    values: dict[str, Values] = Field(default={}, description="contents of an input, by its name")
    seed: int = Field(default=0, ge=0, description="seed of the random contents")


class ModelWorkload(Noun):
    """A model file on an engine in a process of its own (white box)."""

    kind: Literal["model"] = Field(description="which kind of workload this is")
    model: str = Field(
        min_length=1,
        description="zoo:NAME, a path, https://, s3:// or ftp://",
        examples=["zoo:mobilenet-v2", "models/mine.onnx"],
        json_schema_extra={"path": "reference"},
    )
    checksum: str | None = Field(
        default=None,
        pattern=r"^sha256:[0-9a-f]{64}$",
        description="sha256: and the 64 hexadecimal digits that the model file must have",
    )
    engine: str = Field(
        min_length=1,
        description="the engine that runs the model; `prony engines` lists those found here",
        examples=["onnxruntime", "openvino"],
    )
    engine_version: str | None = Field(
        default=None,
        pattern=r"^[0-9]+(\.[0-9A-Za-z]+)*$",
        description="the engine's version, or its beginning; `prony engines add NAME --version` gives it a place",
        examples=["1.20", "1.20.1"],
    )
    unit: str = Field(
        default="cpu", min_length=1, description="compute unit: cpu, cuda, coreml-gpu, neural-engine, directml, ..."
    )
    batch_size: int = Field(default=1, ge=1, description="items in one inference")
    threads: int | None = Field(
        default=None, ge=1, le=4096, description="threads of the engine; default: every CPU this process may use"
    )
    precision: Precision = Field(
        default="default", description="precision to compute in; default: whatever the engine chooses, and it is shown"
    )
    inputs: Inputs = Field(default=Inputs(), description="sizes and contents for what the model leaves open")
    options: dict[str, Scalar] = Field(
        default={}, description="handed to the engine as they are", json_schema_extra={"path": "words"}
    )

    @property
    def subject(self) -> str:
        """What is measured, in one word."""
        return self.model

    @property
    def tool(self) -> str:
        """By what."""
        return self.engine


Option = Scalar | list[Scalar] | dict[str, Scalar]


class ServiceWorkload(Noun):
    """Load on a server: one that Prony starts (`service`) or one that runs already (`endpoint`)."""

    kind: Literal["service"] = Field(description="which kind of workload this is")
    service: str | None = Field(
        default=None, min_length=1, description="the service to start; `prony services` lists them", examples=["redis"]
    )
    settings: dict[str, Option] = Field(default={}, description="of the service: configuration, model, arguments")
    endpoint: str | None = Field(
        default=None,
        min_length=1,
        description="where a server runs already, as a URL; a unix socket is unix:///path",
        examples=["http://127.0.0.1:8000", "redis://127.0.0.1:6379/0"],
        json_schema_extra={"path": "url"},
    )
    driver: str | None = Field(
        default=None,
        min_length=1,
        description="what speaks to it; default: the service's own",
        examples=["openai-chat", "redis"],
    )
    options: dict[str, Option] = Field(default={}, description="of the driver: operations, sizes, model name")
    task: str | None = Field(default=None, min_length=1, description="what an LLM is asked; default: synthetic")
    prompts: dict[str, Option] = Field(default={}, description="of the task: lengths, data set, turns")
    metrics_url: str | None = Field(
        default=None, min_length=1, description="a Prometheus page to read during the load; default: the service's own"
    )

    @property
    def subject(self) -> str:
        """What is measured, in one word."""
        return self.service or self.endpoint or "a service"

    @property
    def tool(self) -> str:
        """By what."""
        return self.driver or self.service or ""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.service is not None and self.endpoint is not None:
            raise ValueError("choose one of service (Prony starts it) and endpoint (it runs already)")
        if self.endpoint is not None and self.driver is None:
            raise ValueError("an endpoint needs a driver")
        return self


AnyWorkload = ModelWorkload | ServiceWorkload | ScriptWorkload
Workload = Annotated[AnyWorkload, Field(discriminator="kind", description="what is measured, chosen by `kind`")]
# What `measure` says of a script: how often it is executed.
_OF_SCRIPTS = ("repeats", "warmup", "until")


def model_of(workload: AnyWorkload, whose: str) -> ModelWorkload:
    """Return a workload that must be a model's."""
    if not isinstance(workload, ModelWorkload):
        raise InputError(f"{whose} is a {workload.kind} and no model")
    return workload


def agents_of(workload: AnyWorkload, load: Load) -> int:
    """Return how many agents run a job together: those that send its load, or the nodes of its launch."""
    return workload.launch.nodes if isinstance(workload, ScriptWorkload) else load.clients.agents


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
    """Two sides of one recipe, run in turns on one machine: what disturbs the machine disturbs both alike."""

    a: dict[str, Scalar] = Field(default={}, max_length=50, description="paths with their values on side a, the first")
    b: dict[str, Scalar] = Field(default={}, max_length=50, description="the same on side b, which is held against it")
    pairs: int = Field(default=10, ge=5, le=1000, description="runs of each side; five tell only what is large")

    @model_validator(mode="after")
    def _two_sides(self) -> Self:
        if self.a == self.b:
            raise ValueError("both sides are the same; give each at least one value of its own")
        return self


class Until(Noun):
    """Go on until the interval of the headline number is this tight, at the run level."""

    ci: Share = Field(description="relative half-width of the interval of the median")
    max_repeats: int = Field(default=30, ge=6, description="give up after so many fresh processes")


class Measure(Noun):
    """How much is measured and what counts as warm."""

    runs: int = Field(default=100, ge=1, description="warm inferences in each repetition")
    warmup: Literal["auto"] | Annotated[int, Field(ge=0)] = Field(
        default="auto", description="inferences before the measured ones; auto: until the last medians agree"
    )
    repeats: int = Field(default=5, ge=1, description="fresh processes, each one run of the statistics")
    cold_starts: int | None = Field(default=None, ge=1, description="model loads in fresh processes; default: repeats")
    until: Until | None = Field(default=None, description="go on past `repeats` until the interval is tight enough")
    page_cache: Literal["as-is", "warm", "cold"] = Field(
        default="as-is", description="state of the model file in the page cache before it is loaded"
    )
    isolation: Literal["fork", "exec"] = Field(
        default="fork", description="how a repetition gets its process; exec: a fresh interpreter each time"
    )
    max_time: DurationNs = _lasting(60 * 10**9, "cap on the measured phase of one repetition")
    check: bool = Field(default=True, description="compare outputs with a float32 reference")

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.until is not None and self.until.max_repeats < self.repeats:
            raise ValueError(f"until.max_repeats ({self.until.max_repeats}) is less than repeats ({self.repeats})")
        return self


class Limits(Noun):
    """What one repetition may take before it is ended and recorded as a failure."""

    timeout: DurationNs = _lasting(10 * 60 * 10**9, "for one repetition, all phases together")
    memory: SizeBytes | None = Field(
        default=None, description="resident memory of the engine's process; default: no limit"
    )


class Recipe(Noun):
    """One recipe; an unknown key is an error."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
        description="what this recipe is called: letters, digits, '.', '_' and '-', at most 100",
        examples=["yolo-here"],
    )
    description: str = Field(default="", description="what this recipe is for, in a person's words")
    workload: Workload
    matrix: Matrix = Field(default=Matrix(), description="what is varied: one job for each combination")
    duet: Duet | None = Field(default=None, description="two sides to run in turns and to compare pair by pair")
    measure: Measure = Field(default=Measure(), description="how much is measured and what counts as warm")
    load: Load = Field(default=Load(), description="of a service: how requests come, how many and for how long")
    limits: Limits = Field(default=Limits(), description="what one repetition may take before it is ended")
    place: Place = Field(default=Place(), description="which devices may run the jobs when a server hands them out")
    schedule: Timing | None = Field(default=None, description="on a server: when it is submitted again, by itself")
    alarms: Annotated[tuple[RecipeAlarm, ...], Field(max_length=20)] = Field(
        default=(), description="on a server: who is told when its numbers, or its runs, are not as they should be"
    )
    labels: dict[str, str] = Field(default={}, description="words of your own, kept with every result")
    gates: tuple[GateText, ...] = Field(
        default=(), max_length=100, description="what must hold of every job, or the command exits 1"
    )
    cost: Cost | None = Field(default=None, description="what the machine costs; default: what its label says")

    @property
    def model(self) -> ModelWorkload:
        """The workload of a recipe for models; asked only where that is known."""
        return model_of(self.workload, self.name)

    @model_validator(mode="after")
    def _own_section(self) -> Self:
        if self.workload.kind != "service" and self.load != Load():
            raise ValueError(f"`load` is for services: a {self.workload.kind}'s `measure` says how much is measured")
        if self.workload.kind == "script" and (foreign := self._foreign_measure()):
            raise ValueError(
                f"measure.{foreign} is for models: a script's whole executions are `repeats`, and `warmup` those before"
            )
        if self.workload.kind == "service" and self.measure != Measure():
            raise ValueError("`measure` is for models: a service's `load` says how much is measured")
        if self.duet is not None and (self.measure.until is not None or self.load.search is not None):
            raise ValueError("a duet has a fixed number of pairs: `until` and `search` do not go with it")
        return self

    @model_validator(mode="after")
    def _together(self) -> Self:
        if agents_of(self.workload, self.load) > 1:
            several = "workload.launch.nodes" if self.workload.kind == "script" else "load.clients.agents"
            if self.place.devices == "each":
                raise ValueError(f"{several} is of a job that any agents run together, not of `place.devices: each`")
            if self.duet is not None:
                raise ValueError(f"a duet is run on one machine: {several} does not go with it")
        return self

    def _foreign_measure(self) -> str | None:
        """Return what `measure` says that no script can honour."""
        plain = Measure()
        names = [name for name in Measure.model_fields if name not in _OF_SCRIPTS]
        return next((name for name in names if getattr(self.measure, name) != getattr(plain, name)), None)

    @model_validator(mode="after")
    def _own_gates(self) -> Self:
        for gate in self.gates:
            if (trouble := trouble_of_kind(gate, self.workload.kind)) is not None:
                raise ValueError(f"gates: {trouble}")
        return self


def json_schema() -> dict[str, Any]:
    """Return the recipe's JSON Schema, for editors."""
    schema = Recipe.model_json_schema()
    # A JSON file has no comment in which an editor could find its schema.
    own = {"$schema": {"type": "string", "description": "where this schema is, for editors; not part of the recipe"}}
    schema["properties"] = schema["properties"] | own
    # The matrix may supply what the workload leaves out, so an editor must not ask for it in the workload.
    for name in ("ModelWorkload", "ScriptWorkload"):
        schema["$defs"][name]["required"] = ["kind"]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Prony recipe"}
    return head | {key: value for key, value in schema.items() if key not in head}
