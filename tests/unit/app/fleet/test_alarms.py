from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import ConflictError, InputError, NotFoundError
from prony.instruments.samples import SAMPLES, sample_frame
from prony.model.alarm import Kind
from prony.model.queue import Submission
from prony.model.result import Repetition
from prony.model.schedule import NewSchedule
from servers.receiver import Receiver

from .alarming import alarmed, failed, pass_to, report, sent, told
from .fleet_fixture import ME, FakeAgent, FleetFixture, recipe
from .parcels import AT, SUT, repacked, write

pytestmark = pytest.mark.anyio
_STORM = 20


# From what happens to who is told


async def test_a_failed_experiment_is_told_and_so_is_that_it_is_over(
    fleet_fixture: FleetFixture, there: Receiver
) -> None:
    await alarmed(fleet_fixture, there, severity="critical")
    fake_agent = await fleet_fixture.agent()
    await failed(fleet_fixture, fake_agent)
    await pass_to(fleet_fixture, seconds=9)
    assert there.received == []  # more may follow
    await pass_to(fleet_fixture, seconds=2)
    assert told(there) == [("firing", 1)]
    first = there.received[0].json
    assert first["severity"] == "critical"
    assert first["items"][0]["facts"]["failed"] == 1
    assert first["text"].startswith("[critical] ops\n1 of 1 job of small failed (")
    await failed(fleet_fixture, fake_agent, state="complete")
    await pass_to(fleet_fixture, seconds=11)
    assert told(there) == [("firing", 1), ("resolved", 1)]
    (incident,) = (await fleet_fixture.fleet.alarms.incidents("ops")).items
    assert incident.closed_at is not None
    assert (await fleet_fixture.fleet.alarms.get("ops")).open == 0


async def test_what_has_ended_is_forgotten_after_90_days_with_what_was_told_of_it(
    fleet_fixture: FleetFixture, there: Receiver
) -> None:
    await alarmed(fleet_fixture, there)
    fake_agent = await fleet_fixture.agent()
    await failed(fleet_fixture, fake_agent)
    await failed(fleet_fixture, fake_agent, state="complete")
    await failed(fleet_fixture, fake_agent, "other")
    await pass_to(fleet_fixture, seconds=11)
    assert (len((await fleet_fixture.fleet.alarms.incidents("ops")).items), len(await sent(fleet_fixture))) == (2, 2)
    await pass_to(fleet_fixture, days=91)
    assert [one.subject for one in (await fleet_fixture.fleet.alarms.incidents("ops")).items] == ["other"]
    assert await sent(fleet_fixture) == []


async def test_a_storm_of_failures_is_one_message(fleet_fixture: FleetFixture, there: Receiver) -> None:
    await alarmed(fleet_fixture, there)
    fake_agent = await fleet_fixture.agent()
    for number in range(_STORM):
        await failed(fleet_fixture, fake_agent, f"recipe-{number}")
    await pass_to(fleet_fixture, seconds=11)
    await pass_to(fleet_fixture, minutes=5)
    assert told(there) == [("firing", _STORM)]
    message = there.received[0].json
    assert len(message["items"]) == 5
    assert f"and {_STORM - 5} more" in message["text"]
    assert (await fleet_fixture.fleet.alarms.get("ops")).open == _STORM


async def test_the_same_again_is_counted_and_told_once(fleet_fixture: FleetFixture, there: Receiver) -> None:
    await alarmed(fleet_fixture, there, "gate failed")
    for _ in range(3):
        await report(fleet_fixture)
    await pass_to(fleet_fixture, seconds=11)
    for _ in range(4):
        await report(fleet_fixture)
    await pass_to(fleet_fixture, hours=1)
    assert told(there) == [("firing", 3)]
    (incident,) = (await fleet_fixture.fleet.alarms.incidents("ops")).items
    assert (incident.count, incident.closed_at) == (7, None)


