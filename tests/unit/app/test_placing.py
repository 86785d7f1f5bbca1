"""Experiments at targets: what is written before what is done, what is tried again, and what a refusal leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest

from prony.app.local_logs import local_logs, read_local_log
from prony.app.maintain_targets import check_target_lines, clean_target
from prony.app.placing import RemoteRuns
from prony.app.targets import add_target, ask_target, find_target, open_executor, read_targets, remove_target
from prony.errors import CapacityError, ConflictError, InputError, NotFoundError, TransportError
from prony.instruments.samples import SAMPLES
from prony.model.device import Environment
from prony.model.event import Event
from prony.model.experiment import ExperimentState
from prony.model.job import Job
from prony.model.log import EVERYTHING
from prony.model.place import QueueWish
from prony.model.result import Failure
from prony.model.target import CheckLine, Handle, Observation, Payload, PlaceEnding, PlacePhase, Target
from prony.ports.executor import BuildPackages
from prony.recipe import LoadedRecipe, loads
from prony.runner.environment import look_around
from prony.runner.folder import decline
from prony.runner.job_folder import RESULT, read_job_files
from prony.store.home import Home
from prony.store.store import Store

RECIPE = """\
name: there
workload: {kind: script, command: "echo speed=1", metrics: [{name: speed, pattern: "speed=([0-9]+)"}]}
measure: {repeats: 1, warmup: 0}
place: {on: box}
"""
RUNNING = {"phase": PlacePhase.RUNNING, "nodes": ("n1",)}
DONE = {"phase": PlacePhase.ENDED, "ending": PlaceEnding.DONE}


class PowerCutError(BaseException):
    """This process is killed here."""


class FakeTarget:
    """A target that keeps what was sent to it, whoever asks, and shows a row of observations of each submission."""

    def __init__(self, *plans: Sequence[Mapping[str, Any]]) -> None:
        self.plans = [list(plan) for plan in plans]
        self.sent: dict[str, list[Mapping[str, Any]]] = {}
        self.payloads: list[Payload] = []
        self.jobs: dict[str, list[bytes]] = {}
        self.ended: list[str] = []
        self.cut_after_submission = False
        self.loses_samples = False
        self.refusal: Exception | None = None
        self.troubles = 0

    def open(self, target: Target, home: Home, clock: object) -> FakeExecutor:
        del target, home, clock
        return FakeExecutor(self)


class FakeExecutor:
    Options: ClassVar[type[Any]] = Target
    joins_nodes: ClassVar[bool] = False

    def __init__(self, there: Any, site: object = None) -> None:
        del site
        self._there: FakeTarget = there

    def check(self) -> list[CheckLine]:
        return []

    def submit(self, payload: Payload) -> Handle:
        there = self._there
        if there.refusal is not None:
            raise there.refusal
        if payload.key not in there.sent:
            there.sent[payload.key] = list(there.plans.pop(0))
            there.payloads.append(payload)
            there.jobs[payload.key] = [path.read_bytes() for path in read_job_files(Path(payload.folder))]
        if there.cut_after_submission:
            there.cut_after_submission = False
            raise PowerCutError
        return Handle(key=payload.key, native_id="7")

    def look(self, handles: Sequence[Handle], offsets: Mapping[str, int]) -> list[Observation]:
        del offsets
        if self._there.troubles:
            self._there.troubles -= 1
            raise TransportError("the line is cut")
        plan = self._there.sent[handles[0].key]
        seen = plan.pop(0) if len(plan) > 1 else plan[0]
        return [Observation.model_validate({"key": handles[0].key, **seen})]

    def fetch(self, handle: Handle, into: Path) -> bool:
        if self._there.sent[handle.key][0].get("ending") is PlaceEnding.DONE:
            for text in self._there.jobs[handle.key]:
                job, place = Job.read_json(text), into / RESULT
                if not (place / job.id).exists():
                    failure = Failure(code="sut", message="it failed there", whose="sut")
                    decline(place / job.id, job, environment(), failure, datetime.now(UTC))
                    if self._there.loses_samples:
                        (place / job.id / SAMPLES).unlink()
        return True

    def end(self, handles: Sequence[Handle]) -> None:
        self._there.ended += [handle.key for handle in handles]

    def install(self, release: str, extras: Sequence[str], build: BuildPackages) -> str:
        del extras, build
        return release


@cache
def environment() -> Environment:
    return look_around(Path("/nowhere"))


class Notes:
    """Keeps what is shown."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.events: list[Event] = []
        self.places: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def event(self, event: Event) -> None:
        self.events.append(event)

    def place(self, job_id: str, agent: str) -> None:
        self.places.append(f"{job_id} {agent}")


