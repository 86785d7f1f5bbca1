"""A folder of scripts as it travels: the same bytes for the same files, and nothing of a bad one lands anywhere."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from prony.errors import InputError, NotFoundError
from prony.runner.script_folders import find_scripts, pack_folder, unpack_scripts


def folder_of(place: Path, order: tuple[str, ...]) -> Path:
    for name in order:
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (place / "run.sh").chmod(0o755)
    return place


def test_the_same_files_give_the_same_bytes_and_come_back_as_they_were(tmp_path: Path) -> None:
    names = ("run.sh", "deep/er/data.txt", ".hidden")
    one = pack_folder(folder_of(tmp_path / "a", names), tmp_path / "a.tar")
    two = pack_folder(folder_of(tmp_path / "b", names[::-1]), tmp_path / "b.tar")
    assert one == two
    place = unpack_scripts(tmp_path / "a.tar", one, tmp_path / "cache")
    assert find_scripts(f"sha256:{one}", tmp_path / "cache") == place
    assert {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()} == set(names)
    assert (place / "run.sh").stat().st_mode & 0o100


def test_what_tools_leave_behind_does_not_travel(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a", ("run.sh", "__pycache__/x.pyc", ".git/config"))
    pack_folder(folder, tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as archive:
        assert archive.getnames() == ["run.sh"]


@pytest.mark.parametrize("target", ["../secret.txt", "/etc/passwd", "..", "/nowhere/at/all"])
@pytest.mark.parametrize("where", ["link", "deep/er/link"])
def test_a_link_that_leads_out_of_the_folder_is_refused_by_its_name(tmp_path: Path, target: str, where: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = folder_of(tmp_path / "a", ("run.sh", "deep/er/data.txt"))
    link = folder / where
    link.symlink_to(f"../../{target}" if "/" in where and not target.startswith("/") else target)
    with pytest.raises(InputError, match="a place outside") as caught:
        pack_folder(folder, tmp_path / "a.tar")
    assert caught.value.code == "link_outside"
    assert str(link) in caught.value.message


def test_a_link_within_the_folder_travels_as_what_it_points_to(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "a", ("run.sh", "deep/data.txt"))
    (folder / "near").symlink_to("deep/data.txt")
    place = unpack_scripts(tmp_path / "a.tar", pack_folder(folder, tmp_path / "a.tar"), tmp_path / "cache")
    assert (place / "near").read_text() == "deep/data.txt"
    assert not (place / "near").is_symlink()


@pytest.mark.parametrize("name", ["../outside", "/tmp/prony-outside"])
def test_a_tar_that_leads_out_of_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    tar = tmp_path / "bad.tar"
    with tarfile.open(tar, "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 3
        archive.addfile(member, io.BytesIO(b"bad"))
    sha256 = hashlib.sha256(tar.read_bytes()).hexdigest()
    if name.startswith("/"):  # made relative, as every unpacker does
        assert (unpack_scripts(tar, sha256, tmp_path / "cache") / name.lstrip("/")).is_file()
    else:
        with pytest.raises(InputError, match="outside its folder"):
            unpack_scripts(tar, sha256, tmp_path / "cache")
    assert not (tmp_path / "outside").exists()
    assert not Path("/tmp/prony-outside").exists()


def test_what_arrived_otherwise_than_its_name_says_is_refused(tmp_path: Path) -> None:
    pack_folder(folder_of(tmp_path / "a", ("run.sh",)), tmp_path / "a.tar")
    with pytest.raises(InputError, match="is not sha256"):
        unpack_scripts(tmp_path / "a.tar", "0" * 64, tmp_path / "cache")
    with pytest.raises(NotFoundError, match="are not on this machine"):
        find_scripts(f"sha256:{'0' * 64}", tmp_path / "cache")