async def test_between_two_messages_it_is_quiet(fleet_fixture: FleetFixture, there: Receiver) -> None:
    await alarmed(fleet_fixture, there, "gate failed", quiet="1h")
    await report(fleet_fixture, subject="one")
    await pass_to(fleet_fixture, seconds=11)
    for subject in ("two", "three", "four"):
        await pass_to(fleet_fixture, minutes=10)
        await report(fleet_fixture, subject=subject)
    assert told(there) == [("firing", 1)]
    await pass_to(fleet_fixture, minutes=31)
    assert told(there) == [("firing", 1), ("firing", 3)]


async def test_what_does_not_end_is_told_again(fleet_fixture: FleetFixture, there: Receiver) -> None:
    await alarmed(fleet_fixture, there, "gate failed", again="6h")
    await report(fleet_fixture)
    await pass_to(fleet_fixture, seconds=11)
    await pass_to(fleet_fixture, hours=5, minutes=59)
    assert told(there) == [("firing", 1)]
    for _ in range(2):
        await pass_to(fleet_fixture, minutes=2)
    assert told(there) == [("firing", 1), ("again", 1)]
    await report(fleet_fixture, is_over=True)
    await pass_to(fleet_fixture, hours=7)
    await pass_to(fleet_fixture, hours=7)
    assert [kind for kind, _ in told(there)] == ["firing", "again", "resolved"]


async def test_a_lost_agent_is_told_and_that_it_is_back(fleet_fixture: FleetFixture, there: Receiver) -> None:
    await alarmed(fleet_fixture, there, "agent lost")
    fake_agent = await fleet_fixture.agent("rack")
    await fleet_fixture.pass_time(150)
    assert (await fake_agent.shown()).state == "lost"
    await pass_to(fleet_fixture, seconds=11)
    assert told(there) == [("firing", 1)]
    assert there.received[0].json["items"][0]["subject"] == fake_agent.id
    await fake_agent.beat()
    await pass_to(fleet_fixture, seconds=11)
    assert told(there) == [("firing", 1), ("resolved", 1)]


async def test_a_missed_schedule_is_told(fleet_fixture: FleetFixture, there: Receiver) -> None:
    await alarmed(fleet_fixture, there, "schedule missed")
    submission = Submission(text=recipe(1))
    await fleet_fixture.fleet.schedules.add(NewSchedule(submission=submission, cron="0 * * * *", missed="skip"), who=ME)
    await pass_to(fleet_fixture, hours=1)
    await pass_to(fleet_fixture, hours=3, minutes=30)
    await pass_to(fleet_fixture, seconds=11)
    assert told(there) == [("firing", 1)]
    assert "3 missed while no server was up" in there.received[0].json["text"]
    await pass_to(fleet_fixture, minutes=29, seconds=49)
    await pass_to(fleet_fixture, seconds=11)
    assert told(there) == [("firing", 1), ("resolved", 1)]


@pytest.mark.parametrize(
    ("when", "kind", "is_told"),
    [
        ("gate failed", "gate_failed", True),
        ("gate failed", "regression", False),
        ("regression", "regression", True),
        ("regression", "suspect", False),
        ("suspect", "suspect", True),
        ("suspect", "regression", True),
    ],
)
async def test_whoever_finds_a_change_or_a_gate_reports_it_in_one_place(
    local: FleetFixture, there: Receiver, when: str, kind: Kind, is_told: bool
) -> None:
    await alarmed(local, there, when)
    await report(local, kind, facts={"ratio": 1.07, "odd": float("nan"), "recipe": "small"})
    await pass_to(local, seconds=11)
    assert bool(there.received) is is_told
    if is_told:
        assert there.received[0].json["items"][0]["facts"] == {"ratio": 1.07, "odd": "nan", "recipe": "small"}


async def test_an_alarm_for_one_recipe_hears_of_no_other(local: FleetFixture, there: Receiver) -> None:
    await alarmed(local, there, "gate failed", recipe="mine")
    await report(local, facts={"recipe": "other"})
    await report(local, facts={})
    assert (await local.fleet.alarms.get("ops")).open == 0
    await report(local, facts={"recipe": "mine"})
    assert (await local.fleet.alarms.get("ops")).open == 1


# Thresholds


