"""End a run: show its numbers, write its report, say which results are damaged, and choose the exit code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.cli.output import print_json, print_note, print_text, terminal
from prony.errors import EXIT_CODES, CapacityError, StoreError
from prony.model.comparison import percent_text
from prony.model.estimate import Grade
from prony.model.experiment import ExperimentState
from prony.model.experiment_data import ExperimentData
from prony.model.gate import GateReport, GateState
from prony.model.result import ResultState
from prony.report.escaping import one_line
from prony.report.gate_tables import summarise_gates

if TYPE_CHECKING:
    from argparse import Namespace

    from prony.cli.arguments import RunOutput
    from prony.cli.watch import Ended
    from prony.client import Client
    from prony.model.experiment_data import Damage
    from prony.model.queue import ExperimentView


STOPPED = 130
_MOST_NAMED = 3
_PATIENT = 12  # tries: more than half a minute
_EARLY = (ExperimentState.PARTIAL, ExperimentState.CANCELLED)


def add_summary(document: str | bytes) -> None:
    """Add a summary to the page of a GitHub job, below what other steps wrote there."""
    content = document if isinstance(document, bytes) else document.encode()
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("ab") as file:
        file.write(content + b"\n")


def finish(
    data: ExperimentData,
    output: RunOutput,
    *,
    write_report: Callable[[ExperimentData], Path],
    again: str = "",
    beside: Mapping[str, Any] | None = None,
    closing: Callable[[int], int] | None = None,
) -> int:
    """Show what came out; return 0 where every job has its numbers and passes its gates, else 1, 130 where stopped.

    `write_report` is called where a report is wanted; `again` is what a command needs to reach the same server;
    `beside` is added to what `--json` prints; `closing` shows what comes below, takes the exit code and may return
    another. The last line of all says which results are void.
    """
    with suppress(BrokenPipeError):  # a reader who has gone changes nothing about how the run ended
        show(data, as_json=output.as_json, beside=beside, is_kept=output.is_kept)
    written = _write_report(write_report, data) if output.report and data.entries else None
    with suppress(BrokenPipeError):
        if written is not None:
            print_note(f"report: {written}")
        if data.experiment.state in _EARLY:
            kept = f"completed measurements are kept: prony show {data.experiment.id}{again}"
            print_note(f"stopped early; {kept if output.is_kept else 'nothing is kept'}")
        elif not output.is_kept and any(entry.result.state is ResultState.FAILED for entry in data.entries):
            print_note("nothing is kept, so `prony logs` has no log: repeat the command without --no-save")
    if output.github:
        from prony.report import render

        add_summary(render(data, "github", strict=output.strict))
    code = exit_code_of(data, strict=output.strict)
    return _end_on_void(data, closing(code) if closing else code, fails=output.fails_if_void)


def _end_on_void(data: ExperimentData, code: int, *, fails: bool | None) -> int:
    """Say which results are void; return the exit code, which is 1 then where `fails` asks for it (None: cannot ask).

    A job that failed has no number to quote, and its failure is told."""
    measured = [entry for entry in data.entries if entry.result.state is not ResultState.FAILED]
    void = [entry.job.title for entry in measured if entry.summary.verdict.grade is Grade.VOID]
    if not void:
        return code
    ended = code or (1 if fails else 0)
    why = f"exit code {ended}" + (" (--strict)" if ended and not code else "")
    why += "; --strict makes it 1" if not ended and fails is False else ""
    with suppress(BrokenPipeError):
        print_note(
            one_line(
                f"void: {_name_few(void, len(data.entries))}: do not use these numbers; see ✖ for the reason; {why}"
            )
        )
    return ended


def _name_few(titles: Sequence[str], total: int) -> str:
    """Name some of so many jobs; a title may have commas in it."""
    if len(titles) == total > 1:
        return f"all {total} jobs"
    shown = "; ".join(titles[:_MOST_NAMED])
    more = f"; and {len(titles) - _MOST_NAMED} more" if len(titles) > _MOST_NAMED else ""
    return f"{len(titles)} of {total} jobs ({shown}{more})" if total > 1 else shown


def _write_report(write_report: Callable[[ExperimentData], Path], data: ExperimentData) -> Path | None:
    """Write the report; where what draws it is not installed, the numbers are there all the same, and it is said."""
    try:
        return write_report(data)
    except CapacityError as exc:
        if exc.code != "missing_package":
            raise
        print_note(f"no HTML report: {exc.message}: {exc.hint}")
        return None


def _tell_failed_requests(data: ExperimentData) -> int:
    """Name the loads of which more requests failed than their recipe allows; return how many there are."""
    told = 0
    for entry in data.entries:
        failed, total = entry.summary.counts.get("error_rate.mean", (0, 0))
        if entry.job.workload.section != "load" or entry.job.load.allows_failures(failed, total):
            continue
        told += 1
        share = f"{failed} of {total} requests failed ({percent_text(failed / total)})"
        allowed = entry.job.load.errors
        most = "none" if isinstance(allowed, str) else percent_text(allowed)
        print_note(one_line(
            f"{entry.job.title}: {share}; the recipe allows {most}: exit code 1; set load.errors to allow more"
        ))  # fmt: skip
    return told


def _gates_pass(data: ExperimentData, *, strict: bool) -> bool:
    """Say in one line how the gates stand; `strict` fails those that cannot be judged too."""
    found = GateReport(experiment_id=data.experiment.id, strict=strict, outcomes=data.gates)
    if found.outcomes:
        is_open = any(one.state is GateState.CANNOT_TELL for one in found.outcomes)
        passed = "no gate failed; --gates strict makes undecided ones fail" if is_open else "every gate passed"
        print_note(f"{summarise_gates(found.outcomes)[:-1]}: {passed if found.passed else 'exit code 1'}")
    return found.passed


def finish_there(
    ended: Ended,
    output: RunOutput,
    options: Namespace,
    *,
    beside: Mapping[str, Any] | None = None,
    closing: Callable[[int], int] | None = None,
) -> int:
    """Show what came out on the server that the options name; one that is away just then is waited for."""
    from prony.cli.remote import again, connect_server
    from prony.cli.watch import why_ended
    from prony.model.queue import JobState

    with connect_server(options, attempts=_PATIENT) as client:
        data = client.experiments.results(ended.view.experiment.id)
        wanted = output.report and data.entries
        kept = client.experiments.keep_report(data.experiment.id) if wanted else Path()
    measured = {entry.job.id for entry in data.entries}
    failed = [job for job in ended.jobs.values() if job.state is JobState.FAILED and job.id not in measured]
    with suppress(BrokenPipeError):
        for job in failed:
            print_note(one_line(f"{job.title}: failed and left no result: {why_ended(job)}"))

    def fail(code: int) -> int:
        ended_with = code or (1 if failed else 0)
        return closing(ended_with) if closing else ended_with

    return finish(
        data, output, write_report=lambda _: kept, again=again(options), beside=beside, closing=fail
    )  # fmt: skip


def exit_code_there(client: Client, view: ExperimentView) -> int:
    """Return the exit code of an experiment that ended on a server: from how its jobs ended, and from its results."""
    from prony.model.queue import JobState

    if view.experiment.state in _EARLY:
        return STOPPED
    if view.counts.get(JobState.FAILED) or view.experiment.state is ExperimentState.FAILED:
        return 1
    return exit_code_of(client.experiments.results(view.experiment.id))


def exit_code_of(data: ExperimentData, *, strict: bool = False) -> int:
    """Choose it, and say why it is 1 where the jobs themselves do not: failed requests, gates."""
    failed = _tell_failed_requests(data)
    if data.experiment.state in _EARLY:
        return STOPPED
    failed += sum(entry.result.state is ResultState.FAILED for entry in data.entries)
    if failed or data.experiment.state is ExperimentState.FAILED:
        return 1
    return 0 if _gates_pass(data, strict=strict) else 1


def show(
    data: ExperimentData,
    *,
    as_json: bool,
    beside: Mapping[str, Any] | None = None,
    is_wide: bool = False,
    is_kept: bool = True,
) -> None:
    """Print an experiment; `beside` is added to its JSON, `is_wide` and `is_kept` are about its table."""
    if as_json:
        from prony.report import render

        content = render(data, "json")
        if beside:
            print_json(json.loads(content) | beside)
        else:
            print_text(content if isinstance(content, str) else content.decode())
        return
    from prony.report.terminal.experiment import print_experiment

    print_experiment(data, terminal(), is_wide=is_wide, is_kept=is_kept)


def report_damages(damages: Sequence[Damage]) -> int:
    """Name each on standard error; return 0 where there is none, else the exit code of a store that is in trouble."""
    for damage in damages:
        print_note(f"error: job {damage.job_id}: {damage.what}")
    if damages:
        print_note(" hint: restore the files from a copy, or run the jobs again")
    return EXIT_CODES[StoreError] if damages else 0
