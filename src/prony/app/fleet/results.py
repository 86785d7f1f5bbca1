"""Results of a fleet, handed out in every form: data, reports, comparisons, plots, exports."""

from __future__ import annotations

import asyncio
import os
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from prony.app import experiment_data, pictures, results
from prony.app.fleet.context import FleetContext
from prony.app.fleet.live_series import read_live_series
from prony.app.local_files import LocalFiles
from prony.app.result_files import find_file
from prony.app.shown_results import job_sections, show_results
from prony.errors import ConflictError, NotFoundError
from prony.instruments.samples import SAMPLES, TELEMETRY
from prony.model.access import Principal
from prony.model.answer import NewScores, ScoredJobs
from prony.model.comparison import Comparison, Terms
from prony.model.estimate import Summary
from prony.model.experiment_data import Entry, StoreCheck
from prony.model.gate import GateReport
from prony.model.log import LogPiece
from prony.model.matrix import MatrixReport, MatrixTerms
from prony.model.picture import Counters, Distribution, LoadRunSeries, LoadSeries, Starts, StepLines, Timeline
from prony.model.queue import JobState
from prony.model.result_files import ResultFiles
from prony.model.section import JobSections
from prony.model.shown_results import ShownResults
from prony.model.sweep import SweepReport
from prony.store import queue, result_rows, transfer
from prony.store.database import reading
from prony.store.folder import read_nouns
from prony.store.writer import Transaction


