"""The page cache, on files whose state is known."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from prony.errors import CapacityError
from prony.runner.pagecache import arrange, resident_share

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"x" * 10 * 4096)
    return path


def test_a_file_that_was_read_is_in_memory(file: Path) -> None:
    arrange([file], "warm")
    assert resident_share([file]) == 1.0


def test_of_no_file_nothing_is_known(tmp_path: Path) -> None:
    assert resident_share([]) is None
    assert resident_share([tmp_path / "nowhere"]) is None


def test_the_kernel_s_answer_about_a_stranger_s_file_is_not_believed(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert resident_share([file]) is None


@pytest.mark.skipif(not IN_MEMORY.is_dir(), reason="no file system in memory here")
def test_a_file_that_cannot_be_dropped_is_not_called_cold() -> None:
    with tempfile.NamedTemporaryFile(dir=IN_MEMORY) as file:
        file.write(b"x" * 10 * 4096)
        file.flush()
        with pytest.raises(CapacityError, match="stays in the page cache"):
            arrange([Path(file.name)], "cold")
