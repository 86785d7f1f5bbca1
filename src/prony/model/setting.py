"""One setting of Prony: its names, the kind of its value, and how that is read and written.

Standard library only: every command that finds a file of settings passes through here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

SettingKind = Literal[
    "text", "choice", "integer", "number", "port", "flag", "words", "pairs", "path", "paths",
    "duration", "size", "bytes", "share",
]  # fmt: skip
SettingValue = str | int | float | bool | tuple[str, ...]

_FLAGS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_EXAMPLES: dict[SettingKind, str] = {
    "text": 'text, as in "name"',
    "choice": "a word",
    "integer": "a whole number, as in 4",
    "number": "a number, as in 2.5",
    "port": "a port, from 0 to 65535",
    "flag": "true or false",
    "words": 'a list of texts, as in ["zoo", "https"]',
    "pairs": "a table of texts and numbers, as in {rack = 7}",
    "path": 'a path, as in "/srv/prony"',
    "paths": 'a list of folders, as in ["/srv/models"]',
    "duration": 'a duration, as in "30s"',
    "size": 'a size, as in "20GiB"',
    "bytes": 'a size, as in "20GiB", or a number of bytes',
    "share": 'a share, as in "3%"',
}


@dataclass(frozen=True)
class Setting:
    """`key` stands in prony.toml, `variable` in the environment, `option` on the command line where there is one.

    `is_personal`: a project's file may not set it. `in_files`: a prony.toml may hold it. `default` is what people see.
    """

    key: str
    variable: str
    meaning: str
    kind: SettingKind = "text"
    default: str = ""
    option: str = ""
    choices: tuple[str, ...] = ()
    is_personal: bool = False
    is_secret: bool = False
    in_files: bool = True

    @property
    def how_to_write(self) -> str:
        """Say how a value is written."""
        return f"write {' or '.join(self.choices)}" if self.choices else f"write {_EXAMPLES[self.kind]}"


def value_from_toml(setting: Setting, written: Any, base: Path) -> SettingValue:
    """Return the value that stands in a file; relative paths begin at `base`.

    Raises:
        ValueError: It is of another kind.
    """
    readers: dict[SettingKind, Callable[[Any], SettingValue]] = {
        "integer": _whole, "port": _whole, "number": _number, "flag": _flag, "words": _texts, "pairs": _pairs,
        "path": lambda value: _place(_text(value), base),
        "paths": lambda value: tuple(_place(one, base) for one in _texts(value)),
        "bytes": lambda value: _bytes(value if isinstance(value, str) else _whole(value)),
    }  # fmt: skip
    return _check(setting, readers.get(setting.kind, _text)(written))


def value_from_text(setting: Setting, text: str) -> SettingValue:
    """Return the value that a variable of the environment holds.

    Raises:
        ValueError: It is of another kind.
    """
    readers: dict[SettingKind, Callable[[str], SettingValue]] = {
        "integer": int, "port": int, "number": float, "flag": lambda one: _FLAGS[one.lower()], "words": _split_words,
        "pairs": _split_words, "paths": lambda one: tuple(filter(None, one.split(os.pathsep))), "bytes": _bytes,
    }  # fmt: skip
    try:
        return _check(setting, readers.get(setting.kind, str)(text))
    except KeyError as exc:
        raise ValueError(text) from exc


def value_as_text(setting: Setting, value: SettingValue) -> str:
    """Return the value as a variable of the environment holds it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return (os.pathsep if setting.kind == "paths" else ",").join(value)
    return str(value)


def _check(setting: Setting, value: SettingValue) -> SettingValue:
    if setting.choices and value not in setting.choices:
        raise ValueError(value)
    if setting.kind == "port" and not (isinstance(value, int) and 0 <= value <= 65535):
        raise ValueError(value)
    if setting.kind in ("duration", "size", "share") and value != "":
        _quantity(setting.kind, value)
    return value


def _quantity(kind: str, value: SettingValue) -> float:
    from pydantic import TypeAdapter

    from prony.model.quantity import DurationNs, Share, SizeBytes

    kinds: dict[str, Any] = {"duration": DurationNs, "size": SizeBytes, "share": Share}
    read: float = TypeAdapter[Any](kinds[kind]).validate_python(value)  # its ValidationError is a ValueError
    return read


def _bytes(value: str | int) -> int:
    if isinstance(value, int) or value.isdigit():
        return int(value)
    return int(_quantity("size", value))


def _expect(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:  # not isinstance: a bool is no whole number here
        raise ValueError(value)
    return value


def _whole(value: Any) -> int:
    return int(_expect(value, int))


def _number(value: Any) -> float:
    return float(_expect(value, int, float))


def _flag(value: Any) -> bool:
    return bool(_expect(value, bool))


def _text(value: Any) -> str:
    return str(_expect(value, str))


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(_text, _expect(value, list)))


def _pairs(value: Any) -> tuple[str, ...]:
    return tuple(f"{name}={_expect(one, str, int, float)}" for name, one in _expect(value, dict).items())


def _split_words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


def _place(text: str, base: Path) -> str:
    # A name without a folder may be a program on PATH; whoever reads the setting knows.
    path = Path(text).expanduser()
    return str(base / path)
