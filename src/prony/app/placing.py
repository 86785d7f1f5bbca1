"""Run experiments at a target: write down, submit, look, fetch, keep, and clear up; a killed process loses nothing."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from prony.app import experiment_data, results
from prony.app.bench import draft_experiment
from prony.app.check_jobs import check_alone, check_target
from prony.app.pin_images import pin_images
from prony.app.placed_logs import PlacedLogs
from prony.app.targets import ask_target, check_same_cluster, find_target, joins_nodes, open_executor, target_names
from prony.dispatch.placing import (
    explain_absence,
    is_placed_again,
    next_look_s,
    nodes_to_avoid,
    observe,
    placement_key,
    sum_expected_s,
)
from prony.errors import ConflictError, InputError, NotFoundError, PronyError, StoreError, TransportError
from prony.model.event import Event
from prony.model.experiment import Experiment, ExperimentState
from prony.model.experiment_data import ExperimentData
from prony.model.job import Job
from prony.model.recipe import Recipe
from prony.model.result import ResultState
from prony.model.states import OVER, outcome_of_results
from prony.model.target import Handle, Observation, Payload, PlaceEnding, Placement, PlacePhase, Target
from prony.ports.clock import Clock, SystemClock
from prony.ports.executor import Executor
from prony.recipe import LoadedRecipe, dump, loads
from prony.runner.job_folder import RESULT, write_job_folder
from prony.store.home import Home
from prony.store.placements import Placements
from prony.store.store import Store

_LONGEST_PAUSE_S = 60.0
_AT_WORK = frozenset(PlacePhase) - {
    PlacePhase.MADE, PlacePhase.ENDED, PlacePhase.LOST, PlacePhase.FETCHED, PlacePhase.CLEARED,
}  # fmt: skip


class PlacementFollower(Protocol):
    """Who shows a run that is elsewhere."""

    def event(self, event: Event) -> None:
        """Show what a runner said."""

    def place(self, job_id: str, agent: str) -> None:
        """Say where a job runs."""

    def note(self, text: str) -> None:
        """Say something about the whole."""


class _Unseen:
    """Shows nothing: for runs that nobody follows."""

    def event(self, event: Event) -> None:
        del event

    def place(self, job_id: str, agent: str) -> None:
        del job_id, agent

    def note(self, text: str) -> None:
        del text


class RemoteRuns:
    """Experiments of this home that run at targets."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock | None = None,
        pause: Callable[[float], None] = time.sleep,
        open_target: Callable[[Target, Home, Clock], Executor] = open_executor,
    ) -> None:
        self._store = store
        self._open_target = open_target
        self._clock = clock or SystemClock()
        self._pause = pause
        self.placements = Placements(store.home)
        self._logs = PlacedLogs(self.placements)
        self._executors: dict[str, Executor] = {}

    def plan(
        self, loaded: LoadedRecipe, *, base: Path | None = None, rerun_of: str | None = None
    ) -> tuple[Experiment, list[Job]]:
        """Keep a new experiment that is to run at the target which its recipe names; nothing is sent yet.

        Raises:
            InputError: there is no such target, what is asked of it cannot be, or several machines are to run a job
                together.
        """
        place = loaded.recipe.place
        check_target(loaded, target_names(place.on, self._store.home))
        target = ask_target(find_target(self._store.home, place.on or ""), place.queue)
        experiment, jobs = draft_experiment(loaded, self._clock, base=base, rerun_of=rerun_of)
        experiment, jobs = pin_images(self._store, experiment, jobs)
        if joins_nodes(target):
            _find_clients(self._store.home, experiment, jobs, target)
        else:
            check_alone(jobs)
        # No process owns it: whoever follows it next goes on with it.
        experiment = experiment.model_copy(update={"state": ExperimentState.PENDING})
        self._store.save_experiment(experiment, jobs)
        return experiment, jobs

    def is_placed(self, experiment_id: str) -> bool:
        """Is this an experiment that runs, or is to run, at a target?"""
        experiment = self._store.experiment(experiment_id)
        on = experiment.recipe.place.on
        return bool(self.placements.of(experiment_id)) or (
            on not in (None, "local") and experiment.state is ExperimentState.PENDING and not experiment.submitted_by
        )

    def follow(
        self, experiment_id: str, follower: PlacementFollower, *, until_submitted: bool = False
    ) -> ExperimentData | None:
        """Bring an experiment to its end, from wherever it is, and return its numbers; None where it is only to be
        `until_submitted`.

        Raises:
            ConflictError: another process follows it.
            InputError, CapacityError: the target refuses it; the experiment failed.
            TransportError: the target is not reached to submit it; it can be followed again.
        """
        with self.placements.own(experiment_id):
            experiment = self._store.experiment(experiment_id)
            while experiment.state not in OVER:
                placement = self._current(experiment)
                looks = 0
                while placement.phase is not PlacePhase.CLEARED:
                    before = placement.phase
                    placement = self._advance(placement, follower, looks)
                    looks = looks + 1 if placement.phase is before else 0
                    if until_submitted and placement.phase is not PlacePhase.MADE:
                        return None
                experiment = self._close(placement, follower)
        return experiment_data.read_experiment_data(self._store, experiment_id)

    def collect(self, experiment_id: str) -> bool:
        """Bring home what has ended or was cancelled, and clear up; leave what waits or runs. Say whether it is done.

        Raises:
            TransportError: the target is not reached; it can be collected again.
        """
        with self.placements.try_own(experiment_id) as taken:
            if not taken:
                return False  # whoever follows it brings it home
            shown = _Unseen()
            placement = self.placements.of(experiment_id)[-1]
            if self.placements.is_cancelled(experiment_id):
                placement = self._stop(placement)
            placement = self._look_until_settled(placement, shown)
            if placement.phase in (PlacePhase.ENDED, PlacePhase.LOST):
                placement = self._fetch(placement)
            if placement.phase is PlacePhase.FETCHED:
                placement = self._clear(placement)
            if placement.phase is PlacePhase.CLEARED:
                self._close(placement, shown)
            return placement.phase is PlacePhase.CLEARED

    def _stop(self, placement: Placement) -> Placement:
        """Stop a cancelled run: whoever cancelled it may not have reached the target."""
        if placement.phase is PlacePhase.MADE:
            self._executor(placement.target).end([Handle(key=placement.key)])
            return self._save(placement, phase=PlacePhase.CLEARED, ending=PlaceEnding.CANCELLED)
        if placement.phase in _AT_WORK and placement.handle is not None:
            self._executor(placement.target).end([placement.handle])
        return placement

    def _look_until_settled(self, placement: Placement, shown: PlacementFollower) -> Placement:
        """Look once, and again while it is about to end."""
        looks = 0
        while placement.phase in _AT_WORK and (looks == 0 or placement.phase is PlacePhase.ENDING):
            self._pause(next_look_s(placement.phase, looks) if looks else 0.0)
            placement, looks = self._look(placement, shown), looks + 1
        return placement

    def cancel(self, experiment_id: str) -> None:
        """Stop what runs at the target; what was measured is fetched by whoever follows it next.

        Raises:
            NotFoundError: it is at no target.
            ConflictError: it has ended.
        """
        if self._store.experiment(experiment_id).state in OVER:
            raise ConflictError(f"experiment {experiment_id} has ended", hint=f"prony show {experiment_id}")
        found = self.placements.of(experiment_id)
        if not found or found[-1].handle is None:
            raise NotFoundError(f"no job of experiment {experiment_id} is at a target", hint="prony targets show NAME")
        # First: what a target removes is gone, and would otherwise be taken for lost and placed again.
        self.placements.mark_cancelled(experiment_id)
        self._executor(found[-1].target).end([found[-1].handle])

    def _current(self, experiment: Experiment) -> Placement:
        """Return the placement to go on with; a new one is written down before anything of it is sent."""
        known = self.placements.of(experiment.id)
        last = known[-1] if known else None
        # One that was cleared may still have to be closed, where its follower was killed between the two.
        if last is not None and not (last.phase is PlacePhase.CLEARED and self._goes_on_elsewhere(last, experiment)):
            return last
        attempt = 1 if last is None else last.attempt + 1
        done, place = self._complete_jobs(experiment.id), experiment.recipe.place
        found = last.target if last else ask_target(find_target(self._store.home, place.on or ""), place.queue)
        jobs = self._store.jobs(experiment.id)
        clients = last.clients if last else _find_clients(self._store.home, experiment, jobs, found)
        return self.placements.save(
            Placement(
                key=placement_key(experiment.id, attempt, self.placements.home_id()),
                experiment_id=experiment.id,
                job_ids=tuple(job.id for job in jobs if job.id not in done),
                target=found,
                clients=clients,
                attempt=attempt,
                avoid=nodes_to_avoid(last) if last else (),
                made_at=self._clock.now(),
            )
        )

    def _advance(self, placement: Placement, follower: PlacementFollower, looks: int) -> Placement:
        """Take one step. Where the target is not reached the step is tried again; only a submission is given up."""
        match placement.phase:
            case PlacePhase.MADE if self.placements.is_cancelled(placement.experiment_id):
                return self._save(placement, phase=PlacePhase.CLEARED, ending=PlaceEnding.CANCELLED)
            case PlacePhase.MADE:
                submitted = self._submit(placement)
                if submitted.handle is not None and submitted.handle.wall_minutes is not None:
                    follower.note(f"  asked {submitted.target.name} for {submitted.handle.wall_minutes} minutes")
                return submitted
            case PlacePhase.ENDED | PlacePhase.LOST:
                step: Callable[[Placement], Placement] = self._fetch
            case PlacePhase.FETCHED:
                step = self._clear
            case _:
                self._pause(next_look_s(placement.phase, looks))
                step = partial(self._look, follower=follower)
        try:
            return step(placement)
        except TransportError as exc:
            follower.note(f"{placement.target.name}: {exc.message}; trying again, nothing is lost")
            self._pause(min(2.0 ** min(looks, 6), _LONGEST_PAUSE_S))
            return placement

    def _submit(self, placement: Placement) -> Placement:
        outgoing = self.placements.folder(placement.experiment_id) / f"{placement.key}.out"
        shutil.rmtree(outgoing, ignore_errors=True)
        try:
            payload = _pack(self._store, self.placements, placement, outgoing)
            handle = self._executor(placement.target).submit(payload)
        except TransportError:
            raise
        except PronyError:
            self._save(placement, phase=PlacePhase.CLEARED, ended_at=self._clock.now())
            self._store.set_experiment_state(
                placement.experiment_id, ExperimentState.FAILED, ended_at=self._clock.now()
            )
            raise
        finally:
            shutil.rmtree(outgoing, ignore_errors=True)
        return self._save(placement, phase=PlacePhase.SUBMITTED, handle=handle, submitted_at=self._clock.now())

    def _look(self, placement: Placement, follower: PlacementFollower) -> Placement:
        handle = placement.handle or Handle(key=placement.key)
        seen = self._executor(placement.target).look([handle], {placement.key: placement.offset})[0]
        seen = explain_absence(seen, is_cancelled=self.placements.is_cancelled(placement.experiment_id))
        self._tell(placement, seen, follower)
        if seen.phase is PlacePhase.RUNNING:
            self._mark_running(placement)
        return self.placements.save(observe(placement, seen))

    def _tell(self, placement: Placement, seen: Observation, follower: PlacementFollower) -> None:
        if (seen.phase, seen.reason) != (placement.phase, placement.reason):
            self._logs.note(placement, f"{seen.phase} at {placement.target.name} {seen.reason}".strip())
        if seen.reason and seen.reason != placement.reason:
            follower.note(f"  {seen.phase} at {placement.target.name}: {seen.reason}")
        if seen.phase is PlacePhase.RUNNING and placement.phase is not PlacePhase.RUNNING:
            where = ",".join(seen.nodes) or placement.target.name
            for job_id in placement.job_ids:
                follower.place(job_id, where)
        for event in seen.events:
            self._logs.note_event(placement, event)
            follower.event(event)

    def _mark_running(self, placement: Placement) -> None:
        if self._store.experiment(placement.experiment_id).state is ExperimentState.PENDING:
            self._store.set_experiment_state(placement.experiment_id, ExperimentState.RUNNING)

    def _fetch(self, placement: Placement) -> Placement:
        """Bring the results home and keep them; done again after a crash it changes nothing."""
        incoming = self.placements.folder(placement.experiment_id) / f"{placement.key}.in"
        if placement.handle is not None and placement.ending is not PlaceEnding.LOST:
            self._executor(placement.target).fetch(placement.handle, incoming)
        placement = placement.model_copy(update={"ended_at": placement.ended_at or self._clock.now()})
        for job_id in placement.job_ids:
            self._keep(placement, job_id, incoming / RESULT / job_id)
        saved = self._save(placement, phase=PlacePhase.FETCHED)
        shutil.rmtree(incoming, ignore_errors=True)
        return saved

    def _keep(self, placement: Placement, job_id: str, came: Path) -> None:
        """Move one result to its place and record it; a folder that is there was moved before a crash.

        What came damaged stays where it is and is not counted: it must not keep the run from ending.
        """
        kept = self._store.home.result_folder(placement.experiment_id, job_id, placement.attempt)
        if not kept.exists() and results.is_begun(came):
            kept.parent.mkdir(parents=True, exist_ok=True)
            came.rename(kept)
        if not results.is_begun(kept):
            return
        try:
            results.mark_placed(kept, placement)
            results.record_result(self._store, kept, attempt=placement.attempt)
        except (StoreError, NotFoundError) as exc:
            if exc.code in ("store_busy", "unknown_kind"):
                raise
            self._logs.note(placement, f"the result of {job_id} is not counted: {exc.message}")

    def _clear(self, placement: Placement) -> Placement:
        if placement.handle is not None:
            self._executor(placement.target).end([placement.handle])
        return self._save(placement, phase=PlacePhase.CLEARED)

    def _close(self, placement: Placement, follower: PlacementFollower) -> Experiment:
        """End the experiment by its results, or leave it open where its jobs are tried again elsewhere."""
        experiment = self._store.experiment(placement.experiment_id)
        if experiment.state in OVER:
            return experiment
        records = {record.job_id: record.result.state for record in self._store.records(experiment.id)}
        missing = [job_id for job_id in placement.job_ids if job_id not in records]
        is_cancelled = self._is_cancelled(placement)
        if self._goes_on_elsewhere(placement, experiment):
            follower.note(f"  {placement.reason or placement.ending}: trying again elsewhere")
            return experiment
        for job_id in missing:
            why = placement.reason or f"ended at {placement.target.name}: {placement.state or placement.ending}"
            state = "cancelled" if is_cancelled else "failed"
            follower.event(Event(kind="finished", job_id=job_id, state=state, message=why))
        is_empty = is_cancelled and not records
        outcome = outcome_of_results(list(records.values()), expected=experiment.job_count)
        return self._store.set_experiment_state(
            experiment.id, ExperimentState.CANCELLED if is_empty else outcome, ended_at=self._clock.now()
        )

    def _goes_on_elsewhere(self, placement: Placement, experiment: Experiment) -> bool:
        """Say whether jobs of a placement that has ended are placed again."""
        left = set(placement.job_ids) - self._complete_jobs(experiment.id)
        is_again = is_placed_again(placement, experiment.recipe.place.attempts)
        return bool(left) and not self._is_cancelled(placement) and is_again

    def _is_cancelled(self, placement: Placement) -> bool:
        return placement.ending is PlaceEnding.CANCELLED or self.placements.is_cancelled(placement.experiment_id)

    def _complete_jobs(self, experiment_id: str) -> set[str]:
        found = self._store.records(experiment_id)
        return {record.job_id for record in found if record.result.state is ResultState.COMPLETE}

    def _executor(self, target: Target) -> Executor:
        if target.name not in self._executors:
            self._executors[target.name] = self._open_target(target, self._store.home, self._clock)
        return self._executors[target.name]

    def _save(self, placement: Placement, **changes: object) -> Placement:
        return self.placements.save(placement.model_copy(update=changes))