class Results:
    """Show results, reports, comparisons and exports."""

    def __init__(self, context: FleetContext) -> None:
        self._context = context
        self._printing = asyncio.Lock()
        self._store_check: asyncio.Task[StoreCheck] | None = None

    async def check_store(self) -> StoreCheck:
        """Hold every stored sample file against its checksum; those who ask meanwhile share one check."""
        if self._store_check is None or self._store_check.done():
            self._store_check = self._context.begin(asyncio.to_thread(results.check_store, self._context.store))
        return await asyncio.shield(self._store_check)

    async def show(self, experiment_id: str, *, verify: bool = False) -> ShownResults:
        """Return every result of an experiment, with what a page needs to show results of their kinds."""

        def show() -> ShownResults:
            data = experiment_data.read_experiment_data(self._context.store, experiment_id, verify=verify)
            return show_results(data)

        return await asyncio.to_thread(show)

    async def report(self, experiment_id: str, report_format: str, *, strict: bool = False) -> str | bytes:
        from prony.app.analyses import analyse_experiment
        from prony.report import render

        is_pdf = report_format == "pdf"

        def written() -> str | bytes:
            analysis = analyse_experiment(
                self._context.store, experiment_data.read_experiment_data(self._context.store, experiment_id)
            )
            return render(analysis, "html" if is_pdf else report_format, strict=strict)

        document = await asyncio.to_thread(written)
        return await self._print_pdf(document) if is_pdf else document

    async def _print_pdf(self, page: str | bytes) -> bytes:
        """Print a page by a browser of this machine; one at a time, because each takes as much as a small job."""
        from prony.report.pdf import print_pdf

        async with self._printing:
            return await asyncio.to_thread(print_pdf, page.encode() if isinstance(page, str) else page)

    async def score(self, experiment_id: str, new: NewScores, *, who: Principal) -> ScoredJobs:
        """Score the kept answers of an experiment again; nothing of the user's own runs on a server."""
        from prony.app.score_again import score_folders

        def score() -> dict[str, Summary]:
            records = self._context.store.records(experiment_id)
            return score_folders(experiment_id, {one.job_id: one.folder for one in records}, new)

        summaries = await asyncio.to_thread(score)

        def keep(transaction: Transaction) -> None:
            result_rows.replace_summaries(transaction.connection, summaries)
            for job_id in summaries:
                transaction.publish("job", f"{experiment_id}/{job_id}")

        await self._context.write(keep)
        self._context.hook("scored", experiment=experiment_id, jobs=len(summaries), who=who.name)
        return ScoredJobs(jobs=tuple(summaries))

    async def compare(self, names: Sequence[str], terms: Terms) -> Comparison:
        from prony.app.analyses import compare_stored

        return await asyncio.to_thread(compare_stored, self._context.store, names, terms)

    async def judge_gates(self, experiment_id: str, *, strict: bool, more: Sequence[str]) -> GateReport:
        from prony.app.gates import gate_report

        def judge() -> GateReport:
            return gate_report(
                self._context.store,
                experiment_data.read_experiment_data(self._context.store, experiment_id),
                strict=strict,
                more=more,
            )

        return await asyncio.to_thread(judge)

    async def sweep(self, experiment_ids: Sequence[str], slo: Mapping[str, float] | None) -> SweepReport:
        from prony.app.sweeps import sweep_over

        return await asyncio.to_thread(
            lambda: sweep_over(experiment_data.entries_of(self._context.store, experiment_ids), slo)
        )

    async def matrix(self, experiment_ids: Sequence[str], terms: MatrixTerms) -> MatrixReport:
        from prony.app.analyses import matrix_over

        return await asyncio.to_thread(matrix_over, self._context.store, experiment_ids, terms)

    async def get(self, job_id: str) -> Entry:
        return await asyncio.to_thread(self._entry, job_id)

    def _entry(self, job_id: str) -> Entry:
        record = self._context.store.record(job_id)
        if record is None:
            hint = "`prony show ID` shows its state; on a server, `prony watch ID` waits"
            raise NotFoundError(f"job {job_id} has no result yet", hint=hint, code="no_result")
        contents = read_nouns(record.folder)
        return Entry(
            job=contents.job,
            result=record.result,
            summary=record.summary,
            environment=contents.environment,
            folder=record.folder,
        )

    async def distribution(self, job_id: str, *, metric: str | None, bins: int) -> Distribution:
        entry = await self.get(job_id)
        return await asyncio.to_thread(pictures.picture_distribution, entry, metric, bins)

    async def timeline(self, job_id: str, *, buckets: int) -> Timeline:
        entry = await self.get(job_id)
        return await asyncio.to_thread(pictures.picture_timeline, entry, buckets)

    async def starts(self, job_id: str) -> Starts:
        entry = await self.get(job_id)
        return await asyncio.to_thread(pictures.starts, entry)

    async def lines(self, job_id: str) -> StepLines:
        entry = await self.get(job_id)
        return await asyncio.to_thread(pictures.picture_lines, entry)

    async def sections(self, job_id: str) -> JobSections:
        """Return what the kind of a job says of its result beside the numbers."""
        entry = await self.get(job_id)
        return await asyncio.to_thread(job_sections, entry)

    async def counters(self, job_id: str, *, most: int, points: int) -> Counters:
        entry = await self.get(job_id)
        return await asyncio.to_thread(pictures.picture_counters, entry, most, points)

    async def load_series(self, job_id: str, *, points: int) -> LoadSeries:
        """Return a load second by second: from its samples, or while there are none from what its agent reported."""
        return await asyncio.to_thread(self._load_series, job_id, points)

    def _load_series(self, job_id: str, points: int) -> LoadSeries:
        with reading(self._context.engine) as connection:
            row = queue.find_job(connection, job_id)
        record = self._context.store.record(job_id)
        if record is not None and (row is None or row.state != JobState.LEASED):
            found = pictures.picture_load(self._entry(job_id), points)
            if found.runs:
                return found
        runs: tuple[LoadRunSeries, ...] = ()
        if row is not None:
            path = self._context.live_path(row.experiment_id, job_id, row.attempt)
            runs = read_live_series(path, points)
        return LoadSeries(job_id=job_id, title=job_id if row is None else row.title, source="live", runs=runs)

    async def files(self, job_id: str) -> ResultFiles:
        """Return the files of a job's result."""
        return await asyncio.to_thread(lambda: LocalFiles(self._context.store).listing(job_id))

    async def file(self, job_id: str, name: str) -> Path:
        """Return where a file of a job's result is."""
        files = LocalFiles(self._context.store)
        return await asyncio.to_thread(lambda: find_file(files.folder(job_id), name))

    async def file_text(self, job_id: str, name: str, *, offset: int) -> LogPiece:
        """Return a piece of a text among the files of a job's result."""
        return await asyncio.to_thread(lambda: LocalFiles(self._context.store).text(job_id, name, offset=offset))

    async def samples(self, job_id: str) -> Path:
        return await self._file(job_id, SAMPLES)

    async def telemetry(self, job_id: str) -> Path:
        return await self._file(job_id, TELEMETRY)

    async def _file(self, job_id: str, name: str) -> Path:
        path = (await self.get(job_id)).folder / name
        if not path.is_file():
            raise NotFoundError(
                f"the result of job {job_id} has no {name}",
                hint=f"`prony files {job_id}` lists what it has",
                code="no_file",
            )
        return path

    async def export(self, experiment_id: str, export_format: str = "folder") -> Path:
        """Write what `prony export` would as one tar in a temporary place; whoever asked removes it."""
        await asyncio.to_thread(self._check_ended, experiment_id)
        return await asyncio.to_thread(self._export, experiment_id, export_format)

    def _check_ended(self, experiment_id: str) -> None:
        state = self._context.store.experiment(experiment_id).state
        if state.value in ("pending", "running"):
            raise ConflictError(f"experiment {experiment_id} is {state}", hint="wait for it, or cancel it")

    def _export(self, experiment_id: str, export_format: str) -> Path:
        from prony.app.interchange import export_loads

        with tempfile.TemporaryDirectory(prefix="prony-export-") as scratch:
            folder = Path(scratch) / experiment_id
            if export_format == "folder":
                transfer.export(self._context.store, experiment_id, folder)
            else:
                export_loads(experiment_data.gather_results(self._context.store, experiment_id), export_format, folder)
            descriptor, name = tempfile.mkstemp(prefix="prony-export-", suffix=".tar")
            with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w") as tar:
                tar.add(folder, arcname=experiment_id)
        return Path(name)
