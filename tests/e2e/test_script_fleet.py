"""Scripts through a real server with real agents: their folder travels, and runs only where its owner allows it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.fleet import Fleet, fleet
from prony.client import Client
from prony.errors import InputError, NotFoundError
from prony.model.queue import Submission
from prony.model.schedule import NewSchedule
from prony.runner.script_folders import pack_folder
from servers.waiting import wait_for

RECIPE = """
name: travelled
workload:
  kind: script
  command: ./tool.sh
  directory: scripts
  metrics: [{name: answer, better: higher}]
measure: {repeats: 2}
"""
TOOL = "#!/bin/sh\necho '{\"answer\": 42}'\ncat data/number.txt\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A server, and one agent that may run scripts."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "scripts" / "data").mkdir(parents=True)
    (folder / "scripts" / "data" / "number.txt").write_text("7\n")
    (folder / "scripts" / "tool.sh").write_text(TOOL)
    (folder / "scripts" / "tool.sh").chmod(0o755)
    (folder / "recipe.yaml").write_text(RECIPE)
    with fleet(folder, lease_ttl="10s") as found:
        found.add_server().start()
        found.wait_ready()
        agent = found.add_agent(found.url, options=("--kinds", "script"))
        agent.start()
        wait_for(lambda: "enrolled" in agent.said(), "the agent", 180)
        yield found


def test_the_folder_of_a_script_travels_to_the_agent_and_its_numbers_come_back(lab: Fleet) -> None:
    command = [sys.executable, "-m", "prony", "run", str(lab.folder / "recipe.yaml"), "--server", lab.url, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["estimates"]["answer.p50"]["value"] == 42
    assert job["workload"]["directory"].startswith("sha256:")
    assert job["result"]["script"]["directory"].startswith("sha256:")


def test_a_folder_that_did_not_travel_is_refused_before_anything_is_stored(lab: Fleet) -> None:
    with Client(lab.url) as client:
        with pytest.raises(InputError, match="a folder that this server does not have"):
            client.experiments.submit(Submission(text=RECIPE))
        unknown = f"workload.directory=sha256:{'0' * 64}"
        with pytest.raises(InputError, match="were not uploaded"):
            client.experiments.submit(Submission(text=RECIPE, overrides=(unknown,)))


def test_what_is_not_what_its_name_says_is_not_kept(lab: Fleet, tmp_path: Path) -> None:
    sha256 = pack_folder(lab.folder / "scripts", tmp_path / "scripts.tar")
    with Client(lab.url) as client:
        client.scripts.keep(sha256, (tmp_path / "scripts.tar").read_bytes())
        assert (
            client.scripts.fetch(sha256, tmp_path / "back.tar").read_bytes() == (tmp_path / "scripts.tar").read_bytes()
        )
        with pytest.raises(InputError, match="does not have the checksum sha256"):
            client.scripts.keep("1" * 64, b"something else")
        with pytest.raises(NotFoundError):
            client.scripts.fetch("1" * 64, tmp_path / "none.tar")


def test_a_descriptor_of_benchmark_ai_travels_with_its_scripts_too(lab: Fleet) -> None:
    descriptor = Path(__file__).parents[2] / "recipes" / "benchmark-ai" / "hello-world" / "descriptor.toml"
    command = [sys.executable, "-m", "prony", "run", str(descriptor), "--server", lab.url, "--json", "--no-container"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "note: image python:3 is not used: the command runs directly on the agent's machine" in done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["result"]["script"]["directory"].startswith("sha256:")
    assert job["metrics"]


SCHEDULED = """
spec_version = "0.1.0"
[info]
description = "every night"
scheduling = "0 3 * * *"
labels = {task_name = "nightly"}
[hardware]
instance_type = "local"
strategy = "single_node"
[env]
docker_image = "python:3"
[ml]
benchmark_code = "$(BAI_SCRIPTS_PATH)/src/entrypoint.sh"
"""


@pytest.mark.parametrize("words", [(), ("--detach",)], ids=["followed", "detached"])
def test_a_scheduled_descriptor_says_which_schedule_it_made(lab: Fleet, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Its folder of scripts keeps its name on the way, and an entrypoint that is no program is run all the same."""
    descriptor, name = tmp_path / "nightly.toml", f"nightly{len(words)}"
    descriptor.write_text(SCHEDULED.replace("nightly", name))
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "entrypoint.sh").write_text("#!/bin/sh\necho '{\"answer\": 44}'\n")
    command = [sys.executable, "-m", "prony", "run", str(descriptor), "--script", str(tmp_path / "src")]
    command += ["--no-container", "--server", lab.url, "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    with Client(lab.url) as client:
        made = client.schedules.get(name)
        client.schedules.pause(name)
    assert (told["schedule"]["id"], told["schedule"]["name"]) == (made.id, name)
    assert told["experiment"]["schedule_id"] == made.id
    assert told["schedule"]["timing"]["cron"] == "0 3 * * *"
    assert f"note: schedule {name} ({made.id}) runs it again at '0 3 * * *'; next at " in done.stderr
    if not words:
        assert told["jobs"][0]["estimates"]["answer.p50"]["value"] == 44


def test_a_schedule_of_the_home_keeps_the_folder_as_it_was_and_the_server_there_runs_it(
    lab: Fleet, tmp_path: Path
) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "tool.sh").write_text("echo '{\"answer\": 43}'\n")
    text = RECIPE.replace("travelled", "scheduled").replace("./tool.sh", "sh tool.sh")
    (tmp_path / "recipe.yaml").write_text(text)
    command = [sys.executable, "-m", "prony", "schedule", "add", str(tmp_path / "recipe.yaml"), "--cron", "@yearly"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=lab.environment(lab.server_home))
    assert done.returncode == 0, done.stderr
    shutil.rmtree(tmp_path / "scripts")
    with Client(lab.url) as client:
        fire = client.schedules.run("scheduled")
        assert fire.experiment_id is not None
        wait_for(
            lambda: client.experiments.get(str(fire.experiment_id)).experiment.state == "complete",
            "the scheduled script",
            60,
        )
        (entry,) = client.experiments.results(fire.experiment_id).entries
        assert entry.summary.estimates["answer.p50"].value == 43
        with pytest.raises(InputError, match="a folder that this server does not have"):
            client.schedules.add(NewSchedule(submission=Submission(text=RECIPE), cron="@yearly"))
