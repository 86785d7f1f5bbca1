"""The use cases of one machine: each composes the stages and decides nothing itself. Faces call only these."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from prony.app import experiment_data, results
from prony.app.check_jobs import check_alone, check_names, check_target, new_id
from prony.app.job_log import RunLogs
from prony.app.local_experiments import LocalAnalyses, LocalExperiments
from prony.app.pin_images import pin_images
from prony.instruments.device import detect
from prony.instruments.noise import contamination
from prony.instruments.repository import read_git
from prony.load.processes import ClientProcesses
from prony.model.calibration import Calibration
from prony.model.device import EngineReport
from prony.model.event import Event
from prony.model.experiment import Experiment, ExperimentState
from prony.model.experiment_data import ExperimentData
from prony.model.gpu_detection import GpuDetection
from prony.model.job import Job
from prony.model.states import outcome_of_results
from prony.ports.clock import Clock, SystemClock
from prony.ports.workload import kind_of
from prony.recipe import LoadedRecipe, loads
from prony.store.home import Home
from prony.store.store import Store

if TYPE_CHECKING:
    from prony.app.local_alarms import LocalAlarms
    from prony.app.local_files import LocalFiles
    from prony.app.local_histories import LocalHistories
    from prony.app.local_schedules import LocalSchedules, LocalScripts
    from prony.model.device import State
    from prony.model.estimate import Estimate
    from prony.runner.watch_machine import MachineWatch


class Bench:
    """Everything a person can do on this machine without a server. Open it as a block.

    It has the use cases of `prony.ports.use_cases.UseCases`, as a server's `Client` has them, and what only this
    machine can do besides: run a recipe here, look at its engines, calibrate.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = SystemClock()

    @classmethod
    def open(cls, home: Home | None = None) -> Self:
        """Return the bench of a home: the one that PRONY_HOME names, or else the usual one."""
        return cls(Store.open(home))

    def __enter__(self) -> Self:
        results.recover(self.store)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.store.close()

    @property
    def home(self) -> Home:
        """The folder in which everything is kept."""
        return self.store.home

    # Use cases that a server has too

    @property
    def experiments(self) -> LocalExperiments:
        """Experiments that ran here, or were brought here."""
        return LocalExperiments(self.store)

    @property
    def analyses(self) -> LocalAnalyses:
        """What analysis says of several results together."""
        return LocalAnalyses(self.store)

    @property
    def files(self) -> LocalFiles:
        """Files of results."""
        from prony.app.local_files import LocalFiles

        return LocalFiles(self.store)

    @property
    def histories(self) -> LocalHistories:
        """Results over time."""
        from prony.app.local_histories import LocalHistories

        return LocalHistories(self.store)

    @property
    def schedules(self) -> LocalSchedules:
        """What a server on this home runs again and again."""
        from prony.app.local_schedules import LocalSchedules

        return LocalSchedules(self.store.engine, self.home)

    @property
    def alarms(self) -> LocalAlarms:
        """What a server on this home watches, and who is told."""
        from prony.app.local_alarms import LocalAlarms

        return LocalAlarms(self.store.engine)

    @property
    def scripts(self) -> LocalScripts:
        """Folders of scripts that the recipes of schedules name."""
        from prony.app.local_schedules import LocalScripts

        return LocalScripts(self.home)

    # Runs on this machine

    def run(
        self,
        loaded: LoadedRecipe,
        *,
        base: Path | None = None,
        on_start: Callable[[Experiment, Sequence[Job]], None],
        on_event: Callable[[Event], None],
        rerun_of: str | None = None,
        clients: ClientProcesses | None = None,
    ) -> ExperimentData:
        """Run a recipe here to its end, or until Ctrl-C; what was measured is kept either way.

        Relative paths in the recipe are relative to `base`, or else to the folder that the recipe lies in. `clients`
        are those of a load, where some were started ahead.
        """
        check_target(loaded)
        experiment, jobs = draft_experiment(loaded, self.clock, base=base, rerun_of=rerun_of)
        experiment, jobs = pin_images(self.store, experiment, jobs)
        check_alone(jobs)
        kind_of(loaded.recipe.workload).prepare.check_here(jobs)
        if loaded.recipe.place.where:
            from prony.app.local_device import check_place

            check_place(loaded.recipe.place, self.home.cache, self.engines)
        self.store.save_experiment(experiment, jobs)
        on_start(experiment, jobs)
        self._execute(experiment, jobs, on_event, clients or ClientProcesses())
        return experiment_data.read_experiment_data(self.store, experiment.id)

    def _execute(
        self, experiment: Experiment, jobs: Sequence[Job], on_event: Callable[[Event], None], clients: ClientProcesses
    ) -> None:
        out = self.home.experiment_folder(experiment.id)
        out = out / jobs[0].id if len(jobs) == 1 else out
        logs = RunLogs({job.id: self.home.result_folder(experiment.id, job.id) for job in jobs})
        hear, stopped = logs.note_first(on_event), False
        try:
            from prony.runner.environment import keep_calibration

            calibration = self.store.latest_calibration(detect().hardware_id)
            calibration_id = keep_calibration(self.home.cache, calibration) if calibration else None
            if experiment.recipe.workload.runs_in_place:
                from prony.app.runner import run_here

                stopped = run_here(
                    jobs,
                    out,
                    self.home,
                    on_event=hear,
                    on_idle=logs.look,
                    calibration_id=calibration_id,
                    clients=clients,
                )
            else:
                from prony.app.execution import execute_jobs

                stopped = execute_jobs(
                    jobs, out, self.home, on_event=hear, on_idle=logs.look, calibration_id=calibration_id
                )
        except KeyboardInterrupt:  # before the runner was there to hear it
            stopped = True
            raise
        finally:
            logs.close()
            self._close(experiment, jobs, stopped=stopped)

    def _close(self, experiment: Experiment, jobs: Sequence[Job], *, stopped: bool) -> None:
        """Record every folder there is and say how the experiment ended."""
        for job in jobs:
            folder = self.home.result_folder(experiment.id, job.id)
            if results.is_begun(folder):
                results.record_result(self.store, folder)
        states = [record.result.state for record in self.store.records(experiment.id)]
        # Who was stopped before anything was kept did not fail.
        state = ExperimentState.PARTIAL if stopped and not states else outcome_of_results(states, expected=len(jobs))
        self.store.set_experiment_state(experiment.id, state, ended_at=self.clock.now())

    def rerun(
        self,
        text: str,
        *,
        on_start: Callable[[Experiment, Sequence[Job]], None],
        on_event: Callable[[Event], None],
    ) -> ExperimentData:
        """Run the recipe of an earlier experiment again, as it was after its overrides."""
        earlier, loaded = self.load_earlier(text)
        return self.run(loaded, base=Path(earlier.base), on_start=on_start, on_event=on_event, rerun_of=earlier.id)

    def load_earlier(self, text: str) -> tuple[Experiment, LoadedRecipe]:
        """Return an earlier experiment with its recipe, as it was after its overrides."""
        from prony.recipe import dump

        earlier = self.store.experiment(self.store.resolve_id(text))
        loaded = loads(dump(earlier.recipe), name=f"{earlier.id}.yaml")
        return earlier, replace(loaded, dialect=earlier.dialect, notes=earlier.notes)

    # The machine

    def engines(self, names: Sequence[str] = ()) -> list[EngineReport]:
        """Start every engine, or those named, and report what each can do here."""
        from prony.app.abilities import inspect_engines

        return inspect_engines(self.home, names)

    def gpus(self, *, tries_products: bool = False) -> GpuDetection:
        """Ask every layer what GPUs there are, and where they disagree; `tries_products` multiplies on each."""
        from prony.app.abilities import detect_gpus

        return detect_gpus(self.home, tries_products=tries_products)

    def add_engine(
        self,
        name: str,
        *,
        version: str | None = None,
        python: str | None = None,
        requirements: Sequence[str] = (),
        say: Callable[[str], None],
    ) -> EngineReport:
        """Give an engine, or one version of it, an environment of its own, and report what it can do there."""
        from prony.app.abilities import inspect_version
        from prony.runner.engines import add_engine, find_build

        add_engine(name, self.home.engines, version=version, python=python, requirements=requirements, say=say)
        name, _ = find_build(name)
        return self.engines([name])[0] if version is None else inspect_version(self.home, name, version)

    def engine_versions(self) -> list[EngineReport]:
        """Report the versions of engines that have an environment beside the usual one."""
        from prony.app.abilities import inspect_version
        from prony.runner.engines import versions

        return [inspect_version(self.home, name, version) for name, version in versions(self.home.engines)]

    def conditions(self) -> State:
        """Look at everything that would make a measurement noisy."""
        from prony.instruments.preflight import look

        return look(home=self.home.root)

    def calibrate(self, *, repeats: int, progress: Callable[[int, int], None]) -> Calibration:
        """Measure what this machine's clock, processes and engines cost, and keep it for later runs."""
        from prony.runner.calibration import calibrate

        watch = _watched_machine()
        with tempfile.TemporaryDirectory(prefix="prony-") as scratch:
            calibration = calibrate(
                detect(),
                Path(scratch),
                clock=self.clock,
                identity=new_id(time.time()),
                repeats=repeats,
                progress=progress,
            )
        changes = {"id": calibration.id, "disturbed": contamination(watch.end())}
        calibration = self._add_figures(calibration.figures).model_copy(update=changes)
        self.store.save_calibration(calibration)
        return calibration

    def calibrate_load(self, *, repeats: int, progress: Callable[[int, int], None]) -> Calibration:
        """Measure the load generator here; what an earlier calibration of this machine told is kept beside it."""
        from prony.runner.load_calibration import calibrate_load

        watch = _watched_machine()
        with tempfile.TemporaryDirectory(prefix="prony-") as scratch:
            figures = calibrate_load(Path(scratch), repeats=repeats, progress=progress)
        calibration = self._add_figures(figures).model_copy(update={"disturbed": contamination(watch.end())})
        self.store.save_calibration(calibration)
        return calibration

    def calibrate_deep(self, *, repeats: int, progress: Callable[[int, int], None]) -> Calibration:
        """Find out how noisy this machine is, how small a change it can show and how often it would be wrong; what an
        earlier calibration told is kept beside it."""
        from prony.app.deep_calibration import calibrate_deep

        watch = _watched_machine()
        with tempfile.TemporaryDirectory(prefix="prony-") as scratch:
            depth = calibrate_deep(Path(scratch), runs=repeats, progress=progress)
        calibration = self._add_figures(depth.figures).model_copy(
            update={
                "noise_class": depth.noise_class,
                "alpha": depth.alpha,
                "notes": depth.notes + self._disturbing(),
                "disturbed": contamination(watch.end()),
            }
        )
        self.store.save_calibration(calibration)
        return calibration

    def _add_figures(self, figures: Mapping[str, Estimate]) -> Calibration:
        """Return a new calibration with these figures beside those that the latest one has."""
        device = detect()
        earlier = self.store.latest_calibration(device.hardware_id)
        return Calibration(
            id=new_id(time.time()),
            hardware_id=device.hardware_id,
            software_id=device.software_id,
            taken_at=self.clock.now(),
            figures=(earlier.figures if earlier is not None else {}) | dict(figures),
            notes=self._disturbing(),
            noise_class=earlier.noise_class if earlier is not None else None,
            alpha=earlier.alpha if earlier is not None else None,
        )

    def _disturbing(self) -> tuple[str, ...]:
        found = [one for one in self.conditions().conditions if one.status in ("warn", "block")]
        return tuple(f"{one.title}: {one.value}. {one.hint}".strip() for one in found)