@pytest.fixture
def store(tmp_path: Path, migrated_file: Path) -> Iterator[Store]:
    home = Home(tmp_path / "home").create()
    home.database.write_bytes(migrated_file.read_bytes())
    add_target(home, "box", {"kind": "local"})
    with Store.open(home) as opened:
        yield opened


def runs_at(store: Store, there: FakeTarget) -> RemoteRuns:
    return RemoteRuns(store, pause=lambda _: None, open_target=there.open)


def recipe() -> LoadedRecipe:
    return loads(RECIPE)


def test_a_run_is_submitted_followed_fetched_and_cleared(store: Store, tmp_path: Path) -> None:
    there, notes = FakeTarget([{"phase": PlacePhase.QUEUED, "reason": "no node is free"}, RUNNING, DONE]), Notes()
    runs = runs_at(store, there)
    experiment, jobs = runs.plan(recipe(), base=tmp_path)
    assert experiment.state is ExperimentState.PENDING
    data = runs.follow(experiment.id, notes)
    assert data is not None
    assert [entry.result.state for entry in data.entries] == ["failed"]
    assert notes.notes == ["  queued at box: no node is free"]
    assert notes.places == [f"{jobs[0].id} n1"]
    (placement,) = runs.placements.of(experiment.id)
    assert (placement.phase, placement.nodes) == (PlacePhase.CLEARED, ("n1",))
    assert there.ended == [placement.key]
    note = store.home.result_folder(experiment.id, jobs[0].id) / "placement.json"
    assert '"native_id": "7"' in note.read_text()
    assert runs.follow(experiment.id, notes) is not None  # what has ended is only shown


def test_the_log_of_a_job_at_a_target_can_be_read_while_it_runs(store: Store, tmp_path: Path) -> None:
    says = {"kind": "printed", "phase": "run-0000.out"}
    there = FakeTarget([RUNNING, RUNNING, DONE])
    runs = runs_at(store, there)
    experiment, (job,) = runs.plan(recipe(), base=tmp_path)
    events = [says | {"job_id": job.id, "message": "one\ntwo"}, says | {"job_id": "../stranger", "message": "three"}]
    there.plans[0][1] = RUNNING | {"events": events}
    read: list[bytes] = []

    class Reader(Notes):
        def event(self, event: Event) -> None:
            if event.job_id == job.id:
                (log,) = local_logs(store, experiment.id)
                read.extend(read_local_log(store, log, EVERYTHING, follow=False, sleep=lambda _: None))

    runs.follow(experiment.id, Reader())
    lines = [line.split(" ", 1)[1] for line in b"".join(read).decode().splitlines()]
    assert lines == ["prony running at box", "run-0000.out one", "run-0000.out two"]
    assert not list(store.home.root.rglob("stranger*"))
    store.delete_experiment(experiment.id)
    assert not list(store.home.root.rglob(f"{job.id}*"))


@pytest.mark.parametrize(("ahead_s", "is_known"), [(-600, True), (3600, False)])
def test_an_earlier_run_is_an_estimate_only_where_it_ended_after_its_start(
    store: Store, tmp_path: Path, ahead_s: int, *, is_known: bool
) -> None:
    began = RUNNING | {"started_at": datetime.now(UTC) + timedelta(seconds=ahead_s)}
    there = FakeTarget([began, DONE], [DONE])
    runs = runs_at(store, there)
    for _ in range(2):
        experiment, _jobs = runs.plan(recipe(), base=tmp_path)
        runs.follow(experiment.id, Notes())
    first, second = (payload.expected_s for payload in there.payloads)
    assert (second == pytest.approx(600, abs=60)) if is_known else (second == first)


def test_a_process_that_dies_after_the_submission_submits_nothing_twice(store: Store, tmp_path: Path) -> None:
    there = FakeTarget([DONE])
    there.cut_after_submission = True
    experiment, _ = runs_at(store, there).plan(recipe(), base=tmp_path)
    with pytest.raises(PowerCutError):
        runs_at(store, there).follow(experiment.id, Notes())
    assert runs_at(store, there).placements.of(experiment.id)[0].phase is PlacePhase.MADE
    assert runs_at(store, there).follow(experiment.id, Notes()) is not None
    assert len(there.payloads) == 1
    assert len(store.records(experiment.id)) == 1


