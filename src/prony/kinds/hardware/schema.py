"""What a recipe says of a test of bare hardware."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from prony.kinds.hardware.readings import METRIC_UNITS
from prony.model.quantity import DurationNs, SizeBytes, duration_text
from prony.model.workload import Workload

HardwareTest = Literal[
    "cpu-memory", "cpu-gemm", "disk", "gpu-memory", "gpu-gemm", "gpu-transfer", "gpu-launch", "gpu-collective"
]
GemmFormat = Literal["fp32", "tf32", "fp64", "bf16", "fp16", "fp8", "int8"]
MatrixShape = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,5}x[1-9][0-9]{0,5}x[1-9][0-9]{0,5}$")]
_TIME_NS = 300_000_000


class HardwareWorkload(Workload):
    """Hardware without a model: memory, matrix products, a disk, a GPU and the way to it."""

    measure_keys: ClassVar[tuple[str, ...] | None] = ("repeats", "warmup", "until")
    wrong_section: ClassVar[str] = "`load` is for services; for a hardware test, use `measure`"
    wrong_measure_key: ClassVar[str] = (
        "measure.{} is for models; for a hardware test, set measure.repeats (fresh processes) and workload.time (time "
        "per reading)"
    )
    sample_noun: ClassVar[str] = "sample"
    unit_noun: ClassVar[str] = "samples"
    sample_columns: ClassVar[tuple[str, ...]] = ("at_ns", "name", "value")

    kind: Literal["hardware"] = Field(description="which kind of workload this is")
    test: HardwareTest = Field(
        description="what to measure; gemm: matrix products; transfer: copies from and to the host; launch: starts of "
        "kernels; collective: sums over all GPUs (needs two)"
    )
    unit: str = Field(
        default="cuda", min_length=1, description="for GPU tests: the GPU, as cuda, cuda-1 or cuda:GPU-UUID"
    )
    library: Literal["numpy", "torch"] = Field(
        default="numpy",
        description="for CPU tests: the library that computes; torch also has triad, bf16, fp16 and int8",
    )
    shapes: Literal["quick", "search", "model"] = Field(
        default="quick",
        description="for matrix products: some squares, a search over shapes, or the shapes in `layers`",
    )
    layers: Annotated[tuple[MatrixShape, ...], Field(max_length=200)] = Field(
        default=(), description="for `shapes: model`: the matrix products of a model's layers, as MxNxK",
        examples=[["4096x14336x4096"]],
    )  # fmt: skip
    precisions: Annotated[tuple[GemmFormat, ...], Field(max_length=7)] = Field(
        default=(), description="for matrix products: formats to compute in; default: all that run"
    )
    threads: int | None = Field(
        default=None, ge=1, le=4096, description="for cpu-memory: most processes at once; default: one per CPU"
    )
    size: SizeBytes | None = Field(
        default=None,
        description="bytes of an array, or of the disk file; default: by caches and free memory",
    )
    path: str | None = Field(
        default=None,
        min_length=1,
        description="for disk: folder for its file; default: that of temporary files",
        json_schema_extra={"path": "name"},
    )
    time: DurationNs = Field(
        default=_TIME_NS,
        description="how long to repeat each reading, after a warm-up",
        json_schema_extra={"default": duration_text(_TIME_NS)},
    )
    seed: int = Field(default=0, ge=0, description="seed of the data and of the search over shapes")

    @property
    def subject(self) -> str:
        """What is measured, in one word."""
        return self.test

    @property
    def is_of_gpu(self) -> bool:
        return self.test.startswith("gpu-")

    @property
    def tool(self) -> str:
        """By what."""
        if self.test == "disk":
            return ""
        return "torch" if self.needs_torch else "numpy"

    @property
    def needs_torch(self) -> bool:
        """Whether it runs in the interpreter that has PyTorch."""
        return self.is_of_gpu or (self.test != "disk" and self.library == "torch")

    @property
    def metric_units(self) -> Mapping[str, str]:
        return METRIC_UNITS

    @model_validator(mode="after")
    def _knows_its_layers(self) -> Self:
        if (self.shapes == "model") != bool(self.layers):
            raise ValueError(
                "set both `shapes: model` and `layers`, or neither: list the products of the model's layers in `layers`"
            )
        return self


SCHEMA = HardwareWorkload
