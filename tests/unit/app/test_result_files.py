"""The files of a result folder are listed, shown as text and copied; nothing outside it is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.app.result_files import find_file, list_files, read_file_text
from prony.errors import InputError, NotFoundError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "result"
    (made / "logs").mkdir(parents=True)
    (made / "result.json").write_text("{}")
    (made / "samples.parquet").write_bytes(b"PAR1\0\xff")
    (made / "logs" / "run-0000.out").write_text("\x1b[31mgrün\x1b[0m\n")
    (made / ".result.json.tmp").write_text("half")
    (tmp_path / "secret").write_text("a secret")
    (made / "link").symlink_to(tmp_path / "secret")
    (made / "outside").symlink_to(tmp_path)
    return made


def test_every_file_is_listed_with_its_size_and_whether_it_is_text(folder: Path) -> None:
    found = list_files("e-001", folder)
    assert [(one.name, one.size_bytes, one.is_text) for one in found.files] == [
        ("logs/run-0000.out", 15, True),
        ("result.json", 2, True),
        ("samples.parquet", 6, False),
    ]
    assert found.left_out == 0


@pytest.mark.parametrize(
    "name",
    [
        "link", "outside/secret", "../secret", "logs/../../secret", "logs/../result.json", "/etc/passwd", "logs",
        ".result.json.tmp", "", ".", "none", "a\0b", "x" * 900, "..\\secret", "result.json/x",
    ],
)  # fmt: skip
def test_nothing_but_a_listed_file_is_found(folder: Path, name: str) -> None:
    with pytest.raises(NotFoundError):
        find_file(folder, name)


def test_a_text_is_shown_without_what_acts_and_anything_else_is_refused(folder: Path) -> None:
    piece = read_file_text(folder, "logs/run-0000.out", 0)
    assert (piece.text.decode(), piece.next_offset, piece.ended) == ("grün\n", 15, True)
    with pytest.raises(InputError, match="not a text file"):
        read_file_text(folder, "samples.parquet", 0)
