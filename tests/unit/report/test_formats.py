"""Every format renders every dossier, and an unknown one names the nearest."""

from __future__ import annotations

import pytest

from prony.errors import InputError
from prony.model.experiment_data import ExperimentData
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
    with pytest.raises(InputError, match=f"no report format '{written}'") as caught:
        render(empty, written)
    assert caught.value.hint == f"did you mean {nearest}?"


def test_the_full_word_markdown_is_understood(empty: ExperimentData) -> None:
    assert render(empty, "markdown") == render(empty, "md")
