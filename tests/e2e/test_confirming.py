"""An engine, a script or a model that gets slower on a real agent: a real server suspects it and runs both in turn."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from chaos.fleet import Fleet, fleet
from prony.cli.submit import submission_of, upload_scripts
from prony.client import Client
from prony.model.alarm import NewAlarm
from prony.model.estimate import Grade
from prony.model.experiment import ExperimentState
from prony.model.history import Change, ChangeState
from prony.model.queue import ExperimentView, Submission
from prony.recipe import load
from servers.commands import call_prony
from servers.receiver import Receiver, receiver
from servers.redis import find_redis
from servers.waiting import wait_for

pytestmark = pytest.mark.slow  # some forty jobs, each in processes of its own
# An inference takes the time that is planned for it: what else the machine does changes no number.
RECIPE = """
name: paced
workload: {{kind: model, model: "{model}", engine: faulty}}
measure: {{runs: 3, repeats: 1, warmup: 0, cold_starts: 1, check: false, isolation: fork}}
"""
# One version of the engine, as an interpreter: once, where a file asks for it, it is much slower.
INTERPRETER = """#!/bin/sh
pace={pace}
if rm {stumble} 2>/dev/null; then pace=0.03; fi
FAULTY_VERSION={version} FAULTY_PACE_S=$pace exec {python} "$@"
"""
PACES = {"1.0": 0.010, "1.1": 0.011}
WITHIN_S = 600  # on a machine that is busy; in all it is a minute or two


@dataclass
class Lab:
    """A server with one agent, which has both versions of the engine."""

    fleet: Fleet
    client: Client
    model: Path

    def use(self, version: str) -> None:
        """Have the agent's jobs, where they ask for no version, run with this one."""
        self._add(version)

    def add_versions(self) -> None:
        for version, pace in PACES.items():
            python = self._interpreter(version)
            words = {"pace": pace, "version": version, "stumble": self.stumble, "python": sys.executable}
            python.write_text(INTERPRETER.format(**words))
            python.chmod(0o755)
            self._add(version, "--version", version)

    @property
    def stumble(self) -> Path:
        return self.fleet.folder / "stumble"

    def run(self, times: int, before: Callable[[], None] = lambda: None, submission: Submission | None = None) -> str:
        """Run a recipe until so many more results may be quoted; return the last one's experiment."""
        asked, good = submission or Submission(text=RECIPE.format(model=self.model)), len(self._quotable())
        while (missing := good + times - len(self._quotable())) > 0:
            before()
            ids = [self.client.experiments.submit(asked).experiment.id for _ in range(missing)]
            for one in ids:
                wait_for(partial(self._is_complete, one), "the runs", WITHIN_S)
        return self._quotable()[-1]

    def _quotable(self) -> list[str]:
        points = [
            point for one in self.client.histories.page().items for point in self.client.histories.get(one.id).points
        ]
        return [point.experiment_id for point in points if point.grade is not Grade.VOID]

    def decided(self, state: ChangeState) -> Change:
        """Wait until runs have decided so of a change."""
        found: list[Change] = []

        def is_decided() -> bool:
            found[:] = self.client.histories.changes(state=state).items
            return bool(found)

        wait_for(is_decided, f"a change that is {state}", WITHIN_S)
        return found[0]

    def confirming(self, change: Change) -> list[ExperimentView]:
        views = self.client.experiments.page(limit=500).items
        return [view for view in views[::-1] if view.experiment.confirms == change.id]

    def _is_complete(self, experiment_id: str) -> bool:
        return self.client.experiments.get(experiment_id).experiment.state is ExperimentState.COMPLETE

    def _interpreter(self, version: str) -> Path:
        return self.fleet.folder / f"python-{version}"

    def _add(self, version: str, *options: str) -> None:
        command = ["engines", "add", "faulty", "--python", str(self._interpreter(version)), *options]
        call_prony(*command, environment=self.fleet.environment(self.fleet.folder / "a0"))


