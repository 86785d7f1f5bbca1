"""What a recipe says of hashing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from prony.model.workload import Workload


class HashingWorkload(Workload):
    """So many bytes, hashed in one process."""

    headline: ClassVar[str | None] = "hash_ms.p50"
    measure_keys: ClassVar[tuple[str, ...] | None] = ("repeats",)
    wrong_section: ClassVar[str] = "`load` is for services: hashing says in `measure` how often it is repeated"
    wrong_measure_key: ClassVar[str] = "measure.{} is not for hashing"
    sample_noun: ClassVar[str] = "hash"
    unit_noun: ClassVar[str] = "hashes"

    kind: Literal["hashing"] = Field(description="which kind of workload this is")
    algorithm: str = Field(default="sha256", description="the algorithm, as hashlib calls it")
    size: int = Field(default=65536, ge=1, description="how many bytes are hashed")

    @property
    def subject(self) -> str:
        return self.algorithm

    @property
    def metric_units(self) -> Mapping[str, str]:
        return {"hash_ms": "ms"}


SCHEMA = HashingWorkload
