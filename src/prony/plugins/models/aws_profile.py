"""Read keys and region of a profile from the files that AWS's own programs share."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path

from prony.errors import InputError

_DEFAULT = "default"


def read_aws_profile(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the files say of the chosen profile (AWS_PROFILE), by the files' own names; nothing without files.

    Raises:
        InputError: the profile that the environment names is in neither file, or a file cannot be read.
    """
    name = environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE") or _DEFAULT
    folder = Path(environment["HOME"], ".aws") if environment.get("HOME") else None
    places = [
        (environment.get("AWS_CONFIG_FILE"), "config", name if name == _DEFAULT else f"profile {name}"),
        (environment.get("AWS_SHARED_CREDENTIALS_FILE"), "credentials", name),
    ]
    found: dict[str, str] = {}
    is_known = False
    for given, usual, section in places:
        path = Path(given).expanduser() if given else folder / usual if folder is not None else None
        read = _read_section(path, section) if path is not None and path.is_file() else None
        is_known = is_known or read is not None
        found |= read or {}
    if not is_known and name != _DEFAULT:
        raise InputError(
            f"no AWS profile is called {name}",
            hint="check AWS_PROFILE, ~/.aws/config and ~/.aws/credentials",
            code="aws_profile",
        )
    return found


def _read_section(path: Path, section: str) -> dict[str, str] | None:
    parser = configparser.ConfigParser(interpolation=None, default_section="")
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error) as exc:
        hint = "check the file that AWS_CONFIG_FILE or AWS_SHARED_CREDENTIALS_FILE names"
        raise InputError(f"{path} cannot be read as an AWS file", hint=hint, code="aws_profile") from exc
    return dict(parser[section]) if parser.has_section(section) else None
