"""A result travels whole and unchanged, and nothing that a stranger packs can leave the folder it is opened in."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.errors import InputError, StoreError
from prony.store.bundle import checksums
from prony.store.result_tar import pack, unpack

from .nouns import jobs, write_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "folder", jobs()[0])


def member(name: str, content: bytes = b"x", **changes: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in changes.items():
        setattr(info, key, value)
    return info, content


def tar_of(path: Path, *members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> Path:
    with tarfile.open(path, "w", format=form) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return path


def test_a_folder_comes_out_as_it_went_in(folder: Path, tmp_path: Path) -> None:
    parcel = pack(folder, tmp_path / "it.tar")
    unpack(tmp_path / "it.tar", tmp_path / "again")
    assert checksums(tmp_path / "again") == checksums(folder)
    assert parcel.sha256 == hashlib.sha256((tmp_path / "it.tar").read_bytes()).hexdigest()
    assert parcel.size == (tmp_path / "it.tar").stat().st_size
    assert not list(tmp_path.glob(".*"))


def test_the_same_folder_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    first = pack(folder, tmp_path / "first.tar")
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    assert pack(folder, tmp_path / "second.tar") == first


def test_any_tar_can_read_it(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "it.tar")
    with tarfile.open(tmp_path / "it.tar") as archive:
        names = archive.getnames()
        assert {(one.uid, one.gid, one.uname, one.gname, one.mtime) for one in archive} == {(0, 0, "", "", 0)}
    assert names == sorted(names)
    assert "logs/child-0.log" in names


def test_a_link_is_not_packed(folder: Path, tmp_path: Path) -> None:
    (folder / "samples.parquet").unlink()
    (folder / "samples.parquet").symlink_to("/etc/hostname")
    with pytest.raises(InputError, match="not a plain file"):
        pack(folder, tmp_path / "it.tar")
    assert not list(tmp_path.glob("*.tar"))


UNSAFE = [
    "/etc/cron.d/evil", "../evil", "logs/../../evil", "a//b", "./a", "a/.", ".hidden", "logs/.ssh", "a\\b", "C:evil",
    "a\nb", "tail.", "tail ", " head", "", "/".join("a" * 9), "x" * 101,
]  # fmt: skip


@pytest.mark.parametrize("name", UNSAFE)
def test_a_name_that_could_lead_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    tar = tar_of(tmp_path / "it.tar", member(name), form=tarfile.GNU_FORMAT)
    with pytest.raises(InputError):
        unpack(tar, tmp_path / "in" / "deep" / "to")
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == {tar}


KINDS = {
    "symbolic link": member("link", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "hard link": member("link", b"", type=tarfile.LNKTYPE, linkname="job.json"),
    "device": member("null", b"", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
    "pipe": member("pipe", b"", type=tarfile.FIFOTYPE),
    "sparse file": member("sparse", b"", type=tarfile.GNUTYPE_SPARSE),
}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_no_plain_file_is_refused(kind: str, tmp_path: Path) -> None:
    tar = tar_of(tmp_path / "it.tar", KINDS[kind])
    with pytest.raises(InputError, match="not a plain file"):
        unpack(tar, tmp_path / "to")
    assert list((tmp_path / "to").iterdir()) == []


def extended(*records: str) -> tuple[tarfile.TarInfo, bytes]:
    """Return an extended header of PAX with these records."""
    lengths = (next(size for size in range(1000) if len(f"{size} {one}\n") == size) for one in records)
    content = "".join(f"{size} {one}\n" for size, one in zip(lengths, records, strict=True))
    return member("pax", content.encode(), type=tarfile.XHDTYPE)


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_what_tar_itself_writes_of_a_folder_comes_out_whole(form: int, folder: Path, tmp_path: Path) -> None:
    deep = folder / "a-folder-with-a-long-name-of-sixty-letters-and-some-more-of-them" / ("b" * 90)
    deep.mkdir(parents=True)
    (deep / ("c" * 90)).write_text("deep")
    (folder / "empty").mkdir()
    with tarfile.open(tmp_path / "it.tar", "w", format=form) as archive:
        for path in folder.iterdir():
            archive.add(path, arcname=path.name)
    unpack(tmp_path / "it.tar", tmp_path / "again")
    assert checksums(tmp_path / "again") == checksums(folder)


DANGEROUS = {
    "climbs": (extended("path=../evil"), member("a")),
    "absolute": (extended("path=/etc/evil"), member("a")),
    "folder that climbs": (member("../up", b"", type=tarfile.DIRTYPE),),
    "link": (extended("linkpath=/etc/passwd"), member("a")),
    "sparse": (extended("GNU.sparse.major=1"), member("a")),
    "size without end": (extended("size=9999999999999999999999"), member("a")),
    "negative size": (extended("size=-1"), member("a")),
    "long name that climbs": (member("././@LongLink", b"../evil\0", type=tarfile.GNUTYPE_LONGNAME), member("a")),
    "too long": (member("pax", b"x" * (2**16 + 1), type=tarfile.XHDTYPE), member("a")),
    "no length": (member("pax", b"path=evil\n", type=tarfile.XHDTYPE), member("a")),
    "wrong length": (member("pax", b"99 path=evil\n", type=tarfile.XHDTYPE), member("a")),
    "length of nothing": (member("pax", b"0 path=evil\n", type=tarfile.XHDTYPE), member("a")),
    "no text": (member("pax", b"11 path=\xff\xfe\n", type=tarfile.XHDTYPE), member("a")),
    "without its file": (extended("path=evil"),),
}


@pytest.mark.parametrize("what", DANGEROUS)
def test_a_header_that_is_dangerous_or_damaged_is_refused(what: str, tmp_path: Path) -> None:
    tar = tar_of(tmp_path / "it.tar", *DANGEROUS[what])
    with pytest.raises(InputError, match="the tar is refused"):
        unpack(tar, tmp_path / "in" / "to")
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == {tar}


def test_a_size_in_an_extended_header_counts(tmp_path: Path) -> None:
    tar = tar_of(tmp_path / "it.tar", extended("size=600"), member("a", b"x" * 100))
    with pytest.raises(InputError, match="more than 500 bytes"):
        unpack(tar, tmp_path / "to", most_bytes=500)


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="twice"):
        unpack(tar_of(tmp_path / "it.tar", member("a"), member("a")), tmp_path / "to")


def test_a_file_that_is_also_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="collides"):
        unpack(tar_of(tmp_path / "it.tar", member("a"), member("a/b")), tmp_path / "one")
    with pytest.raises(InputError, match="collides"):
        unpack(tar_of(tmp_path / "it.tar", member("a/b"), member("a")), tmp_path / "two")


def test_ten_thousand_and_one_tiny_files_are_refused_before_one_is_written(tmp_path: Path) -> None:
    many = tar_of(tmp_path / "many.tar", *(member(f"f{number}") for number in range(10_001)))
    with pytest.raises(InputError, match="more than 10000 files") as refused:
        unpack(many, tmp_path / "to")
    assert refused.value.code == "too_large"
    assert list((tmp_path / "to").iterdir()) == []


def test_folders_without_end_are_refused(tmp_path: Path) -> None:
    folders = [member(f"d{number}", b"", type=tarfile.DIRTYPE) for number in range(9)]
    many = tar_of(tmp_path / "many.tar", *folders, member("f"))
    with pytest.raises(InputError, match="more than 8 folders and extended headers") as refused:
        unpack(many, tmp_path / "many", most_files=4)
    assert refused.value.code == "too_large"
    unpack(many, tmp_path / "enough", most_files=5)
    assert [one.name for one in (tmp_path / "enough").iterdir()] == ["f"]


def test_too_many_files_and_too_many_bytes_are_refused(tmp_path: Path) -> None:
    many = tar_of(tmp_path / "many.tar", *(member(f"f{number}") for number in range(5)))
    with pytest.raises(InputError) as refused:
        unpack(many, tmp_path / "many", most_files=4)
    assert refused.value.code == "too_large"
    unpack(many, tmp_path / "enough", most_files=5, most_bytes=5)
    with pytest.raises(InputError) as refused:
        unpack(many, tmp_path / "big", most_bytes=4)
    assert refused.value.code == "too_large"


def test_a_size_that_is_only_claimed_is_not_believed(tmp_path: Path) -> None:
    info, _ = member("a")
    info.size = 2**33 - 1
    tar = tmp_path / "it.tar"
    tar.write_bytes(info.tobuf(tarfile.USTAR_FORMAT) + b"x" * 512)
    with pytest.raises(InputError, match="cut short"):
        unpack(tar, tmp_path / "to")
    info.size = -1
    tar.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + b"x" * 512)
    with pytest.raises(InputError):
        unpack(tar, tmp_path / "negative")


def test_every_cut_is_noticed(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "it.tar")
    whole = (tmp_path / "it.tar").read_bytes()
    ends = [0, 1, 511, 512, 513, len(whole) // 2, len(whole) // 1024 * 512]
    filled = len(whole.rstrip(b"\0"))
    for number, end in enumerate([*ends, filled]):
        (tmp_path / "cut.tar").write_bytes(whole[:end])
        with pytest.raises(InputError, match="cut short"):
            unpack(tmp_path / "cut.tar", tmp_path / f"to{number}")


@settings(max_examples=count_examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 2047), value=st.integers(0, 255))
def test_whatever_byte_of_a_header_is_changed_nothing_leaves_the_folder(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int
) -> None:
    base = tmp_path_factory.mktemp("fuzz")
    tar = tar_of(base / "it.tar", member("logs/a", b"1" * 600), member("b", b"2"))
    content = bytearray(tar.read_bytes())
    content[at] = value
    tar.write_bytes(content)
    try:
        unpack(tar, base / "to")
    except InputError as exc:
        assert exc.code in ("damaged", "too_large")  # noqa: PT017 - either may happen, and nothing else
    assert {path.name for path in base.iterdir()} <= {"it.tar", "to"}


def test_noise_is_refused(tmp_path: Path) -> None:
    (tmp_path / "it.tar").write_bytes(os.urandom(5000))
    with pytest.raises(InputError, match="damaged"):
        unpack(tmp_path / "it.tar", tmp_path / "to")


def test_a_folder_that_holds_something_is_left_alone(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "it.tar")
    before = checksums(folder)
    with pytest.raises(StoreError, match="not empty"):
        unpack(tmp_path / "it.tar", folder)
    assert checksums(folder) == before


def test_a_full_disk_is_told_as_one_and_leaves_no_half_a_parcel(
    folder: Path, tmp_path: Path, full_disk: Callable[[], None]
) -> None:
    full_disk()
    with pytest.raises(StoreError, match="the disk is full") as told:
        pack(folder, tmp_path / "it.tar")
    assert told.value.code == "disk_full"
    assert not list(tmp_path.glob("*.tar*"))
    assert not list(tmp_path.glob(".*"))


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes every fsync say that there is no room."""

    def fill() -> None:
        def fsync(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", fsync)

    return fill
