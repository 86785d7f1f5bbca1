"""`prony backup`: copy a home's experiments and database into one file, while they are in use."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import add_json


def arguments(parser: ArgumentParser) -> None:
    """Copy the experiments, samples, schedules, alarms and tokens of this home into one file. Servers may go on
    running. The file holds secrets: keep it where only you can read it."""
    parser.add_argument("file", metavar="FILE", type=Path, help="file to create, for example prony-backup.tar")
    parser.add_argument("--database", metavar="URL", default="", help="use this database instead of the home's")
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_json, print_note, print_text
    from prony.store.backup import write_backup
    from prony.store.home import home

    made = write_backup(home(), options.file, url=options.database)
    for folder in made.missing:
        print_note(f"the result folder {folder} is missing in this home, and so in the backup")
    size = options.file.stat().st_size
    if options.json:
        print_json({"file": str(options.file), "experiments": made.experiments, "bytes": size})
    else:
        many = "s" * (made.experiments != 1)
        print_text(f"wrote {options.file}: {made.experiments} experiment{many}, {size / 2**20:,.1f} MiB")
    return 0
