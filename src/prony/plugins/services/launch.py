"""Describe how a service is started: as a process of a program on this machine, or in a container.

Where the program cannot be found, a message says how to install it.
"""

from __future__ import annotations

import secrets
import shlex
import shutil
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from prony.errors import CapacityError, NotFoundError
from prony.model.base import Noun
from prony.model.container import check_image_name
from prony.model.workload import Scalar
from prony.ports.driver import Endpoint
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.containers import ENGINES, NO_ENGINE, POD, Box, ContainerEngine, engine_of_services
from prony.runner.engines import interpreter
from prony.runner.services.site import LOOPBACK
from prony.store.home import home


def find_program(names: Iterable[str], given: str | None = None, base: Path = Path()) -> Path | None:
    """Return the program that was given, or the first that PATH has or that lies beside this interpreter.

    `given` is a path, relative to `base`, where it has a slash in it; else a name."""
    if given is not None and "/" in given:
        path = (base / Path(given).expanduser()).absolute()
        return path if path.is_file() else None
    for name in (given,) if given is not None else names:
        # As the system finds it, and as a package put it beside the interpreter that runs Prony.
        place = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
        if place is not None:
            return Path(place).absolute()
    return None


def missing(names: Iterable[str], given: str | None, how: str) -> str | None:
    """Say that a program is not there and how to get it; None where it is, or where only the recipe's place tells."""
    if given is not None and "/" in given and not Path(given).expanduser().is_absolute():
        return None
    names = tuple(names)
    if find_program(names, given) is not None:
        return None
    if given is not None:
        return f"program not found: {given}; to fix this: {how}"
    return f"{' or '.join(names)} not found on PATH; to get it: {how}"


def _package_version(script: Path, package: str) -> str:
    """Return the version of a Python package from the environment that its script lies in; empty where none tells."""
    environment = script.resolve().parent.parent
    for folder in environment.glob(f"lib/python*/site-packages/{package}-*.dist-info"):
        return folder.name.removesuffix(".dist-info").rpartition("-")[2]
    return ""


def require_program(names: Iterable[str], given: str | None, base: Path) -> Path:
    """Return where the program lies; it must be there."""
    path = find_program(names, given, base)
    if path is None:
        name = given or " or ".join(names)
        raise NotFoundError(f"program not found: {name}", hint="set settings.program", code="no_program")
    return path


class EnginePackage(NamedTuple):
    """An interpreter that has an engine's package, and the package's version."""

    python: Path
    version: str


def find_engine_package(engine: str, package: str) -> EnginePackage | None:
    """Return the interpreter of an engine, where that has its package."""
    try:
        python = Path(interpreter(engine, home().engines))
    except CapacityError:  # it was added, and is gone
        return None
    for folder in python.parent.parent.glob(f"lib/python*/site-packages/{package}-*.dist-info"):
        return EnginePackage(python, folder.name.removesuffix(".dist-info").rpartition("-")[2])
    return None


class ServiceOptions(Noun):
    """What every service lets a recipe say."""

    program: str | None = Field(
        default=None,
        min_length=1,
        description="its program, a name or a path; default: the one on PATH",
        json_schema_extra={"path": "slash", "starts": "program"},
    )
    arguments: list[Scalar] = Field(
        default=[], description="extra arguments for its command line", json_schema_extra={"path": "words"}
    )
    environment: dict[str, Scalar] = Field(default={}, description="extra environment variables")
    before: list[str] = Field(default=[], description="commands to run before it starts")
    image: Annotated[str, Field(min_length=1), AfterValidator(check_image_name)] | None = Field(
        default=None,
        description="run this image in a container (podman, docker or apptainer) instead of a program",
        json_schema_extra={"path": "name", "starts": "image"},
    )
    container_arguments: list[Scalar] = Field(
        default=[],
        description="extra arguments for the engine's command (`podman run`), for example limits or GPUs",
        json_schema_extra={"path": "mounts"},
    )


@dataclass(frozen=True)
class LaunchedServer:
    """`names` are the program's, most wanted first; `words` its command line. `shared` are paths that it reads besides
    its folder. `entry`: in a container, the image's own entry point is replaced by the program; else it gets the words.
    `path`: the program, where it was looked for already."""

    names: Sequence[str]
    words: Sequence[str]
    endpoint: Endpoint
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Sequence[Sequence[str]] = ()
    as_nobody: bool = False
    metrics_path: str = ""
    stop_signal: int = signal.SIGTERM
    grace_s: float = 5.0
    shared: Sequence[Path] = ()
    entry: bool = True
    path: Path | None = None