async def measured(fake_agent: FakeAgent, each_ns: int, folder: Path, more: str = "") -> None:
    """Bring a result of six runs that took so long; `more` is added to its recipe."""
    await fake_agent.fleet_fixture.submit(recipe(1) + more)
    lease = await fake_agent.lease()
    runs = tuple(Repetition(index=index, started_at=AT) for index in range(6))
    write(folder, lease.job, repetitions=runs)
    begins = list(range(1_000_000, 11_000_000, 1_000_000))
    frame = sample_frame([(run, "measure", begins, [one + each_ns + run for one in begins]) for run in range(6)])
    frame.write_parquet(folder / SAMPLES)
    assert (await fake_agent.send(lease, repacked(folder))).accepted


async def test_a_threshold_is_held_against_every_result(
    fleet_fixture: FleetFixture, there: Receiver, tmp_path: Path
) -> None:
    await alarmed(fleet_fixture, there, "inference_ms.p50 > 0.2")
    fake_agent = await fleet_fixture.agent()
    await measured(fake_agent, 100_000, tmp_path / "fast")
    assert (await fleet_fixture.fleet.alarms.get("ops")).open == 0
    await measured(fake_agent, 300_000, tmp_path / "slow")
    await pass_to(fleet_fixture, seconds=11)
    assert told(there) == [("firing", 1)]
    item = there.received[0].json["items"][0]
    assert "Inference p50 is 0.3 ms [0.3, 0.3], > 0.2" in item["text"]
    assert item["facts"]["low"] > 0.2
    await measured(fake_agent, 100_000, tmp_path / "fast again")
    await pass_to(fleet_fixture, seconds=11)
    assert told(there) == [("firing", 1), ("resolved", 1)]


async def test_a_gate_that_fails_is_told_and_that_it_holds_again(
    fleet_fixture: FleetFixture, there: Receiver, tmp_path: Path
) -> None:
    await alarmed(fleet_fixture, there, "gate failed")
    fake_agent = await fleet_fixture.agent()
    gates = "gates: ['inference_ms.p50 <= 0.2']\n"
    await measured(fake_agent, 300_000, tmp_path / "slow", gates)
    await fleet_fixture.fleet.gates.judge_ended()
    await pass_to(fleet_fixture, seconds=11)
    assert told(there) == [("firing", 1)]
    item = there.received[0].json["items"][0]
    assert "1 of 1 gates of small failed" in item["text"]
    assert "inference_ms.p50 <= 0.2" in item["text"]
    await measured(fake_agent, 300_000, tmp_path / "no gates")  # the same recipe without any says nothing of them
    await fleet_fixture.fleet.gates.judge_ended()
    await measured(fake_agent, 100_000, tmp_path / "fast", gates)
    await fleet_fixture.fleet.gates.judge_ended()
    await pass_to(fleet_fixture, seconds=11)
    assert told(there) == [("firing", 1), ("resolved", 1)]
    assert not fleet_fixture.fleet.state.ended


async def test_gates_of_what_ended_before_a_server_was_killed_are_judged_by_the_next(
    fleet_fixture: FleetFixture, there: Receiver, tmp_path: Path
) -> None:
    await alarmed(fleet_fixture, there, "gate failed")
    await measured(await fleet_fixture.agent(), 300_000, tmp_path / "slow", "gates: ['inference_ms.p50 <= 0.2']\n")
    fleet_fixture.fleet.state.ended.clear()  # as it is in a server that has just begun
    await fleet_fixture.fleet.gates.remember_ended()
    await fleet_fixture.fleet.gates.judge_ended()
    await pass_to(fleet_fixture, seconds=11)
    assert told(there) == [("firing", 1)]


# Trying out, and keeping secrets


async def test_a_test_really_sends_and_says_what_came_of_it(fleet_fixture: FleetFixture, there: Receiver) -> None:
    await alarmed(fleet_fixture, there)
    answer = await fleet_fixture.fleet.alarms.send_test("ops", who=ME)
    assert answer.ok
    assert told(there) == [("test", 1)]
    there.statuses = [500]
    answer = await fleet_fixture.fleet.alarms.send_test("ops", who=ME)
    assert [one.state for one in answer.deliveries] == ["failed"]  # somebody waits for the answer: not again later
    assert answer.deliveries[0].tries[0].said == "it answered 500"
    await pass_to(fleet_fixture, hours=1)
    assert len(there.received) == 2


