"""The page about the API tells every operation with its path and role, every event and every metric."""

from __future__ import annotations

import re
from pathlib import Path

from prony.server.auth import ROLES
from prony.server.operation import Operation

from .house import House

PAGE = (Path(__file__).parents[3] / "docs" / "api.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without their quotes."""
    text = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_every_operation_is_told_with_its_request_and_role(house: House) -> None:
    told = {}
    for name, request, role in rows("Operations"):
        method, path = request.partition("`")[0].split()
        told[name] = (method, path.partition("?")[0], role)
    real = {}
    for route in house.app.routes:
        assert isinstance(route, Operation)
        if route.include_in_schema:
            path = re.sub(r"{\w+}", "{id}", route.path.removeprefix("/api/v1"))
            needed = ROLES[route.operation_id or ""]
            real[route.operation_id] = (next(iter(route.methods or ())), path, needed.value if needed else "none")
    assert told == real


def test_every_parameter_of_a_list_is_told(house: House) -> None:
    document = house.app.openapi()
    asked = {name: request.partition("?")[2] for name, request, _ in rows("Operations")}
    for methods in document["paths"].values():
        for operation in methods.values():
            real = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
            told = asked[operation["operationId"]]
            assert set(real) == (set(told.split("&")) if told else set()), operation["operationId"]


def test_every_metric_is_told(house: House) -> None:
    house.client.get("/api/v1/health")
    kinds = re.findall(r"^# TYPE (prony_\w+) (\w+)", house.client.get("/metrics").text, re.MULTILINE)
    real = {name for name, _ in kinds if not name.endswith("_created")}
    assert {name for name, _ in rows("Metrics")} == real


def test_every_event_is_told() -> None:
    assert [name for name, _ in rows("Live events")] == ["snapshot", "job", "progress", "experiment"]