def launch_text(value: Scalar) -> str:
    """Return a scalar of a recipe as a word of a command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def listen_address(site: ServiceSite) -> str:
    """Return where a server is to listen: a container's loopback cannot be reached from outside, and other machines
    reach none."""
    return "0.0.0.0" if site.options.image or site.is_shared else LOOPBACK


def lacking(names: Sequence[str], options: ServiceOptions, how: str) -> str | None:
    """Return why the server cannot be started here, or None."""
    if options.image is not None:
        return None if engine_of_services() else NO_ENGINE
    return missing(names, options.program, how)


def installation_of(
    names: Sequence[str],
    *,
    ask: Sequence[str] = ("--version",),
    pattern: str = Installation.pattern,
    package: str = "",
) -> Installation | None:
    """Return the program that PATH has, with the words that make it tell its version; `package` is the Python package
    that it is a script of, whose version is read and not asked for: it takes seconds to import."""
    path = find_program(names)
    if path is None:
        return None
    if package:
        version = _package_version(path, package)
        return Installation(path, "package" if version else "program", version)
    return Installation(path, ask=[str(path), *ask] if ask else (), pattern=pattern)


def start_of(server: LaunchedServer, site: ServiceSite) -> Start:
    """Return how the server is started, with what the recipe adds."""
    options: ServiceOptions = site.options
    words = [*server.words, *map(launch_text, options.arguments)]
    own = {name: launch_text(value) for name, value in options.environment.items()}
    asked = [shlex.split(line) for line in options.before]
    server = replace(server, words=words, environment={**server.environment, **own}, before=[*asked, *server.before])
    return _start_in_container(server, site, options.image) if options.image else _native(server, site)


def _native(server: LaunchedServer, site: ServiceSite) -> Start:
    path = server.path or require_program(server.names, site.options.program, site.base)
    return Start(
        command=[str(path), *server.words],
        endpoint=server.endpoint,
        environment=server.environment,
        before=server.before,
        as_nobody=server.as_nobody,
        metrics_url=_metrics_url(server),
        stop_signal=server.stop_signal,
        grace_s=server.grace_s,
    )


def _start_in_container(server: LaunchedServer, site: ServiceSite, image: str) -> Start:
    """The port and the paths are the same inside as outside, so that the server's command line is too."""
    found = engine_of_services()
    if found is None:
        raise CapacityError(
            NO_ENGINE,
            code="service_missing",
            hint="to run the program without a container, leave out workload.settings.image",
        )
    if found.name not in (POD, *ENGINES):
        return _start_by_apptainer(found, server, site, image)
    engine = found.path
    name = f"prony-{secrets.token_hex(6)}"
    port = site.port
    mounts = [f"--volume={site.folder}:{site.folder}", *(f"--volume={path}:{path}:ro" for path in server.shared)]
    # Names only: the values come from the engine's own environment, and no secret stands in a command line.
    variables = [f"--env={name}" for name in server.environment]
    entry = [f"--entrypoint={site.options.program or server.names[0]}"] if server.entry else []
    labels = ["--security-opt=label=disable"] if found.name == "podman" else []
    more = list(map(launch_text, site.options.container_arguments))
    outside = "0.0.0.0" if site.is_shared else LOOPBACK
    where = [f"--publish={outside}:{port}:{port}", *mounts, *variables, *entry, *labels, *more]
    return Start(
        command=[engine, "run", "--rm", f"--name={name}", *where, image, *server.words],
        endpoint=server.endpoint,
        environment=server.environment,
        before=server.before,
        metrics_url=_metrics_url(server),
        grace_s=server.grace_s,
        clear=[[engine, "rm", "--force", "--volumes", name]],
    )


def _start_by_apptainer(engine: ContainerEngine, server: LaunchedServer, site: ServiceSite, image: str) -> Start:
    """A process like any other, on this machine's network: it ends with its parent, and nothing is to be removed."""
    program = [site.options.program or server.names[0]] if server.entry else None
    shared = [(site.folder, str(site.folder), True), *((path, str(path), False) for path in server.shared)]
    box = Box(image, program, server.words, site.folder, shared, list(server.environment), writes=True)
    words = engine.argv(box)
    more = list(map(launch_text, site.options.container_arguments))
    at = words.index("--containall")
    return Start(
        command=[*words[:at], *more, *words[at:]],
        endpoint=server.endpoint,
        environment=server.environment,
        before=server.before,
        metrics_url=_metrics_url(server),
        grace_s=server.grace_s,
    )


def _metrics_url(server: LaunchedServer) -> str:
    return f"http://{LOOPBACK}:{server.endpoint.port}{server.metrics_path}" if server.metrics_path else ""
