"""`prony zoo`: the models that need no download."""

from __future__ import annotations

from typing import Annotated

import typer


def command(json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False) -> None:
    """List the zoo: real architectures with seeded weights, built on the spot; use one as `zoo:NAME`."""
    from dataclasses import asdict

    from prony.cli.output import print_columns, print_json
    from prony.plugins.models.zoo.cards import ZOO

    if json:
        print_json([asdict(card) for card in ZOO.values()])
        return
    rows = [
        (
            f"zoo:{card.name}",
            _short(card.parameters),
            f"{card.size_bytes / 1e6:.1f} MB" if card.size_bytes > 50_000 else f"{card.size_bytes / 1e3:.1f} kB",
            _short(card.macs),
            " ".join(card.formats),
            card.description,
        )
        for card in ZOO.values()
    ]
    print_columns(("MODEL", "PARAMETERS", "SIZE", "MACS", "FORMATS", "WHAT IT IS"), rows)


def _short(count: int) -> str:
    for factor, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= factor:
            return f"{count / factor:.3g} {letter}"
    return str(count)
