"""Say which results are damaged, and by the exit code that there are some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prony.cli.output import print_note
from prony.errors import EXIT_CODES, StoreError

if TYPE_CHECKING:
    from prony.app.damages import Damage


def report_damages(damages: Sequence[Damage]) -> int:
    """Name each on standard error; return 0 where there is none, else the exit code of a store that is in trouble."""
    for damage in damages:
        print_note(f"error: job {damage.job_id}: {damage.what}")
    if damages:
        print_note(" hint: restore the files from a copy, or run the jobs again")
    return EXIT_CODES[StoreError] if damages else 0
