"""MinIO: keys of its own for each run; ready when it takes an object and gives it back."""

from __future__ import annotations

import platform
import re
import secrets
import sys
from collections.abc import Mapping
from typing import ClassVar

from prony.plugins.services.asking import ask, failure_at
from prony.plugins.services.launch import (
    LaunchedServer,
    ServiceOptions,
    installation_of,
    lacking,
    launch_text,
    listen_address,
    start_of,
)
from prony.plugins.services.signing import cannot_store
from prony.ports.driver import Endpoint
from prony.ports.service import Installation, ServiceSite, Start
from prony.runner.services.site import LOOPBACK

PROGRAMS = ("minio",)
_BUILT = "arm64" if platform.machine().lower() in ("aarch64", "arm64") else "amd64"
HOW = (
    f"curl -O https://dl.min.io/server/minio/release/{sys.platform}-{_BUILT}/minio && chmod +x minio, "
    "or settings.image: quay.io/minio/minio"
)
_USER, _PASSWORD = "MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD"
_METRICS = "/minio/v2/metrics/cluster"


class MinioOptions(ServiceOptions):
    pass


class Minio:
    """MinIO, one node with one drive, and keys of its own for each run unless its environment has some."""

    name: ClassVar[str] = "minio"
    driver: ClassVar[str] = "s3"
    Options: ClassVar[type[MinioOptions]] = MinioOptions

    def available(self, options: MinioOptions) -> str | None:
        return lacking(PROGRAMS, options, HOW)

    def installation(self) -> Installation | None:
        return installation_of(PROGRAMS, ask=())

    def start(self, site: ServiceSite) -> Start:
        options: MinioOptions = site.options
        user = launch_text(options.environment.get(_USER) or secrets.token_hex(10))
        password = launch_text(options.environment.get(_PASSWORD) or secrets.token_hex(20))
        environment = {
            _USER: user,
            _PASSWORD: password,
            "MINIO_BROWSER": "off",
            "MINIO_PROMETHEUS_AUTH_TYPE": "public",
            "MINIO_UPDATE": "off",
        }
        words = ["server", "--quiet", "--address", f"{listen_address(site)}:{site.port}", str(site.folder)]
        endpoint = Endpoint(host=LOOPBACK, port=site.port, user=user, password=password)
        return start_of(LaunchedServer(PROGRAMS, words, endpoint, environment, metrics_path=_METRICS), site)

    def ready(self, endpoint: Endpoint, options: MinioOptions) -> str | None:  # noqa: ARG002 - the port's signature
        return failure_at(endpoint, "/minio/health/ready") or cannot_store(endpoint)

    def facts(self, endpoint: Endpoint, options: MinioOptions) -> Mapping[str, str]:  # noqa: ARG002 - the port's signature
        """Its metrics carry its version; there is no question that tells it."""
        found: dict[str, str] = {}
        for path in (_METRICS, "/minio/v2/metrics/node"):
            page = ask(endpoint, path, timeout_s=5).body.decode(errors="replace")
            for name in ("version", "commit"):
                match = re.search(rf'^minio_software_{name}_info\{{[^}}]*\b{name}="([^"]*)"', page, re.MULTILINE)
                if match:
                    found.setdefault(name, match[1])
        return found
