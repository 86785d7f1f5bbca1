"""A recipe that asks for another machine is refused before anything is stored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from prony.app import local_device
from prony.app.bench import Bench
from prony.app.local_device import cached_models, check_place, facts_here
from prony.errors import CapacityError
from prony.model.device import EngineReport, EngineUnit
from prony.model.place import Place
from prony.recipe import loads
from prony.store.home import Home

RECIPE = "name: x\nworkload: {kind: model, model: 'zoo:tiny', engine: onnxruntime}\n"


class Inspector:
    """Answers for every engine that it is ready, and notes who was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, names: Sequence[str]) -> list[EngineReport]:
        self.asked += names
        unit = EngineUnit(engine="any", unit="cpu", description="", precisions=("fp32",))
        return [EngineReport(name=name, python="", state="ready", version="1.19", units=(unit,)) for name in names]


def test_a_run_elsewhere_is_refused_with_every_lack_and_nothing_is_stored(tmp_path: Path) -> None:
    place = "place: {where: {os: plan9, cpu.cores: '>=100000', label.rack: a}}"
    with Bench.open(Home(tmp_path)) as bench:
        with pytest.raises(CapacityError) as caught:
            bench.run(loads(RECIPE + place), on_start=lambda *_: None, on_event=lambda _: None)
        assert not bench.store.experiments()
    assert caught.value.code == "no_device"
    for lack in ("os plan9 (has ", "cpu.cores >=100000 (has ", "label.rack a (has none)"):
        assert lack in caught.value.message
    assert "--server" in caught.value.hint


def test_a_run_that_asks_for_nothing_looks_at_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def begun(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.delattr(local_device, "facts_of")
    with Bench.open(Home(tmp_path)) as bench, pytest.raises(KeyboardInterrupt):
        bench.run(loads(RECIPE), on_start=begun, on_event=lambda _: None)


@pytest.mark.parametrize(
    ("asked", "started"),
    [
        (["os", "cpu.cores", "label.engine", "package.onnxruntime"], set()),
        (["engine.onnxruntime"], {"onnxruntime"}),
        (["engine.onnxruntime.precision.cpu", "engine.torch"], {"onnxruntime", "torch"}),
        (["engine.onnx"], set()),
        (["engine.nobody"], set()),
    ],
)
def test_only_engines_that_are_asked_about_are_started(tmp_path: Path, asked: list[str], started: set[str]) -> None:
    inspect = Inspector()
    facts_here(asked, tmp_path, inspect)
    assert set(inspect.asked) == started


@pytest.mark.parametrize("fact", ["engine", "unit", "precision"])
def test_a_question_about_all_engines_starts_all(tmp_path: Path, fact: str) -> None:
    inspect = Inspector()
    facts_here([fact], tmp_path, inspect)
    assert {"onnxruntime", "openvino", "torch"} <= set(inspect.asked)


def test_a_machine_that_is_what_is_asked_for_passes(tmp_path: Path) -> None:
    place = Place(where={"engine.onnxruntime": ">=1.18", "unit": "cpu", "schemes": "zoo", "kinds": "model"})
    check_place(place, tmp_path, Inspector())


def test_cached_models_are_known_by_name_or_checksum(tmp_path: Path) -> None:
    digest = "ab" * 32
    for name in ("zoo/tiny-1.onnx", "zoo/.tiny-1.onnx.size", "zoo/bert-mini-2.pt2", f"blobs/sha256/{digest}/a.onnx"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert cached_models(tmp_path) == ("zoo:bert-mini", "zoo:tiny", f"sha256:{digest}")
    check_place(Place(where={"model": "zoo:tiny"}), tmp_path, Inspector())
    with pytest.raises(CapacityError, match="model zoo:mlp"):
        check_place(Place(where={"model": "zoo:mlp"}), tmp_path, Inspector())
