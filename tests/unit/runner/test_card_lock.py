"""One job at a time measures on a card, whoever started it."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.runner import card_lock
from prony.runner.card_lock import card_of_unit, hold_card, visible_cards

UUIDS = ["GPU-aaa1", "GPU-aab2", "GPU-ccc3"]


@pytest.mark.parametrize(
    ("unit", "environment", "card"),
    [
        ("cuda", {}, "GPU-aaa1"),
        ("cuda-2", {}, "GPU-ccc3"),
        ("tensorrt", {}, "GPU-aaa1"),
        ("cuda-3", {}, None),
        ("cuda:GPU-c", {}, "GPU-ccc3"),
        ("cuda:aab", {}, "GPU-aab2"),
        ("cuda:GPU-aa", {}, None),
        ("cuda-1", {"CUDA_VISIBLE_DEVICES": "2,0"}, "GPU-aaa1"),
        ("cuda", {"CUDA_VISIBLE_DEVICES": "GPU-ccc3"}, "GPU-ccc3"),
        ("cuda", {"CUDA_VISIBLE_DEVICES": ""}, None),
        ("cuda", {"CUDA_VISIBLE_DEVICES": "MIG-1"}, None),
        ("cuda-1", {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, None),
        ("cpu", {}, None),
        ("directml", {}, None),
    ],
)
def test_the_card_of_a_unit_is_known_before_an_engine_starts(
    unit: str, environment: dict[str, str], card: str | None
) -> None:
    assert card_of_unit(unit, UUIDS, environment) == card


@pytest.mark.parametrize(
    ("visible", "cards"),
    [(None, UUIDS), ("2,0", ["GPU-ccc3", "GPU-aaa1"]), ("", []), ("GPU-ccc", ["GPU-ccc3"]), ("1,7,0", ["GPU-aab2"])],
)
def test_only_cards_that_engines_see_are_reported(visible: str | None, cards: list[str]) -> None:
    assert visible_cards(UUIDS, {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}) == cards


def test_a_card_that_is_held_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prony.runner.card_lock.tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(card_lock, "handles", lambda: [0, 1])
    monkeypatch.setattr(card_lock, "read_uuid", lambda _, handle: UUIDS[handle])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    told: list[str] = []

    def ask(unit: str) -> list[str]:
        with hold_card(unit, lambda: bool(told), lambda: told.append(unit)):
            return told

    with hold_card("cuda", lambda: False, lambda: told.append("never")):
        assert ask("cuda-1") == []
        assert ask("cuda:GPU-aaa1") == ["cuda:GPU-aaa1"]
    told.clear()
    assert ask("cuda-0") == []
