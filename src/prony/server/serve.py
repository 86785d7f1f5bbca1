"""Run the server until a signal stops it: bind the address, hold the lock, write the address file."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import structlog
import uvicorn

from prony import __version__
from prony.app.access import OWNER, ensure_owner_token
from prony.app.fleet.context import FleetSettings
from prony.app.fleet.fleet import Fleet
from prony.errors import InputError, StoreError
from prony.ports.clock import SystemClock
from prony.ports.face import FaceOptions, OpenFace
from prony.server.app import create_app
from prony.server.ending import end_within
from prony.server.forwarded import Network
from prony.server.listening import BACKLOG, bind_at, is_loopback_at, start_listening, url_at
from prony.server.protocol import count_connections, protocol_for
from prony.store.home import Home, home, read_server_note, running_server, server_file
from prony.store.lock import try_file_lock
from prony.store.process_owner import this_process

if TYPE_CHECKING:
    from fastapi import FastAPI

# Longer than clients keep a connection that they do not use: else one might send into a connection that just closes.
_KEEP_ALIVE_S = 75
_GRACE_S = 5
_MOST_OPENERS = 4
_MOST_READERS = 4
_WARNED = (
    "lease_lost", "maintenance_failed", "background_task_failed", "not_judged", "not_delivered", "not_exported"
)  # fmt: skip
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_log = structlog.get_logger("prony.server")


@dataclass(frozen=True)
class Options:
    host: str = "127.0.0.1"
    port: int = 7337
    database: str = ""
    lease_ttl_s: float = 30.0
    no_auth: bool = False
    trusted_proxies: tuple[Network, ...] = ()
    alarm_window_s: float = 10.0
    confirm_runs_per_day: int = 100
    scripts_quota_bytes: int = FleetSettings.scripts_quota_bytes
    url: str = ""
    faces: tuple[FaceOptions, ...] = ()
    prometheus: str = ""
    grafana: str = ""
    otlp_url: str = ""
    export_to: tuple[str, ...] = ()


@dataclass(frozen=True)
class Serving:
    """Where a server is, who may do what there, and the link that logs a browser in; none where nobody is asked.

    `is_local`: only this machine can connect. `face_addresses` and `face_lines` tell of the faces beside its own.
    """

    url: str
    home: Path
    is_local: bool
    login_link: str = ""
    trusted_proxies: tuple[Network, ...] = ()
    face_addresses: Mapping[str, str] = field(default_factory=dict)
    face_lines: tuple[str, ...] = ()

    @property
    def is_open(self) -> bool:
        return not self.login_link


def serve(options: Options, say: Callable[[Serving], None]) -> int:
    """Serve until a signal comes; return 0, or 130 after Ctrl-C. `say` is told when requests are taken."""
    os.umask(0o077)  # whatever it writes is its owner's alone
    place = home().create()
    with ExitStack() as stack:
        listening = stack.enter_context(bind_at(options.host, options.port))
        is_local = is_loopback_at(listening)
        if options.no_auth and not is_local:
            raise InputError(
                f"--no-auth makes everybody an admin, and {options.host} can be reached from outside of this machine",
                hint="leave out --no-auth, or use --host 127.0.0.1",
                code="no_auth_beyond_loopback",
            )
        if not options.database.startswith("postgresql"):
            stack.enter_context(_alone(place))
        url = url_at(options.host, listening)
        faces = [stack.enter_context(asked.open()) for asked in options.faces]
        settings = FleetSettings(
            ttl_s=options.lease_ttl_s,
            asks_tokens=not options.no_auth,
            openers=min(_MOST_OPENERS, os.cpu_count() or 1),
            readers=min(_MOST_READERS, os.cpu_count() or 1),
            alarm_window_s=options.alarm_window_s,
            confirm_runs_per_day=options.confirm_runs_per_day,
            scripts_quota_bytes=options.scripts_quota_bytes,
            url=options.url or url,
            prometheus=options.prometheus,
            grafana=options.grafana,
            otlp_url=options.otlp_url,
            export_to=options.export_to,
        )
        fleet = Fleet.open(place, url=options.database, settings=settings)
        warned = {*_WARNED, *(word for face in faces for word in face.warnings)}
        fleet.context.hooks.append(partial(_note, warned=warned))
        _raise_limit()
        secret = "" if options.no_auth else ensure_owner_token(place, fleet.access)
        app = create_app(
            fleet, open_to_all=options.no_auth, owner_token=secret,
            proxies=options.trusted_proxies, public_url=options.url,
        )  # fmt: skip
        link = "" if options.no_auth else app.state.logins.make_link(OWNER).at(url)
        serving = Serving(
            url,
            place.root,
            is_local,
            link,
            options.trusted_proxies,
            {name: address for face in faces for name, address in face.addresses.items()},
            tuple(line for face in faces for line in face.lines),
        )
        for number in _SIGNALS:
            stack.callback(signal.signal, number, signal.getsignal(number))
        # Not earlier: a command that came before the owner's token is written would be told that it needs one.
        start_listening(listening, options.host, options.port)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            begin = partial(stack.enter_context, _write_address(serving, place, say))
            return runner.run(_run(fleet, app, listening, begin, partial(_remove_address, place), faces))


async def _run(
    fleet: Fleet,
    app: FastAPI,
    listening: socket.socket,
    on_start: Callable[[], object],
    on_force: Callable[[], None],
    faces: Sequence[OpenFace],
) -> int:
    connections = count_connections()
    config = uvicorn.Config(
        app,
        http=protocol_for(connections),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # believed from named proxies alone, by our own edge
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = Server(config, on_start=on_start, on_end=app.state.waits.close, on_force=on_force)
    await fleet.start()
    try:
        async with AsyncExitStack() as stack:
            for face in faces:
                await stack.enter_async_context(face.serve(fleet, connections))
            await server.serve(sockets=[listening])
    finally:
        await fleet.stop()
    _log.info("stopped")
    return 130 if server.ended_by == signal.SIGINT else 0


class Server(uvicorn.Server):
    """Tells when it has begun; lets those who wait go before it waits for them; ends without killing its process.

    A second signal makes it wait for nobody. `on_force` is called before it ends without all that usually follows.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        on_start: Callable[[], object],
        on_end: Callable[[], None],
        on_force: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._on_start = on_start
        self._on_end = on_end
        self._on_force = on_force
        self.ended_by: int | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_end()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own raises the signal again at the end, and what follows here would never run.
        for number in _SIGNALS:
            signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            # The store is still to be closed, which may take a while; an exception at a second Ctrl-C would cut that
            # short anywhere, and leave the address behind.
            for number in _SIGNALS:
                signal.signal(number, self._die)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.ended_by is None:
            self.ended_by = sig
            end_within(at_last=self._on_force)
        else:
            self.force_exit = True
        super().handle_exit(sig, frame)

    def _die(self, sig: int, frame: FrameType | None) -> None:
        del frame
        self._on_force()
        signal.signal(sig, signal.SIG_DFL)
        signal.raise_signal(sig)


