"""`prony exec`: run job files and write result folders. The only command that executors call."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, Namespace
from pathlib import Path


def arguments(parser: ArgumentParser) -> None:
    """Run jobs without a server or a database; progress goes to standard output as JSON lines."""
    parser.add_argument("jobs", type=Path, nargs="*", metavar="JOB.json", help="job files; several run alternately")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="result folder; with several jobs, one folder each inside it"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="instead of job files: a folder with jobs from an executor; "
        "results, events and a list of files are written to it",
    )
    parser.add_argument("--lock", type=Path, metavar="FILE", help="with --folder: lock file to wait for and hold")
    parser.add_argument("--calibration", metavar="ID", help="this machine's calibration, for the result")
    parser.add_argument("--parent", type=int, metavar="PID", help=SUPPRESS)


def command(options: Namespace) -> int:
    from prony.app.runner import run_files, run_folder
    from prony.errors import InputError

    if options.folder is not None:
        return run_folder(options.folder, lock=options.lock)
    if not options.jobs or options.out is None:
        raise InputError("prony exec needs job files and --out, or --folder", hint="prony exec job.json --out result")
    return run_files(options.jobs, options.out, calibration_id=options.calibration, parent=options.parent)
