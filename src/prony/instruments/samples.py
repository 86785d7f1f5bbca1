"""Read and write sample and telemetry files in Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.errors import NotFoundError, StoreError

if TYPE_CHECKING:
    import polars as pl

SAMPLES = "samples.parquet"
TELEMETRY = "telemetry.parquet"
# The phases whose rows are in samples.parquet, in the order in which a repetition goes through them.
# Those after `measure` are of devices that work beside the host: `launch` has the same calls as `measure`, each from
# its begin to when it was queued. The last two are parts of `first`.
SAMPLE_PHASES = (
    "load", "first", "warmup", "measure",
    "launch", "device", "copy_in", "copy_out", "roundtrip", "compile", "capture",
)  # fmt: skip


def sample_frame(rows: Iterable[tuple[int, str, Sequence[int], Sequence[int]]]) -> pl.DataFrame:
    """Return one row a sample from (repetition, phase, begins, ends) blocks.

    `index` counts through the repetition, so the order in which samples were taken is never lost.
    """
    import numpy as np
    import polars as pl

    frames: list[pl.DataFrame] = []
    position: dict[int, int] = {}
    for repetition, phase, begins, ends in rows:
        start = position.get(repetition, 0)
        position[repetition] = start + len(begins)
        frames.append(
            pl.DataFrame(
                {
                    "repetition": pl.Series([repetition], dtype=pl.Int32).new_from_index(0, len(begins)),
                    "index": pl.int_range(start, start + len(begins), dtype=pl.Int32, eager=True),
                    "phase": pl.Series([phase], dtype=pl.Enum(SAMPLE_PHASES)).new_from_index(0, len(begins)),
                    "begin_ns": pl.Series(np.asarray(begins, dtype=np.int64)),
                    "end_ns": pl.Series(np.asarray(ends, dtype=np.int64)),
                }
            )
        )
    schema: Any = {"repetition": pl.Int32, "index": pl.Int32, "phase": pl.Enum(SAMPLE_PHASES)}
    return pl.concat(frames) if frames else pl.DataFrame(schema=schema | {"begin_ns": pl.Int64, "end_ns": pl.Int64})


def value_frame(repetition: int, rows: Sequence[tuple[str, int, float]]) -> pl.DataFrame:
    """Return one row a measured value of one run, from (name, at_ns, value)."""
    import polars as pl

    count = len(rows)
    schema: Any = {
        "repetition": pl.Int32, "index": pl.Int32, "phase": pl.Enum(SAMPLE_PHASES), "at_ns": pl.Int64,
        "name": pl.String, "value": pl.Float64,
    }  # fmt: skip
    columns = {
        "repetition": [repetition] * count, "index": range(count), "phase": ["measure"] * count,
        "at_ns": [row[1] for row in rows], "name": [row[0] for row in rows], "value": [row[2] for row in rows],
    }  # fmt: skip
    return pl.DataFrame(columns, schema=schema)


def telemetry_frame(rows: Sequence[tuple[int, int, str, Mapping[str, float]]]) -> pl.DataFrame:
    """Return one row a counter from (repetition, at_ns, probe, readings)."""
    import polars as pl

    flat: list[tuple[int, int, str, str, float]] = [
        (repetition, at_ns, probe, counter, float(value))
        for repetition, at_ns, probe, readings in rows
        for counter, value in readings.items()
    ]
    schema: Any = {
        "repetition": pl.Int32, "at_ns": pl.Int64, "probe": pl.String, "counter": pl.String, "value": pl.Float64,
    }  # fmt: skip
    return pl.DataFrame(flat, schema=schema, orient="row")


def read_frame(folder: Path, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Read one Parquet file of a result folder, or only those of some columns that it has."""
    import polars as pl

    path = folder / name
    try:
        if columns is not None:
            has = pl.read_parquet_schema(path)
            return pl.read_parquet(path, columns=[name for name in columns if name in has])
        return pl.read_parquet(path)
    except FileNotFoundError as exc:
        raise NotFoundError(f"no {name} in {folder}", hint="check that this folder was written by prony exec") from exc
    except pl.exceptions.PolarsError as exc:
        raise StoreError(f"{path} is damaged: {exc}", hint="restore it from a copy, or run the job again") from exc
