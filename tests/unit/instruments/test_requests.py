"""Requests become rows: every one of them, in its phase, with its cause and what its reply was."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.errors import NotFoundError
from prony.instruments.requests import (
    CAUSES,
    REQUEST_PHASES,
    Array,
    Digests,
    Taken,
    begin_ns,
    empty_frame,
    is_requests,
    join_runs,
    phases,
    read_requests,
    request_frame,
    request_schema,
)
from prony.instruments.samples import SAMPLES, sample_frame
from prony.ports.driver import Cause, Digest


def records(count: int, **changes: Array) -> dict[str, Array]:
    at = np.arange(count, dtype=np.int64) * 100 + 1000
    none = np.zeros(count, dtype=np.int64)
    columns = {
        "index": np.arange(count), "request": none, "due_ns": at, "sent_ns": at + 5, "first_ns": at + 20,
        "end_ns": at + 50, "status": none + 200, "cause": none, "bytes_in": none + 10, "lag_ns": none + 1,
        "reads": none + 1, "spool_at": none - 1,
    }  # fmt: skip
    return columns | changes


def taken(columns: dict[str, Array], *, is_open: bool = True, **changes: object) -> Taken:
    values: dict[str, object] = {"operations": ["get"], "window_ns": (0, 10**9)} | changes
    return Taken(3, columns, is_open=is_open, **values)  # type: ignore[arg-type]


def test_the_columns_are_those_of_the_schema() -> None:
    frame = request_frame(taken(records(4)))
    assert dict(frame.schema) == request_schema()
    assert frame.columns == empty_frame().columns
    assert frame["repetition"].unique().to_list() == [3]


def test_the_page_about_metrics_has_every_column_in_order() -> None:
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    told = re.findall(r"^\| `(\w+)` \|", page.partition("## The requests behind a load")[2], re.MULTILINE)
    assert told == list(request_schema())


def test_latency_begins_at_due_in_an_open_load_and_at_sent_in_a_closed_one() -> None:
    assert begin_ns(records(1), is_open=True)[0] == 1000
    assert begin_ns(records(1), is_open=False)[0] == 1005
    never = records(1, sent_ns=np.zeros(1, dtype=np.int64))
    assert begin_ns(never, is_open=False)[0] == 1000


def test_who_straddles_the_edges_is_marked() -> None:
    begins = np.array([0, 99, 100, 180, 200, 300])
    ends = np.array([50, 150, 190, 260, 250, 400])
    found = [REQUEST_PHASES[code] for code in phases(begins, ends, (100, 200))]
    assert found == ["warmup", "warmup", "measure", "drain", "drain", "drain"]


def test_rows_are_in_the_order_of_the_schedule_whoever_sent_them() -> None:
    columns = records(4)
    mixed = {name: column[[2, 0, 3, 1]] for name, column in columns.items()}
    assert request_frame(taken(mixed)).equals(request_frame(taken(columns)))


def test_operations_are_found_by_the_request_that_was_sent() -> None:
    frame = request_frame(taken(records(5, request=np.array([0, 1, 2, 3, 4])), operations=["get", "set", "get"]))
    assert frame["operation"].cast(pl.String).to_list() == ["get", "set", "get", "get", "set"]


def test_a_digest_may_find_a_cause_and_never_hides_one() -> None:
    digests = Digests()
    digests.add(0, Digest(cause=Cause.TRUNCATED))
    digests.add(1, Digest(cause=Cause.OK))
    columns = records(3, cause=np.array([0, int(Cause.TIMEOUT), 0]))
    assert request_frame(taken(columns, digests=digests))["cause"].to_list() == ["truncated", "timeout", "ok"]


def test_what_nobody_counted_is_null() -> None:
    digests = Digests()
    stamps = np.array([1030, 1040], dtype=np.int64)
    digests.add(1, Digest(output_tokens=2, token_ns=stamps, content_ns=2**60 + 1, quality=0.5, items=7))
    digests.add(2, Digest(token_ns=np.zeros(0, dtype=np.int64)))
    frame = request_frame(taken(records(3), digests=digests))
    assert frame["output_tokens"].to_list() == [None, 2, None]
    assert frame["input_tokens"].to_list() == [None, None, None]
    assert frame["content_ns"].to_list() == [None, 2**60 + 1, None]
    assert frame["token_ns"].to_list() == [None, [1030, 1040], None]
    assert frame["items"].to_list() == [1, 7, 1]
    assert frame["quality"].to_list() == [None, 0.5, None]


@given(st.lists(st.sampled_from(list(Cause)), max_size=50))
def test_no_request_vanishes_and_each_has_its_cause(causes: list[Cause]) -> None:
    frame = request_frame(taken(records(len(causes), cause=np.array(causes, dtype=np.int64))))
    assert frame["cause"].to_list() == [CAUSES[cause] for cause in causes]


def test_runs_are_joined_and_read_back(tmp_path: Path) -> None:
    whole = join_runs([request_frame(taken(records(3))), request_frame(taken(records(2), operations=["put"]))])
    assert whole.height == 5
    whole.write_parquet(tmp_path / SAMPLES)
    assert read_requests(tmp_path).equals(whole)
    assert is_requests(whole)
    assert not is_requests(sample_frame([]))
    assert join_runs([]).equals(empty_frame())
    with pytest.raises(NotFoundError):
        read_requests(tmp_path / "none")
