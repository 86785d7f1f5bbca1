"""`prony restore`: bring a backup back into an empty home."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import add_json


def arguments(parser: ArgumentParser) -> None:
    """Restore a backup into this home, which must be empty. Every file is checked before anything is put in place.
    A backup of an older Prony is brought up to date."""
    parser.add_argument("file", metavar="FILE", type=Path, help="file that prony backup wrote")
    parser.add_argument(
        "--database", metavar="URL", default="", help="restore rows into this empty database instead of the home's"
    )
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_json, print_text
    from prony.store.backup import restore_backup
    from prony.store.home import home

    place = home()
    found = restore_backup(options.file, place, url=options.database)
    if options.json:
        print_json({"home": str(place.root), "experiments": found.experiments, "made_at": found.made_at.isoformat()})
    else:
        many = "s" * (found.experiments != 1)
        made_at = f"{found.made_at:%Y-%m-%d %H:%M} UTC"
        print_text(f"restored {found.experiments} experiment{many} of {made_at} into {place.root}")
    return 0
