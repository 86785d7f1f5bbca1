"""A text in another program's format, submitted to a server: it is what it would be here."""

from __future__ import annotations

import pytest

from prony.errors import RecipeError
from prony.model.queue import Submission

from .fleet_fixture import ME, FleetFixture

pytestmark = pytest.mark.anyio
DESCRIPTOR = """
spec_version = "0.1.0"
[info]
description = "a test"
scheduling = "single_run"
[hardware]
instance_type = "p3.8xlarge"
[env]
docker_image = "python:3"
[ml]
benchmark_code = "python3 train.py"
"""


def submission(text: str = DESCRIPTOR) -> Submission:
    return Submission(text=text, name="descriptor.toml")


async def test_a_descriptor_is_submitted_with_its_notes_and_its_own_text(fleet_fixture: FleetFixture) -> None:
    view, _ = await fleet_fixture.fleet.experiments.submit(submission(), who=ME)
    kept = (await fleet_fixture.fleet.experiments.get(view.experiment.id)).experiment
    assert (kept.dialect, kept.recipe.workload.kind, kept.recipe_text) == ("benchmark-ai", "script", DESCRIPTOR)
    assert kept.notes[0].startswith("descriptor.toml:7: hardware.instance_type: p3.8xlarge is not requested")


async def test_what_was_noted_stays_with_an_experiment_that_is_made_again(fleet_fixture: FleetFixture) -> None:
    first, _ = await fleet_fixture.fleet.experiments.submit(submission(), who=ME)
    second, _ = await fleet_fixture.fleet.experiments.rerun(first.experiment.id, who=ME)
    kept = (await fleet_fixture.fleet.experiments.get(second.experiment.id)).experiment
    assert (kept.rerun_of, kept.dialect) == (first.experiment.id, "benchmark-ai")
    assert first.experiment.notes
    assert kept.notes[:-1] == first.experiment.notes
    assert kept.notes[-1] == "image python:3 runs by its name: the earlier results have no digest of it"


async def test_a_wrong_descriptor_is_refused_with_its_lines(fleet_fixture: FleetFixture) -> None:
    with pytest.raises(RecipeError) as found:
        await fleet_fixture.fleet.experiments.submit(submission(DESCRIPTOR.replace('"python:3"', "3")), who=ME)
    assert [(one["line"], one["path"]) for one in found.value.problems] == [(9, "env.docker_image")]


async def test_scheduling_becomes_a_schedule_of_the_server(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.fleet.experiments.submit(submission(DESCRIPTOR.replace("single_run", "0 3 * * *")), who=ME)
    (schedule,) = (await fleet_fixture.fleet.schedules.page()).items
    assert (schedule.name, schedule.timing.cron) == ("descriptor", "0 3 * * *")