def test_a_process_that_dies_before_it_closes_the_experiment_places_nothing_again(store: Store, tmp_path: Path) -> None:
    there = FakeTarget([RUNNING, DONE])
    runs = runs_at(store, there)
    experiment, _ = runs.plan(recipe(), base=tmp_path)
    runs.follow(experiment.id, Notes())
    # All that a follower leaves that is killed after it cleared the placement.
    store.set_experiment_state(experiment.id, ExperimentState.RUNNING)
    assert runs_at(store, there).follow(experiment.id, Notes()) is not None
    assert store.experiment(experiment.id).state is not ExperimentState.RUNNING
    assert len(there.payloads) == len(runs.placements.of(experiment.id)) == 1


def test_a_node_that_fails_is_avoided_by_the_next_try(store: Store, tmp_path: Path) -> None:
    failed = {"phase": PlacePhase.ENDED, "ending": PlaceEnding.NODE, "reason": "Slurm says NODE_FAIL", "nodes": ("n1",)}
    there, notes = FakeTarget([RUNNING, failed], [DONE]), Notes()
    experiment, _ = (runs := runs_at(store, there)).plan(recipe(), base=tmp_path)
    runs.follow(experiment.id, notes)
    assert [payload.avoid for payload in there.payloads] == [(), ("n1",)]
    assert [record.attempt for record in store.records(experiment.id)] == [2]
    assert "  Slurm says NODE_FAIL: trying again elsewhere" in notes.notes


def test_a_run_that_made_room_may_come_back_to_its_node(store: Store, tmp_path: Path) -> None:
    taken = {"phase": PlacePhase.ENDED, "ending": PlaceEnding.PREEMPTED, "nodes": ("n1",)}
    there = FakeTarget([RUNNING, taken], [DONE])
    experiment, _ = (runs := runs_at(store, there)).plan(recipe(), base=tmp_path)
    runs.follow(experiment.id, Notes())
    assert [payload.avoid for payload in there.payloads] == [(), ()]
    assert [record.attempt for record in store.records(experiment.id)] == [2]


def test_a_run_that_vanished_is_tried_again_and_then_given_up(store: Store, tmp_path: Path) -> None:
    lost = {"phase": PlacePhase.LOST, "reason": "its folder is missing"}
    there, notes = FakeTarget([lost], [lost], [lost]), Notes()
    experiment, jobs = (runs := runs_at(store, there)).plan(recipe(), base=tmp_path)
    runs.follow(experiment.id, notes)
    assert len(there.payloads) == 3
    assert store.experiment(experiment.id).state is ExperimentState.FAILED
    assert [(event.job_id, event.message) for event in notes.events] == [(jobs[0].id, "its folder is missing")]


def test_a_refused_submission_fails_the_experiment_and_a_lost_line_does_not(store: Store, tmp_path: Path) -> None:
    there = FakeTarget([DONE])
    there.refusal = CapacityError("no room for it")
    refused, _ = runs_at(store, there).plan(recipe(), base=tmp_path)
    with pytest.raises(CapacityError):
        runs_at(store, there).follow(refused.id, Notes())
    assert store.experiment(refused.id).state is ExperimentState.FAILED
    there.refusal = TransportError("no way there")
    waiting, _ = runs_at(store, there).plan(recipe(), base=tmp_path)
    with pytest.raises(TransportError):
        runs_at(store, there).follow(waiting.id, Notes())
    assert store.experiment(waiting.id).state is ExperimentState.PENDING
    there.refusal, there.troubles, notes = None, 2, Notes()
    assert runs_at(store, there).follow(waiting.id, notes) is not None
    assert notes.notes == ["box: the line is cut; trying again, nothing is lost"] * 2


def test_one_process_at_a_time_follows_an_experiment(store: Store, tmp_path: Path) -> None:
    runs = runs_at(store, FakeTarget([DONE]))
    experiment, _ = runs.plan(recipe(), base=tmp_path)
    with runs.placements.own(experiment.id), pytest.raises(ConflictError, match="another command follows"):
        runs_at(store, FakeTarget()).follow(experiment.id, Notes())


def test_a_cancelled_run_that_measured_nothing_is_cancelled(store: Store, tmp_path: Path) -> None:
    ended = {"phase": PlacePhase.ENDED, "ending": PlaceEnding.CANCELLED}
    there = FakeTarget([ended])
    experiment, _ = (runs := runs_at(store, there)).plan(recipe(), base=tmp_path)
    with pytest.raises(NotFoundError):
        runs.cancel(experiment.id)
    assert runs.follow(experiment.id, Notes(), until_submitted=True) is None
    runs.cancel(experiment.id)
    assert len(there.ended) == 1
    runs.follow(experiment.id, Notes())
    assert store.experiment(experiment.id).state is ExperimentState.CANCELLED
    with pytest.raises(ConflictError):
        runs.cancel(experiment.id)


