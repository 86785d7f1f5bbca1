"""A dotted path into options that are maps themselves."""

from __future__ import annotations

import pytest

from prony.recipe.schema_lookup import follow


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("workload.settings.config.appendfsync", ("workload", "settings", "config", "appendfsync")),
        ("workload.settings.config", ("workload", "settings", "config")),
        ("labels.team.name", ("labels", "team.name")),
    ],
)
def test_dots_reach_into_a_map_of_a_service_and_belong_to_a_free_name(path: str, keys: tuple[str, ...]) -> None:
    assert follow(path).keys == keys
