"""A result is on this disk until the server has it, whatever happens in between."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from prony.agent.spool import Meta, Spool, Work
from prony.errors import InputError, StoreError
from prony.model.lease import Lease
from prony.store.bundle import checksums
from prony.store.result_tar import unpack

from .conftest import MakeLease


def finished(spool: Spool, lease: Lease, size: int = 10) -> tuple[Work, Meta]:
    work = spool.begin(lease)
    (work.folder / "logs").mkdir(parents=True)
    (work.folder / "result.json").write_bytes(b"x" * size)
    (work.folder / "logs" / "a.log").write_text("said\n")
    return work, spool.keep(work)


def test_what_was_packed_is_what_the_folder_held(spool: Spool, a_lease: MakeLease, tmp_path: Path) -> None:
    work = spool.begin(a_lease())
    work.folder.mkdir()
    (work.folder / "result.json").write_text("all of it")
    before = checksums(work.folder)
    meta = spool.keep(work)
    assert meta.sha256 == hashlib.sha256(work.tar.read_bytes()).hexdigest()
    assert (meta.lease_id, meta.job_id, meta.attempt) == ("lease-1-1", "e1-001", 1)
    unpack(work.tar, tmp_path / "again")
    assert checksums(tmp_path / "again") == before
    assert not work.folder.exists()


def test_the_oldest_waits_first_whatever_the_clock_says(spool: Spool, a_lease: MakeLease) -> None:
    order = [3, 1, 2]
    for number in order:
        work, _ = finished(spool, a_lease(number))
        os.utime(work.path, (10_000 - number, 10_000 - number))
    assert [meta.job_id for _, meta in spool.waiting()] == [f"e1-00{number}" for number in order]
    assert [meta.job_id for _, meta in Spool(spool.root).waiting()] == [f"e1-00{number}" for number in order]


def test_a_crash_at_any_step_leaves_all_or_nothing_to_send(spool: Spool, a_lease: MakeLease) -> None:
    work, _ = finished(spool, a_lease())
    meta = work.meta_file.read_bytes()
    work.meta_file.unlink()  # it was packed, and the mark was not written yet
    assert spool.waiting() == []
    assert spool.find_unfinished() == [work]
    work.meta_file.write_bytes(meta)
    work.tar.unlink()  # cannot be: but what is not there is not sent
    assert spool.waiting() == []


def test_what_was_removed_half_is_no_result(spool: Spool, a_lease: MakeLease) -> None:
    work, _ = finished(spool, a_lease())
    (work.path / "kept").mkdir()
    spool.remove(work)
    assert spool.waiting() == []
    assert spool.find_unfinished() == []


def test_a_result_that_is_sent_while_another_is_packed_disturbs_nothing(
    spool: Spool, a_lease: MakeLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, _ = finished(spool, a_lease(1))

    def exists_and_goes(work: Work) -> bool:
        is_packed = work.meta_file.exists()
        if work == sent:
            spool.remove(work)  # as the uploader's thread does, between the look and the reading
        return is_packed

    with monkeypatch.context() as patch:
        patch.setattr(Work, "is_packed", property(exists_and_goes))
        kept, meta = finished(spool, a_lease(2))
    assert spool.waiting() == [(kept, meta)]


def test_a_damaged_mark_is_set_aside_and_the_others_wait_on(spool: Spool, a_lease: MakeLease) -> None:
    bad, _ = finished(spool, a_lease(1))
    finished(spool, a_lease(2))
    bad.meta_file.write_text("{")
    assert [meta.job_id for _, meta in spool.waiting()] == ["e1-002"]
    assert "damaged" in (spool.refused / "e1-001.1" / "reason").read_text()
    assert [meta.job_id for _, meta in spool.waiting()] == ["e1-002"]


def test_what_is_refused_is_kept_with_the_reason_but_not_for_ever(
    spool: Spool, a_lease: MakeLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prony.agent.spool._MOST_REFUSED", 3)
    for number in range(1, 6):
        work, _ = finished(spool, a_lease(number))
        place = spool.refuse(work, f"reason {number}")
        os.utime(place, (number, number))
        assert (place / "reason").read_text() == f"reason {number}\n"
        assert (place / "result.tar").exists()
    assert {path.name for path in spool.refused.iterdir()} == {"e1-003.1", "e1-004.1", "e1-005.1"}
    assert spool.waiting() == []
    assert spool.find_unfinished() == []


def test_a_lease_that_is_given_again_finds_its_result(spool: Spool, a_lease: MakeLease) -> None:
    work, meta = finished(spool, a_lease())
    again = spool.begin(a_lease())
    assert again == work
    assert again.is_packed
    assert again.meta() == meta


def test_another_lease_of_the_same_attempt_begins_anew_and_loses_nothing(spool: Spool, a_lease: MakeLease) -> None:
    finished(spool, a_lease())
    other = a_lease().model_copy(update={"id": "other"})
    work = spool.begin(other)
    assert not work.is_packed
    assert (spool.refused / "e1-001.1" / "result.tar").exists()


def test_leftovers_of_the_same_attempt_are_cleared(spool: Spool, a_lease: MakeLease) -> None:
    work = spool.begin(a_lease())
    (work.folder).mkdir()
    (work.folder / "old").write_text("old")
    assert not (spool.begin(a_lease()).folder / "old").exists()


def test_a_job_id_that_climbs_is_refused(spool: Spool, a_lease: MakeLease) -> None:
    lease = a_lease()
    evil = lease.model_copy(update={"job": lease.job.model_copy(update={"id": "../../evil"})})
    with pytest.raises(InputError, match="cannot be an id"):
        spool.begin(evil)


def test_nothing_is_begun_without_room_for_it(slot_spool: Path) -> None:
    spool = Spool(slot_spool, least_free_bytes=2**62)
    with pytest.raises(StoreError) as told:
        spool.check_room()
    assert told.value.code == "disk_full"
    Spool(slot_spool, least_free_bytes=1).check_room()


def test_a_full_disk_while_packing_leaves_the_folder_as_it_was(
    spool: Spool, a_lease: MakeLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = spool.begin(a_lease())
    work.folder.mkdir()
    (work.folder / "result.json").write_text("all of it")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreError) as told:
            spool.keep(work)
    assert told.value.code == "disk_full"
    assert spool.waiting() == []
    assert (work.folder / "result.json").read_text() == "all of it"
    spool.keep(work)
    assert len(spool.waiting()) == 1


@pytest.fixture
def slot_spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"
