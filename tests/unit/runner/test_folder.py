"""Files of a result folder: whole or not there."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

import prony.runner.folder
from prony.errors import StoreError
from prony.instruments.samples import sample_frame, telemetry_frame
from prony.model.recipe import Limits
from prony.runner.folder import write_frame, write_noun


@contextmanager
def no_room_beyond(size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes, as a disk that is full does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_keeps_the_old_file_and_leaves_no_half_of_a_new_one(tmp_path: Path) -> None:
    samples, noun = tmp_path / "samples.parquet", tmp_path / "limits.json"
    write_frame(samples, pl.DataFrame({"x": [1]}))
    write_noun(noun, Limits())
    old = samples.read_bytes(), noun.read_bytes()
    with no_room_beyond(10):
        with pytest.raises(StoreError, match="cannot write") as caught:
            write_frame(samples, pl.DataFrame({"x": range(100_000)}))
        assert caught.value.hint == "check whether the disk is full or read-only"
        with pytest.raises(StoreError, match="cannot write"):
            write_noun(noun, Limits(memory="1GiB"))
    assert (samples.read_bytes(), noun.read_bytes()) == old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["limits.json", "samples.parquet"]


@pytest.mark.parametrize(
    ("name", "written_now"),
    [("samples", sample_frame(())), ("telemetry", telemetry_frame([]))],
    ids=["samples", "telemetry"],
)
def test_the_files_of_a_job_without_samples_are_those_that_would_be_written_now(
    name: str, written_now: pl.DataFrame
) -> None:
    kept = pl.read_parquet(Path(prony.runner.folder.__file__).parent / "empty" / f"{name}.parquet")
    assert kept.is_empty()
    assert kept.schema == written_now.schema
