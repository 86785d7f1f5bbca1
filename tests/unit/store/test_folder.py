from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import NotFoundError, StoreError
from prony.instruments.samples import SAMPLES, TELEMETRY
from prony.model.result import ResultState
from prony.store.folder import read_folder

from .nouns import edited, environment, jobs, result, write_folder

JOB = jobs()[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "result", JOB)


def test_a_good_folder_gives_its_nouns(folder: Path) -> None:
    contents = read_folder(folder)
    assert (contents.job, contents.result, contents.environment) == (JOB, result(JOB), environment())


def test_keys_of_a_newer_prony_are_passed_over(folder: Path) -> None:
    edited(folder / "result.json", invented_later=1)
    assert read_folder(folder).result == result(JOB)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no result folder at .*gone"):
        read_folder(tmp_path / "gone")


@pytest.mark.parametrize("name", ["job.json", "result.json", "environment.json"])
def test_a_missing_document_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(NotFoundError, match=f"no {name} in"):
        read_folder(folder)


@pytest.mark.parametrize("name", ["job.json", "result.json", "environment.json"])
@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": 1}', "\x00\x00"])
def test_a_damaged_document_is_named(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(StoreError, match=rf"{name} is damaged: "):
        read_folder(folder)


def test_the_wrong_key_is_named_too(folder: Path) -> None:
    edited(folder / "result.json", state="finished")
    with pytest.raises(StoreError, match=r"result\.json is damaged: state: "):
        read_folder(folder)


def test_a_folder_that_mixes_two_jobs_is_refused(folder: Path) -> None:
    edited(folder / "result.json", job_id="another")
    with pytest.raises(StoreError, match="is of job another"):
        read_folder(folder)


def test_a_complete_result_must_have_its_samples(folder: Path) -> None:
    (folder / SAMPLES).unlink()
    with pytest.raises(NotFoundError, match=r"complete but has no samples\.parquet"):
        read_folder(folder)


@pytest.mark.parametrize("state", [ResultState.PARTIAL, ResultState.FAILED])
def test_a_result_that_is_not_complete_may_lack_them(tmp_path: Path, state: ResultState) -> None:
    folder = write_folder(tmp_path / "result", JOB, state)
    (folder / SAMPLES).unlink()
    assert read_folder(folder).result.state is state


@pytest.mark.parametrize("name", [SAMPLES, TELEMETRY])
def test_a_cut_parquet_file_is_named(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreError, match=rf"{name} is damaged: "):
        read_folder(folder)


def test_samples_whose_pages_are_damaged_are_named_though_the_footer_is_good(folder: Path) -> None:
    whole = bytearray((folder / SAMPLES).read_bytes())
    whole[4:200] = b"\xff" * 196
    (folder / SAMPLES).write_bytes(bytes(whole))
    with pytest.raises(StoreError, match=r"samples\.parquet is damaged: "):
        read_folder(folder)


def test_samples_without_their_columns_are_named(folder: Path) -> None:
    (folder / SAMPLES).write_bytes((folder / TELEMETRY).read_bytes())
    with pytest.raises(StoreError, match=r"samples\.parquet is damaged: .*index"):
        read_folder(folder)
