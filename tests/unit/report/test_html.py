"""The page holds everything, refers to nothing outside itself, and runs nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from prony.model.experiment_data import ExperimentData
from prony.ports.metric_titles import metric_title
from prony.report import number, render
from prony.report.table import table

_VOID = {"meta", "br", "wbr", "hr", "col", "path", "use", "rect"}


class Page(HTMLParser):
    """Collects tags, attributes and text, and whether every tag was closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in _VOID:
            self.open.append(tag)
        self._note(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]


def page(data: ExperimentData) -> Page:
    text = render(data, "html")
    assert isinstance(text, str)
    return Page(text)


@pytest.fixture(scope="module")
def full_text(full: ExperimentData) -> str:
    text = render(full, "html")
    assert isinstance(text, str)
    return text


@pytest.fixture(scope="module")
def full_page(full_text: str) -> Page:
    return Page(full_text)


def assert_harmless(shown: Page) -> None:
    assert "script" not in shown.tags
    assert not {"iframe", "object", "embed", "link", "base", "form", "img"} & set(shown.tags)
    for tag, name, value in shown.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in {"src", "href", "xlink:href", "action", "srcset"}:
            assert value.startswith("#"), (tag, name, value)
        if name == "style":
            assert "url(http" not in value


def test_the_page_is_well_formed_and_refers_only_to_itself(full_text: str, full_page: Page) -> None:
    assert full_page.open == []
    assert_harmless(full_page)
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?\s*https?://", full_text)
    assert "@import" not in full_text
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", full_text)


def test_hostile_names_stay_text(hostile: ExperimentData) -> None:
    shown = page(hostile)
    assert shown.open == []
    assert_harmless(shown)
    assert "<script>alert(1)</script>" in shown.text


def test_ids_are_unique_and_every_link_has_its_target(full: ExperimentData, full_page: Page) -> None:
    shown = full_page
    assert len(shown.ids) == len(set(shown.ids))
    targets = {value[1:] for _, name, value in shown.attributes if name == "href"}
    assert targets <= set(shown.ids)


def test_every_estimate_of_every_job_is_on_the_page(full: ExperimentData, full_page: Page) -> None:
    shown = full_page
    for entry in full.entries:
        for key, estimate in entry.summary.estimates.items():
            written = number.written(estimate)
            assert key in shown.text
            assert metric_title(key) in shown.text
            assert f"{written.value} {written.unit}" in shown.text
            assert written.interval in shown.text


def test_every_cell_of_the_table_is_on_the_page(full: ExperimentData, full_page: Page) -> None:
    shown = full_page
    for row in table(full).rows:
        for cell in row.cells.values():
            assert cell.text in shown.text
            assert cell.interval in shown.text


def test_all_six_kinds_of_plots_are_drawn(full: ExperimentData, full_page: Page) -> None:
    shown = full_page
    assert shown.tags.count("svg") == 3 + 3 * len(full.entries)
    for name in (
        "Median inference.",
        "Cold against warm.",
        "Memory by phase.",
        "Runs.",
        "In order.",
        "Beside the run.",
    ):
        assert name in shown.text


def test_what_another_person_needs_to_repeat_it_is_there(full: ExperimentData, full_page: Page) -> None:
    shown = full_page
    entry = full.entries[0]
    assert entry.result.model is not None
    needed = (
        full.experiment.recipe_text.strip(), entry.result.model.sha256, entry.environment.device.hardware_id,
        entry.environment.device.software.kernel, "4b825dc642cb with changes", "harness_overhead_us",
        entry.result.inputs[0].shape_source, "prony rerun exp-1", "Container CPU quota",
    )  # fmt: skip
    for text in needed:
        assert text in shown.text


def test_a_failed_job_shows_its_phase_signal_and_hint(partial: ExperimentData) -> None:
    shown = page(partial)
    assert "in load: the engine's process was killed (SIGKILL)" in shown.text
    assert "raise limits.memory" in shown.text
    assert "1 of the 3 jobs planned has no result." in shown.text
    assert "not calibrated" in shown.text


def test_an_empty_experiment_has_a_page_too(empty: ExperimentData) -> None:
    shown = page(empty)
    assert "No job has a result yet" in shown.text
    assert "svg" not in shown.tags


def test_a_lost_sample_file_costs_its_plots_and_is_said(full: ExperimentData) -> None:
    entry = full.entries[0]
    lost = full.model_copy(update={"entries": (entry.model_copy(update={"folder": entry.folder / "gone"}),)})
    shown = page(lost)
    assert "Could not read samples" in shown.text
    assert shown.tags.count("svg") == 3


def test_the_same_dossier_gives_the_same_bytes(partial: ExperimentData) -> None:
    assert render(partial, "html") == render(partial, "html")