async def test_no_answer_holds_an_address_or_the_secret(fleet_fixture: FleetFixture, there: Receiver) -> None:
    made = await alarmed(fleet_fixture, there)
    await fleet_fixture.fleet.alarms.send_test("ops", who=ME)
    answers = [
        made.alarm,
        await fleet_fixture.fleet.alarms.get("ops"),
        await fleet_fixture.fleet.alarms.page(),
        await fleet_fixture.fleet.alarms.incidents("ops"),
        await fleet_fixture.fleet.alarms.deliveries("ops"),
    ]
    shown = "".join(one.model_dump_json() for one in answers)
    assert "sEcReT" not in shown
    assert made.secret not in shown
    assert f"webhook+http://127.0.0.1:{there.port}/***" in shown


async def test_an_alarm_that_is_removed_takes_everything_along(fleet_fixture: FleetFixture, there: Receiver) -> None:
    await alarmed(fleet_fixture, there, "gate failed")
    await report(fleet_fixture)
    await fleet_fixture.fleet.alarms.remove("ops", who=ME)
    await report(fleet_fixture)
    await pass_to(fleet_fixture, seconds=11)
    assert there.received == []
    with pytest.raises(NotFoundError, match="no alarm 'ops'"):
        await fleet_fixture.fleet.alarms.get("ops")


async def test_one_that_was_removed_elsewhere_is_passed_over(fleet_fixture: FleetFixture, there: Receiver) -> None:
    await alarmed(fleet_fixture, there, "gate failed")
    in_mind = fleet_fixture.fleet.alarm_engine.alarms
    await fleet_fixture.fleet.alarms.remove("ops", who=ME)
    fleet_fixture.fleet.alarm_engine.alarms = in_mind
    await report(fleet_fixture)
    await pass_to(fleet_fixture, seconds=11)
    assert there.received == []


async def test_a_name_is_taken_once(fleet_fixture: FleetFixture) -> None:
    await alarmed(fleet_fixture, None)
    with pytest.raises(ConflictError, match="'ops' exists already"):
        await alarmed(fleet_fixture, None)


# With a recipe


OWN = """
alarms:
- {name: slow, when: inference_ms.p50 > 0.2, severity: critical, to: [ops]}
- {name: broken, when: experiment failed}
"""


async def test_a_recipe_brings_alarms_that_tell_by_way_of_others(fleet_fixture: FleetFixture, there: Receiver) -> None:
    await alarmed(fleet_fixture, there, "agent lost")
    fake_agent = await fleet_fixture.agent()
    for _ in range(2):  # the second takes the place of the first
        await fleet_fixture.submit(recipe(1) + OWN)
        lease = await fake_agent.lease()
        await fake_agent.finish(lease, "failed", failure=SUT)
    found = {one.name: one for one in (await fleet_fixture.fleet.alarms.page()).items}
    assert list(found) == ["ops", "small.broken", "small.slow"]
    assert (found["small.slow"].via, found["small.slow"].recipe) == (("ops",), "small")
    assert found["small.broken"].open == 1
    assert (await fleet_fixture.fleet.alarms.send_test("small.slow", who=ME)).ok
    assert there.received[-1].json["alarm"] == "small.slow"


async def test_a_recipe_that_counts_on_an_alarm_that_is_not_there_is_refused(fleet_fixture: FleetFixture) -> None:
    with pytest.raises(InputError, match="'ops', which does not exist"):
        await fleet_fixture.submit(recipe(1) + OWN)
    assert (await fleet_fixture.fleet.experiments.page()).items == ()


async def test_an_address_has_no_place_in_a_recipe(local: FleetFixture) -> None:
    with pytest.raises(InputError, match="text like ops"):
        await local.submit(recipe(1) + OWN.replace("[ops]", "['json://127.0.0.1']"))
