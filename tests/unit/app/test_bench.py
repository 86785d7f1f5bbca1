"""The use cases, where they meet what may come in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.app import bench as bench_module
from prony.app.bench import Bench
from prony.model.experiment import Experiment, ExperimentState
from prony.recipe import loads
from prony.store.home import Home

RECIPE = "name: x\nworkload: {kind: model, model: 'zoo:tiny', engine: onnxruntime}\n"


def test_a_stop_before_the_runner_is_there_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_module, "detect", stop)
    begun: list[Experiment] = []
    with Bench.open(Home(tmp_path)) as bench:
        with pytest.raises(KeyboardInterrupt):
            bench.run(
                loads(RECIPE, name="x.yaml"),
                on_start=lambda experiment, _: begun.append(experiment),
                on_event=lambda _: None,
            )
        assert bench.store.experiment(begun[0].id).state is ExperimentState.PARTIAL
