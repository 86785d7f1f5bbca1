"""What a runner of any kind of job may use, and how it ends: asked to stop, or by a failure that a result keeps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from prony.errors import PronyError, whose_move
from prony.load.processes import ClientProcesses
from prony.model.device import Environment
from prony.model.event import Event
from prony.model.result import Failure
from prony.ports.clock import Clock
from prony.ports.models import ModelPolicy


@dataclass(frozen=True)
class RunContext:
    """What the runner may use: where models are cached, where engines live, what relative paths are relative to."""

    cache: Path
    engines: Path
    base: Path
    clock: Clock
    environment: Callable[[], Environment]
    emit: Callable[[Event], None]
    stop_asked: Callable[[], bool]
    # A block in which a stop is not waited for: it raises Stopped at once, out of whatever call the block is in.
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext
    address: str = ""  # where other machines reach this one, as its agent says
    policy: ModelPolicy = field(default_factory=ModelPolicy)
    clients: ClientProcesses = field(default_factory=ClientProcesses)  # of a load, some of them started ahead


class Stopped(Exception):  # noqa: N818 - not an error: somebody asked
    """Somebody asked the runner to stop while it was getting ready."""


def failure_of(error: PronyError, *, phase: str) -> Failure:
    """Turn what was raised on purpose into what a result keeps."""
    return Failure.read(error.to_dict() | {"phase": phase, "whose": whose_move(error)})