@contextmanager
def _alone(place: Home) -> Iterator[None]:
    """Hold the home for this server; what SQLite keeps is one process's."""
    with try_file_lock(place.root / "server.lock") as is_taken:
        if not is_taken:
            known = running_server(place)
            where = f" at {known}" if known else ""
            raise StoreError(
                f"another server{where} uses the home {place.root}",
                hint="stop it, set PRONY_HOME to another folder, or use PostgreSQL with --database",
                code="server_running",
            )
        yield


@contextmanager
def _write_address(serving: Serving, place: Home, say: Callable[[Serving], None]) -> Iterator[None]:
    """Leave word in the home where this server is, for as long as it is there."""
    path = server_file(place)
    said: dict[str, object] = {
        "url": serving.url,
        "pid": os.getpid(),
        "process": asdict(this_process()),
        "started_at": SystemClock().now().isoformat(),
        "version": __version__,
        **serving.face_addresses,
    }
    fresh = path.with_name(f".server.json.{os.getpid()}")
    fresh.write_text(json.dumps(said) + "\n")
    fresh.replace(path)
    say(serving)
    try:
        yield
    finally:
        _remove_address(place)


def _remove_address(place: Home) -> None:
    """Take the file away, unless another server has written its own meanwhile."""
    note = read_server_note(place)
    if note is not None and note.process == this_process():
        server_file(place).unlink(missing_ok=True)


def _note(happened: str, facts: dict[str, object], *, warned: Set[str]) -> None:
    if happened in warned:
        _log.warning(happened, **facts)
    elif happened == "finished":  # of which there may be thousands a second
        _log.debug(happened, **facts)
    else:
        _log.info(happened, **facts)


def _raise_limit() -> None:
    """Allow as many connections as the system lets us have: the usual limit is less than a large fleet."""
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # a system may promise more than it gives
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop
