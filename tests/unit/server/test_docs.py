"""The page about the API names every event and every metric."""

from __future__ import annotations

import re
from pathlib import Path

from .house import House

PAGE = (Path(__file__).parents[3] / "docs" / "api.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without their quotes."""
    text = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_every_metric_is_told(house: House) -> None:
    house.client.get("/api/v1/health")
    kinds = re.findall(r"^# TYPE (prony_\w+) (\w+)", house.client.get("/metrics").text, re.MULTILINE)
    real = {name for name, _ in kinds if not name.endswith("_created")}
    assert {name for name, *_ in rows("Metrics")} == real


def test_every_event_is_told() -> None:
    assert [name for name, _ in rows("Live events")] == ["snapshot", "job", "progress", "experiment"]
