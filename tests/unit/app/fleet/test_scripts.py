"""Folders of scripts on a server: looked at when they come, within a quota, and gone when nothing needs them."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from prony.app.fleet.scripts import remove_unneeded
from prony.errors import CapacityError, InputError, NotFoundError, PronyError
from prony.runner import script_folders

from .fleet_fixture import ME, FleetFixture

pytestmark = pytest.mark.anyio

DAYS_S = 3 * 86_400
Change = Callable[[tarfile.TarInfo], None]


def tar_of(*names: str, content: bytes = b"echo 1", change: Change = lambda _: None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            change(member)
            made.addfile(member, io.BytesIO(content[: member.size]))
    return out.getvalue()


async def keep(fleet_fixture: FleetFixture, content: bytes) -> str:
    async def chunks() -> AsyncIterator[bytes]:
        yield content

    sha256 = hashlib.sha256(content).hexdigest()
    await fleet_fixture.fleet.scripts.add(sha256, chunks())
    return sha256


async def make_old(fleet_fixture: FleetFixture, sha256: str) -> Path:
    place = await fleet_fixture.fleet.scripts.get(sha256)
    then = place.stat().st_mtime - DAYS_S
    os.utime(place, (then, then))
    return place


def link_to(target: str, kind: bytes = tarfile.SYMTYPE) -> Change:
    def change(member: tarfile.TarInfo) -> None:
        member.type, member.linkname, member.size = kind, target, 0

    return change


def to_device(member: tarfile.TarInfo) -> None:
    member.type, member.size = tarfile.CHRTYPE, 0


BAD = {
    "a name that leads out": tar_of("../outside"),
    "a link to a place outside": tar_of("link", change=link_to("/etc/passwd")),
    "a relative link that leads out": tar_of("a/link", change=link_to("../../x")),
    "a hard link that leads out": tar_of("link", change=link_to("../x", tarfile.LNKTYPE)),
    "a device": tar_of("device", change=to_device),
    "an escape sequence": tar_of("run\x1b[2J.sh"),
    "a deep name": tar_of("/".join(["a"] * 100)),
    "no tar": b"something else" * 100,
    "a tar that was cut": tar_of("run.sh", content=b"x" * 5000)[:2000],
}


@pytest.mark.parametrize("name", BAD)
async def test_what_no_agent_could_unpack_is_refused_when_it_comes(fleet_fixture: FleetFixture, name: str) -> None:
    with pytest.raises(InputError) as caught:
        await keep(fleet_fixture, BAD[name])
    assert caught.value.code == "bad_archive"
    with pytest.raises(NotFoundError):
        await fleet_fixture.fleet.scripts.get(hashlib.sha256(BAD[name]).hexdigest())
    assert list(fleet_fixture.fleet.context.home.uploads.iterdir()) == []


async def test_too_many_files_are_refused_when_they_come(
    fleet_fixture: FleetFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_folders, "MOST_FILES", 3)
    await keep(fleet_fixture, tar_of("a", "b", "c"))
    with pytest.raises(InputError, match=r"^the archive has more than 3 files"):
        await keep(fleet_fixture, tar_of("a", "b", "c", "d"))


def script(sha256: str) -> str:
    return f"name: s\nworkload: {{kind: script, command: sh run.sh, directory: 'sha256:{sha256}'}}\n"


async def test_scripts_go_when_no_experiment_names_them_any_more(fleet_fixture: FleetFixture) -> None:
    needed, unneeded, fresh = [await keep(fleet_fixture, tar_of(name)) for name in ("run.sh", "old.sh", "new.sh")]
    view = await fleet_fixture.submit(script(needed))
    places = [await make_old(fleet_fixture, sha256) for sha256 in (needed, unneeded)]
    assert await remove_unneeded(fleet_fixture.fleet.context) == [unneeded]
    assert [place.exists() for place in places] == [True, False]
    assert (await fleet_fixture.fleet.scripts.get(fresh)).is_file()
    await fleet_fixture.fleet.experiments.cancel(view.experiment.id, who=ME)
    assert await remove_unneeded(fleet_fixture.fleet.context) == [], "it may be tried again"
    await fleet_fixture.fleet.experiments.delete(view.experiment.id, who=ME)
    assert await remove_unneeded(fleet_fixture.fleet.context) == [needed]


async def test_scripts_have_a_quota_and_make_room_first(fleet_fixture: FleetFixture) -> None:
    one, two = tar_of("one.sh"), tar_of("two.sh")
    fleet_fixture.fleet.context.settings = replace(fleet_fixture.fleet.context.settings, scripts_quota_bytes=len(one))
    first = await keep(fleet_fixture, one)
    assert await keep(fleet_fixture, one) == first
    with pytest.raises(CapacityError, match="no space for this script folder") as caught:
        await keep(fleet_fixture, two)
    assert caught.value.code == "scripts_quota"
    await make_old(fleet_fixture, first)
    second = await keep(fleet_fixture, two)
    assert (await fleet_fixture.fleet.scripts.get(second)).is_file()
    with pytest.raises(PronyError):
        await fleet_fixture.fleet.scripts.get(first)
