"""Read a script's metrics from emitted records, JSON lines and patterns, and note what was refused."""

from __future__ import annotations

import json
import math
import re
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prony.kinds.script.runner.plan import Stream
from prony.kinds.script.samples import EmittedValue, labels_text
from prony.kinds.script.schema import ScriptMetric
from prony.model.result import Refusal
from prony.ports.plugins import SHIMS, find_plugins

_LONGEST_LINE = 2**20
_BLOCK = 2**20
_MOST_REASONS = 200
_MOST_SERIES = 2000
_LONGEST_NAME = 200
_GLANCE = 2**13
_MOST_SHOWN = 3
_LINE_ENDS = re.compile(rb"[\r\n]")  # a progress bar goes back to the beginning of its line
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


@dataclass
class Tail:
    """A file that somebody else writes: gives the whole lines that are new."""

    path: Path
    take: Callable[[str, int], None]
    # Read while it grows, because the time of reading is the time of a line; else when all is over, in peace.
    is_live: bool = True
    offset: int = 0
    rest: bytes = b""

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def follow(self, *, is_last: bool = False) -> None:
        """Hand on what is new; at the end also a last line without an end."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                while block := file.read(_BLOCK):
                    self.offset += len(block)
                    *lines, self.rest = _LINE_ENDS.split(self.rest + block)
                    self._hand_on(lines)
                    if len(self.rest) > _LONGEST_LINE:  # no text of a person: its end is not waited for
                        self.rest = b""
        except FileNotFoundError:  # a rank that has not begun
            return
        if is_last and self.rest:
            self._hand_on([self.rest])
            self.rest = b""

    def _hand_on(self, lines: Sequence[bytes]) -> None:
        at_ns = time.perf_counter_ns()
        for line in lines:
            if line.strip():
                self.take(line.decode(errors="replace"), at_ns)


@dataclass
class Reading:
    """Everything that one execution told so far."""

    metrics: Sequence[ScriptMetric]
    rows: list[EmittedValue] = field(default_factory=list)
    refused: dict[tuple[str, str], int] = field(default_factory=dict)
    _series: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._patterns = [(metric, re.compile(metric.pattern)) for metric in self.metrics if metric.pattern is not None]
        self._units = {metric.name: metric.unit for metric in self.metrics if metric.unit is not None}

    def refusals(self) -> tuple[Refusal, ...]:
        return tuple(Refusal(name=name, reason=reason, count=n) for (name, reason), n in self.refused.items())

    def follow_emitted(self, path: Path) -> Tail:
        return Tail(path, self.take_record, is_live=False)

    def latest(self, path: Path) -> str:
        """Return in a few words what was told last, for whoever watches: of the file's end alone."""
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _GLANCE))
            lines = file.read().splitlines()
        glance = Reading(())
        for line in lines[-2:]:
            if line.startswith(b"{"):
                glance.take_record(line.decode(errors="replace"), 0)
        rows = (glance.rows or self.rows)[-_MOST_SHOWN:]
        step = f" (step {rows[-1].step:g})" if rows and rows[-1].step is not None else ""
        return ", ".join(f"{row.name[:30]} {row.value:.4g}" for row in rows) + step

    def follow_stream(self, stream: Stream) -> Tail:
        return Tail(stream.path, lambda line, at_ns: self.take_line(stream, line, at_ns))

    def take_record(self, line: str, at_ns: int) -> None:
        """Take one record that `prony.emit` wrote; one that was cut off is refused and harms no other."""
        try:
            record = json.loads(line)
            if isinstance(record, dict) and "doubles" in record:
                record["metrics"] = _unpack_doubles(record["names"], record["doubles"])
        except (ValueError, TypeError, LookupError, struct.error):
            record = None
        if not isinstance(record, dict):
            self._refuse("(a record)", "was cut off, or is none")
            return
        said = record.get("origin")
        origin = said if isinstance(said, str) and said in find_plugins(SHIMS) else "emit"
        told_ns = record.get("at_ns")
        self._take(record, told_ns if isinstance(told_ns, int) else at_ns, origin)

    def take_line(self, stream: Stream, line: str, at_ns: int) -> None:
        """Take one line of output: JSON on standard output, and whatever the patterns find in it."""
        if stream.name == "stdout" and line.lstrip().startswith("{"):
            self._take_json(line, at_ns, stream.rank)
        for metric, pattern in self._patterns:
            if metric.stream in (None, stream.name):
                for match in pattern.finditer(line):
                    self._take_match(metric, match, at_ns, stream.rank)

    def _take_json(self, line: str, at_ns: int, rank: int | None) -> None:
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            return  # a line of text that begins like JSON
        if not isinstance(told, dict):
            return
        if not isinstance(told.get("metrics"), dict):
            told = {"metrics": told}
            # What has no number in it is somebody's log and no metric.
            if all(isinstance(_number(value, texts=True), str) for value in told["metrics"].values()):
                return
        self._take({"rank": rank} | told, at_ns, "json")

    def _take(self, record: Mapping[str, Any], at_ns: int, origin: str) -> None:
        for name, reason in _pairs(record.get("refused")):
            self._refuse(str(name), str(reason))
        step, timestamp = _optional(record.get("step")), _optional(record.get("timestamp"))
        labels = labels_text({str(name): str(text) for name, text in _pairs(record.get("labels"))})
        unit, rank = record.get("unit"), record.get("rank")
        for name, value in _pairs(record.get("metrics")):
            number = _number(value, texts=origin == "json")
            if isinstance(number, str):
                self._refuse(name, number)
                continue
            own = unit.get(name) if isinstance(unit, dict) else unit
            row = EmittedValue(
                at_ns, name, number, origin, unit=own[:40] if isinstance(own, str) and own else None, step=step,
                rank=rank if isinstance(rank, int) else None, labels=labels, timestamp=timestamp,
            )  # fmt: skip
            self._add(row)

    def _take_match(self, metric: ScriptMetric, match: re.Match[str], at_ns: int, rank: int | None) -> None:
        if match.re.groups:
            text = match[1]
            if text is None:
                return
        else:
            numbers = _NUMBER.findall(match[0])
            if len(numbers) != 1:
                self._refuse(metric.name, f"its pattern finds {len(numbers)} numbers: put the one into a group")
                return
            text = numbers[0]
        number = _number(text.strip(), texts=True)
        if isinstance(number, str):
            self._refuse(metric.name, f"its pattern finds what {number}")
        else:
            self._add(EmittedValue(at_ns, metric.name, number, "pattern", unit=metric.unit, rank=rank))

    def _add(self, row: EmittedValue) -> None:
        if not 0 < len(row.name) <= _LONGEST_NAME:
            self._refuse(row.name[:_LONGEST_NAME] or "(empty)", "is not a valid name of a metric")
            return
        unit = self._units.setdefault(row.name, row.unit or "")
        if row.unit is not None and row.unit != unit:
            if unit:
                self._refuse(row.name, f"was first reported in {unit}, and now in {row.unit}")
                return
            self._units[row.name] = row.unit
        series = (row.name, row.labels)
        if series not in self._series:
            if len(self._series) >= _MOST_SERIES:
                self._refuse(row.name, f"there are more than {_MOST_SERIES} names and sets of labels")
                return
            self._series.add(series)
        self.rows.append(row)

    def _refuse(self, name: str, reason: str) -> None:
        key = (name[:_LONGEST_NAME], reason[:_LONGEST_NAME])
        if key in self.refused or len(self.refused) < _MOST_REASONS:
            self.refused[key] = self.refused.get(key, 0) + 1


def _unpack_doubles(names: list[str], doubles: str) -> dict[str, float]:
    """Return the numbers that `prony.emit` wrote as bits, in hexadecimal."""
    return dict(zip(names, struct.unpack(f"<{len(names)}d", bytes.fromhex(doubles)), strict=True))


def _pairs(told: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(told, dict):
        yield from told.items()


def _optional(told: Any) -> float | None:
    number = _number(told, texts=False)
    return None if isinstance(number, str) else number


def _number(value: Any, *, texts: bool) -> float | str:
    """Return the number that a value is, or why it is none; `texts`: a number may be written as text."""
    if value is None or isinstance(value, bool):
        return "is nothing" if value is None else "is true or false"
    if isinstance(value, list | dict):
        return "is a list" if isinstance(value, list) else "is a map"
    if isinstance(value, str) and not texts:
        return "is text"
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return "is text"
    if math.isfinite(number):
        return number
    return "is NaN" if math.isnan(number) else "is infinite"