def _find_clients(home: Home, experiment: Experiment, jobs: Sequence[Job], target: Target) -> Target | None:
    """Return the target whose nodes send the load, where the recipe names another than the service's.

    Raises:
        InputError: jobs name several, or one that cannot share a job with the service's.
        NotFoundError: there is no such target.
    """
    named = {job.load.clients.on for job in jobs} - {None, target.name}
    if not named:
        return None
    if len(named) > 1:
        raise InputError(f"load.clients.on names several targets: {', '.join(sorted(filter(None, named)))}",
                         hint="one recipe has one place for its clients", code="clients_apart")  # fmt: skip
    clients = ask_target(find_target(home, named.pop() or ""), experiment.recipe.place.queue)
    check_same_cluster(target, clients)
    return clients


def _pack(store: Store, placements: Placements, placement: Placement, folder: Path) -> Payload:
    """Write the payload's folder: job files, and the files that the recipe names by relative paths."""
    experiment = store.experiment(placement.experiment_id)
    anchored = {job.id: job for job in store.jobs(experiment.id) if job.id in placement.job_ids}
    written = loads(dump(experiment.recipe), name=experiment.name).jobs(experiment.id)
    chosen = [job for job in written if job.id in anchored]
    write_job_folder(folder, chosen, [anchored[job.id] for job in chosen])
    return Payload(
        key=placement.key,
        folder=str(folder),
        avoid=placement.avoid,
        expected_s=_longest_before_s(store, placements, placement) or sum_expected_s(list(anchored.values())),
        # As many as the largest of the jobs needs; smaller ones run on the first of them.
        nodes=max((_count_nodes(job, placement.target) for job in anchored.values()), default=1),
        others=placement.clients,
    )


def _count_nodes(job: Job, target: Target) -> int:
    """Return how many nodes a job gets: where a target has several, also one that a single machine could run."""
    return job.agents if joins_nodes(target) else job.machines


def _longest_before_s(store: Store, placements: Placements, placement: Placement) -> float | None:
    """Return how long the same recipe ran at this target at most; None where it never did.

    Start and end are from two clocks, so that a duration that is not positive says nothing."""
    recipe = store.experiment(placement.experiment_id).recipe
    earlier = (
        (one.ended_at - one.started_at).total_seconds()
        for one in placements.all()
        if one.target.name == placement.target.name and one.ending is PlaceEnding.DONE
        and one.started_at is not None and one.ended_at is not None and len(one.job_ids) >= len(placement.job_ids)
        and _is_recipe_of(store, one.experiment_id, recipe)
    )  # fmt: skip
    return max((seconds for seconds in earlier if seconds > 0), default=None)


def _is_recipe_of(store: Store, experiment_id: str, recipe: Recipe) -> bool:
    try:
        return store.experiment(experiment_id).recipe == recipe
    except NotFoundError:  # deleted since
        return False
