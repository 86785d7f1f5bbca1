"""One row a job, the same columns always, and nothing that a spreadsheet would execute."""

from __future__ import annotations

import csv
import io

from prony.model.dossier import Dossier
from prony.report import render
from prony.report.csv import COLUMNS


def rows(dossier: Dossier) -> list[dict[str, str]]:
    text = render(dossier, "csv")
    assert isinstance(text, str)
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_columns_are_the_same_with_and_without_jobs(full: Dossier, empty: Dossier) -> None:
    for dossier in (full, empty):
        text = render(dossier, "csv")
        assert isinstance(text, str)
        assert text.split("\r\n")[0] == ",".join(COLUMNS)
    assert len(set(COLUMNS)) == len(COLUMNS)


def test_numbers_keep_all_their_digits_beside_their_interval_and_count(full: Dossier) -> None:
    for row, entry in zip(rows(full), full.entries, strict=True):
        estimate = entry.summary.estimates["inference_ms.p50"]
        assert float(row["inference_ms.p50"]) == estimate.value
        assert float(row["inference_ms.p50.low"]) == estimate.low
        assert float(row["inference_ms.p50.high"]) == estimate.high
        assert int(row["inference_ms.p50.count"]) == estimate.count
        assert float(row["load_ms"]) == entry.summary.estimates["load_ms.p50"].value
        assert row["inference_ms.p99"] == ""


def test_no_text_cell_can_be_taken_for_a_formula(hostile: Dossier) -> None:
    found = rows(hostile)
    assert found[0]["title"].startswith("'=1+1")
    assert found[0]["device_name"].startswith("'@")
    for row in found:
        for cell in row.values():
            assert not cell.startswith(("=", "+", "@", "\t", "\r"))


def test_a_failed_job_has_its_reason_and_no_numbers(partial: Dossier) -> None:
    failed = rows(partial)[1]
    assert failed["state"] == "failed"
    assert "SIGKILL" in failed["failure"]
    assert failed["inference_ms.p50"] == ""
