"""Small kernel files are read, and what is absent or damaged is nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.instruments import kernel

from .machines import planted


@pytest.mark.parametrize(
    ("words", "expected"),
    [("0-3,8", (0, 1, 2, 3, 8)), ("5", (5,)), ("", ()), (None, ()), ("0-1, 4-5", (0, 1, 4, 5)), ("x-y,2", (2,))],
)
def test_a_list_of_cpus_is_spelled_out(words: str | None, expected: tuple[int, ...]) -> None:
    assert kernel.cpu_list(words) == expected


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert kernel.read_text(tmp_path / "missing") is None
    assert kernel.number(tmp_path / "missing") is None
    assert kernel.read_table(tmp_path / "missing") == {}


def test_a_number_may_be_hexadecimal_and_a_word_is_no_number(tmp_path: Path) -> None:
    planted(tmp_path, {"vendor": "0x10de", "limit": "max"})
    assert kernel.number(tmp_path / "vendor") == 0x10DE
    assert kernel.number(tmp_path / "limit") is None


def test_folders_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    planted(tmp_path, {f"cpu{number}/x": 0 for number in (10, 2, 0)})
    assert [folder.name for folder in kernel.folders(tmp_path, "cpu[0-9]*")] == ["cpu0", "cpu2", "cpu10"]


def test_a_string_of_a_device_tree_loses_its_closing_nul(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"Board Five\0")
    assert kernel.read_text(tmp_path / "model") == "Board Five"
