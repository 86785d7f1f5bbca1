"""Results opened by processes of their own: the same answers, and a process that dies takes nothing with it."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from prony.app.fleet.unpack_result import OPENING, Openers, UnpackOrder, carried_out
from prony.app.fleet.work_process import answer_order
from prony.errors import InputError, StoreError, TransportError
from prony.model.result import ResultState
from servers.process import commands

from .fleet_fixture import FleetFixture, recipe
from .parcels import packed

pytestmark = pytest.mark.anyio


@pytest.fixture
async def openers() -> AsyncIterator[Openers]:
    found = Openers(1)
    yield found
    await found.close()
    assert _children() == []


def _children() -> list[psutil.Process]:
    return [one for one, command in commands(psutil.Process().children()) if command[-1:] == [OPENING.module]]


async def _order(fleet_fixture: FleetFixture, folder: Path, *, sha256: str = "", job_id: str = "") -> UnpackOrder:
    await fleet_fixture.submit(recipe(1))
    lease = await (await fleet_fixture.agent("a")).lease()
    made = packed(lease.job)
    tar = folder / "result.tar"
    tar.write_bytes(made.content)
    digest = sha256 or made.sha256
    return UnpackOrder(tar, folder / "opened", digest, job_id or lease.job.id, lease.job.experiment_id)


async def test_a_process_says_what_a_thread_says(local: FleetFixture, openers: Openers, tmp_path: Path) -> None:
    order = await _order(local, tmp_path)
    there = await openers.open(order)
    assert there.state is ResultState.COMPLETE
    assert there.row["job_id"] == order.job_id
    files = sorted(path.name for path in order.folder.iterdir())
    assert "samples.parquet" in files
    beside = UnpackOrder(order.tar, tmp_path / "beside", order.sha256, order.job_id, order.experiment_id)
    here = await Openers(0).open(beside)
    assert (here.row, here.state, here.failure) == (there.row, there.state, there.failure)


async def test_a_refusal_comes_back_whole_and_leaves_nothing(
    local: FleetFixture, openers: Openers, tmp_path: Path
) -> None:
    order = await _order(local, tmp_path, sha256="0" * 64)
    with pytest.raises(TransportError) as refused:
        await openers.open(order)
    assert refused.value.code == "checksum_mismatch"
    assert refused.value.hint
    assert not order.folder.exists()
    foreign = UnpackOrder(order.tar, order.folder, hashlib.sha256(order.tar.read_bytes()).hexdigest(), "other", "e")
    with pytest.raises(InputError) as refused_again:
        await openers.open(foreign)
    assert refused_again.value.code == "damaged"
    assert not order.folder.exists()


async def test_the_process_is_kept_for_the_next(local: FleetFixture, openers: Openers, tmp_path: Path) -> None:
    await openers.warm()
    (first,) = _children()
    await openers.open(await _order(local, tmp_path))
    await openers.warm()
    assert [one.pid for one in _children()] == [first.pid]


async def test_a_process_that_was_killed_is_replaced_unseen(
    local: FleetFixture, openers: Openers, tmp_path: Path
) -> None:
    await openers.warm()
    (first,) = _children()
    first.kill()
    first.wait(60)
    arrived = await openers.open(await _order(local, tmp_path))
    assert arrived.state is ResultState.COMPLETE


async def test_a_result_that_kills_every_process_is_told(
    local: FleetFixture, openers: Openers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text("import os\nos._exit(9)\n")
    order = await _order(local, tmp_path)
    with pytest.raises(StoreError) as lost:
        await openers.open(order)
    assert lost.value.code == "unpacker_lost"
    monkeypatch.delenv("PYTHONPATH")
    assert (await openers.open(order)).state is ResultState.COMPLETE  # and the next one finds a process again


async def test_signals_that_are_meant_for_the_server_do_not_end_it(
    local: FleetFixture, openers: Openers, tmp_path: Path
) -> None:
    order = await _order(local, tmp_path)
    await openers.open(order)
    (child,) = _children()
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(child.pid, number)
    again = UnpackOrder(order.tar, tmp_path / "again", order.sha256, order.job_id, order.experiment_id)
    await openers.open(again)
    assert [one.pid for one in _children()] == [child.pid]


def test_it_ends_when_no_more_orders_can_come(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    with empty.open("rb") as orders, (tmp_path / "out").open("wb") as answers:
        answer_order(orders, answers, carried_out)
    assert (tmp_path / "out").read_bytes() == b""
