"""Units of the torch engine on machines with one card and with two."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from prony.errors import CapacityError
from prony.plugins.engines.torch import Torch

FIRST, SECOND = "a00339a2-8f21-2924-e45d-061841e191c0", "b9d1770b-7dd0-3921-cb79-ac19a133c5a2"


def see_cards(monkeypatch: pytest.MonkeyPatch, *uuids: str) -> None:
    """Have PyTorch see these cards."""
    cuda = SimpleNamespace(
        is_available=lambda: bool(uuids),
        device_count=lambda: len(uuids),
        get_device_properties=lambda card: SimpleNamespace(uuid=uuids[int(str(card).removeprefix("cuda:"))]),
    )
    backends = SimpleNamespace(mps=SimpleNamespace(is_available=lambda: False))
    version = SimpleNamespace(cuda="13.0")
    there = SimpleNamespace(cuda=cuda, backends=backends, version=version, __version__="2.11.0+cu130")
    monkeypatch.setitem(sys.modules, "torch", there)


@pytest.mark.parametrize(
    ("unit", "device", "card"),
    [
        (f"cuda:GPU-{SECOND}", "cuda:1", SECOND),
        ("cuda:GPU-b9d1770b", "cuda:1", SECOND),
        ("cuda:b9d1770b", "cuda:1", SECOND),
        ("cuda-1", "cuda:1", SECOND),
        ("cuda", "cuda:0", FIRST),
        ("cuda-0", "cuda:0", FIRST),
    ],
)
def test_a_card_is_found_by_its_number_and_by_the_beginning_of_its_uuid(
    monkeypatch: pytest.MonkeyPatch, unit: str, device: str, card: str
) -> None:
    see_cards(monkeypatch, FIRST, SECOND)
    assert Torch().find_device(unit) == (device, f"GPU-{card}")


def test_a_card_that_is_not_there_is_refused_with_the_names_of_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    see_cards(monkeypatch, FIRST)
    with pytest.raises(CapacityError, match="no unit 'cuda:GPU-0000'") as caught:
        Torch().find_device("cuda:GPU-0000")
    assert f"available: cpu, cuda, cuda:GPU-{FIRST};" in caught.value.hint
    with pytest.raises(CapacityError, match="no unit 'cuda-1'") as caught:
        Torch().find_device("cuda-1")
    assert "available: cpu, cuda;" in caught.value.hint
