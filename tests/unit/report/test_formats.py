"""Every format renders every dossier, and an unknown one names the nearest."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from prony.errors import InputError
from prony.model.experiment_data import ExperimentData
from prony.model.target import PlacementNote, PlacePhase
from prony.report import FORMATS, render


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("which", ["full", "partial", "empty", "hostile"])
def test_every_format_renders_every_dossier(format_name: str, which: str, request: pytest.FixtureRequest) -> None:
    data: ExperimentData = request.getfixturevalue(which)
    document = render(data, format_name)
    text = document if isinstance(document, str) else document.decode("utf-8")
    assert data.experiment.id in text or (format_name == "csv" and not data.entries)


@pytest.mark.parametrize(
    ("written", "nearest"), [("htlm", "html"), ("jsn", "json"), ("markdwon", "md"), ("unit", "junit")]
)
def test_an_unknown_format_names_the_nearest(empty: ExperimentData, written: str, nearest: str) -> None:
    with pytest.raises(InputError, match=f"unknown report format '{written}'") as caught:
        render(empty, written)
    assert caught.value.hint == f"did you mean {nearest}?"


def test_the_full_word_markdown_is_understood(empty: ExperimentData) -> None:
    assert render(empty, "markdown") == render(empty, "md")


def placed(data: ExperimentData) -> ExperimentData:
    """Return the same, measured as one job of a scheduler."""
    at = datetime(2026, 11, 1, tzinfo=UTC)
    note = PlacementNote(
        target="cluster", kind="slurm", key="k1", phase=PlacePhase.CLEARED, native_id="4711", nodes=("n1", "n2"),
        submitted_at=at, started_at=at + timedelta(seconds=14),
    )  # fmt: skip
    entries = tuple(
        entry.model_copy(update={"result": entry.result.model_copy(update={"placement": note})})
        for entry in data.entries
    )
    return data.model_copy(update={"entries": entries})


@pytest.mark.parametrize("format_name", ["html", "md"])
def test_where_jobs_were_placed_is_told_once(full: ExperimentData, format_name: str) -> None:
    text = render(placed(full), format_name)
    assert isinstance(text, str)
    told = "Measured at the target cluster (slurm), job 4711 on n1, n2, after 14 s in its queue."
    assert text.replace("\\", "").count(told) == 1
    assert "Measured at the target" not in str(render(full, format_name))


def test_a_placement_is_in_the_document(full: ExperimentData) -> None:
    first, *_ = json.loads(str(render(placed(full), "json")))["jobs"]
    assert (first["placement"]["native_id"], first["placement"]["nodes"]) == ("4711", ["n1", "n2"])
