"""The main table of an HTML report fits the windows that people have."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser
from report.experiments import ENGINES, Maker, calibration, experiment

from prony.model.experiment_data import ExperimentData
from prony.report import render

# How much wider each scrolling table is than the room it has.
OVER = "() => [...document.querySelectorAll('.scroll')].map(one => one.scrollWidth - one.clientWidth)"
DEVICES = {"onnxruntime": "CPUExecutionProvider", "openvino": "CPU"}


def quickstart(folder: Path) -> ExperimentData:
    """Return two models on two engines, with every column that the quickstart has."""
    maker = Maker(folder)
    cells = [(model, engine) for model in ("zoo:mobilenet-v2", "zoo:bert-mini") for engine in ENGINES]
    entries = []
    for number, (model, engine) in enumerate(cells):
        made = maker.entry(number, {"workload.model": model, "workload.engine": engine})
        assert made.result.effective is not None
        did = made.result.effective.model_copy(update={"device": DEVICES[engine], "threads": 2})
        entries.append(made.model_copy(update={"result": made.result.model_copy(update={"effective": did})}))
    return ExperimentData(experiment=experiment(len(cells)), entries=tuple(entries), calibration=calibration())


@pytest.mark.slow
def test_no_table_of_the_quickstart_is_wider_than_a_window_of_1280_pixels(browser: Browser, tmp_path: Path) -> None:
    content = render(quickstart(tmp_path), "html")
    assert isinstance(content, str)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_content(content)
    headings = page.locator("table.results th").count()
    over = page.evaluate(OVER)
    page.close()
    assert headings >= 12
    assert [one for one in over if one > 0] == []
