"""ChromaDB: `chroma run`; ready when its heartbeat beats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from prony.plugins.services.asking import failure_at, find_json, pick_values
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

PROGRAMS = ("chroma",)
HOW = "pip install chromadb in a separate environment, and set settings.program: ENVIRONMENT/bin/chroma"


class ChromaOptions(ServiceOptions):
    pass


class Chroma:
    """ChromaDB."""

    name: ClassVar[str] = "chroma"
    driver: ClassVar[str] = "chroma"
    Options: ClassVar[type[ChromaOptions]] = ChromaOptions

    def available(self, options: ChromaOptions) -> str | None:
        return lacking(PROGRAMS, options, HOW)

    def installation(self) -> Installation | None:
        return installation_of(PROGRAMS, package="chromadb")

    def start(self, site: ServiceSite) -> Start:
        words = ["run", "--host", listen_address(site), "--port", str(site.port), "--path", str(site.folder)]
        quiet = {"ANONYMIZED_TELEMETRY": "False"}
        return start_of(LaunchedServer(PROGRAMS, words, Endpoint(host=LOOPBACK, port=site.port), quiet), site)

    def ready(self, endpoint: Endpoint, options: ChromaOptions) -> str | None:  # noqa: ARG002 - the port's signature
        return failure_at(endpoint, "/api/v2/heartbeat")

    def facts(self, endpoint: Endpoint, options: ChromaOptions) -> Mapping[str, str]:  # noqa: ARG002 - the port's signature
        version = find_json(endpoint, "/api/v2/version")
        limits = pick_values(
            find_json(endpoint, "/api/v2/pre-flight-checks"), "max_batch_size", "supports_base64_encoding"
        )
        return {**limits, **({"version": version} if isinstance(version, str) else {})}
