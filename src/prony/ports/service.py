"""The seam of services: a system under test that Prony starts, knows to be ready, and stops for certain."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from prony.ports.driver import Endpoint


@dataclass(frozen=True)
class ServiceSite:
    """What a service may use: an empty folder of its own for data, a port that is free now, and options as written."""

    folder: Path
    port: int
    options: Any  # an instance of the service's Options
    base: Path = Path()  # what relative paths in the recipe are relative to
    is_shared: bool = False  # other machines load it: it must listen on more than loopback


@dataclass(frozen=True)
class Start:
    """How to start it: a foreground command. `before` are commands to run to their end first (initdb).

    `as_nobody`: the server refuses to be root, so it is started as an ordinary user who owns the folder.
    `stop_signal` asks it to end, and `grace_s` later it is killed; `clear` are commands that end what lives outside of
    its own processes: a container."""

    command: Sequence[str]
    endpoint: Endpoint
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Sequence[Sequence[str]] = ()
    as_nobody: bool = False
    metrics_url: str = ""  # a Prometheus page, where it has one
    stop_signal: int = signal.SIGTERM
    grace_s: float = 5.0
    clear: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Installation:
    """What starts a service here where a recipe names nothing else.

    `version` is known without asking; else `ask` is a command that says it in a moment, in words that `pattern` finds.
    Where both are empty, nobody knows before the server runs."""

    path: Path
    means: Literal["program", "package"] = "program"
    version: str = ""
    ask: Sequence[str] = ()
    pattern: str = r"[0-9]+(?:\.[0-9]+)+[^\s,()]*"


def starting_option(options: type[Any], settings: Mapping[str, object]) -> Literal["program", "image"] | None:
    """Return by what the recipe itself says that the service is started, None where it leaves that to the machine.

    An option says so of itself by `json_schema_extra={"starts": "program"}` or `"image"`; an image goes first."""
    given = [field for name, field in options.model_fields.items() if settings.get(name)]
    words = {(field.json_schema_extra or {}).get("starts") for field in given}
    return "image" if "image" in words else "program" if "program" in words else None


def read_back_options(options: type[Any], facts: Mapping[str, str]) -> dict[str, str]:
    """Return what a server told of itself that a recipe can set, by its path below `settings`.

    An option that is a table says of itself by `json_schema_extra={"read_back": [...]}` which of the facts it sets."""
    marked = {
        name: (field.json_schema_extra or {}).get("read_back", ()) for name, field in options.model_fields.items()
    }
    return {f"{name}.{fact}": facts[fact] for name, told in marked.items() for fact in told if fact in facts}


class Service(Protocol):
    """One kind of server."""

    name: ClassVar[str]
    driver: ClassVar[str]  # the driver that speaks to it unless the recipe names another
    Options: ClassVar[type[Any]]

    def available(self, options: Any) -> str | None:
        """Return why it cannot be started here (which binary is missing, how to get it), or None. Starts nothing."""

    def installation(self) -> Installation | None:
        """Return what starts it here where a recipe names nothing else, or None. Starts nothing."""

    def start(self, site: ServiceSite) -> Start:
        """Write what the server needs into the folder and say how it is started."""

    def ready(self, endpoint: Endpoint, options: Any) -> str | None:
        """Ask the server once whether it really serves (a PING, a query, a model that is loaded).

        Called again and again until it does; must take at most a second.

        Returns:
            None when it serves, else what it still lacks.
        """

    def facts(self, endpoint: Endpoint, options: Any) -> Mapping[str, str]:
        """Return version and settings as the server itself tells them, for the result: configuration read back."""


@runtime_checkable
class ReadsFiles(Protocol):
    """A service that reads files of the user."""

    def check_files(self, options: Any, base: Path) -> None:
        """Refuse files that are missing or damaged. It starts nothing, and reads only the head of large files.

        Args:
            options: An instance of the service's Options.
            base: What relative paths in the recipe are relative to.

        Raises:
            InputError: It says which, with the key of the recipe.
        """
