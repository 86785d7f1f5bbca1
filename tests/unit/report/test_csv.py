"""One row a job, the same columns always, and nothing that a spreadsheet would execute."""

from __future__ import annotations

import csv
import io

import pytest

from prony.compat.sark.face.shown import sark_csv
from prony.compat.sark.nouns import CSV_COLUMNS
from prony.model.experiment_data import ExperimentData
from prony.report import render
from prony.report.exports.csv import COLUMNS


def rows(data: ExperimentData) -> list[dict[str, str]]:
    text = render(data, "csv")
    assert isinstance(text, str)
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_columns_are_the_same_with_and_without_jobs(full: ExperimentData, empty: ExperimentData) -> None:
    for data in (full, empty):
        text = render(data, "csv")
        assert isinstance(text, str)
        assert text.split("\r\n")[0] == ",".join(COLUMNS)
    assert len(set(COLUMNS)) == len(COLUMNS)


def test_numbers_keep_all_their_digits_beside_their_interval_and_count(full: ExperimentData) -> None:
    for row, entry in zip(rows(full), full.entries, strict=True):
        estimate = entry.summary.estimates["inference_ms.p50"]
        assert float(row["inference_ms.p50"]) == estimate.value
        assert float(row["inference_ms.p50.low"]) == estimate.low
        assert float(row["inference_ms.p50.high"]) == estimate.high
        assert int(row["inference_ms.p50.count"]) == estimate.count
        assert float(row["load_ms"]) == entry.summary.estimates["load_ms.p50"].value
        assert row["inference_ms.p99"] == ""


def test_no_text_cell_can_be_taken_for_a_formula(hostile: ExperimentData) -> None:
    found = rows(hostile)
    assert found[0]["title"].startswith("'=1+1")
    assert found[0]["device_name"].startswith("'@")
    for row in found:
        for cell in row.values():
            assert not cell.startswith(("=", "+", "@", "\t", "\r"))


def named(data: ExperimentData, text: str) -> str:
    """Return the cell that text becomes where a stranger chose it: as the name of a device."""
    entry = data.entries[0]
    device = entry.environment.device.model_copy(update={"name": text})
    environment = entry.environment.model_copy(update={"device": device})
    entries = (entry.model_copy(update={"environment": environment}), *data.entries[1:])
    return rows(data.model_copy(update={"entries": entries}))[0]["device_name"]


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1+1", "-1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1+1", "\r=1+1", "\n=1+1", " =1+1", "\u00a0@x",
     "＝1+1", "-", "--1"],
)  # fmt: skip
def test_text_that_a_spreadsheet_would_execute_is_marked_as_text(full: ExperimentData, text: str) -> None:
    assert named(full, text) == f"'{text.lstrip(chr(13))}"  # a lone carriage return acts on a terminal, and is left out


@pytest.mark.parametrize("text", ["-5", "+5", "-0.25", "-1e-9", "12", "NVIDIA H200", "a=b", "x-1", "", " spaced"])
def test_numbers_and_harmless_text_stay_as_they_are(full: ExperimentData, text: str) -> None:
    assert named(full, text) == text


def test_a_failed_job_has_its_reason_and_no_numbers(partial: ExperimentData) -> None:
    failed = rows(partial)[1]
    assert failed["state"] == "failed"
    assert "SIGKILL" in failed["failure"]
    assert failed["inference_ms.p50"] == ""


def test_no_cell_can_act_on_a_terminal(hostile: ExperimentData) -> None:
    text = render(hostile, "csv")
    assert isinstance(text, str)
    assert not set(text) & set(map(chr, (*range(9), *range(11, 13), *range(14, 32), *range(127, 160))))


def test_no_cell_of_a_campaign_can_act_on_a_terminal() -> None:
    text = sark_csv([dict.fromkeys(CSV_COLUMNS, "a\x1b[31m\x9b2Jb\x07")])
    assert "a[31m2Jb" in text
    assert not {"\x1b", "\x9b", "\x07"} & set(text)
