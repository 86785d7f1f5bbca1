"""What a release is made of: archives in their normal form, the comparison of two builds, and the bill of materials."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import tarfile
import zipfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest

from tools import release
from tools.image_bases import describe_unpinned, read_images
from tools.normalise_archives import normalise_archive
from tools.release import compare_folders
from tools.sbom import LOCK, bill_of_materials, installed_closure

EPOCH = 1_700_000_000
FILES = {"pkg/__init__.py": b"x = 1\n", "pkg/run.sh": b"#!/bin/sh\n", "pkg-1.dist-info/RECORD": b"pkg/__init__.py,,\n"}


def write_wheel(path: Path, names: list[str], *, year: int, mask: int) -> None:
    with zipfile.ZipFile(path, "w") as out:
        for name in names:
            entry = zipfile.ZipInfo(name, (year, 1, 2, 3, 4, 6))
            entry.external_attr = (0o100000 | (0o777 if name.endswith(".sh") else 0o666) & ~mask) << 16
            out.writestr(entry, FILES[name])


def write_source_archive(path: Path, names: list[str], *, at: int, mask: int) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.uid, entry.uname = len(FILES[name]), at, at % 1000, f"user{at}"
            entry.mode = (0o777 if name.endswith(".sh") else 0o666) & ~mask
            tar.addfile(entry, io.BytesIO(FILES[name]))
    path.write_bytes(gzip.compress(out.getvalue(), mtime=at))


def test_two_wheels_with_the_same_files_become_the_same(tmp_path: Path) -> None:
    one, other = tmp_path / "one.whl", tmp_path / "other.whl"
    write_wheel(one, list(FILES), year=2001, mask=0o022)
    write_wheel(other, list(reversed(FILES)), year=2020, mask=0o077)
    for path in (one, other):
        normalise_archive(path, EPOCH)
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as found:
        assert {name: found.read(name) for name in found.namelist()} == FILES
        assert found.namelist()[-1] == "pkg-1.dist-info/RECORD"
        assert found.getinfo("pkg/run.sh").external_attr >> 16 == 0o100755


def test_two_source_archives_with_the_same_files_become_the_same(tmp_path: Path) -> None:
    one, other = tmp_path / "one.tar.gz", tmp_path / "other.tar.gz"
    write_source_archive(one, list(FILES), at=1, mask=0o022)
    write_source_archive(other, list(reversed(FILES)), at=EPOCH, mask=0o077)
    assert compare_folders(tmp_path, tmp_path) == []
    for path in (one, other):
        normalise_archive(path, EPOCH)
    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as found:
        members = {entry.name: entry for entry in found}
        assert {name: found.extractfile(name).read() for name in members} == FILES  # type: ignore[union-attr]
    assert {(entry.mtime, entry.uid, entry.uname) for entry in members.values()} == {(EPOCH, 0, "")}
    assert members["pkg/run.sh"].mode == 0o755


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither a wheel nor a source archive"):
        normalise_archive(tmp_path / "notes.txt", EPOCH)


def test_files_that_differ_or_are_missing_are_named(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, texts in ((one, {"same": "x", "other": "1", "here": ""}), (other, {"same": "x", "other": "2"})):
        folder.mkdir()
        for name, text in texts.items():
            (folder / name).write_text(text)
    assert compare_folders(one, other) == ["here", "other"]


def test_the_bill_of_materials_has_what_is_installed_and_what_is_built_into_the_pages() -> None:
    at = datetime.fromtimestamp(EPOCH, UTC)
    lock = json.loads(LOCK.read_text())
    bill = bill_of_materials(at, lock)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    purls = {one["purl"] for one in bill["components"]}
    assert f"pkg:pypi/numpy@{version('numpy')}" in purls
    assert f"pkg:npm/react@{lock['packages']['node_modules/react']['version']}" in purls
    assert not [
        one for one in purls if one.startswith(("pkg:npm/vite@", "pkg:pypi/pytest@"))
    ]  # they only build and test
    known = purls | {bill["metadata"]["component"]["bom-ref"]}
    assert all(one["ref"] in known and set(one["dependsOn"]) <= known for one in bill["dependencies"])
    assert bill == bill_of_materials(at, lock)


def test_what_an_extra_requires_is_followed() -> None:
    found = installed_closure("prony", "server")
    assert {"prony", "fastapi", "starlette", "matplotlib", "numpy"} <= set(found)
    assert "starlette" in found["fastapi"][1]
    assert "pytest" not in found


CONTAINERFILE = "ARG PYTHON_IMAGE=registry.example/python:3{digest}\nFROM ${{PYTHON_IMAGE}}\n"
COMPOSE = "services:\n  db:\n    image: registry.example/postgres:17{digest}\n  server:\n    image: prony-server\n"


def write_deploy(root: Path, digest: str) -> None:
    (root / "deploy").mkdir()
    (root / "deploy/Containerfile").write_text(CONTAINERFILE.format(digest=digest))
    (root / "deploy/compose.yaml").write_text(COMPOSE.format(digest=digest))


def test_images_without_a_digest_are_named_with_the_way_to_pin_them(tmp_path: Path) -> None:
    write_deploy(tmp_path, "")
    said = describe_unpinned(tmp_path)
    assert (
        "registry.example/python:3 in deploy/Containerfile, registry.example/postgres:17 in deploy/compose.yaml" in said
    )
    assert "skopeo inspect" in said
    assert "prony-server" not in said


def test_images_with_a_digest_are_pinned(tmp_path: Path) -> None:
    write_deploy(tmp_path, "@sha256:" + "0" * 64)
    assert describe_unpinned(tmp_path) == ""
    assert len(read_images(tmp_path)) == 2


def test_every_image_of_others_in_deploy_is_found() -> None:
    names = [one.image for one in read_images(release.ROOT)]
    assert [name.rpartition("/")[2].partition(":")[0] for name in names] == [
        "python",
        "postgres",
        "prometheus",
        "grafana",
    ]


@pytest.mark.parametrize("tag", ["", "v1.2.3"])
def test_only_a_tagged_commit_is_refused_for_an_image_without_a_digest(
    tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_deploy(tmp_path, "")
    words = ("git", "-C", str(tmp_path), "-c", "user.name=test", "-c", "user.email=test@example.org")
    for more in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--no-gpg-sign", "-m", "one")):
        subprocess.run([*words, *more], check=True)
    if tag:
        subprocess.run([*words, "tag", "--no-sign", tag], check=True)
    built = []
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["release", "--builder", "python", str(tmp_path / "out")])

    def build(commit: str, place: Path, builder: Path, around: release.Surroundings) -> Path:
        place.mkdir(parents=True)
        (place / release.CHECKSUMS).write_text("")
        built.append(place)
        return place

    monkeypatch.setattr(release, "build_release", build)
    code = release.main()
    said = capsys.readouterr()
    assert (code, len(built)) == ((2, 0) if tag else (0, 2))
    assert "skopeo inspect" in (said.err if tag else said.out)
