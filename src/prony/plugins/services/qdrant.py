"""Qdrant: configuration by its environment; ready when it says so itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from prony.model.workload import Scalar
from prony.plugins.services.asking import failure_at, find_json, pick_values
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
from prony.runner.services.site import LOOPBACK, free_ports

PROGRAMS = ("qdrant",)
HOW = "unpack a release from https://github.com/qdrant/qdrant/releases, or settings.image: docker.io/qdrant/qdrant"


class QdrantOptions(ServiceOptions):
    config: dict[str, Scalar] = Field(
        default={},
        description="its configuration by dotted name",
        examples=[{"storage.performance.max_search_threads": 4}],
        json_schema_extra={"path": "words"},
    )


class Qdrant:
    """Qdrant."""

    name: ClassVar[str] = "qdrant"
    driver: ClassVar[str] = "qdrant"
    Options: ClassVar[type[QdrantOptions]] = QdrantOptions

    def available(self, options: QdrantOptions) -> str | None:
        return lacking(PROGRAMS, options, HOW)

    def installation(self) -> Installation | None:
        return installation_of(PROGRAMS)

    def start(self, site: ServiceSite) -> Start:
        options: QdrantOptions = site.options
        settings: dict[str, Scalar] = {
            "telemetry_disabled": True,
            **options.config,
            "service.host": listen_address(site),
            "service.http_port": site.port,
            "service.grpc_port": free_ports(1)[0],
            "storage.storage_path": f"{site.folder}/storage",
            "storage.snapshots_path": f"{site.folder}/snapshots",
        }
        environment = {
            f"QDRANT__{name.upper().replace('.', '__')}": launch_text(value) for name, value in settings.items()
        }
        endpoint = Endpoint(
            host=LOOPBACK, port=site.port, password=launch_text(options.config.get("service.api_key", ""))
        )
        return start_of(LaunchedServer(PROGRAMS, [], endpoint, environment, metrics_path="/metrics"), site)

    def ready(self, endpoint: Endpoint, options: QdrantOptions) -> str | None:  # noqa: ARG002 - the port's signature
        return failure_at(endpoint, "/readyz")

    def facts(self, endpoint: Endpoint, options: QdrantOptions) -> Mapping[str, str]:  # noqa: ARG002 - the port's signature
        headers = {"api-key": endpoint.password} if endpoint.password else {}
        found = pick_values(find_json(endpoint, "/", headers), "version", "commit")
        telemetry = find_json(endpoint, "/telemetry?details_level=2", headers)
        system = pick_values(telemetry, "result.app.system.cores", "result.app.system.cpu_flags", "result.app.features")
        return found | {name.rpartition(".")[2]: value for name, value in system.items()}
