"""Any command: `{port}`, `{folder}` and `{base}` in it are filled in; ready when a port or a URL answers."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from pydantic import Field

from prony.errors import NotFoundError, about_key
from prony.load.endpoint import parse_endpoint
from prony.model.base import Noun
from prony.model.workload import Scalar
from prony.plugins.services import launch
from prony.plugins.services.asking import SilentError, ask, failure_at
from prony.plugins.services.launch import launch_text
from prony.ports.driver import Endpoint
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.services.site import with_own_programs

HOW = "start settings.command with a path or a program on PATH"
_TIMEOUT_S = 0.9


class CommandOptions(Noun):
    command: str | list[Scalar] = Field(
        min_length=1,
        description="the command to run, in the foreground",
        examples=["python server.py --port {port}"],
        json_schema_extra={"starts": "program"},
    )
    endpoint: str = Field(
        default="http://127.0.0.1:{port}", description="URL for requests", json_schema_extra={"path": "url"}
    )
    ready: str = Field(
        default="tcp",
        description="when it is ready: `tcp`: its port accepts connections; or a URL: it answers with success",
    )
    before: list[str] = Field(default=[], description="commands to run before it starts")
    environment: dict[str, Scalar] = Field(default={}, description="extra environment variables")
    version: str | None = Field(default=None, min_length=1, description="a URL path that returns its version")
    metrics_url: str | None = Field(default=None, min_length=1, description="its Prometheus metrics URL")
    as_nobody: bool = Field(default=False, description="run it as an ordinary user, because it does not run as root")
    grace: float = Field(default=5.0, ge=0, le=600, description="seconds it may take to stop")


class Command:
    """Any server that a command starts."""

    name: ClassVar[str] = "command"
    driver: ClassVar[str] = "http"
    Options: ClassVar[type[CommandOptions]] = CommandOptions

    def available(self, options: CommandOptions) -> str | None:
        if "command" not in options.model_fields_set:
            return None
        program = _split(options.command)[0]
        return None if "{" in program else launch.missing((), program, HOW)

    def installation(self) -> Installation | None:
        """Only a recipe says what it is."""

    def check_files(self, options: CommandOptions, base: Path) -> None:
        """Look for a program beside the recipe; where it is elsewhere, `available` has looked for it."""
        program = _split(options.command)[0] if "command" in options.model_fields_set else ""
        if "/" in program and "{" not in program and launch.find_program((), program, base) is None:
            with about_key("workload.settings.command"):
                raise NotFoundError(f"program not found: {program}", hint=HOW, code="no_program")

    def start(self, site: ServiceSite) -> Start:
        options: CommandOptions = site.options
        program, *words = [_fill_word(word, site) for word in _split(options.command)]
        return Start(
            command=[str(launch.require_program((), program, site.base)), *words],
            endpoint=parse_endpoint(_fill_word(options.endpoint, site), site.base),
            environment=_environment(options, site),
            before=[[_fill_word(word, site) for word in shlex.split(line)] for line in options.before],
            as_nobody=options.as_nobody,
            metrics_url=_fill_word(options.metrics_url or "", site),
            grace_s=options.grace,
        )

    def ready(self, endpoint: Endpoint, options: CommandOptions) -> str | None:
        if options.ready != "tcp":
            parts = urlsplit(options.ready.replace("{port}", str(endpoint.port)))
            where = Endpoint(host=parts.hostname or endpoint.host, port=parts.port or endpoint.port)
            return failure_at(where, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        try:
            _connect(endpoint)
        except OSError as exc:
            return f"nothing listens yet: {exc}"
        return None

    def facts(self, endpoint: Endpoint, options: CommandOptions) -> Mapping[str, str]:
        """What a command's server is called, only its writer can say; HTTP servers mostly name themselves."""
        if endpoint.path or not options.endpoint.startswith("http:"):
            return {}
        try:
            answer = ask(endpoint, options.version or "/")
        except SilentError:
            return {}
        found = {"server": answer.headers["server"]} if "server" in answer.headers else {}
        if options.version and answer.status == 200:
            found["version"] = answer.body[:200].decode(errors="replace").strip()
        return found


def _split(command: str | Sequence[Scalar]) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else [launch_text(word) for word in command]


def _environment(options: CommandOptions, site: ServiceSite) -> dict[str, str]:
    own = {name: _fill_word(launch_text(value), site) for name, value in options.environment.items()}
    return {"PATH": with_own_programs(os.environ.get("PATH", "")), **own}


def _fill_word(word: str, site: ServiceSite) -> str:
    """Return a word with what only this start knows; other braces stay as they are."""
    known = {"{port}": str(site.port), "{folder}": str(site.folder), "{base}": str(site.base.absolute())}
    for name, value in known.items():
        word = word.replace(name, value)
    return word


def _connect(endpoint: Endpoint) -> None:
    if endpoint.path:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_TIMEOUT_S)
            probe.connect(endpoint.path)
        return
    socket.create_connection((endpoint.host, endpoint.port), timeout=_TIMEOUT_S).close()
