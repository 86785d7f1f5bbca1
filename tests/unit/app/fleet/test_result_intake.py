"""Results that agents bring: once, whole, late, twice, damaged, in pieces."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prony.app.fleet import unpack_result
from prony.app.fleet.context import FleetSettings
from prony.errors import ConflictError, InputError, NotFoundError, StoreError, TransportError
from prony.model.estimate import Summary
from prony.model.lease import Lease
from prony.model.result import ResultState
from prony.store import result_tar
from prony.store.folder import FolderContents
from prony.store.home import Home

from .fleet_fixture import ME, SILENCE_S, FakeAgent, FleetFixture, open_fleet, recipe
from .parcels import OURS, SUT, Parcel, nothing, packed, piece, repacked, write

pytestmark = pytest.mark.anyio


async def lent(fleet_fixture: FleetFixture, *names: str, **place: Any) -> tuple[Lease, list[FakeAgent]]:
    """Have one job, lent to the first of these agents."""
    await fleet_fixture.submit(recipe(1, **place))
    fake_agents = [await fleet_fixture.agent(name) for name in names or ("a",)]
    return await fake_agents[0].lease(), fake_agents


async def lost(fleet_fixture: FleetFixture, *names: str, **place: Any) -> tuple[Lease, list[FakeAgent]]:
    """The same, when the first was not heard of for so long that its lease is lost, and the pause is over."""
    lease, fake_agents = await lent(fleet_fixture, *names, **place)
    await fleet_fixture.pass_time(SILENCE_S + 10)
    assert await fleet_fixture.job_state(lease.job.id) != "leased"
    return lease, fake_agents


def left_over(home: Home) -> list[str]:
    return sorted(path.name for path in home.uploads.iterdir()) if home.uploads.exists() else []


async def standing(fleet_fixture: FleetFixture, job_id: str) -> tuple[int, str]:
    """Return the attempt that counts and its state, having read all of it."""
    record = await asyncio.to_thread(fleet_fixture.fleet.context.store.record, job_id)
    assert record is not None
    assert (await fleet_fixture.fleet.results.samples(job_id)).read_bytes()
    assert (await fleet_fixture.fleet.results.telemetry(job_id)).is_file()
    entry = await fleet_fixture.fleet.results.get(job_id)
    assert entry.result == record.result
    return record.attempt, record.result.state.value


# Once


async def test_a_result_is_stored_and_readable(fleet_fixture: FleetFixture, home: Home) -> None:
    lease, (fake_agent,) = await lent(fleet_fixture)
    done = await fake_agent.finish(lease)
    assert (done.accepted, done.lease) == (True, None)
    assert await standing(fleet_fixture, lease.job.id) == (1, "complete")
    data = await fleet_fixture.fleet.results.show(lease.job.experiment_id)
    assert [entry.job.id for entry in data.entries] == [lease.job.id]
    assert left_over(home) == []


async def test_the_next_job_comes_with_the_answer(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(2))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    done = await fake_agent.finish(lease, go_on=True)
    assert done.lease is not None
    assert done.lease.job.id != lease.job.id
    assert (await fake_agent.finish(done.lease, go_on=True)).lease is None


async def test_a_result_may_be_sent_twice_and_counts_once(fleet_fixture: FleetFixture, home: Home) -> None:
    lease, (fake_agent,) = await lent(fleet_fixture)
    made = packed(lease.job)
    assert (await fake_agent.send(lease, made)).accepted
    assert not (await fake_agent.send(lease, made)).accepted
    assert not (await fake_agent.finish(lease, "failed", failure=SUT)).accepted
    assert await standing(fleet_fixture, lease.job.id) == (1, "complete")
    assert left_over(home) == []


async def test_of_many_who_bring_the_same_at_once_one_is_accepted(fleet_fixture: FleetFixture, home: Home) -> None:
    lease, (fake_agent,) = await lent(fleet_fixture)
    made = packed(lease.job)
    answers = await asyncio.gather(*(fake_agent.send(lease, made) for _ in range(6)))
    assert sorted(answer.accepted for answer in answers) == [False] * 5 + [True]
    assert await standing(fleet_fixture, lease.job.id) == (1, "complete")
    assert left_over(home) == []


async def test_a_second_finish_is_not_given_the_lease_that_the_first_was_given(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(2))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    made = packed(lease.job)
    first = await fake_agent.send(lease, made, go_on=True)
    again = await fake_agent.send(lease, made, go_on=True)  # the answer was lost
    assert first.lease is not None
    assert not again.accepted
    assert again.lease is None
    found = await fake_agent.lease()
    assert found.id == first.lease.id


async def test_who_goes_away_while_a_result_is_recorded_has_lost_nothing(
    fleet_fixture: FleetFixture, home: Home
) -> None:
    lease, (fake_agent,) = await lent(fleet_fixture)
    await fleet_fixture.settle()
    sending = asyncio.create_task(fake_agent.finish(lease))
    await fleet_fixture.until(lambda: bool(fleet_fixture.fleet.context.tasks))
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await fleet_fixture.settle()
    assert await fleet_fixture.job_state(lease.job.id) == "complete"
    assert await standing(fleet_fixture, lease.job.id) == (1, "complete")
    assert not (await fake_agent.finish(lease)).accepted
    assert left_over(home) == []


async def test_an_error_beside_it_in_a_transaction_does_not_touch_a_result(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(4))
    fake_agents = [await fleet_fixture.agent(name) for name in "abcd"]
    leases = [await fake_agent.lease() for fake_agent in fake_agents]
    made = [packed(lease.job) for lease in leases]
    sent = [fake_agent.send(lease, one) for fake_agent, lease, one in zip(fake_agents, leases, made, strict=True)]
    wrong = [fleet_fixture.fleet.jobs.cancel("nothing", who=ME) for _ in range(4)]
    both = [one for pair in zip(sent, wrong, strict=True) for one in pair]
    answers = await asyncio.gather(*both, return_exceptions=True)
    assert [getattr(answer, "accepted", None) for answer in answers[::2]] == [True] * 4
    assert all(isinstance(answer, NotFoundError) for answer in answers[1::2])
    for lease in leases:
        assert await standing(fleet_fixture, lease.job.id) == (1, "complete")


# Late


async def test_a_late_result_counts_if_nobody_has_the_job(fleet_fixture: FleetFixture) -> None:
    lease, (fake_agent,) = await lost(fleet_fixture)
    assert (await fake_agent.finish(lease)).accepted
    assert await fleet_fixture.job_state(lease.job.id) == "complete"
    assert await fleet_fixture.tried(lease.job.id) == [(1, "a", "complete")]
    assert await fleet_fixture.state(lease.job.experiment_id) == "complete"
    assert await fake_agent.poll() is None


async def test_a_late_result_ends_the_lease_of_whoever_runs_the_job_again(fleet_fixture: FleetFixture) -> None:
    lease, (one, two) = await lost(fleet_fixture, "one", "two")
    second = await two.lease()
    assert (await one.finish(lease)).accepted
    assert await fleet_fixture.job_state(lease.job.id) == "complete"
    assert (await two.beat(second.id)).cancel == (second.id,)
    assert (await two.progress(second)).cancel
    assert await fleet_fixture.tried(lease.job.id) == [(1, "one", "complete"), (2, "two", "cancelled")]
    assert (await two.finish(second)).accepted  # kept, and no better than the first
    assert await standing(fleet_fixture, lease.job.id) == (1, "complete")
    assert await fleet_fixture.state(lease.job.experiment_id) == "complete"
    assert await fleet_fixture.fleet.leases.list_leases() == ()


async def test_a_late_result_of_a_job_that_another_has_done_is_kept_and_changes_nothing(
    fleet_fixture: FleetFixture,
) -> None:
    lease, (one, two) = await lost(fleet_fixture, "one", "two")
    second = await two.lease()
    await two.finish(second)
    assert (await one.shown()).strikes == 1
    assert (await one.finish(lease)).accepted
    assert await standing(fleet_fixture, lease.job.id) == (2, "complete")
    assert await fleet_fixture.counts(lease.job.experiment_id) == {"complete": 1}
    assert (await one.shown()).strikes == 0  # it can do the job after all
    assert (await two.shown()).strikes == 0


async def test_a_late_result_does_not_bring_back_what_was_cancelled(fleet_fixture: FleetFixture) -> None:
    lease, (fake_agent,) = await lost(fleet_fixture)
    await fleet_fixture.fleet.jobs.cancel(lease.job.id, who=ME)
    assert (await fake_agent.finish(lease)).accepted
    assert await fleet_fixture.job_state(lease.job.id) == "cancelled"
    assert await fleet_fixture.state(lease.job.experiment_id) == "cancelled"
    assert await standing(fleet_fixture, lease.job.id) == (1, "complete")


async def test_a_late_failure_does_not_stop_the_one_that_runs_the_job_again(fleet_fixture: FleetFixture) -> None:
    lease, (one, two) = await lost(fleet_fixture, "one", "two")
    second = await two.lease()
    assert (await one.finish(lease, "failed", failure=SUT)).accepted
    assert (await two.beat(second.id)).cancel == ()
    await two.finish(second)
    assert await standing(fleet_fixture, lease.job.id) == (2, "complete")


async def test_a_late_result_mends_an_experiment_that_had_failed(fleet_fixture: FleetFixture) -> None:
    lease, (fake_agent,) = await lost(fleet_fixture, attempts=1)
    assert await fleet_fixture.state(lease.job.experiment_id) == "failed"
    await fake_agent.finish(lease)
    assert await fleet_fixture.job_state(lease.job.id) == "complete"
    assert await fleet_fixture.state(lease.job.experiment_id) == "complete"


async def test_part_of_a_result_is_better_than_a_lost_lease(fleet_fixture: FleetFixture) -> None:
    lease, (fake_agent,) = await lost(fleet_fixture, attempts=1)
    await fake_agent.finish(lease, "partial")
    assert await fleet_fixture.job_state(lease.job.id) == "partial"
    assert await fleet_fixture.state(lease.job.experiment_id) == "partial"


async def test_who_brings_a_late_result_while_it_runs_another_is_given_nothing_more(
    fleet_fixture: FleetFixture,
) -> None:
    lease, (fake_agent,) = await lent(fleet_fixture)
    await fleet_fixture.pass_time(SILENCE_S)
    await fleet_fixture.submit(recipe(2, "more"))
    running = await fake_agent.lease()
    assert running.job.id != lease.job.id
    done = await fake_agent.finish(lease, go_on=True)
    assert done.accepted
    assert done.lease is None
    assert (await fake_agent.beat(running.id)).cancel == ()


# Damaged


async def test_a_result_that_is_not_the_one_that_was_sent_is_refused_and_may_be_sent_again(
    local: FleetFixture, home: Home
) -> None:
    lease, (fake_agent,) = await lent(local)
    made = packed(lease.job)
    with pytest.raises(TransportError) as refused:
        await fake_agent.send(lease, Parcel(made.content, "0" * 64))
    assert refused.value.code == "checksum_mismatch"
    with pytest.raises(TransportError):
        await fake_agent.send(lease, Parcel(made.content[:-1], made.sha256))
    assert await local.job_state(lease.job.id) == "leased"
    assert (await fake_agent.send(lease, Parcel(made.content, made.sha256.upper()))).accepted
    assert left_over(home) == []


def cut_short(folder: Path) -> None:
    samples = folder / "samples.parquet"
    samples.write_bytes(samples.read_bytes()[:-30])


def without_result(folder: Path) -> None:
    (folder / "result.json").unlink()


def with_nonsense(folder: Path) -> None:
    (folder / "result.json").write_text("{")


def without_samples(folder: Path) -> None:
    (folder / "samples.parquet").unlink()


def of_another_job(folder: Path) -> None:
    for name in ("job.json", "result.json"):
        said = json.loads((folder / name).read_text())
        said |= {"id": "other-001"} if name == "job.json" else {"job_id": "other-001"}
        (folder / name).write_text(json.dumps(said))


def of_two_jobs(folder: Path) -> None:
    said = json.loads((folder / "job.json").read_text())
    (folder / "job.json").write_text(json.dumps(said | {"id": "other-001"}))


def with_other_columns(folder: Path) -> None:
    pl.DataFrame({"x": [1]}).write_parquet(folder / "samples.parquet")


def with_words_for_numbers(folder: Path) -> None:
    columns = {"repetition": [0], "index": ["a"], "phase": ["measure"], "begin_ns": [1], "end_ns": [2]}
    pl.DataFrame(columns).write_parquet(folder / "samples.parquet")


def partial_with_other_columns(folder: Path) -> None:
    with_other_columns(folder)
    said = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(said | {"state": "partial"}))


SPOILED = [with_other_columns, with_words_for_numbers, partial_with_other_columns]


@pytest.mark.parametrize(
    "spoil", [*SPOILED, cut_short, without_result, with_nonsense, without_samples, of_another_job, of_two_jobs]
)
async def test_a_damaged_result_is_the_senders_fault_and_leaves_the_job_as_it_was(
    local: FleetFixture, home: Home, tmp_path: Path, spoil: object
) -> None:
    lease, (fake_agent,) = await lent(local)
    folder = write(tmp_path / "spoiled", lease.job)
    spoil(folder)  # type: ignore[operator]
    with pytest.raises(InputError) as refused:
        await fake_agent.send(lease, repacked(folder))
    assert refused.value.code == "damaged"
    assert await local.job_state(lease.job.id) == "leased"
    assert left_over(home) == []
    assert (await fake_agent.finish(lease)).accepted


async def test_what_is_no_tar_is_refused(local: FleetFixture) -> None:
    lease, (fake_agent,) = await lent(local)
    content = os.urandom(2000)
    digest = hashlib.sha256(content).hexdigest()
    with pytest.raises(InputError) as refused:
        await fake_agent.send(lease, Parcel(content, digest))
    assert refused.value.code == "damaged"


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ENOSPC])
async def test_a_server_that_cannot_read_or_write_does_not_call_the_result_damaged(
    local: FleetFixture, home: Home, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    lease, (fake_agent,) = await lent(local)

    def fail(folder: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(result_tar, "sync_folder", fail)
    with pytest.raises(StoreError):
        await fake_agent.finish(lease)
    assert left_over(home) == []
    monkeypatch.undo()
    assert (await fake_agent.finish(lease)).accepted


async def test_a_disk_that_is_full_when_a_result_is_put_in_its_place_loses_nothing(
    local: FleetFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, (fake_agent,) = await lent(local)

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(StoreError):
        await fake_agent.finish(lease)
    monkeypatch.undo()
    assert await local.job_state(lease.job.id) == "leased"
    assert (await fake_agent.finish(lease)).accepted
    assert await standing(local, lease.job.id) == (1, "complete")


async def test_a_folder_that_a_crash_left_in_the_place_is_replaced(local: FleetFixture, home: Home) -> None:
    lease, (fake_agent,) = await lent(local)
    place = home.result_folder(lease.job.experiment_id, lease.job.id)
    place.mkdir(parents=True)
    (place / "result.json").write_text("half")
    assert (await fake_agent.finish(lease)).accepted
    assert await standing(local, lease.job.id) == (1, "complete")


async def test_a_result_of_what_was_deleted_is_not_known_any_more(fleet_fixture: FleetFixture, home: Home) -> None:
    lease, (fake_agent,) = await lent(fleet_fixture)
    with pytest.raises(ConflictError):
        await fleet_fixture.fleet.experiments.delete(lease.job.experiment_id, who=ME)
    await fake_agent.progress(lease, log="something")
    await fleet_fixture.fleet.experiments.delete(lease.job.experiment_id, force=True, who=ME)
    with pytest.raises(NotFoundError) as refused:
        await fake_agent.finish(lease)
    assert refused.value.code == "no_lease"
    assert (await fake_agent.beat(lease.id)).cancel == (lease.id,)
    assert left_over(home) == []
    assert not home.experiment_folder(lease.job.experiment_id).exists()
    assert not fleet_fixture.fleet.context.log_folder(lease.job.experiment_id).exists()


async def test_an_experiment_that_is_deleted_while_a_result_is_unpacked_stays_deleted(
    fleet_fixture: FleetFixture, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, (fake_agent,) = await lent(fleet_fixture)
    loop, summary = asyncio.get_running_loop(), unpack_result.summarise_brought

    def delete_first(contents: FolderContents) -> Summary:
        deleting = fleet_fixture.fleet.experiments.delete(lease.job.experiment_id, force=True, who=ME)
        asyncio.run_coroutine_threadsafe(deleting, loop).result(120)
        return summary(contents)

    monkeypatch.setattr(unpack_result, "summarise_brought", delete_first)
    with pytest.raises(NotFoundError):
        await fake_agent.finish(lease)
    assert not home.experiment_folder(lease.job.experiment_id).exists()
    assert left_over(home) == []


# In pieces


async def test_an_upload_goes_on_where_it_was_cut(local: FleetFixture, home: Home) -> None:
    lease, _ = await lent(local)
    made, fleet = packed(lease.job), local.fleet

    async def broken() -> AsyncIterator[bytes]:
        yield made.content[:1000]
        raise ConnectionResetError

    assert await fleet.intake.upload_offset(lease.id, who=ME) == 0
    with pytest.raises(ConnectionResetError):
        await fleet.intake.upload(lease.id, 0, broken(), who=ME)
    assert await fleet.intake.upload_offset(lease.id, who=ME) == 1000
    assert await fleet.intake.upload(lease.id, 1000, piece(made.content[1000:3000]), who=ME) == 3000
    for wrong in (0, 1000, 2999, 3001, 10**9):
        with pytest.raises(ConflictError) as refused:
            await fleet.intake.upload(lease.id, wrong, piece(b"x"), who=ME)
        assert refused.value.code == "wrong_offset"
    assert await fleet.intake.upload(lease.id, 3000, piece(made.content[3000:]), who=ME) == len(made.content)
    done = await fleet.intake.finish(lease.id, nothing(), sha256=made.sha256, who=ME)
    assert done.accepted
    assert await standing(local, lease.job.id) == (1, "complete")
    assert left_over(home) == []


async def test_a_finish_after_an_upload_may_be_repeated(fleet_fixture: FleetFixture) -> None:
    lease, _ = await lent(fleet_fixture)
    made = packed(lease.job)
    await fleet_fixture.fleet.intake.upload(lease.id, 0, made.chunks(), who=ME)
    assert (await fleet_fixture.fleet.intake.finish(lease.id, nothing(), sha256=made.sha256, who=ME)).accepted
    again = await fleet_fixture.fleet.intake.finish(lease.id, nothing(), sha256=made.sha256, who=ME)
    assert not again.accepted


async def test_a_connection_that_was_thought_dead_and_goes_on_writes_the_same(local: FleetFixture) -> None:
    lease, _ = await lent(local)
    made, has_begun, may_go_on = packed(lease.job), asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield made.content[:100]
        has_begun.set()
        await may_go_on.wait()
        yield made.content[100:5000]

    stalled = asyncio.create_task(local.fleet.intake.upload(lease.id, 0, slow(), who=ME))
    await has_begun.wait()
    assert await local.fleet.intake.upload(lease.id, 0, made.chunks(), who=ME) == len(made.content)
    may_go_on.set()
    assert await stalled == len(made.content)
    assert (await local.fleet.intake.finish(lease.id, nothing(), sha256=made.sha256, who=ME)).accepted


async def test_what_was_uploaded_of_a_result_that_then_came_whole_is_removed(local: FleetFixture, home: Home) -> None:
    lease, (fake_agent,) = await lent(local)
    await local.fleet.intake.upload(lease.id, 0, piece(b"the beginning"), who=ME)
    assert (await fake_agent.finish(lease)).accepted
    assert left_over(home) == []


async def test_a_finish_without_anything_is_refused(local: FleetFixture, home: Home) -> None:
    lease, _ = await lent(local)
    with pytest.raises(InputError) as refused:
        await local.fleet.intake.finish(lease.id, nothing(), sha256="0" * 64, who=ME)
    assert refused.value.code == "no_body"
    assert left_over(home) == []


async def test_an_upload_that_does_not_fit_its_checksum_begins_anew(local: FleetFixture) -> None:
    lease, _ = await lent(local)
    made = packed(lease.job)
    await local.fleet.intake.upload(lease.id, 0, piece(b"nonsense"), who=ME)
    with pytest.raises(TransportError):
        await local.fleet.intake.finish(lease.id, nothing(), sha256=made.sha256, who=ME)
    assert await local.fleet.intake.upload_offset(lease.id, who=ME) == 0


async def test_uploading_keeps_a_lease(local: FleetFixture) -> None:
    lease, _ = await lent(local)
    for number in range(8):
        await local.fleet.intake.upload(lease.id, number, piece(b"x"), who=ME)
        await local.pass_time(10)
    assert await local.job_state(lease.job.id) == "leased"


async def test_a_result_that_is_too_large_is_refused_however_it_comes(home: Home) -> None:
    async with open_fleet(home, "", FleetSettings(sweep_s=10, reconcile_s=0, max_upload_bytes=5000)) as fleet_fixture:
        lease, (fake_agent,) = await lent(fleet_fixture)
        made = packed(lease.job)
        with pytest.raises(InputError) as refused:
            await fake_agent.send(lease, made)
        assert refused.value.code == "too_large"
        await fleet_fixture.fleet.intake.upload(lease.id, 0, piece(made.content[:4000]), who=ME)
        with pytest.raises(InputError) as refused:
            await fleet_fixture.fleet.intake.upload(lease.id, 4000, piece(made.content[4000:]), who=ME)
        assert refused.value.code == "too_large"
        assert left_over(home) == [f"{lease.id}.part"]


async def test_rubbish_of_killed_servers_is_removed_at_a_start_and_what_may_be_in_use_is_not(home: Home) -> None:
    home.uploads.mkdir(parents=True)
    for name in ("old.part", "young.part"):
        (home.uploads / name).write_bytes(b"x")
    (home.uploads / "old.folder").mkdir()
    for name in ("old.part", "old.folder"):
        os.utime(home.uploads / name, (1, 1))
    async with open_fleet(home):
        assert left_over(home) == ["young.part"]
    shutil.rmtree(home.uploads)


# Out


async def test_an_experiment_can_be_taken_along_when_it_has_ended(fleet_fixture: FleetFixture, tmp_path: Path) -> None:
    lease, (fake_agent,) = await lent(fleet_fixture)
    with pytest.raises(ConflictError):
        await fleet_fixture.fleet.results.export(lease.job.experiment_id)
    with pytest.raises(NotFoundError) as missing:
        await fleet_fixture.fleet.results.get(lease.job.id)
    assert missing.value.code == "no_result"
    await fake_agent.finish(lease, "failed", failure=OURS, repetitions=())
    await fleet_fixture.pass_time(10)
    await fake_agent.finish(await fake_agent.lease())
    path = await fleet_fixture.fleet.results.export(lease.job.experiment_id)
    shutil.unpack_archive(path, tmp_path / "out", "tar", filter="data")
    path.unlink()
    assert list((tmp_path / "out").rglob("samples.parquet"))
    assert "small" in str(await fleet_fixture.fleet.results.report(lease.job.experiment_id, "md"))


async def test_states_of_results_and_of_attempts_are_the_same_words(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(3, attempts=1))
    fake_agent = await fleet_fixture.agent()
    for state in ResultState:
        lease = await fake_agent.lease()
        await fake_agent.finish(lease, state)
        assert await fleet_fixture.job_state(lease.job.id) == state.value
        assert await fleet_fixture.tried(lease.job.id) == [(1, "a", state.value)]
    assert await fleet_fixture.state(lease.job.experiment_id) == "partial"
