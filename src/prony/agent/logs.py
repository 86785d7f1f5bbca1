"""Write the agent's log to standard error, as text or as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

LEVELS = ("debug", "info", "warning", "error")
Form = Literal["console", "json"]


class AgentLog:
    """Carries the ids that every line is to have; `bound` returns one that carries more."""

    def __init__(
        self,
        *,
        level: str = "info",
        form: Form = "console",
        out: TextIO | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        self._least = LEVELS.index(level)
        self._level = level
        self._form = form
        self._out = out or sys.stderr
        self._fields = dict(fields or {})

    def bound(self, **fields: Any) -> AgentLog:
        return AgentLog(level=self._level, form=self._form, out=self._out, fields=self._fields | fields)

    def debug(self, event: str, **fields: Any) -> None:
        self._say("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._say("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._say("warning", event, fields)

    def alarm(self, event: str, **fields: Any) -> None:
        self._say("error", event, fields)

    def _say(self, level: str, event: str, fields: Mapping[str, Any]) -> None:
        if LEVELS.index(level) < self._least:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = {"timestamp": now, "level": level, "event": event}
        told = self._fields | {key: value for key, value in fields.items() if value not in (None, "")}
        line = json.dumps(head | told, default=str) if self._form == "json" else _text(head, told)
        # Nobody can hear it, or the disk that it goes to is full: no reason to stop measuring.
        with suppress(OSError, ValueError):
            self._out.write(line + "\n")
            self._out.flush()


def _text(head: Mapping[str, str], fields: Mapping[str, Any]) -> str:
    tail = " ".join(f"{key}={_quote(value)}" for key, value in fields.items())
    return f"{head['timestamp']} {head['level']:<7} {_one_line(head['event'])}" + (f"  {tail}" if tail else "")


def _quote(value: Any) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else _one_line(str(value))
    return json.dumps(text, ensure_ascii=False) if " " in text or '"' in text or not text else text


def _one_line(text: str) -> str:
    return " ".join(text.split("\n")).replace("\r", " ")
