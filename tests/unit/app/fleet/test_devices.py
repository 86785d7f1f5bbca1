"""A server tells how an agent's device does now, and what its results say of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from prony.app.fleet.current_figures import CurrentFigures
from prony.errors import NotFoundError
from prony.model.calibration import Calibration
from prony.model.device import Condition, State

from .fleet_fixture import ME, FleetFixture
from .test_alarms import measured

pytestmark = pytest.mark.anyio


async def test_recent_readings_are_told_with_the_instants_at_which_they_came(local: FleetFixture) -> None:
    agent = await (await local.agent()).shown()
    live, now_s = local.fleet.state.live, local.fleet.context.now()
    for ago_s, power_w in ((10.0, 90.0), (5.0, 95.0), (4.0, 95.0), (0.0, 300.0)):  # one was told twice
        live.note_readings(agent.id, {"gpu0_power_w": power_w}, now_s - ago_s)
    found = await local.fleet.devices.recent_readings(agent.id)
    (line,) = found.lines
    assert (line.title, line.values) == ("GPU 0 power", (90.0, 95.0, 300.0))
    assert [(found.at[-1] - at).total_seconds() for at in found.at] == pytest.approx([10.0, 5.0, 0.0])


async def test_results_of_an_agent_tell_their_noise_and_the_conditions_of_the_newest(
    local: FleetFixture, tmp_path: Path
) -> None:
    fake_agent = await local.agent()
    other = await (await local.agent("other")).shown()
    await measured(fake_agent, 100_000, tmp_path / "one")
    agent = await fake_agent.shown()
    found = await local.fleet.devices.history(agent.id)
    (result,) = found.results
    assert result.noise == pytest.approx(0.0, abs=0.01)
    assert found.checked_at is not None
    assert (await local.fleet.devices.history(other.id)).results == ()


async def test_an_agent_that_ran_nothing_tells_its_conditions_and_its_calibration(local: FleetFixture) -> None:
    agent = await (await local.agent()).shown()
    at = datetime(2025, 6, 1, tzinfo=UTC)
    state = State(taken_at=at, conditions=(Condition(code="turbo", title="Turbo", status="warn", value="on"),))
    calibration = Calibration(id="c1", hardware_id="h", software_id="s", taken_at=at, figures={})
    told = agent.capabilities.model_copy(update={"state": state, "calibration": calibration})
    await local.fleet.agents.set_capabilities(agent.id, told, who=ME)
    found = await local.fleet.devices.history(agent.id)
    assert found.calibrations == (calibration,)
    assert (found.conditions, found.checked_at) == (state.conditions, at)


async def test_the_conditions_of_the_newest_result_stand_before_those_of_an_earlier_begin(
    local: FleetFixture, tmp_path: Path
) -> None:
    fake_agent = await local.agent()
    agent = await fake_agent.shown()
    long_ago = State(taken_at=datetime(2001, 1, 1, tzinfo=UTC))
    told = agent.capabilities.model_copy(update={"state": long_ago})
    await local.fleet.agents.set_capabilities(agent.id, told, who=ME)
    await measured(fake_agent, 100_000, tmp_path / "one")
    found = await local.fleet.devices.history(agent.id)
    assert found.checked_at is not None
    assert found.checked_at > long_ago.taken_at


async def test_an_agent_that_is_not_there_has_no_device(local: FleetFixture) -> None:
    with pytest.raises(NotFoundError):
        await local.fleet.devices.recent_readings("nobody")
    with pytest.raises(NotFoundError):
        await local.fleet.devices.history("nobody")


def test_memory_of_readings_is_bounded_by_number_and_by_agents() -> None:
    figures = CurrentFigures()
    for second in range(500):
        figures.note_readings("busy", {"gpu0_power_w": float(second)}, second)
    assert len(figures.recent["busy"].list_readings()) == 120
    for number in range(1500):
        figures.note_readings(f"a{number}", {"gpu0_power_w": 1.0}, 500.0)
    assert len(figures.recent) == 1000
    assert "busy" not in figures.recent
