"""Requests leave as JSON lines, CSV, HdrHistogram's formats and MLPerf's logs, and nothing is lost on the way."""

from __future__ import annotations

import base64
import csv
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.errors import InputError, NotFoundError
from prony.instruments.samples import SAMPLES
from prony.model.experiment_data import ExperimentData
from prony.report.exports.formats import EXPORTS, export_requests
from prony.report.exports.hdr import Histogram, highest, lowest, percentile_text, places
from report import load_experiments


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> ExperimentData:
    return load_experiments.one_load(tmp_path_factory.mktemp("one"))


def samples(data: ExperimentData) -> pl.DataFrame:
    return pl.read_parquet(data.entries[0].folder / SAMPLES)


def test_json_lines_hold_every_column_of_every_request(one: ExperimentData, tmp_path: Path) -> None:
    (path,) = export_requests(one, "requests-jsonl", tmp_path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    frame = samples(one)
    assert len(rows) == frame.height
    assert rows[0].keys() == {"job_id", *frame.columns}
    assert rows[3]["token_ns"] == frame["token_ns"][3].to_list()


def test_csv_has_latencies_of_successes_only_and_no_formula(one: ExperimentData, tmp_path: Path) -> None:
    (path,) = export_requests(one, "csv", tmp_path)
    with path.open(newline="") as sink:
        rows = list(csv.DictReader(sink))
    assert len(rows) == samples(one).height
    assert {row["cause"] for row in rows if not row["e2e_ms"]} == {"status"}
    assert {row["operation"] for row in rows} == {"chat", "'=embed|<b>"}
    first = next(row for row in rows if row["cause"] == "ok")
    assert float(first["e2e_ms"]) == pytest.approx((int(first["end_ns"]) - int(first["begin_ns"])) / 1e6)
    assert float(first["ttft_ms"]) < float(first["e2e_ms"])
    assert first["token_pieces"] == "6"


def test_percentile_text_ends_at_everything(one: ExperimentData, tmp_path: Path) -> None:
    paths = export_requests(one, "hdr", tmp_path)
    assert [path.name for path in paths] == [*(f"job-0-run{run}.hgrm" for run in range(3)), "job-0.hlog"]
    lines = paths[0].read_text().splitlines()
    assert lines[0].split() == ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
    body = [line.split() for line in lines[2:-3]]
    shares, counts = [float(cells[1]) for cells in body], [int(cells[2]) for cells in body]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert len(body[-1]) == 3
    assert counts == sorted(counts)
    assert f"{counts[-1]}]" in lines[-2]


def test_the_log_has_every_success(one: ExperimentData, tmp_path: Path) -> None:
    log = export_requests(one, "hdr", tmp_path)[-1].read_text().splitlines()
    assert log[0] == "#[Histogram log format version 1.3]"
    total = sum(sum(decoded(line.split(",")[-1]).values()) for line in log[3:])
    assert total == int((samples(one)["cause"] == "ok").sum())
    assert {line.split(",")[0] for line in log[3:]} == {"Tag=run0", "Tag=run1", "Tag=run2"}


def decoded(text: str) -> dict[int, int]:
    """Read an encoded histogram as its format says: place and count."""
    raw = base64.b64decode(text)
    cookie, length = struct.unpack(">ii", raw[:8])
    assert (cookie, length) == (0x1C849314, len(raw) - 8)
    body = zlib.decompress(raw[8:])
    inner, size, offset, digits, least, most, ratio = struct.unpack(">iiiiqqd", body[:40])
    assert (inner, size, offset, digits, least, ratio) == (0x1C849313, len(body) - 40, 0, 3, 1, 1.0)
    assert most >= 3_600_000_000_000
    found, place, at = {}, 0, 40
    while at < len(body):
        value = shift = 0
        while True:
            byte = body[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        number = (value >> 1) ^ -(value & 1)
        if number > 0:
            found[place] = number
        place += -number if number < 0 else 1
    return found


@given(st.lists(st.integers(0, 10**13), min_size=1, max_size=200))
def test_every_value_is_found_again_to_one_part_in_a_thousand(values: list[int]) -> None:
    numbers = np.array(values)
    where = places(numbers)
    assert np.all(lowest(where) <= numbers)
    assert np.all(numbers <= highest(where))
    assert np.all(highest(where) - lowest(where) <= numbers / 1000)
    histogram = Histogram(numbers)
    assert decoded(histogram.encode()) == {
        int(place): int(np.count_nonzero(where == place)) for place in np.unique(where)
    }
    assert histogram.total == len(values)


def test_places_follow_each_other_without_a_gap() -> None:
    every = np.arange(12_000)
    assert np.array_equal(lowest(every)[1:], highest(every)[:-1] + 1)
    assert np.array_equal(places(lowest(every)), every)
    assert np.array_equal(places(highest(every)), every)


def test_the_text_of_nothing_is_a_text() -> None:
    assert "Total count    =            0" in percentile_text(Histogram(np.zeros(0, dtype=np.int64)))


def test_percentiles_of_a_known_series() -> None:
    text = percentile_text(Histogram(np.arange(1, 1001) * 1_000_000))
    half = next(line.split() for line in text.splitlines() if " 0.500000000000 " in line)
    assert float(half[0]) == pytest.approx(500, rel=0.001)
    assert half[2:] == ["500", "2.00"]


class TestMlperf:
    def exported(self, tmp_path: Path, load: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        base = {"repeats": 1}
        made = load_experiments.data([load_experiments.entry(tmp_path / "in", 0, {}, base | load, tokens=True)])
        paths = export_requests(made, "mlperf", tmp_path / "out")
        lines = paths[1].read_text().splitlines()
        told = [json.loads(line.removeprefix(":::MLLOG ")) for line in lines]
        return paths[0].read_text(), {line["key"]: line["value"] for line in told}

    def test_a_short_single_stream_is_invalid_and_says_why(self, tmp_path: Path) -> None:
        summary, detail = self.exported(tmp_path, {"mlperf": {"scenario": "single-stream"}})
        assert "Scenario : SingleStream" in summary
        assert "Result is : INVALID" in summary
        assert "Min duration satisfied : NO" in summary
        assert detail["result_validity"] == "INVALID"
        assert detail["result_min_duration_met"] is False
        assert detail["result_90.00_percentile_latency_ns"] > detail["result_50.00_percentile_latency_ns"]

    def test_the_server_is_judged_by_the_limits_of_the_recipe(self, tmp_path: Path) -> None:
        load = {"mlperf": {"scenario": "server", "rate": 50, "min_duration": "1s"}, "slo": {"ttft_ms": 1}}
        summary, detail = self.exported(tmp_path, load)
        assert "Scheduled samples per second : " in summary
        assert "First token at p99" in detail["result_invalid_reason"]

    def test_another_load_is_none_of_the_scenarios(self, one: ExperimentData, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="is not an MLPerf scenario"):
            export_requests(one, "mlperf", tmp_path)


def test_an_unknown_format_names_the_nearest(one: ExperimentData, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        export_requests(one, "request-jsonl", tmp_path)
    assert caught.value.hint == "did you mean requests-jsonl?"


def test_an_experiment_without_loads_has_no_requests(full: ExperimentData, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no job of this experiment is a load"):
        export_requests(full, "csv", tmp_path)


@pytest.mark.parametrize("name", [name for name in EXPORTS if name != "mlperf"])
def test_requests_that_are_gone_are_missed_by_name(name: str, tmp_path: Path) -> None:
    made = load_experiments.one_load(tmp_path / "in")
    (made.entries[0].folder / SAMPLES).unlink()
    with pytest.raises(NotFoundError, match="requests of job job-0"):
        export_requests(made, name, tmp_path / "out")
