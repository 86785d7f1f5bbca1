"""Ended experiments on their way to another program: none is lost, whatever is away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from prony.app.destinations import find_address, read_addresses
from prony.app.fleet.exports import FIRST_PAUSE_S, LONGEST_PAUSE_S, pause_after
from prony.errors import InputError, NotFoundError
from servers.bulk_index import BulkIndex, bulk_index

from .fleet_fixture import ME, SETTINGS, FleetFixture, recipe
from .parcels import SUT

pytestmark = pytest.mark.anyio


@pytest.fixture
def index() -> Iterator[BulkIndex]:
    with bulk_index() as made:
        yield made


def export_to(fleet_fixture: FleetFixture, *addresses: str) -> list[tuple[str, dict[str, object]]]:
    """Have ended experiments sent there; return what the server will say of it."""
    said: list[tuple[str, dict[str, object]]] = []
    fleet_fixture.fleet.context.settings = replace(SETTINGS, export_to=addresses)
    fleet_fixture.fleet.context.hooks.append(
        lambda name, facts: said.append((name, facts)) if "export" in name else None
    )
    return said


async def run_one(fleet_fixture: FleetFixture, name: str = "small", agent: str = "a") -> str:
    """Run an experiment of one job to its end; return its id."""
    view = await fleet_fixture.submit(recipe(1, name))
    fake_agent = await fleet_fixture.agent(agent)
    await fake_agent.finish(await fake_agent.lease())
    return view.experiment.id


def sent(index: BulkIndex) -> set[str]:
    return {str(one["experiment_id"]) for one in index.documents.get("prony-jobs", {}).values()}


async def test_an_ended_experiment_is_sent_once(fleet_fixture: FleetFixture, index: BulkIndex) -> None:
    said = export_to(fleet_fixture, index.address())
    running = await fleet_fixture.submit(recipe(1, "waits"))
    await fleet_fixture.fleet.experiments.delete(running.experiment.id, who=ME)
    done = await run_one(fleet_fixture)
    await fleet_fixture.submit(recipe(1, "waits"))
    await fleet_fixture.fleet.exports.send_due()
    assert sent(index) == {done}
    assert said == [("exported", {"experiment": done, "to": "elasticsearch"})]
    requests = index.requests
    await fleet_fixture.fleet.exports.send_due()
    assert index.requests == requests


async def test_a_destination_that_is_away_is_asked_after_growing_pauses(
    fleet_fixture: FleetFixture, index: BulkIndex
) -> None:
    said = export_to(fleet_fixture, index.address(user="me:sEcReT@"))
    done = {await run_one(fleet_fixture), await run_one(fleet_fixture, agent="b")}
    index.status = 503
    for pause_s in (FIRST_PAUSE_S, 2 * FIRST_PAUSE_S):
        asked = index.requests
        await fleet_fixture.fleet.exports.send_due()
        assert index.requests == asked + 1, "one question is enough: the other would not be taken either"
        await fleet_fixture.fleet.exports.send_due()
        assert index.requests == asked + 1
        fleet_fixture.seconds += pause_s
        fleet_fixture.clock.step(seconds=pause_s)
    assert [name for name, _ in said] == ["not_exported"] * 2
    assert "sEcReT" not in str(said)
    index.status = 200
    await fleet_fixture.fleet.exports.send_due()
    assert sent(index) == done


async def test_one_that_is_refused_holds_up_no_other_and_is_tried_again(
    fleet_fixture: FleetFixture, index: BulkIndex
) -> None:
    said = export_to(fleet_fixture, index.address(), index.address("/other"))
    done = await run_one(fleet_fixture)
    index.refused["prony-numbers"] = 400
    await fleet_fixture.fleet.exports.send_due()
    assert [(name, facts["to"]) for name, facts in said] == [
        ("not_exported", "elasticsearch"), ("exported", "elasticsearch"),
    ]  # fmt: skip
    assert "failed to parse" in str(said[0][1]["reason"])
    assert set(index.documents["other-jobs"]) == set(index.documents["prony-jobs"])
    index.refused.clear()
    await fleet_fixture.fleet.exports.send_due()
    assert "prony-numbers" not in index.documents, "its pause is not over"
    fleet_fixture.clock.step(seconds=FIRST_PAUSE_S)
    await fleet_fixture.fleet.exports.send_due()
    assert {one["experiment_id"] for one in index.documents["prony-numbers"].values()} == {done}


async def test_what_was_run_again_is_sent_again(fleet_fixture: FleetFixture, index: BulkIndex) -> None:
    export_to(fleet_fixture, index.address())
    view = await fleet_fixture.submit(recipe(1, attempts=1))
    fake_agent = await fleet_fixture.agent()
    await fake_agent.finish(await fake_agent.lease(), "failed", failure=SUT)
    await fleet_fixture.fleet.exports.send_due()
    (first,) = index.documents["prony-jobs"].values()
    fleet_fixture.clock.step(seconds=60)
    await fleet_fixture.fleet.experiments.retry(view.experiment.id, who=ME)
    await fake_agent.finish(await fake_agent.lease())
    await fleet_fixture.fleet.exports.send_due()
    (second,) = index.documents["prony-jobs"].values()
    assert (first["state"], second["state"]) == ("failed", "complete")


def test_pauses_double_up_to_an_hour() -> None:
    pauses = [pause_after(tries) for tries in range(2000)]
    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S


def test_an_address_is_found_by_its_name_or_given_as_it_is() -> None:
    known = read_addresses("mlflow+http://127.0.0.1:5000, opensearch+https://search.example.org/bench")
    assert find_address("mlflow", known) == "mlflow+http://127.0.0.1:5000"
    assert find_address("elasticsearch+http://h:9200", known) == "elasticsearch+http://h:9200"
    assert find_address("some/folder", known) is None
    with pytest.raises(InputError, match="no address for elasticsearch is set"):
        find_address("elasticsearch", known)
    with pytest.raises(NotFoundError, match="no destination is called 'mflow'"):
        find_address("mflow+http://127.0.0.1:5000", known)


@pytest.mark.parametrize("text", ["http://u:sEcReT@h", "mlflow", "mlflow+ftp://u:sEcReT@h", "mlflow+http://u:sEcReT@"])
def test_what_is_no_address_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_addresses(text)
    assert "sEcReT" not in str(caught.value)