@pytest.mark.parametrize(
    "ending", [{"phase": PlacePhase.LOST}, {"phase": PlacePhase.ENDED, "ending": PlaceEnding.NODE}]
)
def test_a_cancelled_run_that_left_nothing_is_not_placed_again(
    store: Store, tmp_path: Path, ending: Mapping[str, Any]
) -> None:
    there, notes = FakeTarget([ending]), Notes()
    experiment, _ = (runs := runs_at(store, there)).plan(recipe(), base=tmp_path)
    runs.follow(experiment.id, notes, until_submitted=True)
    runs.cancel(experiment.id)
    runs.follow(experiment.id, notes)
    assert len(there.payloads) == 1
    assert store.experiment(experiment.id).state is ExperimentState.CANCELLED
    assert [event.state for event in notes.events] == ["cancelled"]


def test_a_cancelled_run_whose_next_try_was_only_written_down_is_not_sent(store: Store, tmp_path: Path) -> None:
    there = FakeTarget([DONE])
    experiment, _ = (runs := runs_at(store, there)).plan(recipe(), base=tmp_path)
    with runs.placements.own(experiment.id):
        runs.placements.mark_cancelled(experiment.id)
    runs.follow(experiment.id, Notes())
    assert there.payloads == []
    assert store.experiment(experiment.id).state is ExperimentState.CANCELLED


def test_a_result_that_came_damaged_does_not_keep_its_run_from_ending(store: Store, tmp_path: Path) -> None:
    there, notes = FakeTarget([DONE]), Notes()
    there.loses_samples = True
    runs = runs_at(store, there)
    experiment, (job,) = runs.plan(recipe(), base=tmp_path)
    data = runs.follow(experiment.id, notes)
    assert data is not None
    assert data.entries == ()
    assert store.experiment(experiment.id).state is ExperimentState.FAILED
    assert [(event.job_id, event.state) for event in notes.events] == [(job.id, "failed")]
    (log,) = local_logs(store, experiment.id)
    text = b"".join(read_local_log(store, log, EVERYTHING, follow=False, sleep=lambda _: None)).decode()
    assert f"the result of {job.id} is not counted: no samples.parquet in " in text
    assert there.ended == [runs.placements.of(experiment.id)[0].key]


def test_a_run_that_was_suspended_is_void(store: Store, tmp_path: Path) -> None:
    there = FakeTarget([RUNNING | {"state": "SUSPENDED", "is_suspect": True}, RUNNING, DONE])
    experiment, _ = (runs := runs_at(store, there)).plan(recipe(), base=tmp_path)
    runs.follow(experiment.id, Notes())
    (record,) = store.records(experiment.id)
    assert record.result.failure is not None
    assert record.result.failure.code == "suspended"


def test_relative_files_of_a_recipe_travel_with_it(store: Store, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "run.sh").write_text("echo speed=1")
    text = RECIPE.replace("command:", "directory: work, command:")
    there = FakeTarget([DONE])
    runs = runs_at(store, there)
    experiment, _ = runs.plan(loads(text), base=tmp_path)
    runs.follow(experiment.id, Notes(), until_submitted=True)
    (job,) = there.jobs[there.payloads[0].key]
    assert b'"inputs/0/work"' in job


def test_a_clean_removes_what_a_deleted_experiment_left(store: Store, tmp_path: Path) -> None:
    there = FakeTarget([RUNNING])
    runs = runs_at(store, there)
    experiment, _ = runs.plan(recipe(), base=tmp_path)
    runs.follow(experiment.id, Notes(), until_submitted=True)
    target = find_target(store.home, "box")
    (key,) = clean_target(target, store, open_target=there.open).left
    store.delete_experiment(experiment.id, force=True)
    assert clean_target(target, store, open_target=there.open).removed == (key,)
    assert key in there.ended
    assert runs.placements.open() == []


