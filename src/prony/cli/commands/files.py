"""`prony files`: list the files of a result, print one, or copy one."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_server

if TYPE_CHECKING:
    from prony.model.result_files import ResultFile
    from prony.ports.use_cases import UseCases

_COLUMNS = ("BYTES", "CHANGED", "NAME")


def arguments(parser: ArgumentParser) -> None:
    """List the files of a job's result. With a name, print that file, which must be text; with --to, copy it."""
    parser.add_argument("job", metavar="JOB", help="a job's id, or the id of an experiment that has one job")
    parser.add_argument("name", metavar="NAME", nargs="?", help="print this file, without control characters")
    parser.add_argument("--to", type=Path, metavar="PATH", help="copy the file to this path, unchanged")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import open_bench
    from prony.errors import InputError

    if options.to is not None and options.name is None:
        raise InputError("--to needs the name of a file", hint=f"`prony files {options.job}` lists them")
    with open_bench(options) as bench:
        job_id = bench.files.find(options.job)
        if options.name is None:
            return _print_list(bench, job_id, as_json=options.json)
        if options.to is not None:
            return _copy(bench, job_id, options)
        return _print_text(bench, job_id, options.name)


def _print_list(bench: UseCases, job_id: str, *, as_json: bool) -> int:
    from prony.cli.output import print_listed, print_note

    found = bench.files.listing(job_id)
    if found.left_out:
        print_note(f"{found.left_out} more files are not listed; `prony export` of its experiment brings all")

    def cells(file: ResultFile) -> tuple[str, ...]:
        return f"{file.size_bytes:,}", f"{file.modified_at:%Y-%m-%d %H:%M:%SZ}", file.name

    return print_listed(found.files, _COLUMNS, cells, none="the result has no files", as_json=as_json)


def _print_text(bench: UseCases, job_id: str, name: str) -> int:
    from prony.model.shown import plain_log

    offset = 0
    while True:
        piece = bench.files.text(job_id, name, offset=offset)
        sys.stdout.write(plain_log(piece.text.decode(errors="replace")))
        if piece.ended or piece.next_offset == offset:
            return 0
        offset = piece.next_offset


def _copy(bench: UseCases, job_id: str, options: Namespace) -> int:
    from prony.cli.output import print_note
    from prony.errors import ConflictError

    if options.to.exists():
        raise ConflictError(f"{options.to} already exists", hint="give another path")
    bench.files.fetch(job_id, options.name, options.to)
    print_note(f"copied to {options.to}")
    return 0
