"""What a recipe says of a model file that an engine runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from prony.model.base import Noun
from prony.model.metric import HEADLINE, INSTRUMENT_METRICS, LOAD_METRICS, METRICS
from prony.model.workload import Finite, Scalar, Workload

Precision = Literal["default", "fp32", "fp16", "bf16", "int8"]
# The device is the unit that computes; on the CPU both are the same.
Location = Literal["device", "host"]
AxisSize = Annotated[int, Field(ge=0)]  # 0 is real: the empty cache of a decoder's first step
_OF_OTHERS = (*LOAD_METRICS, *INSTRUMENT_METRICS)


class Values(Noun):
    """Contents of one input: one of `constant`, `low` with `high`, and `file`."""

    constant: Finite | str | bool | None = Field(default=None, description="one value everywhere")
    low: Finite | None = Field(default=None, description="smallest random value; needs `high`")
    high: Finite | None = Field(default=None, description="random values are below it; needs `low`")
    file: str | None = Field(
        default=None,
        min_length=1,
        description="a .npy file with the whole tensor, relative to the recipe",
        json_schema_extra={"path": True},
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.low is None) != (self.high is None):
            raise ValueError("set both low and high, or neither")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low ({self.low:g}) is above high ({self.high:g})")
        ways = [way for way in (self.constant, self.low, self.file) if way is not None]
        if len(ways) != 1:
            raise ValueError("choose exactly one of constant, low with high, and file")
        return self


class Inputs(Noun):
    """Sizes and contents of inputs that the model does not fix."""

    axes: dict[str, AxisSize] = Field(default={}, description="size of a dynamic axis, by name: `{sequence: 128}`")
    shapes: dict[str, tuple[AxisSize, ...]] = Field(
        default={}, description="whole shape of an input, by name: `{image: [1, 3, 224, 224]}`"
    )
    values: dict[str, Values] = Field(default={}, description="contents of an input, by name")
    seed: int = Field(default=0, ge=0, description="seed of the random contents")
    at: Location = Field(
        default="device", description="where timed calls find inputs; host: they copy them to the device each time"
    )

    @model_validator(mode="before")
    @classmethod
    def _take_location(cls, data: Any) -> Any:
        """`inputs: host` is short for `inputs: {at: host}`."""
        if isinstance(data, str):
            return {"at": data}
        shapes = data.get("shapes") if isinstance(data, dict) else None
        if not isinstance(shapes, dict):
            return data
        # What came here is no longer JSON, whose lists are taken for tuples.
        return data | {
            "shapes": {name: tuple(sizes) if isinstance(sizes, list) else sizes for name, sizes in shapes.items()}
        }


def _allow_location(schema: dict[str, Any]) -> None:
    """Tell editors of the short form too."""
    schema["anyOf"] = [{"$ref": schema.pop("$ref")}, {"enum": list(get_args(Location))}]


class ModelWorkload(Workload):
    """A model file on an engine, in its own process."""

    headline: ClassVar[str | None] = HEADLINE
    metric_names: ClassVar[tuple[str, ...] | None] = tuple(name for name in METRICS if name not in _OF_OTHERS)
    families: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {
        "inference": (
            "inference_ms.p50",
            ("inference_ms", "throughput_per_s", "inference_cpu_ms", "energy_j", "energy_net_j", "device_ms", "hot_ms"),
        ),
        "cold start": (
            "cold_start_ms.p50",
            ("cold_start_ms", "load_ms", "first_inference_ms", "import_ms", "compile_ms", "capture_ms"),
        ),
        "copies": ("roundtrip_ms.p50", ("roundtrip_ms", "copy_in_ms", "copy_out_ms")),
        "memory": ("rss_peak_mib.p50", ("rss_peak_mib", "memory_mib", "vram_peak_mib", "vram_run_peak_mib")),
    }
    sample_noun: ClassVar[str] = "inference"
    unit_noun: ClassVar[str] = "items"
    is_allowed_by_default: ClassVar[bool] = True
    named_fields: ClassVar[Mapping[str, str]] = {"model": "models", "engine": "engines"}
    later_keys: ClassVar[Mapping[str, Scalar]] = {"outputs": "device", "inputs.at": "device"}
    wrong_section: ClassVar[str] = "`load` is for services; for a model, use `measure`"

    kind: Literal["model"] = Field(description="which kind of workload this is")
    model: str = Field(
        min_length=1,
        description="zoo:NAME, a path (relative to the recipe), https://..., hf:ORG/NAME@REVISION/FILE, "
        "s3://BUCKET/KEY, or ftp://... with a checksum",
        examples=["zoo:mobilenet-v2", "models/mine.onnx"],
        json_schema_extra={"path": "reference"},
    )
    checksum: str | None = Field(
        default=None,
        pattern=r"^sha256:[0-9a-f]{64}$",
        description="sha256: and the 64 hexadecimal digits of the model file",
    )
    engine: str = Field(
        min_length=1,
        description="the engine that runs the model; `prony engines` lists them",
        examples=["onnxruntime", "openvino"],
    )
    engine_version: str | None = Field(
        default=None,
        pattern=r"^[0-9]+(\.[0-9A-Za-z]+)*$",
        description="version of the engine; 1.20 is any 1.20; `prony engines add NAME --version 1.20` installs one; "
        "default: the installed one",
        examples=["1.20", "1.20.1"],
    )
    unit: str = Field(
        default="cpu", min_length=1, description="compute unit: cpu, cuda, coreml-gpu, neural-engine, directml, ..."
    )
    batch_size: int = Field(default=1, ge=1, description="items per inference")
    threads: int | None = Field(
        default=None, ge=1, le=4096, description="engine threads; default: every CPU that this process may use"
    )
    precision: Precision = Field(
        default="default", description="precision to compute in; `default` is the engine's choice"
    )
    inputs: Inputs = Field(
        default=Inputs(),
        description="sizes and contents of inputs; `inputs: host` is short for `inputs: {at: host}`",
        json_schema_extra=_allow_location,
    )
    outputs: Location = Field(
        default="device", description="where timed calls leave outputs; host: the copy counts in inference_ms"
    )
    options: dict[str, Scalar] = Field(
        default={},
        description="engine options: text, numbers, true or false, by name",
        json_schema_extra={"path": "words"},
    )

    @property
    def subject(self) -> str:
        """What is measured, in one word."""
        return self.model

    @property
    def variant(self) -> str:
        return f" with batch size {self.batch_size}"

    @property
    def tool(self) -> str:
        """By what."""
        return self.engine


SCHEMA = ModelWorkload