@pytest.mark.parametrize(
    ("seen", "status", "words"),
    [
        (
            {"phase": PlacePhase.QUEUED, "reason": "no suitable node is free yet (Resources)"},
            "warn",
            "still queued after 0 s: no suitable node is free yet (Resources)",
        ),
        ({"phase": PlacePhase.STARTING}, "warn", "still starting after 0 s: no reason given"),
        (
            {"phase": PlacePhase.HELD, "reason": "its owner holds it (JobHeldUser)"},
            "failed",
            "held after 0 s: its owner holds it (JobHeldUser)",
        ),
        (RUNNING, "failed", "running after 0 s: no reason given"),
        ({"phase": PlacePhase.LOST}, "failed", "lost"),
    ],
)
def test_a_check_warns_where_its_job_only_waits_for_its_turn(
    store: Store, seen: Mapping[str, Any], status: str, words: str
) -> None:
    there = FakeTarget([seen])
    (line,) = check_target_lines(find_target(store.home, "box"), store.home, patience_s=0, open_target=there.open)
    assert (line.title, line.status, line.value) == ("job", status, words)
    assert len(there.ended) == 1
    assert runs_at(store, there).placements.open() == []


# targets.toml


def test_targets_are_added_beside_what_a_person_wrote_and_removed_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").create()
    (home.root / "targets.toml").write_text('# mine\n[a]\nkind = "local"\n# kept\n\n[b]\nkind = "ssh"\nssh = "b"\n')
    add_target(home, "c", {"kind": "slurm", "native": ("--reservation=x",), "minutes": 30})
    assert {name: one.kind for name, one in read_targets(home).items()} == {"a": "local", "b": "ssh", "c": "slurm"}
    with pytest.raises(ConflictError):
        add_target(home, "c", {"kind": "local"})
    remove_target(home, "b")
    text = (home.root / "targets.toml").read_text()
    assert text.startswith('# mine\n[a]\nkind = "local"\n# kept\n\n[c]\n')
    assert find_target(home, "c").options["native"] == ("--reservation=x",)


def test_what_is_no_table_of_the_file_is_not_removed_from_it(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").create()
    with pytest.raises(InputError, match="ssh:host is an address, not a stored target"):
        remove_target(home, "ssh:host")
    path = home.root / "targets.toml"
    path.write_text('box = {kind = "ssh", ssh = "h"}\n')
    with pytest.raises(InputError, match=r"box has no \[box\] line") as caught:
        remove_target(home, "box")
    assert caught.value.hint == f"remove box from {path} by hand"
    assert list(read_targets(home)) == ["box"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "slurm", "native": ("--uid=0",)}, "must not set the option"),
        ({"kind": "slurm", "native": ("--wrap=rm",)}, "must not set the option"),
        ({"kind": "slurm", "partition": "a b"}, "partition"),
        ({"kind": "ssh"}, "ssh"),
        ({"kind": "ssh", "ssh": "a", "lokc": "x"}, "lokc"),
        ({"ssh": "a"}, "no kind"),
        ({"kind": "cloud"}, "no executor is called"),
    ],
)
def test_a_wrong_option_of_a_target_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        add_target(Home(tmp_path / "home"), "x", options)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"kind": "slurm"}, {"partition": "gpu", "minutes": 10}),
        (
            {"kind": "slurm", "partition": "test", "account": "us"},
            {"partition": "test", "account": "us", "minutes": 10},
        ),
        ({"kind": "local"}, {}),
    ],
)
def test_a_recipe_asks_a_queue_for_what_its_target_leaves_open(
    tmp_path: Path, options: dict[str, Any], wanted: dict[str, Any]
) -> None:
    target = add_target(Home(tmp_path / "home"), "x", options)
    assert ask_target(target, QueueWish(partition="gpu", minutes=10)).options == wanted
    assert ask_target(target, None) == target


def test_what_a_recipe_asks_of_a_queue_is_checked_before_anything_is_kept(store: Store) -> None:
    add_target(store.home, "cluster", {"kind": "slurm"})
    asked = loads(RECIPE.replace("{on: box}", "{on: cluster, queue: {partition: 'a b'}}"))
    with pytest.raises(InputError, match=r"place.queue: cluster.partition"):
        runs_at(store, FakeTarget()).plan(asked)
    assert not store.experiments()


def test_a_host_of_ssh_needs_no_entry_and_an_unknown_name_is_told(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").create()
    target = find_target(home, "ssh:me@box.example")
    assert (target.name, target.kind, target.options["ssh"]) == ("ssh-me-box-example", "ssh", "me@box.example")
    trick = find_target(home, "ssh:-oProxyCommand=x")
    with pytest.raises(InputError, match="is not a host for ssh"):
        open_executor(trick, home)
    with pytest.raises(NotFoundError, match="no target is called 'box'"):
        find_target(home, "box")
