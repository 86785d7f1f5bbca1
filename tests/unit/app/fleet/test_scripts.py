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
from prony.runner.scripts import archive

from .ground import ME, Ground

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


async def keep(ground: Ground, content: bytes) -> str:
    async def chunks() -> AsyncIterator[bytes]:
        yield content

    sha256 = hashlib.sha256(content).hexdigest()
    await ground.fleet.scripts.add(sha256, chunks())
    return sha256


async def make_old(ground: Ground, sha256: str) -> Path:
    place = await ground.fleet.scripts.get(sha256)
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
    "a link that leads out": tar_of("link", change=link_to("/etc/passwd")),
    "a relative link that leads out": tar_of("a/link", change=link_to("../../x")),
    "a hard link that leads out": tar_of("link", change=link_to("../x", tarfile.LNKTYPE)),
    "a device": tar_of("device", change=to_device),
    "an escape sequence": tar_of("run\x1b[2J.sh"),
    "a deep name": tar_of("/".join(["a"] * 100)),
    "no tar": b"something else" * 100,
    "a tar that was cut": tar_of("run.sh", content=b"x" * 5000)[:2000],
}


@pytest.mark.parametrize("name", BAD)
async def test_what_no_agent_could_unpack_is_refused_when_it_comes(ground: Ground, name: str) -> None:
    with pytest.raises(InputError) as caught:
        await keep(ground, BAD[name])
    assert caught.value.code == "bad_archive"
    with pytest.raises(NotFoundError):
        await ground.fleet.scripts.get(hashlib.sha256(BAD[name]).hexdigest())
    assert list(ground.fleet.context.home.uploads.iterdir()) == []


async def test_too_many_files_are_refused_when_they_come(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_FILES", 3)
    await keep(ground, tar_of("a", "b", "c"))
    with pytest.raises(InputError, match="more than 3 files"):
        await keep(ground, tar_of("a", "b", "c", "d"))


def script(sha256: str) -> str:
    return f"name: s\nworkload: {{kind: script, command: sh run.sh, directory: 'sha256:{sha256}'}}\n"


async def test_scripts_go_when_no_experiment_names_them_any_more(ground: Ground) -> None:
    needed, unneeded, fresh = [await keep(ground, tar_of(name)) for name in ("run.sh", "old.sh", "new.sh")]
    view = await ground.submit(script(needed))
    places = [await make_old(ground, sha256) for sha256 in (needed, unneeded)]
    assert await remove_unneeded(ground.fleet.context) == [unneeded]
    assert [place.exists() for place in places] == [True, False]
    assert (await ground.fleet.scripts.get(fresh)).is_file()
    await ground.fleet.experiments.cancel(view.experiment.id, who=ME)
    assert await remove_unneeded(ground.fleet.context) == [], "it may be tried again"
    await ground.fleet.experiments.delete(view.experiment.id, who=ME)
    assert await remove_unneeded(ground.fleet.context) == [needed]


async def test_scripts_have_a_quota_and_make_room_first(ground: Ground) -> None:
    one, two = tar_of("one.sh"), tar_of("two.sh")
    ground.fleet.context.settings = replace(ground.fleet.context.settings, scripts_quota_bytes=len(one))
    first = await keep(ground, one)
    assert await keep(ground, one) == first
    with pytest.raises(CapacityError, match="no room in it") as caught:
        await keep(ground, two)
    assert caught.value.code == "scripts_quota"
    await make_old(ground, first)
    second = await keep(ground, two)
    assert (await ground.fleet.scripts.get(second)).is_file()
    with pytest.raises(PronyError):
        await ground.fleet.scripts.get(first)
