"""What engines call the cards of a machine, and by which names each is found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from prony.errors import CapacityError
from prony.plugins.engines import torch as torch_engine
from prony.plugins.engines.openvino import find_openvino_device
from prony.ports.unit_names import split_unit, unit_aliases, unit_number


def fake_torch(cards: int) -> Any:
    """Return as much of PyTorch as says how many cards there are."""
    cuda = SimpleNamespace(device_count=lambda: cards, is_available=lambda: cards > 0)
    none = SimpleNamespace(is_available=lambda: False)
    return SimpleNamespace(
        cuda=cuda, backends=SimpleNamespace(mps=none), version=SimpleNamespace(cuda="13.0"), __version__="2.11"
    )


@pytest.fixture(autouse=True)
def cards_have_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_engine, "card_id", lambda _, device: f"GPU-a{str(device)[-1]}")


@pytest.mark.parametrize(
    ("unit", "cards", "device"),
    [
        ("cuda", 1, "cuda:0"),
        ("cuda-0", 1, "cuda:0"),
        ("cuda", 2, "cuda:0"),
        ("cuda-1", 2, "cuda:1"),
        ("cuda:GPU-a1", 2, "cuda:1"),
        ("cpu", 1, "cpu"),
    ],
)
def test_torch_finds_a_card_by_each_of_its_names(unit: str, cards: int, device: str) -> None:
    assert torch_engine._find(fake_torch(cards), unit) == device


@pytest.mark.parametrize(
    ("unit", "cards"), [("cuda-1", 1), ("cuda-2", 2), ("cuda", 0), ("cuda:GPU-b", 1), ("cpu-1", 1)]
)
def test_torch_takes_no_other_card_than_the_named_one(unit: str, cards: int) -> None:
    with pytest.raises(CapacityError) as refused:
        torch_engine._find(fake_torch(cards), unit)
    assert refused.value.code == "unit_unavailable"


def test_openvino_finds_its_only_gpu_by_number() -> None:
    core = SimpleNamespace(available_devices=["CPU", "GPU"])
    assert [find_openvino_device(core, unit) for unit in ("gpu", "gpu.0", "cpu")] == ["GPU", "GPU", "CPU"]
    several = SimpleNamespace(available_devices=["CPU", "GPU.0", "GPU.1"])
    assert [find_openvino_device(several, unit) for unit in ("gpu", "gpu.1")] == ["GPU.0", "GPU.1"]


def test_a_unit_is_read_by_its_parts() -> None:
    assert split_unit("cuda:9292ab31") == ("cuda", "GPU-9292ab31")
    assert split_unit("neural-engine") == ("neural-engine", None)
    assert unit_number("cuda-1") == ("cuda", 1)
    assert unit_aliases("cuda-1") == ("cuda-1",)
    assert unit_aliases("cuda-0")[:2] == ("cuda-0", "cuda")
