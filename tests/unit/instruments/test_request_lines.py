"""Request logs of other programs: what is a request, what is not, and where each lies in time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prony.instruments.request_lines import Log, place_requests, read_log
from prony.ports.driver import Cause


def line(**more: Any) -> dict[str, Any]:
    return {"request_id": 1, "timestamp_start": 100, "timestamp_end": 101, "latency_s": 0.5, "success": True} | more


def log(tmp_path: Path, *lines: Any, name: str = "requests.jsonl") -> Log:
    path = tmp_path / name
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines))
    return read_log([path])


def test_a_header_is_no_request_and_a_torn_line_is_counted(tmp_path: Path) -> None:
    unfilled = line(benchmark_id="$BENCHMARK_ID")
    found = log(
        tmp_path, {"benchmark_id": "b", "test_start": "t"}, unfilled, line(), '{"request_id": 2, "timesta', "[1]", ""
    )
    assert (len(found.lines), len(found.headers), found.unread) == (1, 2, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"success": "true"}, {"success": None}, {"latency_s": None}, {"latency_s": "0.5"}, {"timestamp_start": True},
        {"timestamp_end": float("nan")}, {"latency_s": 1e300},
    ],
)  # fmt: skip
def test_a_line_that_lacks_what_every_request_has_is_not_guessed(tmp_path: Path, wrong: dict[str, Any]) -> None:
    found = log(tmp_path, line(**wrong))
    assert (len(found.lines), found.unread) == (0, 1)


def test_the_operation_has_two_names(tmp_path: Path) -> None:
    found = log(tmp_path, line(operation_type="insert"), line(operation="SET"), line())
    assert [one.operation for one in found.lines] == ["insert", "SET", "request"]


def test_a_failure_has_the_cause_that_its_word_tells(tmp_path: Path) -> None:
    words = ["connection_failed", "http_error", "psql_failed", "timeout", ""]
    found = log(tmp_path, *(line(success=False, error=word) for word in words))
    assert [one.cause for one in found.lines] == [
        Cause.REFUSED, Cause.STATUS, Cause.STATUS, Cause.TIMEOUT, Cause.STATUS,
    ]  # fmt: skip


def test_latencies_are_kept_and_all_lie_within_the_span(tmp_path: Path) -> None:
    rows = [line(timestamp_start=100 + n // 3, timestamp_end=100 + n // 3, latency_s=0.3 + n / 1000) for n in range(9)]
    found = log(tmp_path, *rows, line(timestamp_start=102, timestamp_end=102, success=False, latency_s=0))
    begins, ends, (first, last) = place_requests(found)
    assert found.has_whole_seconds
    assert (first, last) == (100 * 10**9, 102 * 10**9)
    assert begins.min() >= first
    assert ends.max() <= last
    assert begins.max() < last
    np.testing.assert_array_equal((ends - begins)[:9], [round((0.3 + n / 1000) * 1e9) for n in range(9)])


def test_a_span_is_never_shorter_than_its_longest_request(tmp_path: Path) -> None:
    found = log(tmp_path, line(timestamp_end=100, latency_s=2.5))
    assert found.span_s == (100, 102.5)


def test_a_success_in_no_time_is_counted_as_such(tmp_path: Path) -> None:
    found = log(tmp_path, line(latency_s=0), line(latency_s=-0.1), line())
    assert found.timeless == 2
