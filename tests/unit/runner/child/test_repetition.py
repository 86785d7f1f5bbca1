"""What one repetition keeps for those who come after it."""

from __future__ import annotations

import resource
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from prony.errors import StoreError
from prony.runner.child.compare import read_outputs, save_outputs
from prony.runner.child.repetition import _write_blocks


@contextmanager
def no_room_beyond(size: int) -> Iterator[None]:
    """Let no file grow beyond `size` bytes, as a disk that is full does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_text_that_an_engine_returns_can_be_read_again_without_unpickling(tmp_path: Path) -> None:
    outputs = {"label": np.array(["cat", "dog"], dtype=object), "score": np.ones(2)}
    save_outputs(str(tmp_path / "outputs.npz"), outputs)
    found = read_outputs(str(tmp_path / "outputs.npz"))
    assert found["label"].tolist() == ["cat", "dog"]
    assert list(found) == ["label", "score"]


@pytest.mark.parametrize("name", ["file", "allow_pickle", "arr_0", "../up", ""])
def test_an_output_may_have_any_name(tmp_path: Path, name: str) -> None:
    save_outputs(str(tmp_path / "outputs.npz"), {name: np.ones(3)})
    assert read_outputs(str(tmp_path / "outputs.npz"))[name].tolist() == [1, 1, 1]


def test_a_full_disk_is_not_held_against_the_engine(tmp_path: Path) -> None:
    with no_room_beyond(1000):
        with pytest.raises(StoreError, match="cannot write"):
            _write_blocks(tmp_path / "0000.i64", [array("q", range(1000))])
        with pytest.raises(StoreError, match="cannot store the outputs"):
            save_outputs(str(tmp_path / "outputs.npz"), {"y": np.ones(100_000)})
    assert not list(tmp_path.glob("0000*"))
