"""Print which agents fit each lot of a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prony.model.queue import LotFit


def show_fits(lots: Sequence[LotFit], *, runnable: bool) -> None:
    from prony.cli.columns import FIT, fit_cells, wants
    from prony.cli.output import print_columns, print_note, print_text

    for lot in lots:
        print_text(f"{lot.jobs} job{'' if lot.jobs == 1 else 's'}: {wants(lot.demand)}")
        if lot.agents:
            print_columns(FIT, [fit_cells(fit) for fit in lot.agents])
    if not runnable:
        print_note("some jobs fit no agent: they would wait until one comes that fits")
