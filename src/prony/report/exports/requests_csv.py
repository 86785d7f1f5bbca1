"""Export a load's requests as CSV, with latencies computed for spreadsheets."""

from __future__ import annotations

from pathlib import Path

from prony.errors import NotFoundError
from prony.ports.exporter import ExportedLoad
from prony.report.exports.csv import safe_text
from prony.report.plots.load_series import requests_of


def write(load: ExportedLoad, to: Path) -> list[Path]:
    """Write `JOB.requests.csv`: the recorded columns, the stamps of tokens as their count, and latencies in ms.

    Latencies of failed requests are empty: they have none.
    """
    entry = load.entry
    import polars as pl

    frame = requests_of(entry)
    if frame is None:
        raise NotFoundError(f"the requests of job {entry.job.id} cannot be read", hint=f"look in {entry.folder}")
    good, begin = pl.col("cause") == "ok", pl.col("begin_ns")
    first = pl.col("token_ns").list.first()
    made = {
        "e2e_ms": (pl.col("end_ns") - begin) / 1e6,
        "sent_late_ms": (pl.col("sent_ns") - pl.col("due_ns")) / 1e6,
        "ttfb_ms": pl.when(pl.col("first_ns") > 0).then((pl.col("first_ns") - begin) / 1e6),
        "ttft_ms": (first - begin) / 1e6,
        "tpot_ms": pl.when(pl.col("output_tokens") > 1).then(
            (pl.col("end_ns") - first) / (pl.col("output_tokens") - 1) / 1e6
        ),
    }
    names = frame["operation"].cast(pl.String).unique().to_list()
    told = frame.select(
        pl.lit(entry.job.id).alias("job_id"),
        pl.exclude("token_ns", "operation"),
        pl.col("operation").cast(pl.String).replace({name: safe_text(name) for name in names}),
        pl.col("token_ns").list.len().alias("token_pieces"),
        *(pl.when(good).then(value).alias(name) for name, value in made.items()),
    )
    path = to / f"{entry.job.id}.requests.csv"
    told.write_csv(path, line_terminator="\r\n")
    return [path]
