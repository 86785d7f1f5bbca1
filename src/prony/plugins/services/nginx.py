"""nginx: a static file of a size, or a reverse proxy; its configuration is made here and read back by `nginx -T`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from prony.model.quantity import SizeBytes
from prony.model.workload import Scalar
from prony.plugins.services import launch
from prony.plugins.services.asking import SilentError, ask, failure_at
from prony.plugins.services.launch import (
    LaunchedServer,
    ServiceOptions,
    installation_of,
    lacking,
    launch_text,
    listen_address,
    start_of,
)
from prony.ports.driver import Endpoint
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.services.site import LOOPBACK

PROGRAMS = ("nginx", "/usr/sbin/nginx")  # an ordinary user's PATH seldom has sbin
HOW = "apt-get install nginx-light"
_STATUS = "/prony-status"
_SETTING = re.compile(r"^\s*(\w+)\s+([^;{}]+);", re.MULTILINE)
_CONFIGURATION = """\
daemon off;
pid {folder}/nginx.pid;
error_log stderr warn;
worker_processes {workers};
events {{
    worker_connections {connections};
}}
http {{
    access_log off;
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{settings}
    server {{
        listen {bind}:{port} reuseport backlog=4096;
        location = {status} {{
            stub_status;
        }}
        location / {{
            {serves}
        }}
    }}
}}
"""
_PROXIES = 'proxy_pass {upstream}; proxy_http_version 1.1; proxy_set_header Connection "";'


class NginxOptions(ServiceOptions):
    size: SizeBytes = Field(
        default=1024, description="size of the file at `/file` and at `/`", json_schema_extra={"default": "1KiB"}
    )
    proxy: str | None = Field(
        default=None, pattern=r"^https?://[^\s;{}]+$", description="a URL that every request is forwarded to"
    )
    workers: int | None = Field(default=None, ge=1, description="worker processes; default: one per core")
    connections: int = Field(default=16384, ge=16, le=1_000_000, description="most connections per worker")
    config: dict[str, Scalar] = Field(
        default={}, description="extra directives of its `http` block", json_schema_extra={"path": "words"}
    )


class Nginx:
    """nginx, with a file of a size, or as a reverse proxy."""

    name: ClassVar[str] = "nginx"
    driver: ClassVar[str] = "http"
    Options: ClassVar[type[NginxOptions]] = NginxOptions

    def __init__(self) -> None:
        self._reading: list[str] = []

    def available(self, options: NginxOptions) -> str | None:
        return lacking(PROGRAMS, options, HOW)

    def installation(self) -> Installation | None:
        return installation_of(PROGRAMS, ask=("-v",))

    def start(self, site: ServiceSite) -> Start:
        options: NginxOptions = site.options
        configuration = site.folder / "nginx.conf"
        configuration.write_text(_write_configuration(site))
        files = site.folder / "files"
        files.mkdir()
        for name in ("file", "index.html"):
            (files / name).write_bytes(b"x" * options.size)
        words = ["-e", "stderr", "-p", str(site.folder), "-c", str(configuration)]
        endpoint = Endpoint(host=LOOPBACK, port=site.port)
        # Root's workers would become somebody who may not read root's folder.
        start = start_of(LaunchedServer(PROGRAMS, words, endpoint, as_nobody=True, path=_path(site)), site)
        self._reading = [] if options.image else [*start.command, "-T"]
        return start

    def ready(self, endpoint: Endpoint, options: NginxOptions) -> str | None:
        if options.proxy is not None:
            return failure_at(endpoint, _STATUS)
        try:
            answer = ask(endpoint, "/file")
        except SilentError as exc:
            return str(exc)
        whole = answer.status == 200 and len(answer.body) == options.size
        return None if whole else f"/file answered {answer.status} with {len(answer.body)} bytes"

    def facts(self, endpoint: Endpoint, options: NginxOptions) -> Mapping[str, str]:  # noqa: ARG002 - the port's signature
        """A container's configuration is read back from its answers only."""
        server = ask(endpoint, _STATUS).headers.get("server", "")
        version = {"version": server.partition("/")[2]} if "/" in server else {}
        if not self._reading:
            return version
        done = subprocess.run(self._reading, capture_output=True, text=True, check=False, timeout=10)
        folder = self._reading[self._reading.index("-p") + 1]
        told = {name: value.strip() for name, value in _SETTING.findall(done.stdout) if folder not in value}
        return {**told, **version}


def _write_configuration(site: ServiceSite) -> str:
    """Return the text of its configuration."""
    options: NginxOptions = site.options
    root = f"root {site.folder}/files; index index.html;"
    return _CONFIGURATION.format(
        folder=site.folder,
        workers=options.workers or "auto",
        connections=options.connections,
        settings="\n".join(f"    {name} {_directive(value)};" for name, value in options.config.items()),
        bind=listen_address(site),
        port=site.port,
        status=_STATUS,
        serves=_PROXIES.format(upstream=options.proxy) if options.proxy else root,
    )


def _directive(value: Scalar) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return launch_text(value)


def _path(site: ServiceSite) -> Path | None:
    return None if site.options.image else launch.require_program(PROGRAMS, site.options.program, site.base)