def draft_experiment(
    loaded: LoadedRecipe, clock: Clock, *, base: Path | None = None, rerun_of: str | None = None
) -> tuple[Experiment, list[Job]]:
    """Return a new experiment of a recipe with its jobs, whose paths are absolute; nothing is stored."""
    folder = (base or (loaded.path.parent if loaded.path else Path())).resolve()
    experiment_id = new_id(time.time())
    prepare = kind_of(loaded.recipe.workload).prepare
    jobs = [prepare.make_paths_absolute(job, folder) for job in loaded.jobs(experiment_id)]
    reading = read_git(folder, os.environ)
    jobs = [job.model_copy(update={"git": reading.git}) for job in jobs]
    check_names(jobs)
    experiment = Experiment(
        id=experiment_id,
        name=loaded.recipe.name,
        recipe=loaded.recipe,
        recipe_text=loaded.text,
        dialect=loaded.dialect,
        notes=(*loaded.notes, *filter(None, (reading.trouble,))),
        git=reading.git,
        created_at=clock.now(),
        job_count=len(jobs),
        rerun_of=rerun_of,
        base=str(folder),
    )
    return experiment, jobs


def _watched_machine() -> MachineWatch:
    """Return a watch that has begun: what a calibration is worth depends on what else ran."""
    from prony.runner.watch_machine import MachineWatch

    watch = MachineWatch()
    watch.begin()
    return watch
