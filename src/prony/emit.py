"""Write the metrics of a running script to a file, one line per call. Standard library only; it never raises.

`prony.emit({"loss": 0.12}, step=3)`. The file is named by `PRONY_EMIT_FILE`, which Prony sets for what it runs. Several
processes may write to it at once: each record is one `write` to a file that is open for appending, between two line
ends of its own, so that one which was cut off by a kill harms none after it. Outside of Prony the record is printed to
standard output as a line of JSON, which Prony reads too where the variable got lost on the way.

Plain numbers are written as the bits that they are (`names` and `doubles`), because the decimals of ten of them would
cost nearly as much as all the rest; anything else as `metrics`, which is how others may write them too.

What is no number is not written as one: it is named in the record with the reason, and the result tells of it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from json.encoder import encode_basestring_ascii as _quoted
from math import isfinite, isnan
from struct import Struct
from struct import error as StructError  # noqa: N812 - an exception
from typing import Any

FILE = "PRONY_EMIT_FILE"
RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_AT_ONCE = 100  # names in one record, so that its line stays short
_LONGEST_NAME = 200
_NO_NUMBERS = (bool, str, bytes, list, tuple, set, dict, type(None))
# What the numbers of other people's libraries raise when they are none after all, a lost device among them.
_TROUBLE = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, RuntimeError, OSError)

_PLAIN = frozenset((float, int))
_MOST_FORMS = 1000

_forms: dict[Any, Any] = {}  # the names of a record, and how it is written
_opened: list[Any] = []  # the descriptor, and which file it was of when it was opened
_ranked: list[Any] = [0, ""]  # a process, and its rank as text; a fork is another process


def emit(
    metrics: Mapping[str, Any],
    step: float | None = None,
    unit: str | Mapping[str, str] | None = None,
    labels: Mapping[str, Any] | None = None,
    timestamp: Any = None,
) -> None:
    """Tell numbers by their names. `unit` is that of all of them, or one for each name; `timestamp` an instant or
    seconds since 1970, and now by default."""
    at_ns, now_ns = time.perf_counter_ns(), time.time_ns()
    try:
        refused: dict[str, str] = {}
        rest = "" if step is None and unit is None and labels is None else _rest(step, unit, labels, refused)
        at = _instant(timestamp, refused) if timestamp is not None else None
        # Whole nanoseconds are a number of seconds in JSON too, and are written much faster than a float.
        tail = f',"at_ns":{at_ns},"timestamp":{at or f"{now_ns}e-9"}}}\n'
        path = os.environ.get(FILE)
        packed = _pack(metrics) if path is not None and type(metrics) is dict else ""
        for body in (packed,) if packed else _bodies(metrics, refused):
            told = ',"refused":' + _texts(refused) if refused else ""
            _tell(path, f"{{{body}{rest}{told}", tail)
            refused.clear()
    except _TROUBLE:  # whoever measures may not break what is measured
        return


def _pack(metrics: dict[Any, Any]) -> str:
    """Return names and numbers of a record, or nothing where one of them needs a closer look."""
    names = tuple(metrics)
    form = _forms.get(names) or _form(names)
    if form is None or not _PLAIN.issuperset(map(type, metrics.values())):
        return ""
    try:
        return f'{form[0]}{form[1](*metrics.values()).hex()}"'
    except (OverflowError, StructError):  # a whole number that no float can hold; a name that another thread added
        return ""


def _form(names: tuple[Any, ...]) -> Any:
    """Return how numbers of these names are written; a script tells the same ones again and again."""
    if not 0 < len(names) <= _AT_ONCE or any(not _is_name(name) for name in names):
        return None
    form = '"names":[' + ",".join(map(_quoted, names)) + '],"doubles":"', Struct(f"<{len(names)}d").pack
    if len(_forms) < _MOST_FORMS:
        _forms[names] = form
    return form


def _bodies(metrics: Any, refused: dict[str, str]) -> Iterator[str]:
    """Give the numbers of one record after the other, as the beginning of a JSON object."""
    if not isinstance(metrics, Mapping):
        refused["(all)"] = "is " + _kind(metrics) + " where numbers by name were expected"
    elif not metrics:
        refused["(all)"] = "is empty"
    items = list(metrics.items()) if isinstance(metrics, Mapping) else []
    for first in range(0, len(items) or 1, _AT_ONCE):
        yield '"metrics":{' + _numbers(items[first : first + _AT_ONCE], refused) + "}"


def _numbers(items: list[tuple[Any, Any]], refused: dict[str, str]) -> str:
    """Return the numbers as the inside of a JSON object; a number that is told to the last digit is its `repr`."""
    told = []
    for name, value in items:
        if not _is_name(name):
            refused[str(name)[:_LONGEST_NAME] or "(empty)"] = "is not a valid name of a metric"
            continue
        number = _number(value)
        if isinstance(number, str):
            refused[name] = number
        else:
            told.append(_quoted(name) + ":" + repr(number))
    return ",".join(told)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME


def _number(value: Any) -> float | str:
    """Return the number that a value is, or why it is none; those of numpy and of tensors are numbers too."""
    if type(value) is not float:
        if isinstance(value, _NO_NUMBERS):
            return "is " + _kind(value)
        try:
            value = float(value)
        except _TROUBLE:
            return "is " + _kind(value)
    number: float = value
    if isfinite(number):
        return number
    return "is NaN" if isnan(number) else "is infinite"


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    known = {bool: "true or false", str: "text", bytes: "bytes", list: "a list", tuple: "a list", dict: "a map"}
    return known.get(type(value), "a " + type(value).__name__)


def _rest(step: Any, unit: Any, labels: Any, refused: dict[str, str]) -> str:
    """Return what was told beside the numbers, as the end of a JSON object; what cannot be read is refused alone."""
    told = ""
    if step is not None:
        number = _number(step)
        if isinstance(number, str):
            refused["(step)"] = number
        else:
            told += ',"step":' + repr(number)
    if unit is not None:
        told += _words("unit", unit, refused)
    if labels is not None:
        told += _words("labels", labels, refused)
    return told


def _words(key: str, value: Any, refused: dict[str, str]) -> str:
    try:
        words = _quoted(value) if key == "unit" and isinstance(value, str) else _texts(value)
    except _TROUBLE:
        refused["(" + key + ")"] = "is " + _kind(value)
        return ""
    return ',"' + key + '":' + words


def _texts(told: Any) -> str:
    """Return a map of words as JSON, in the order of its names."""
    words = [(str(name)[:_LONGEST_NAME], str(told[name])[:_LONGEST_NAME]) for name in sorted(told)[:_AT_ONCE]]
    return "{" + ",".join([_quoted(name) + ":" + _quoted(text) for name, text in words]) + "}"


def _instant(told: Any, refused: dict[str, str]) -> str:
    """Return the instant that was told in seconds since 1970, or nothing where it is none."""
    number = _number(told.timestamp() if hasattr(told, "timestamp") else told)
    if isinstance(number, str):
        refused["(timestamp)"] = number
        return ""
    return repr(number)


def _tell(path: str | None, head: str, tail: str) -> None:
    if path is None:
        _print(head)
    else:
        os.write(_descriptor(path), f"\n{head}{_rank()}{tail}".encode("ascii", "replace"))


def _rank() -> str:
    pid = os.getpid()
    if _ranked[0] != pid:
        found = [text for text in map(os.environ.get, RANKS) if text and text.isdigit()]
        _ranked[:] = [pid, ',"rank":' + str(int(found[0])) if found else ""]
    return _ranked[1]  # type: ignore[no-any-return]


def _descriptor(path: str) -> int:
    """Return the file, open for appending. A script may have closed it with all that it did not know, and another file
    may have its number now: so it is looked at every time."""
    if _opened:
        fd, device, inode, name = _opened
        try:
            status = os.fstat(fd)
            if status.st_ino == inode and status.st_dev == device and name == path:
                return int(fd)
        except OSError:
            pass
    # Never made here: what nobody waits for would lie about for ever.
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    status = os.fstat(fd)
    _opened[:] = [fd, status.st_dev, status.st_ino, path]
    return fd


def _print(head: str) -> None:
    """Print it as a person would write it: numbers alone where nothing else was told."""
    told = json.loads(head + "}")
    if sys.stdout is not None:
        sys.stdout.write(json.dumps(told["metrics"] if list(told) == ["metrics"] else told) + "\n")
        sys.stdout.flush()
