"""What a person should look at first is told together: what runs, what failed, who is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.model.gate import GateState
from prony.model.listing import Filters

from .fleet_fixture import SILENCE_S, FleetFixture, recipe
from .test_alarms import measured

pytestmark = pytest.mark.anyio
GATES = "gates: ['inference_ms.p50 <= 0.2']\n"


async def test_an_empty_server_has_nothing_to_tell(local: FleetFixture) -> None:
    found = await local.fleet.queries.overview()
    assert (found.running, found.recent, found.changes, found.failed_gates, found.troubles) == ((), (), (), (), ())
    assert (found.agents, found.stats.experiments) == (0, 0)


async def test_gates_are_judged_and_kept_though_no_alarm_waits_for_them(local: FleetFixture, tmp_path: Path) -> None:
    fake_agent = await local.agent()
    await measured(fake_agent, 300_000, tmp_path / "slow", GATES)
    await local.fleet.gates.judge_ended()
    local.clock.step(minutes=1)
    (news,) = (await local.fleet.queries.overview()).failed_gates
    assert "1 of 1 gates of small failed" in news.text
    await measured(fake_agent, 100_000, tmp_path / "fast", GATES)
    await local.fleet.gates.judge_ended()
    assert (await local.fleet.queries.overview()).failed_gates == ()
    found = await local.fleet.queries.listing(Filters(), "newest", limit=10, cursor=None)
    assert [row.gates for row in found.items] == [GateState.PASSED, GateState.FAILED]
    assert (found.total, found.next) == (2, None)


async def test_an_experiment_that_failed_is_told_with_the_reason_until_the_same_recipe_completes(
    local: FleetFixture, tmp_path: Path
) -> None:
    fake_agent = await local.agent()
    await local.submit(recipe(1) + "place: {attempts: 1}\n")
    await fake_agent.lease()
    await local.pass_time(4 * SILENCE_S)
    (bad,) = (await local.fleet.queries.overview()).failed
    assert (bad.name, bad.state) == ("small", "failed")
    assert "sent nothing for" in bad.text
    local.clock.step(minutes=1)
    await measured(await local.agent("other"), 100_000, tmp_path / "good", "")
    assert (await local.fleet.queries.overview()).failed == ()


async def test_what_runs_and_who_is_lost_is_told(local: FleetFixture) -> None:
    made = await local.submit(recipe(2))
    await local.agent("quiet")
    found = await local.fleet.queries.overview()
    assert [row.id for row in found.running] == [row.id for row in found.recent] == [made.experiment.id]
    assert (found.agents, found.troubles) == (1, ())
    await local.pass_time(4 * SILENCE_S)
    found = await local.fleet.queries.overview()
    assert found.agents == 0
    (lost,) = found.troubles
    assert (lost.name, lost.state) == ("quiet", "lost")


async def test_labels_that_are_changed_are_found(local: FleetFixture) -> None:
    from prony.model.queue import Modification

    from .fleet_fixture import ME

    made = await local.submit(recipe(1))
    await local.fleet.experiments.modify(made.experiment.id, Modification(labels={"team": "audio"}), who=ME)
    found = await local.fleet.queries.listing(Filters(label="team=audio"), "newest", limit=10, cursor=None)
    assert [row.labels for row in found.items] == [{"team": "audio"}]
    assert found.labels == ("team=audio",)
