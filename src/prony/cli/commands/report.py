"""`prony report`: an experiment in, a document out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    experiment: Annotated[str, typer.Argument(help="an id, the beginning of one, or last")] = "last",
    format: Annotated[str, typer.Option("--format", "-f", help="html, md, json, csv or junit")] = "html",  # noqa: A002
    out: Annotated[Path | None, typer.Option("--out", "-o", help="file to write; - for standard output")] = None,
) -> None:
    """Write a report. HTML goes beside the results unless --out says otherwise, the rest to standard output."""
    import sys

    from prony.app.api import Bench
    from prony.cli.output import print_note

    with Bench.open() as bench:
        if format == "html" and out is None:
            path = bench.write_report(bench.dossier(experiment))
            print_note(f"report: {path}")
            return
        content = bench.report(experiment, format)
    data = content if isinstance(content, bytes) else content.encode()
    if out is None or str(out) == "-":
        sys.stdout.buffer.write(data)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(data)
    print_note(f"report: {out}")
