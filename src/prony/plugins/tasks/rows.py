"""Read the rows of a data set: JSON lines, a JSON list, CSV or Parquet, by the file's ending."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prony.errors import InputError, NotFoundError

Row = dict[str, Any]


def rows_at(path: Path) -> list[Row]:
    """Return every row of a data set."""
    if not path.is_file():
        raise NotFoundError(f"no data set at {path}", hint="the path is relative to the recipe's folder")
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise InputError(f"{path} has none of the known endings", hint=f"known: {', '.join(_READERS)}")
    try:
        rows = list(read(path))
    except (UnicodeDecodeError, csv.Error) as exc:
        raise InputError(f"{path} cannot be read: {exc}", hint="it must be UTF-8 text") from exc
    if not rows:
        raise InputError(f"{path} holds no rows", hint="a data set needs at least one")
    return rows


def shuffle_rows(rows: Sequence[Row], seed: int) -> list[Row]:
    """Return the rows in an order that the seed decides."""
    order = np.random.Generator(np.random.PCG64([seed, 2])).permutation(len(rows))
    return [rows[index] for index in order]


def _lines(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _object(line, f"{path}, line {number}")


def _object(text: str, where: str) -> Row:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InputError(f"{where} is no JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise InputError(f"{where} is no JSON object", hint="each row has names for what it holds")
    return value


def _list(path: Path) -> Iterator[Row]:
    text = path.read_text(encoding="utf-8-sig")
    if not text.lstrip().startswith("["):
        yield from _lines(path)
        return
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InputError(f"{path} is no JSON: {exc}") from exc
    for number, value in enumerate(values):
        if not isinstance(value, dict):
            raise InputError(f"{path}, entry {number} is no JSON object", hint="each row has names for what it holds")
        yield value


def _table(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


def _parquet(path: Path) -> Iterator[Row]:
    import polars

    try:
        frame = polars.read_parquet(path)
    except (polars.exceptions.PolarsError, OSError) as exc:
        raise InputError(f"{path} is no Parquet file: {exc}") from exc
    yield from frame.iter_rows(named=True)


_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": _lines,
    ".ndjson": _lines,
    ".json": _list,
    ".csv": _table,
    ".parquet": _parquet,
}
