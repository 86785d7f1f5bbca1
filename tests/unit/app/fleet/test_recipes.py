"""How long a recipe takes is told by what the same jobs took before, or by the loads themselves, or not at all."""

from __future__ import annotations

import pytest

from prony.model.agent import Capabilities
from prony.model.check import Expected
from prony.model.device import Cpu, Device, Hardware, Software
from prony.model.queue import Submission

from .fleet_fixture import FACTS, ME, FakeAgent, FleetFixture, recipe

pytestmark = pytest.mark.anyio
LOAD = """
name: loaded
workload: {kind: service, endpoint: "http://127.0.0.1:1", driver: http}
load: {closed: {concurrency: 2}, duration: 10s, repeats: 4}
"""


async def known(fleet_fixture: FleetFixture, name: str = "a", **facts: tuple[str, ...]) -> FakeAgent:
    """Enrol an agent that tells its device: the one that the parcels of the tests come from."""
    fake_agent = await fleet_fixture.agent(name)
    hardware = Hardware(cpu=Cpu(architecture="aarch64", logical_cores=2, allowed_cores=2), memory_mib=4096)
    software = Software(os="linux", kernel="6.1", python="3.11.2", prony="0.1.0")
    device = Device(name="bench", hardware_id="hw-1", software_id="sw-1", hardware=hardware, software=software)
    told = Capabilities(device=device, facts={**FACTS, **facts})
    await fleet_fixture.fleet.agents.set_capabilities(fake_agent.id, told, who=ME)
    await fleet_fixture.settle()
    return fake_agent


async def expected(fleet_fixture: FleetFixture, text: str) -> Expected | None:
    return (await fleet_fixture.fleet.recipes.check(Submission(text=text))).expected


async def test_the_same_jobs_take_as_long_as_they_did(local: FleetFixture) -> None:
    fake_agent = await known(local)
    assert await expected(local, recipe(2)) == Expected(basis="no such job was measured on these machines before")
    await local.submit(recipe(2))
    for seconds in (30, 50):
        lease = await fake_agent.poll()
        assert lease is not None
        await local.pass_time(seconds, beating=[(fake_agent, lease)])
        await fake_agent.finish(lease)
    found = await expected(local, recipe(2))
    assert found == Expected(seconds=80.0, basis="earlier durations of the same jobs on these machines")
    three = await expected(local, recipe(3))
    assert three == Expected(basis="the duration of only 2 of 3 jobs is known")


async def test_several_devices_share_the_jobs(local: FleetFixture) -> None:
    await known(local, kinds=("service",))
    one = await expected(local, LOAD)
    assert one is not None
    assert one.seconds == 40.0
    assert "the durations of the loads" in one.basis
    await known(local, "b", kinds=("service",))
    many = await expected(local, LOAD + "matrix: {load.closed.concurrency: [1, 2, 4, 8]}\n")
    assert many is not None
    assert many.seconds == 80.0


async def test_without_a_device_that_is_known_nothing_is_said(local: FleetFixture) -> None:
    assert await expected(local, recipe(1)) is None
