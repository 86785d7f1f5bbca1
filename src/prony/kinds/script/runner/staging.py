"""Prepare what surrounds a script's executions: files, sources, variables, container and server.

`$(NAME)` is filled in wherever it stands in a script's words and environment. The server that a script needs is started
here and asked whether it is ready.
"""

from __future__ import annotations

import http.client
import os
import re
import secrets
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from prony.emit import FILE
from prony.errors import CapacityError, InputError, PronyError, SutError
from prony.kinds.script.runner.plan import RANKS, ProcessPlace, Stream
from prony.kinds.script.runner.reading import Reading, Tail
from prony.kinds.script.runner.sources import FetchedSource, fetch_sources, find_changed, laid, replace_source_paths
from prony.kinds.script.schema import Readiness, ScriptServer, ScriptSource, ScriptWorkload, words_of
from prony.model.job import Job
from prony.model.result import Failure
from prony.ports.driver import Endpoint
from prony.ports.models import Progress
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.containers import (
    DAEMONS,
    WITH_APPTAINER,
    Box,
    ContainerEngine,
    find_engine,
    no_engine,
)
from prony.runner.context import RunContext, failure_of
from prony.runner.images import ReadyImage, prepare_image
from prony.runner.script_folders import (
    REFERENCE,
    copy_files,
    digest_of,
    files_of,
    find_scripts,
    root_of,
    unpack_archive,
)
from prony.runner.services.host import Wish, start_service
from prony.runner.services.site import LOOPBACK, is_port_taken

