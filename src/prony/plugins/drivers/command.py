"""Driver for a shell command that loads the service itself, run once for each user."""

from __future__ import annotations

import shutil
from typing import Any, ClassVar

from pydantic import Field

from prony.errors import CapacityError, InputError
from prony.model.base import Noun
from prony.model.workload import Scalar
from prony.ports.driver import Cause, Digest, Keeps, Prepared, Reply, Request, Wants

_SHELLS = ("bash", "sh")
_HOW_TO_GET_ONE = f"install one of {', '.join(_SHELLS)}"


class CommandOptions(Noun):
    """What is run."""

    command: str = Field(default="", description="a shell command, one or more lines; required")
    environment: dict[str, Scalar] = Field(default={}, description="extra environment variables")


class CommandDriver:
    """A command of the recipe's own: each user is one run of it, and what it writes down are the requests."""

    name: ClassVar[str] = "command"
    schemes: ClassVar[tuple[str, ...]] = ("http", "https", "redis", "rediss", "postgresql", "postgres", "unix")
    asks: ClassVar[bool] = False
    makes: ClassVar[bool] = True  # whatever it does, two agents would do it to each other
    Options: ClassVar[type[Any]] = CommandOptions

    def prepare(self, wants: Wants) -> Prepared:
        options: CommandOptions = wants.options
        if not options.command.strip():
            raise InputError("the driver command needs a command", hint="workload.options.command: COMMAND")
        shell = next((path for name in _SHELLS if (path := shutil.which(name))), None)
        if shell is None:
            raise CapacityError("no shell found to run the command", code="service_missing", hint=_HOW_TO_GET_ONE)
        variables = {name: str(value) for name, value in options.environment.items()}
        return Prepared((), "", keeps=Keeps.NOTHING, command=(shell, "-c", options.command), environment=variables)

    def digest(self, request: Request, reply: Reply) -> Digest:  # noqa: ARG002 - nobody asks: no reply is ours
        return Digest(Cause.MALFORMED, "Prony does not read the replies of a command")

    def finish(self) -> None:
        """What the command made, only the command knows."""
