"""`prony exec`: run job files and write result folders. The only command that executors call."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prony.model.gang import Part


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
    parser.add_argument(
        "--part",
        type=_part,
        metavar="I/N",
        help="with --folder: run it as node I (from 0) of N that share the folder and meet at node 0",
    )
    parser.add_argument("--calibration", metavar="ID", help="this machine's calibration, for the result")
    parser.add_argument("--parent", type=int, metavar="PID", help=SUPPRESS)


def _part(text: str) -> Part:
    from prony.model.gang import Part

    index, _, of = text.partition("/")
    if not (index.isdecimal() and of.isdecimal() and int(index) < int(of) and int(of) > 1):
        raise ArgumentTypeError(f"{text} is not a part; write 0/2, 1/2 and so on")
    return Part(index=int(index), of=int(of))


def command(options: Namespace) -> int:
    from prony.app.runner import run_files, run_folder
    from prony.errors import InputError

    if options.part is not None and options.folder is not None:
        from prony.agent.run_nodes import run_folder_on_nodes

        return run_folder_on_nodes(options.folder, options.part)
    if options.folder is not None:
        return run_folder(options.folder, lock=options.lock)
    if not options.jobs or options.out is None:
        raise InputError("prony exec needs job files and --out, or --folder", hint="prony exec job.json --out result")
    return run_files(options.jobs, options.out, calibration_id=options.calibration, parent=options.parent)
