"""Which devices may run a job: what a person writes under `place`, and the demand that a server matches."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import Field

from prony.model.base import Noun
from prony.model.fact import FACTS, FAMILIES, GROUPS

Finite = Annotated[float, Field(allow_inf_nan=False)]
# One fact that must hold: a plain value, a comparison such as ">=4", or a list of which one must hold.
Wanted = bool | int | Finite | str | Annotated[list[bool | int | Finite | str], Field(min_length=1)]


def _names_of_facts(schema: dict[str, Any]) -> None:
    """Say which facts there are, so that an editor offers them and underlines the others."""
    families = "|".join(sorted({name.partition(".")[0] for name in FAMILIES}))
    nested = {"type": "object", "description": "facts written nested, as the dotted keys of TOML make them"}
    wanted = schema["additionalProperties"]
    schema["propertyNames"] = {"anyOf": [{"enum": [*FACTS, *GROUPS]}, {"pattern": rf"^({families})\..+$"}]}
    schema["patternProperties"] = {
        rf"^({'|'.join(GROUPS)})$": {
            "anyOf": [*wanted["anyOf"], nested],
            "description": "a fact, or several facts written nested",
        }
    }


class QueueWish(Noun):
    """What to request from a target's queue; `targets.toml` has precedence."""

    partition: str | None = Field(default=None, min_length=1, description="the partition; default: the target's")
    account: str | None = Field(default=None, min_length=1, description="the account that pays; default: the target's")
    minutes: int | None = Field(default=None, ge=1, description="the wall time; default: the target's")


class Place(Noun):
    """Where jobs run. Without a server, `where` says whether this machine may run them."""

    on: str | None = Field(
        default=None, min_length=1, description="`local`, the name of a target, or `ssh:HOST`; default: local"
    )
    where: dict[str, Wanted] = Field(
        default={},
        max_length=50,
        description="facts that a device must have, such as `cpu.cores: '>=4'`; `prony agent info` shows those of this "
        "machine; default: any device",
        json_schema_extra=_names_of_facts,
    )
    devices: Literal["any", "each"] = Field(
        default="any", description="any: one matching device per job; each: every matching device runs every job"
    )
    priority: int = Field(default=0, ge=-100, le=100, description="higher goes first")
    attempts: int = Field(
        default=3, ge=1, le=20, description="how often to try a job if its environment fails, not its model"
    )
    queue: QueueWish | None = Field(
        default=None,
        description="what to request from a target's queue; `targets.toml` has precedence; default: the target's",
    )


class Demand(Noun):
    """What a lot of jobs wants of a device: the facts that a person asked for and those that the workload needs."""

    where: dict[str, Wanted] = {}
    kind: str = "model"
    engine: str | None = None
    unit: str | None = None
    card: str | None = None  # the beginning of a GPU's UUID, where the unit names one
    precision: str | None = None
    scheme: str | None = None  # of the model's reference: an agent fetches only what its policy allows
    agents: int = 1  # so many at once
    service: str | None = None  # that the agent itself starts, as it is installed there
    containers: tuple[str, ...] = ()  # engines, of which one must be there
    launcher: str | None = None
    own_command: bool = False  # only an agent runs it whose owner allows a kind that runs commands

    @property
    def id(self) -> str:
        """The same for equal demands, whoever made them."""
        text = json.dumps(self.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Lack(Noun):
    """One thing that a device has not: what was wanted of which fact, and what it has instead."""

    fact: str
    wanted: str
    has: str | None = None
    reason: str = ""  # as the agent says it: which program is missing, and how to get it

    def __str__(self) -> str:
        told = f"{self.fact} {self.wanted} (has {self.has if self.has is not None else 'none'})"
        return f"{told}: {self.reason}" if self.reason else told