@pytest.fixture
def lab(tmp_path: Path, faulty: Callable[[str], Path]) -> Iterator[Lab]:
    folder, model = tmp_path / "lab", faulty("each:pace")
    folder.mkdir()
    with fleet(folder, lease_ttl="10s") as found:
        found.extra["FLEET_QUIET"] = "1"
        found.add_server(options=("--alarm-window", "0.1s")).start()
        found.wait_ready()
        allowed = ("--model-schemes", "file", "--model-folders", str(model.parent), "--kinds", "model,script,service")
        agent = found.add_agent(found.url, options=allowed)
        with Client(found.url) as client:
            made = Lab(found, client, model)
            made.add_versions()
            made.use("1.0")
            agent.start()
            wait_for(lambda: "enrolled" in agent.said(), "the agent", 180)
            yield made


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def test_one_slow_run_pages_nobody_and_a_slower_engine_is_confirmed_by_runs_in_turn_and_told_once(
    lab: Lab, there: Receiver
) -> None:
    wanted = NewAlarm(name="slower", when="regression", to=(there.url(),))
    alarm = lab.client.alarms.add(wanted).alarm

    lab.run(20)
    stumbled = lab.run(1, before=lab.stumble.touch)
    spike = lab.decided(ChangeState.REJECTED)
    assert spike.experiment_id == stumbled
    assert [view.experiment.job_count for view in lab.confirming(spike)] == [1]
    assert not lab.client.alarms.incidents(alarm.id).items

    lab.run(6)  # after a spike one result alone is no suspicion for a while
    lab.use("1.1")
    lab.run(1)
    change = lab.decided(ChangeState.CONFIRMED)
    assert change.kind == "regression"
    assert 0.08 < change.effect < 0.12
    assert "engine from faulty 1.0 to faulty 1.1" in change.facts
    assert re.fullmatch(r"side by side: 7 of 7 pairs agree, \+\d.* %\], confirmed", change.path[-1])
    duet = lab.confirming(change)[-1]
    assert (duet.experiment.job_count, duet.submitted_by) == (14, "prony")

    (message,) = there.wait()
    assert message.json["items"][0]["subject"]
    assert lab.client.alarms.test(alarm.id).ok
    assert [one.json["kind"] for one in there.received] == ["firing", "test"]
    assert [one.count for one in lab.client.alarms.incidents(alarm.id).items] == [1]


SCRIPT_RECIPE = """
name: told
workload: {kind: script, command: ./tool.sh, directory: scripts, metrics: [{name: took, unit: ms, better: lower}]}
measure: {repeats: 1}
"""
# It tells how long it took by a plan, give or take half a per cent: nothing depends on what else the machine does.
TOOL = """#!/bin/sh
echo "{\\"took\\": $(( {took} * (995 + $$ % 11) ))}"
"""


def git(folder: Path, *words: str) -> str:
    """Call git as somebody, in the first commit's branch."""
    named = ["-c", "user.name=tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *named, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit_tool(folder: Path, took: int) -> str:
    """Write the script, which takes so long, and commit it; return the commit."""
    tool = folder / "scripts" / "tool.sh"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(TOOL.replace("{took}", str(took)))
    tool.chmod(0o755)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", f"take {took}")
    return git(folder, "rev-parse", "HEAD")


def test_a_commit_that_makes_a_script_slower_is_confirmed_by_runs_of_both_commits_in_turn(lab: Lab) -> None:
    folder = lab.fleet.folder / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "recipe.yaml").write_text(SCRIPT_RECIPE)

    def submission() -> Submission:
        loaded = load(folder / "recipe.yaml")
        return submission_of(loaded, upload_scripts(lab.client, loaded))

    fast = commit_tool(folder, 10)
    lab.run(20, submission=submission())
    slow = commit_tool(folder, 12)
    lab.run(1, submission=submission())
    change = lab.decided(ChangeState.CONFIRMED)
    assert 0.18 < change.effect < 0.22
    assert change.commits == (fast, slow)
    words = f"confirming runs: 7 pairs of scripts commit {fast[:10]} and commit {slow[:10]}, run alternately, in "
    assert any(step.startswith(words) for step in change.path)
    assert change.path[-1].startswith("side by side: 7 of 7 pairs agree, +")
    jobs = lab.client.jobs.page(experiment=lab.confirming(change)[-1].experiment.id, limit=100).items
    assert len(jobs) == 14


def test_a_model_file_that_was_replaced_by_a_slower_one_is_confirmed_by_runs_of_both_in_turn(lab: Lab) -> None:
    lab.run(20)
    lab.model.write_text("each:limp")
    lab.run(1)
    change = lab.decided(ChangeState.CONFIRMED)
    assert 0.18 < change.effect < 0.22
    assert any(" pairs of model sha256:" in step for step in change.path)
    assert change.path[-1].startswith("side by side: 7 of 7 pairs agree, +")


REDIS_RECIPE = """
name: kept
workload:
  kind: service
  service: redis
  settings: {{program: "{program}", config: {{appendonly: true}}}}
  options: {{operation: set, value_size: 100}}
load: {{closed: {{concurrency: 1, requests: 400}}, repeats: 1, warmup: none}}
"""
# A Redis whose administrator decides what the recipe leaves open: what stands in a file goes before Prony's own words.
REDIS = """#!/bin/sh
exec {redis} $(cat {file}) "$@"
"""


def test_an_option_that_makes_a_service_slower_is_confirmed_by_runs_with_both_in_turn(lab: Lab) -> None:
    program, file = lab.model.with_name("redis"), lab.model.with_name("words")
    program.write_text(REDIS.format(redis=find_redis(), file=file))
    program.chmod(0o755)
    file.write_text("--appendfsync no")
    asked = Submission(text=REDIS_RECIPE.format(program=program))
    lab.run(20, submission=asked)
    file.write_text("--appendfsync always")
    lab.run(1, submission=asked)
    change = lab.decided(ChangeState.CONFIRMED)
    assert change.effect > 0.2
    assert any(
        " pairs of the service's config.appendfsync no and always, run alternately" in step for step in change.path
    )
