"""A path is looked up at once: as it is written, or with an id at its place."""

from __future__ import annotations

from typing import Any

import pytest

from prony.server.operation import Operation
from prony.server.problems import MethodError, RequestError
from prony.server.router import Directory

from .house import House


@pytest.fixture(scope="module")
def directory(house: House) -> Directory:
    return Directory(route for route in house.app.routes if isinstance(route, Operation))


def found(directory: Directory, method: str, path: str) -> tuple[str | None, dict[str, str]]:
    scope: dict[str, Any] = {"method": method, "path": path}
    return directory.find(scope).operation_id, scope["path_params"]


@pytest.mark.parametrize(
    ("method", "path", "operation", "ids"),
    [
        ("GET", "/api/v1/jobs", "jobs", {}),
        ("GET", "/api/v1/jobs/j1", "job", {"job_id": "j1"}),
        ("POST", "/api/v1/jobs/batch", "batch", {}),
        ("GET", "/api/v1/jobs/batch", "job", {"job_id": "batch"}),
        ("PUT", "/api/v1/leases/l1/result", "finish", {"lease_id": "l1"}),
        ("GET", "/docs", "docs", {}),
        ("GET", "/docs/page.js", "docs_asset", {"name": "page.js"}),
        ("GET", "/metrics", "metrics", {}),
        ("GET", "/metrics/targets", "metrics_targets", {}),
    ],
)
def test_a_path_leads_to_its_operation(
    directory: Directory, method: str, path: str, operation: str, ids: dict[str, str]
) -> None:
    assert found(directory, method, path) == (operation, ids)


@pytest.mark.parametrize(
    "path",
    ["", "/", "/api", "/api/v1", "/api/v1/", "/api/v1/jobs/", "/api/v1/jobs/a/b/c", "/api/v1/jobs/{}", "/docs/{}",
     "/api/v1/nouns", "//api/v1/jobs", "/docs/a/b"],
)  # fmt: skip
def test_a_path_that_leads_nowhere_is_refused(directory: Directory, path: str) -> None:
    with pytest.raises(RequestError) as refused:
        found(directory, "GET", path)
    assert refused.value.status == 404


def test_a_wrong_method_is_told_what_would_be_right(directory: Directory) -> None:
    with pytest.raises(MethodError) as refused:
        found(directory, "POST", "/api/v1/experiments/e1")
    assert refused.value.allow == "DELETE, GET, PATCH"
