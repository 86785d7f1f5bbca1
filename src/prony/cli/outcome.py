"""The end of a run: its numbers on the terminal, its report on the disk, its exit code."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from prony.cli.output import print_note, print_text, terminal
from prony.model.dossier import Dossier
from prony.model.experiment import ExperimentState
from prony.model.result import ResultState

if TYPE_CHECKING:
    from prony.app.api import Bench

_STOPPED = 130


def finish(bench: Bench, dossier: Dossier, *, as_json: bool, with_report: bool) -> int:
    """Show what came out; return 0 where every job has its numbers, 1 where one has none, 130 where it was stopped."""
    with suppress(BrokenPipeError):  # a reader who has gone changes nothing about how the run ended
        show(dossier, as_json=as_json)
    report = bench.write_report(dossier) if with_report and dossier.entries else None
    with suppress(BrokenPipeError):
        if report is not None:
            print_note(f"report: {report}")
        if dossier.experiment.state is ExperimentState.PARTIAL:
            print_note(f"stopped early; what was measured is kept: prony show {dossier.experiment.id}")
    return _exit_code(dossier)


def _exit_code(dossier: Dossier) -> int:
    if dossier.experiment.state is ExperimentState.PARTIAL:
        return _STOPPED
    failed = any(entry.result.state is ResultState.FAILED for entry in dossier.entries)
    return 1 if failed or dossier.experiment.state is ExperimentState.FAILED else 0


def show(dossier: Dossier, *, as_json: bool) -> None:
    if as_json:
        from prony.report import render

        content = render(dossier, "json")
        print_text(content if isinstance(content, str) else content.decode())
        return
    from prony.report.terminal import print_dossier

    print_dossier(dossier, terminal())
