"""Store: everything that Prony keeps in one home, one transaction per method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine, delete, select

from prony.errors import ConflictError, InputError, StoreError
from prony.model.calibration import Calibration
from prony.model.device import Environment
from prony.model.estimate import Grade, Summary
from prony.model.experiment import Experiment, ExperimentState
from prony.model.job import Job
from prony.model.result import Result
from prony.store import delete_tree, process_owner, result_rows, series, tables
from prony.store.codecs import Record, calibration_row, experiment_of, record_of, result_row
from prony.store.database import connect_database, reading, writing
from prony.store.folder import ENVIRONMENT, FolderContents, read_folder, read_noun
from prony.store.home import Home
from prony.store.home import home as default_home
from prony.store.lock import hold_file_lock, try_file_lock
from prony.store.placements import Placements
from prony.store.schema import upgrade


class Store:
    """Open it as a block. Every method is one transaction, and every result is accepted once."""

    def __init__(self, home: Home, engine: Engine) -> None:
        self.home = home
        self._engine = engine

    @classmethod
    def open(cls, home: Home | None = None, *, url: str = "") -> Self:
        """Open the home's database, made or migrated where needed, and finish what a crash left half done."""
        place = (home or default_home()).create()
        engine = connect_database(place, url)
        store = cls(place, engine)
        try:
            upgrade(engine, place)
            store._sweep()
        except BaseException:
            engine.dispose()
            raise
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._engine.dispose()

    @property
    def engine(self) -> Engine:
        """The database itself, for those who keep more in it than results."""
        return self._engine

    # Experiments

    def save_experiment(self, experiment: Experiment, jobs: Sequence[Job] = ()) -> None:
        """Keep a new experiment, with its jobs where given; a running one belongs to this process from now on.

        Saving the same again changes nothing; another one under the same id is a ConflictError.
        """
        with writing(self._engine) as connection:
            result_rows.add_experiment(connection, experiment)
            result_rows.add_jobs(connection, jobs)

    def experiment(self, experiment_id: str) -> Experiment:
        with reading(self._engine) as connection:
            return result_rows.experiment(connection, experiment_id)

    def experiments(
        self, limit: int | None = None, *, name: str | None = None, state: ExperimentState | None = None
    ) -> tuple[Experiment, ...]:
        """Return the newest first."""
        table = tables.experiment
        query = select(table).order_by(table.c.created_at.desc(), table.c.id.desc()).limit(limit)
        query = query.where(table.c.name == name) if name is not None else query
        query = query.where(table.c.state == state.value) if state is not None else query
        with reading(self._engine) as connection:
            return tuple(experiment_of(row) for row in connection.execute(query))

    def set_experiment_state(
        self, experiment_id: str, state: ExperimentState, *, ended_at: datetime | None = None
    ) -> Experiment:
        """Move a running experiment to its end and let go of it."""
        with writing(self._engine) as connection:
            return result_rows.end_experiment(connection, experiment_id, state, ended_at)

    def resolve_id(self, text: str) -> str:
        """Return the experiment that a person means by a full id, the beginning of one, or `last`."""
        with reading(self._engine) as connection:
            return result_rows.resolve(connection, text)

    def orphans(self) -> tuple[Experiment, ...]:
        """Return the running experiments whose process is known to be gone."""
        table = tables.experiment
        query = select(table).where(table.c.state == ExperimentState.RUNNING.value, table.c.owner.is_not(None))
        with reading(self._engine) as connection:
            return tuple(experiment_of(row) for row in connection.execute(query) if _is_dead(row.owner))

    def adopt_orphans(self) -> tuple[Experiment, ...]:
        """End the running experiments whose process is gone, each by the results it left; return those.

        One whose process lives, or cannot be seen from here (another host or container), is left alone.
        """
        with writing(self._engine) as connection:
            return result_rows.end_orphans(connection, _is_dead)

    def delete_experiment(self, experiment_id: str, *, force: bool = False) -> None:
        """Remove an experiment, its jobs, results and folders; a running one only by `force`."""
        with hold_file_lock(self.home.lock):
            with writing(self._engine) as connection:
                result_rows.hold_queue(connection, experiment_id)
                found = result_rows.experiment(connection, experiment_id, change=True)
                if found.state is ExperimentState.RUNNING and not force:
                    raise ConflictError(f"experiment {experiment_id} is running", hint="stop it first")
                connection.execute(delete(tables.experiment).where(tables.experiment.c.id == experiment_id))
                result_rows.insert_new(connection, tables.deletion, {"experiment_id": experiment_id})
            self._finish_deletion(experiment_id)

    def finish_deletions(self) -> None:
        """Remove the folders of experiments whose rows are gone. The caller holds the home's lock."""
        for experiment_id in self._pending_deletions():
            # A folder that cannot be removed now stays noted, and must not keep anyone from opening the store.
            with suppress(StoreError):
                self._finish_deletion(experiment_id)

    # Jobs and results

    def jobs(self, experiment_id: str) -> tuple[Job, ...]:
        """Return an experiment's jobs in the order in which they were saved."""
        with reading(self._engine) as connection:
            result_rows.experiment(connection, experiment_id)
            return result_rows.jobs(connection, experiment_id)

    def record_result(self, folder: Path, summary: Summary, *, attempt: int = 1) -> bool:
        """Accept what the runner left in a folder of this home; False when this attempt was accepted before.

        The best attempt of a job stands: complete before partial before failed, and of equals the first.
        """
        contents = read_folder(folder)
        with writing(self._engine) as connection:
            return self._accept(connection, contents, summary, attempt)

    def replace_summaries(self, summaries: Mapping[str, Summary]) -> None:
        """Keep summaries that were computed again in place of those of the results that stand, by job."""
        with writing(self._engine) as connection:
            result_rows.replace_summaries(connection, summaries)

    def save_whole(
        self, experiment: Experiment, jobs: Sequence[Job], results: Iterable[tuple[FolderContents, Summary, int]]
    ) -> None:
        """Keep an experiment with all its jobs and results, or nothing of it; folders are in their place already."""
        with writing(self._engine) as connection:
            result_rows.add_experiment(connection, experiment)
            result_rows.add_jobs(connection, jobs)
            for contents, summary, attempt in results:
                self._accept(connection, contents, summary, attempt)

    def result(self, job_id: str) -> Result | None:
        """Return the result that stands, or None while there is none."""
        found = self.record(job_id)
        return found.result if found else None

    def summary(self, job_id: str) -> Summary | None:
        found = self.record(job_id)
        return found.summary if found else None

    def environment(self, job_id: str) -> Environment | None:
        """Return the machine that the standing result came from, read from its folder."""
        found = self.record(job_id)
        return read_noun(found.folder / ENVIRONMENT, Environment) if found else None

    def record(self, job_id: str) -> Record | None:
        """Return the result that stands with where it lies, or None while there is none."""
        table = tables.result
        with reading(self._engine) as connection:
            row = connection.execute(select(table).where(table.c.job_id == job_id, table.c.stands)).first()
            if row is None:
                result_rows.require_job(connection, job_id)
                return None
            return record_of(row, self.home.results)

    def records(self, experiment_id: str) -> tuple[Record, ...]:
        """Return every standing result of an experiment, in the order of its jobs."""
        table, job = tables.result, tables.job
        query = select(table).join(job).where(table.c.experiment_id == experiment_id, table.c.stands)
        with reading(self._engine) as connection:
            result_rows.experiment(connection, experiment_id)
            rows = connection.execute(query.order_by(job.c.position, job.c.id))
            return tuple(record_of(row, self.home.results) for row in rows)

    def machine_records(self, hardware_id: str, headlines: Sequence[str], most: int = 20) -> tuple[Record, ...]:
        """Return the newest results of a machine that have one of these headlines and are not void."""
        table = tables.result
        query = select(table).where(table.c.hardware_id == hardware_id, table.c.stands)
        query = query.where(table.c.headline_metric.in_(headlines), table.c.grade != Grade.VOID.value)
        with reading(self._engine) as connection:
            rows = connection.execute(query.order_by(table.c.ended_at.desc()).limit(most))
            return tuple(record_of(row, self.home.results) for row in rows)

    def folders(self, experiment_id: str) -> dict[str, Path]:
        """Return where each job's samples lie, by job id; a job without a result has none."""
        return {record.job_id: record.folder for record in self.records(experiment_id)}

    # The instrument

    def save_calibration(self, calibration: Calibration) -> None:
        with writing(self._engine) as connection:
            result_rows.add(connection, tables.calibration, calibration_row(calibration), "calibration")

    def latest_calibration(self, hardware_id: str) -> Calibration | None:
        """Return the newest that nothing disturbed, or else the newest of all."""
        with reading(self._engine) as connection:
            found = series.canary(connection, hardware_id)
        return next((one for one in reversed(found) if not one.disturbed), found[-1] if found else None)

    def calibration(self, calibration_id: str) -> Calibration | None:
        """Return one by its id; None where this home has it not."""
        query = select(tables.calibration.c.document).where(tables.calibration.c.id == calibration_id)
        with reading(self._engine) as connection:
            text = connection.execute(query).scalar()
            return None if text is None else Calibration.read_json(text)

    # Inside

    def _accept(self, connection: Connection, contents: FolderContents, summary: Summary, attempt: int) -> bool:
        path = contents.path.resolve()
        if not path.is_relative_to(self.home.results.resolve()):
            raise InputError(f"{contents.path} lies outside {self.home.results}", hint="import it instead")
        folder = path.relative_to(self.home.results.resolve()).as_posix()
        return result_rows.add_result(connection, result_row(contents, summary), attempt=attempt, folder=folder)

    def _sweep(self) -> None:
        """Finish what a crash left, unless another process is at it this moment: then what lies there is in use."""
        if not self._pending_deletions() and not delete_tree.has_leftovers(self.home):
            return
        with try_file_lock(self.home.lock) as taken:
            if taken:
                self.finish_deletions()
                delete_tree.sweep(self.home)

    def _pending_deletions(self) -> list[str]:
        with reading(self._engine) as connection:
            return list(connection.execute(select(tables.deletion.c.experiment_id)).scalars())

    def _finish_deletion(self, experiment_id: str) -> None:
        delete_tree.remove(self.home, self.home.experiment_folder(experiment_id))
        Placements(self.home).remove_logs(experiment_id)
        with writing(self._engine) as connection:
            connection.execute(delete(tables.deletion).where(tables.deletion.c.experiment_id == experiment_id))


def _is_dead(text: str) -> bool:
    return process_owner.lives(process_owner.Owner.read(text)) is False