# Where the script runs: the folder with the copy of its files.
DIRECTORY = "PRONY_DIRECTORY"
_REFERENCE = re.compile(r"\$?\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
# What leads another interpreter astray, or is nobody's business but Prony's.
_UNWANTED = {"PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__", "PRONY_TOKEN"}


def _expand_variables(text: str, variables: Mapping[str, str]) -> str:
    """Return text with `$(NAME)` replaced by the variable; what is unknown stays, and `$$(NAME)` stands for itself."""

    def fill(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return match[0][1:]
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(fill, text)


def _environment_of(
    own: Mapping[str, str], served: Mapping[str, str], *, shims: Path, place: ProcessPlace
) -> dict[str, str]:
    """Return the variables of a script: those of Prony, those that its metrics need, how it finds its server, and its
    own over all."""
    found = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
    before = [str(shims), *filter(None, [found.get("PYTHONPATH")])]
    # At the end: where no `python` is on the path, Prony's own is better than none.
    path = [*filter(None, [found.get("PATH", os.defpath)]), str(Path(sys.executable).parent)]
    found |= {FILE: str(place.emit_folder), "PYTHONPATH": os.pathsep.join(before), "PATH": os.pathsep.join(path)}
    found |= {DIRECTORY: str(place.folder), **served}
    for name, value in own.items():
        found[name] = _expand_variables(value, found)
    if "PYTHONPATH" in own:
        found["PYTHONPATH"] = os.pathsep.join([str(shims), found["PYTHONPATH"]])
    return found


_CONNECT_S = 0.9
_GRACE_S = 10.0
_CLEAR_S = 60.0


@dataclass
class ServerOfScript:
    """One server, as the part of the runner that starts services knows them. `made` says how it is started."""

    name: ClassVar[str] = "the server"
    driver: ClassVar[str] = ""
    Options: ClassVar[type[Any]] = ScriptServer

    made: Callable[[ServiceSite], Start]
    now: Callable[[], float] = time.monotonic
    _next_s: float | None = field(default=None, init=False)
    _good: int = field(default=0, init=False)
    _bad: int = field(default=0, init=False)
    _lacks: str = field(default="no request was sent yet", init=False)

    def available(self, options: ScriptServer) -> str | None:
        """Refuse ports that somebody has: what listens there would be taken for the server."""
        taken = next((port for port in options.ports if is_port_taken(port)), None)
        return None if taken is None else f"another program uses port {taken}"

    def installation(self) -> Installation | None:
        """Only the script says what it is."""

    def start(self, site: ServiceSite) -> Start:
        return self.made(site)

    def ready(self, endpoint: Endpoint, options: ScriptServer) -> str | None:
        """Ask when it is time to, and say what is lacking until enough good answers came in a row."""
        if options.readiness is None:
            return _listens(endpoint)
        probe = options.readiness
        if self._next_s is None:
            self._next_s = self.now() + (probe.initial_delay or 0) / 1e9
        if self.now() < self._next_s:
            return self._lacks
        self._next_s = self.now() + probe.period / 1e9
        lacks = _answers(endpoint, probe, options.ports[0])
        self._good, self._bad = (self._good + 1, 0) if lacks is None else (0, self._bad + 1)
        self._lacks = lacks or f"{self._good} of {probe.success_threshold} good answers so far"
        if probe.failure_threshold is not None and self._bad >= probe.failure_threshold:
            raise SutError(
                f"the server was not ready after {self._bad} checks: {lacks}",
                hint="raise or remove workload.server.readiness.failure_threshold",
                code="service_timeout",
            )
        return None if self._good >= probe.success_threshold else self._lacks

    def facts(self, endpoint: Endpoint, options: ScriptServer) -> Mapping[str, str]:  # noqa: ARG002 (the seam's own)
        return {}


def variables_of(server: ScriptServer) -> dict[str, str]:
    """Return how the script finds the server."""
    first, *others = server.ports
    found = {"INFERENCE_SERVER_HOST": LOOPBACK, "INFERENCE_SERVER_PORT": str(first)}
    return found | {f"INFERENCE_SERVER_PORT_{number}": str(port) for number, port in enumerate(others, start=1)}


def _check_ports(server: ScriptServer) -> None:
    """Refuse before anything is started where a port is taken."""
    for port in server.ports:
        if is_port_taken(port):
            raise CapacityError(
                f"the server needs port {port}, but another program uses it",
                hint="end that program, or give the server other ports",
                code="server_port_taken",
            )


def _started_as(
    command: list[str], server: ScriptServer, environment: Mapping[str, str], clear: Sequence[Sequence[str]] = ()
) -> Start:
    """Return the start of a server by a command."""
    endpoint = Endpoint(host=LOOPBACK, port=server.ports[0])
    return Start(command=command, endpoint=endpoint, environment=environment, grace_s=_GRACE_S, clear=clear)


def _listens(endpoint: Endpoint) -> str | None:
    try:
        socket.create_connection((endpoint.host, endpoint.port), timeout=_CONNECT_S).close()
    except OSError as exc:
        return f"nothing listens on port {endpoint.port} yet: {exc}"
    return None


def _answers(endpoint: Endpoint, probe: Readiness, first_port: int) -> str | None:
    """Ask the page once; None where its status is good, else what is wrong."""
    port = probe.port or first_port
    timeout_s = probe.timeout / 1e9
    if probe.scheme == "https":
        # It asks whether somebody is there, not who: the certificate of a server under test is its own.
        context = ssl._create_unverified_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            endpoint.host, port, timeout=timeout_s, context=context
        )
    else:
        connection = http.client.HTTPConnection(endpoint.host, port, timeout=timeout_s)
    try:
        connection.request("GET", probe.path)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as exc:
        return f"{probe.path} does not answer: {exc or type(exc).__name__}"
    finally:
        connection.close()
    return None if 200 <= status < 400 else f"{probe.path} answered {status}"


_IN_DAEMON = "containers run under the daemon of {name}, so their use cannot be separated from that of other programs"
_START_S = 1800.0  # the longest that a server may take until it is ready


@dataclass
class Served:
    """The server while it serves. `reading` has what it told; `trouble` says why it is there no more."""

    reading: Reading
    tails: Sequence[Tail] = ()
    trouble: Callable[[], Failure | None] = lambda: None


class ScriptStage:
    """One job's. Prepared once; each execution then has it anew."""

    def __init__(self, job: Job, around: RunContext, *, scratch: Path, shims: Path) -> None:
        self.work: ScriptWorkload = job.work(ScriptWorkload)
        self.digest = ""
        self.notes: list[str] = []
        self._pins = job.images
        self._timeout_s = job.limits.timeout / 1e9
        self._around, self._scratch, self._shims = around, scratch, shims
        self._root = Path()
        self._files: list[Path] = []
        self._sources: list[FetchedSource] = []
        self._of_server: list[FetchedSource] = []
        self._engines: dict[str, ContainerEngine] = {}
        self._images: dict[str, ReadyImage] = {}
        self._label = secrets.token_hex(8)

    def prepare(self, progress: Callable[[ScriptSource], Progress]) -> None:
        """Bring everything to this disk; what cannot be had is told before anything is run."""
        if self.work.directory is not None and not self.work.copy_files:
            _check_own_folder(self.work.directory)
        elif self.work.directory is not None:
            path = find_scripts(self.work.directory, self._around.cache)
            folder = unpack_archive(path, self._scratch / "scripts") if path.suffix == ".tar" else path
            self._root, self._files = root_of(folder), files_of(folder)
            self.digest = digest_of(self._root, self._files)
        self._find_engines()
        if self.work.server is not None:
            _check_ports(self.work.server)
            self._of_server = fetch_sources(self.work.server.sources, self._around, progress)
        self._sources = fetch_sources(self.work.sources, self._around, progress)
        for thing in (*self._sources, *self._of_server):
            if not thing.is_vouched_for:
                self.notes.append(
                    f"{thing.source.path} was fetched without encryption or checksum: it may have been changed"
                )

    def _find_engines(self) -> None:
        """Choose what runs the images; a command that was written for one is not run on the machine itself instead."""
        if images := self.work.used_images:
            engine, reason = find_engine(WITH_APPTAINER)
            if engine is None:
                raise no_engine(images[0], reason)
            self._engines = dict.fromkeys(images, engine)
            self._images = {
                image: prepare_image(engine, image, self._around.cache, digest=self._pins.get(image))
                for image in images
            }
        for whose, one in (("", self.work), ("the server's ", self.work.server)):
            if one is not None and one.image is not None and not self.work.container:
                self.notes.append(
                    f"{whose}image {one.image} was not used: the command ran directly on the machine, as allowed"
                )

    @property
    def checksums(self) -> dict[str, str]:
        """Which bytes the script and its sources are, where that is known."""
        own = {"directory": self.digest} if self.digest else {}
        given = [thing.source for thing in (*self._sources, *self._of_server)]
        return own | {f"source {one.path}": one.checksum for one in given if one.checksum is not None}

    @property
    def images(self) -> dict[str, str]:
        """Which images its containers are made of, by the names under which a result keeps them."""
        return {f"image {name}": one.digest for name, one in self._images.items() if one.digest is not None}

    # One execution

    def set_up(self, place: ProcessPlace) -> None:
        """Fill the folder of an execution."""
        self._copy_scripts(place.folder)
        if self._engine_of(self.work) is None:
            laid(self._sources, place.folder)

    def _copy_scripts(self, folder: Path) -> None:
        copy_files(self._root, self._files, folder / (self.work.directory_name or ""))

    def variables(self, place: ProcessPlace) -> dict[str, str]:
        """Return the environment of the script's processes."""
        served = variables_of(self.work.server) if self.work.server is not None else {}
        own = _environment_of(self.work.environment, served, shims=self._shims, place=place)
        if self._engine_of(self.work) is None:
            return {name: self._point_to(value, place.folder) if name in self.work.environment else value
                    for name, value in own.items()}  # fmt: skip
        given = self.work.environment.get("PYTHONPATH")
        return own | {"PYTHONPATH": f"{self._shims}:{given}" if given else str(self._shims)}

    def argv(self, place: ProcessPlace, variables: Mapping[str, str]) -> list[str]:
        """Return the words of the script: its own, or those that run them in a container."""
        engine = self._engine_of(self.work)
        if engine is None:
            return [self._point_to(_expand_variables(word, variables), place.folder) for word in self.work.words]
        given = [FILE, DIRECTORY, "PYTHONPATH", *RANKS, *self.work.environment]
        given += variables_of(self.work.server) if self.work.server is not None else []
        shared = [(place.folder, str(place.folder), True), (place.logs, str(place.logs), True)]
        shared += [(self._shims, str(self._shims), False), *_list_mounts(self._sources)]
        return engine.argv(self._box(self.work, variables, place.folder, shared, given))

    @property
    def clearing(self) -> list[list[str]]:
        """The commands that remove what an execution may leave outside of its own processes."""
        engine = self._engine_of(self.work)
        return [] if engine is None else engine.clearing_of_label(self._label)

    def clear(self) -> None:
        """Remove what an execution may have left outside of its own processes."""
        for command in self.clearing:
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_CLEAR_S)

    def finish(self) -> None:
        """Look at what the script did to its sources."""
        for path in find_changed((*self._sources, *self._of_server)):
            self.notes.append(f"the script changed the fetched file {path}: it will be fetched again")

    @contextmanager
    def serving(self, place: ProcessPlace) -> Iterator[Served]:
        """Keep the server up, ready before the block begins and gone after it."""
        server = self.work.server
        if server is None:
            yield Served(Reading(()))
            return
        # Both of its streams go into one file.
        reading = Reading([metric.model_copy(update={"stream": None}) for metric in server.metrics])
        log = place.logs / f"{place.begin}.server.log"
        stream = Stream(log, "stderr")
        service = ServerOfScript(lambda site: self._start(server, site, place))
        most_s = min(_START_S, self._timeout_s)
        wish = Wish(log, self._around.base, most_s, self._around.stop_asked, server.ports[0])
        with start_service(service, server, wish) as running:
            yield Served(reading, [reading.follow_stream(stream)], lambda: _trouble(running.check))

    def _start(self, server: ScriptServer, site: ServiceSite, place: ProcessPlace) -> Start:
        self._copy_scripts(site.folder)
        own = {DIRECTORY: str(site.folder)}
        known = _environment_of({}, own, shims=self._shims, place=place)
        own |= {name: _expand_variables(value, known | own) for name, value in server.environment.items()}
        engine = self._engine_of(server)
        if engine is None:
            laid(self._of_server, site.folder)
            words = [*words_of(server.command or []), *words_of(server.arguments)]
            own = {name: replace_source_paths(value, self._of_server, site.folder) for name, value in own.items()}
            command = [
                replace_source_paths(_expand_variables(word, known | own), self._of_server, site.folder)
                for word in words
            ]
            return _started_as(command, server, own)
        shared = [(site.folder, str(site.folder), True), *_list_mounts(self._of_server)]
        box = self._box(server, known | own, site.folder, shared, list(own))
        name = f"prony-{secrets.token_hex(6)}"
        return _started_as(engine.argv(box, name), server, own, clear=engine.clearing(name))

    def _box(
        self, one: ScriptWorkload | ScriptServer, variables: Mapping[str, str], folder: Path,
        shared: Sequence[tuple[Path, str, bool]], names: Sequence[str],
    ) -> Box:  # fmt: skip
        def fill(words: str | list[str] | None) -> list[str] | None:
            return None if words is None else [_expand_variables(word, variables) for word in words_of(words)]

        return Box(
            image=self._images[one.image or ""].reference, command=fill(one.command),
            arguments=fill(one.arguments) or [], folder=folder if self._files else None, shared=shared,
            names=list(dict.fromkeys(names)), label=self._label,
        )  # fmt: skip

    @property
    def blind(self) -> str:
        """Why what the script uses cannot be told from what others use; empty where it can."""
        found = [self._engine_of(self.work), None if self.work.server is None else self._engine_of(self.work.server)]
        engines = [engine.name for engine in found if engine is not None]
        daemon = next((name for name in engines if name in DAEMONS), None)
        return "" if daemon is None else _IN_DAEMON.format(name=daemon)

    def _engine_of(self, one: ScriptWorkload | ScriptServer) -> ContainerEngine | None:
        return self._engines.get(one.image) if one.image is not None else None

    def _point_to(self, text: str, folder: Path) -> str:
        return replace_source_paths(text, self._sources, folder)


def _check_own_folder(directory: str) -> None:
    """Refuse to run in a folder that is not there, or is one that a server sent: that one belongs to every job."""
    if REFERENCE.fullmatch(directory):
        raise InputError(
            "workload.copy_files: false needs a folder on this machine, but this one came from a server",
            hint="remove copy_files: each run then gets a copy",
            code="no_directory",
        )
    if not Path(directory).is_dir():
        raise InputError(f"folder not found: {directory}", hint="check workload.directory", code="no_directory")


def _list_mounts(things: Sequence[FetchedSource]) -> list[tuple[Path, str, bool]]:
    """A home is root's in nearly every image."""
    return [(thing.path, thing.source.path.replace("~", "/root", 1).rstrip("/"), False) for thing in things]


def _trouble(check: Callable[[], None]) -> Failure | None:
    try:
        check()
    except PronyError as exc:
        return failure_of(exc, phase="measure")
    return None
