"""`prony list` writes the fastest number of each experiment as `prony show` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from store.histories import record

from prony.cli.main import main
from prony.store import glance
from prony.store.home import Home
from prony.store.store import Store

ROW: dict[str, Any] = {
    "id": "e1", "name": "nightly", "state": "complete", "jobs_complete": 1, "job_count": 1,
    "created_at": "2026-11-01T03:00:00", "worst_grade": "valid", "headline_value": 12.5, "headline_unit": "ms",
    "headline_title": "tiny",
}  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(12.1, 12.9, "12.5 ms [12.1, 12.9]  tiny"), (12.5, 12.5, "12.5 ms  tiny"), (None, None, "12.5 ms  tiny")],
)
def test_a_number_that_never_varied_has_no_interval(
    low: float | None, high: float | None, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("PRONY_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(glance, "glance", lambda *_, **__: [ROW | {"headline_low": low, "headline_high": high}])
    assert main(["list"]) == 0
    assert text in capsys.readouterr().out


def test_a_plot_of_several_series_is_refused_as_json_too(
    prony_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store.open(Home(prony_home)) as store:
        for batch in (1, 2):
            record(store, batch, 1.0, batch=batch)
    plot = tmp_path / "x.svg"
    assert main(["history", "quick", "--plot", str(plot), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "ambiguous"
    assert not plot.exists()
    assert main(["history", "quick", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2
