"""Read the rows of a data set, and the turns of the conversations in them.

The file's ending says whether it holds JSON lines, a JSON list, CSV or Parquet.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prony.errors import InputError, NotFoundError

Row = dict[str, Any]


def rows_at(path: Path) -> list[Row]:
    """Return every row of a data set."""
    if not path.is_file():
        raise NotFoundError(f"data set not found: {path}", hint="the path is relative to the recipe's folder")
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise InputError(f"{path} has an unknown file extension", hint=f"use one of {', '.join(_READERS)}")
    try:
        rows = list(read(path))
    except (UnicodeDecodeError, csv.Error) as exc:
        raise InputError(f"{path} cannot be read: {exc}", hint="it must be UTF-8 text") from exc
    if not rows:
        raise InputError(f"{path} has no rows", hint="a data set needs at least one")
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
        hint = "write one JSON object in each line; a .json file may also be one list of them"
        raise InputError(f"{where} is not JSON: {exc}", hint=hint) from exc
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a JSON object", hint="each row must be an object with named fields")
    return value


def _list(path: Path) -> Iterator[Row]:
    text = path.read_text(encoding="utf-8-sig")
    if not text.lstrip().startswith("["):
        yield from _lines(path)
        return
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InputError(
            f"{path} is not JSON: {exc}",
            hint="write a list of JSON objects, or name the file .jsonl where each line is one",
        ) from exc
    for number, value in enumerate(values):
        if not isinstance(value, dict):
            raise InputError(
                f"{path}, entry {number} is not a JSON object", hint="each row must be an object with named fields"
            )
        yield value


def _table(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


def _parquet(path: Path) -> Iterator[Row]:
    import polars

    try:
        frame = polars.read_parquet(path)
    except (polars.exceptions.PolarsError, OSError) as exc:
        raise InputError(
            f"{path} is not a Parquet file: {exc}", hint="fetch it again: it may be cut short, or a Git LFS pointer"
        ) from exc
    yield from frame.iter_rows(named=True)


_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": _lines,
    ".ndjson": _lines,
    ".json": _list,
    ".csv": _table,
    ".parquet": _parquet,
}


Turn = Mapping[str, str]
_ROLES = {"human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant",
          "bard": "assistant", "assistant": "assistant", "model": "assistant", "system": "system"}  # fmt: skip
# ShareGPT's layout, and that of OpenAI's messages: where the turns stand, who speaks, what is said.
_LAYOUTS = (("conversations", "from", "value"), ("conversation", "from", "value"), ("messages", "role", "content"))


def turns_of(row: Row) -> list[Turn]:
    """Return the turns of a conversation; [] where the row holds none that can be asked."""
    for place, who, what in _LAYOUTS:
        turns = row.get(place)
        if isinstance(turns, list):
            said = [_turn(turn, who, what) for turn in turns]
            return [turn for turn in said if turn is not None] if all(said) else []
    return []


def exchanges(turns: list[Turn]) -> list[tuple[tuple[Turn, ...], str]]:
    """Return what is asked, with all that was said before it, and the data set's own answer, for each exchange."""
    return [
        (tuple(turns[: index + 1]), turns[index + 1]["content"])
        for index in range(len(turns) - 1)
        if turns[index]["role"] == "user" and turns[index + 1]["role"] == "assistant"
    ]


def _turn(turn: Any, who: str, what: str) -> Turn | None:
    if not isinstance(turn, dict):
        return None
    role, content = turn.get(who), turn.get(what)
    known = _ROLES.get(role.lower()) if isinstance(role, str) else None
    return {"role": known, "content": content} if known is not None and isinstance(content, str) and content else None
