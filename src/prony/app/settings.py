"""Settings: find the files that hold them, and tell each value and where it comes from.

From the weakest to the strongest: default, system's file, user's file, project's file, `.env`, environment. Options of
a command beat them all. Standard library only until something is wrong.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from prony.errors import InputError
from prony.model.setting import Setting, SettingValue, value_as_text, value_from_text, value_from_toml

FILE_NAME, ENV_NAME = "prony.toml", ".env"
Level = Literal["default", "system", "user", "project", "env-file", "environment"]
# What a folder that somebody else wrote can hold.
OF_A_FOLDER: tuple[Level, ...] = ("project", "env-file")
_LARGEST_BYTES = 100_000
_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$")
_KINDS = ("refuse", "allow", "plain")

# Settings that are no option of one command, or of many commands. Those of `prony server`, `prony agent` and
# `prony load` are made of the options of these commands.
SHARED_SETTINGS: tuple[Setting, ...] = (
    Setting("home", "PRONY_HOME", "the home: the folder for everything that Prony stores", "path"),
    Setting("cli.server", "PRONY_SERVER", "the server of commands and agents", option="--server"),
    Setting("cli.token", "PRONY_TOKEN", "the token", is_secret=True, in_files=False),
    Setting(
        "cli.token_file", "PRONY_TOKEN_FILE", "file that holds the token", "path", option="--token-file",
        is_personal=True,
    ),
    Setting("cli.browser", "PRONY_BROWSER", "the browser that prints PDF reports: its name or path", is_personal=True),
    Setting(
        "cli.report", "PRONY_CLI__REPORT", "write an HTML report beside the results", "flag", "true", "--report"
    ),
    Setting(
        "cli.gates", "PRONY_CLI__GATES", "strict: undecided gates fail too", "choice", "lenient", "--gates",
        ("lenient", "strict"),
    ),
    Setting(
        "cli.threshold", "PRONY_CLI__THRESHOLD", "the smallest change that matters in a comparison", "share", "3%",
        "--threshold",
    ),
    Setting("cli.branch", "PRONY_BRANCH", "branch of the recipes, if git and the CI do not know it"),
    Setting("cli.default_branch", "PRONY_DEFAULT_BRANCH", "default branch of the recipe's repository"),
    Setting("models.schemes", "PRONY_MODEL_SCHEMES", "allowed model sources", "words"),
    Setting(
        "models.private", "PRONY_MODEL_PRIVATE", "whether a URL may lead into a private network", "choice", "",
        "--model-private", _KINDS,
    ),
    Setting("models.max_bytes", "PRONY_MODEL_MAX_BYTES", "largest allowed model", "bytes"),
    Setting("models.folders", "PRONY_MODEL_FOLDERS", "folders that jobs may read files from", "paths"),
    Setting("models.keep_bytes", "PRONY_MODEL_KEEP_BYTES", "largest local model to keep a copy of", "bytes"),
    Setting(
        "containers.mirrors", "PRONY_CONTAINER_MIRRORS", "where images of a registry come from: a mirror, or a folder",
        "pairs", is_personal=True,
    ),
    Setting("machine.labels", "PRONY_LABELS", "labels of this machine", "pairs"),
    Setting("machine.address", "PRONY_ADDRESS", "address under which other machines reach this one"),
    Setting("server.scripts_quota", "PRONY_SCRIPTS_QUOTA", "space for folders of scripts", "size", "20GiB"),
    Setting(
        "server.confirm_runs_per_day", "PRONY_CONFIRM_RUNS_PER_DAY",
        "most runs in 24 hours that confirm suspected regressions", "integer", "100",
    ),
    Setting(
        "server.connections_per_address", "PRONY_CONNECTIONS_PER_ADDRESS",
        "most open connections of one address (three quarters of all)", "integer",
    ),
    Setting("machine.otlp_url", "PRONY_OTLP_URL", "send OpenTelemetry traces of server and agent here (OTLP, HTTP)"),
    Setting(
        "server.export_to", "PRONY_EXPORT_TO", "where ended experiments are sent, as mlflow+http://HOST:PORT", "words",
        is_personal=True, is_secret=True,
    ),
    Setting("server.prometheus_url", "PRONY_PROMETHEUS_URL", "your Prometheus, for a link in the web pages"),
    Setting("server.grafana_url", "PRONY_GRAFANA_URL", "your Grafana, for a link in the web pages"),
)  # fmt: skip


@dataclass(frozen=True)
class SettingsFile:
    """`refusal` says why the file that is there is not read."""

    path: Path
    level: Level
    refusal: str = ""

    @property
    def is_there(self) -> bool:
        return _is_file(self.path)


@dataclass(frozen=True)
class SettingOrigin:
    """Where a value comes from; `place` is the file or the variable, `keys` where it stands in a file."""

    level: Level
    place: str = ""
    line: int | None = None
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.place if self.line is None else f"{self.place}:{self.line}"


@dataclass(frozen=True)
class ChosenSetting:
    """The value that counts: None where nothing sets it."""

    setting: Setting
    value: SettingValue | None = None
    origin: SettingOrigin = field(default_factory=lambda: SettingOrigin("default"))

    @property
    def shown(self) -> str:
        """The value as people may see it; a password in an address is not shown."""
        if self.value is None:
            return self.setting.default
        if self.setting.is_secret:
            return "(set)"
        return re.sub(r"(?<=://)([^/@:]*):[^/@]*@", r"\1:***@", value_as_text(self.setting, self.value))


@dataclass(frozen=True)
class _Problem:
    path: Path | None
    keys: tuple[str, ...]
    message: str
    hint: str
    line: int | None = None


def find_settings_files(
    folder: Path, environ: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> list[SettingsFile]:
    """Return the files that may hold settings, the weakest first, whether they are there or not."""
    above = next((at / FILE_NAME for at in (folder, *folder.parents) if _is_file(at / FILE_NAME)), folder / FILE_NAME)
    system, user = _folders(environ, platform)
    found = [
        SettingsFile(system / FILE_NAME, "system"),
        SettingsFile(user / FILE_NAME, "user"),
        SettingsFile(above, "project"),
        SettingsFile(folder / ENV_NAME, "env-file"),
    ]
    seen = {file.path for file in found[:2]}
    return found[:2] + [_with_refusal(file) for file in found[2:] if file.path not in seen]


def _is_file(path: Path) -> bool:
    """Tell whether a file is there, as far as this user can see: who has no way into a folder has no file in it."""
    return os.path.isfile(path)  # noqa: PTH113 - that of pathlib raises where a folder is closed


def _folders(environ: Mapping[str, str], platform: str) -> tuple[Path, Path]:
    """Return where this system keeps the settings of all its users, and of one."""
    own = Path(environ.get("HOME") or Path("~").expanduser())
    if platform == "win32":
        system = Path(environ.get("PROGRAMDATA") or "C:/ProgramData")
        return system / "Prony", Path(environ.get("APPDATA") or own / "AppData" / "Roaming") / "Prony"
    if platform == "darwin":
        return Path("/etc/prony"), own / "Library" / "Application Support" / "Prony"
    named = Path(environ.get("XDG_CONFIG_HOME", ""))
    return Path("/etc/prony"), (named if named.is_absolute() else own / ".config") / "prony"


def _with_refusal(file: SettingsFile) -> SettingsFile:
    """Pass over what another user laid in the way: in /tmp, everybody could set what commands do."""
    if sys.platform == "win32" or not file.is_there or file.path.stat().st_uid in (0, os.geteuid()):
        return file
    return replace(file, refusal="it belongs to another user")


def resolve_settings(
    catalogue: Sequence[Setting],
    files: Sequence[SettingsFile],
    environ: Mapping[str, str] = os.environ,
    *,
    every: bool = False,
) -> dict[str, ChosenSetting]:
    """Return every setting by its key, with the value that counts; `every` checks today's variables here too.

    Raises:
        InputError: A key or a variable is not known, or a value is not of its kind; with file and line.
    """
    chosen = {setting.key: ChosenSetting(setting) for setting in catalogue}
    problems: list[_Problem] = []
    for file in files:
        if file.is_there and not file.refusal:
            read = _read_env_file if file.level == "env-file" else _read_toml_file
            chosen |= read(file, catalogue, problems)
    chosen |= _read_environment(catalogue, environ, problems, every=every)
    if problems:
        raise _settings_error(problems)
    return chosen


def line_of(origin: SettingOrigin) -> SettingOrigin:
    """Return an origin in a file with its line."""
    if not origin.keys:
        return origin
    return replace(origin, line=_find_line(Path(origin.place), origin.keys))


@contextmanager
def export_settings(chosen: Mapping[str, ChosenSetting]) -> Iterator[None]:
    """Put what files say into the environment, where all of Prony and the processes that it starts look for it."""
    before = {name: value for name, value in os.environ.items() if name.startswith("PRONY_")}
    for one in chosen.values():
        if one.value is not None:
            os.environ.setdefault(one.setting.variable, value_as_text(one.setting, one.value))
    try:
        yield
    finally:
        for name in [one for one in os.environ if one.startswith("PRONY_") and one not in before]:
            del os.environ[name]
        os.environ.update(before)


def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
        if len(content) > _LARGEST_BYTES:
            raise InputError(
                f"{path} is larger than {_LARGEST_BYTES} bytes",
                hint="check the path: this is probably another file",
                code="settings",
            )
        return content.decode("utf-8")
    except OSError as exc:
        raise InputError(
            f"cannot read {path}: {exc.strerror}", hint="check that you may read it", code="settings"
        ) from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"{path} is not UTF-8 text", hint="save it as UTF-8", code="settings") from exc


def _read_toml_file(
    file: SettingsFile, catalogue: Sequence[Setting], problems: list[_Problem]
) -> dict[str, ChosenSetting]:
    import tomllib

    text = _read_text(file.path)
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as exc:
        raise _syntax_error(file.path, text) from exc
    known = {setting.key: setting for setting in catalogue if setting.in_files}
    found: dict[str, ChosenSetting] = {}
    for keys, written in _flatten(document, known):
        key = ".".join(keys)
        setting = known.get(key)
        if setting is None:
            problems.append(_Problem(file.path, keys, f"unknown setting: {key}", _nearest(key, catalogue)))
        elif setting.is_personal and file.level in OF_A_FOLDER:
            problems.append(_refuse_personal(file.path, setting, keys))
        else:
            try:
                value = value_from_toml(setting, written, file.path.parent)
            except ValueError:
                problems.append(_Problem(file.path, keys, f"{key} cannot be {_show(written)}", setting.how_to_write))
            else:
                found[key] = ChosenSetting(setting, value, SettingOrigin(file.level, str(file.path), keys=keys))
    return found


def _flatten(document: Mapping[str, Any], known: Mapping[str, Setting]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every key of the file with its value: those of a table, unless the setting itself is one."""
    for name, value in document.items():
        if name in known or not isinstance(value, dict):
            yield (name,), value
            continue
        if not value and not any(key.startswith(f"{name}.") for key in known):
            yield (name,), value
        for inner, one in value.items():
            yield (name, inner), one


def _read_env_file(
    file: SettingsFile, catalogue: Sequence[Setting], problems: list[_Problem]
) -> dict[str, ChosenSetting]:
    """Read `NAME=value` lines; names that are not Prony's belong to others."""
    known = {setting.variable: setting for setting in catalogue}
    found: dict[str, ChosenSetting] = {}
    for number, line in enumerate(_read_text(file.path).splitlines(), 1):
        match = _LINE.match(line)
        if match is None or not match[1].startswith("PRONY_"):
            continue
        name, text = match[1], _unquote(match[2])
        setting = known.get(name)
        if setting is None:
            if "__" in name:
                problems.append(_unknown_variable(name, catalogue, file.path, number))
        elif setting.is_personal:
            problems.append(replace(_refuse_personal(file.path, setting, ()), line=number))
        else:
            try:
                value = value_from_text(setting, text)
            except ValueError:
                said = f"{name} cannot be {text[:40]!r}"
                problems.append(_Problem(file.path, (), said, setting.how_to_write, number))
            else:
                found[setting.key] = ChosenSetting(setting, value, SettingOrigin(file.level, str(file.path), number))
    return found


def _unquote(text: str) -> str:
    quoted = re.fullmatch(r"""(["'])(.*?)\1\s*(?:#.*)?""", text)
    return quoted[2] if quoted else re.sub(r"(?:^|\s+)#.*$", "", text)


def _read_environment(
    catalogue: Sequence[Setting], environ: Mapping[str, str], problems: list[_Problem], *, every: bool
) -> dict[str, ChosenSetting]:
    """Read the variables; those with one underscore are checked by whoever needs them, unless `every` is asked."""
    found: dict[str, ChosenSetting] = {}
    for setting in catalogue:
        text = environ.get(setting.variable, "")
        if not text:
            # An empty one of the older names says that nothing counts, as PRONY_SERVER= does for this machine.
            if setting.variable in environ and "__" not in setting.variable:
                found[setting.key] = ChosenSetting(setting, None, SettingOrigin("environment", setting.variable))
            continue
        value: SettingValue = text
        if every or "__" in setting.variable:
            try:
                value = value_from_text(setting, text)
            except ValueError:
                said = f"{setting.variable} cannot be {text[:40]!r}"
                problems.append(_Problem(None, (), said, setting.how_to_write))
                continue
        found[setting.key] = ChosenSetting(setting, value, SettingOrigin("environment", setting.variable))
    known = {setting.variable for setting in catalogue}
    strangers = [name for name in environ if name.startswith("PRONY_") and "__" in name and name not in known]
    problems += [_unknown_variable(name, catalogue, None, None) for name in sorted(strangers)]
    return found


def _unknown_variable(name: str, catalogue: Sequence[Setting], path: Path | None, line: int | None) -> _Problem:
    near = difflib.get_close_matches(name, [setting.variable for setting in catalogue], n=1)
    hint = f"did you mean {near[0]}?" if near else "`prony settings` lists all"
    return _Problem(path, (), f"no setting has the variable {name}", hint, line)


def _nearest(key: str, catalogue: Sequence[Setting]) -> str:
    only_variable = next((one for one in catalogue if one.key == key), None)
    if only_variable is not None:
        return f"it is a secret and must not be in a shared file: set {only_variable.variable}, or cli.token_file"
    near = difflib.get_close_matches(key, [setting.key for setting in catalogue if setting.in_files], n=1)
    return f"did you mean {near[0]}?" if near else "`prony settings` lists all"


def _refuse_personal(path: Path, setting: Setting, keys: tuple[str, ...]) -> _Problem:
    said = f"a project may not set {setting.key}: its author would decide what you run or send"
    return _Problem(path, keys, said, f"set it in your own {FILE_NAME}, or with {setting.variable}")


def _show(value: object) -> str:
    shown = {True: "true", False: "false"}.get(value, "") if isinstance(value, bool) else repr(value)
    return shown[:60]


def _settings_error(problems: Sequence[_Problem]) -> InputError:
    lines = []
    for one in problems:
        line = one.line if one.line is not None or one.path is None else _find_line(one.path, one.keys)
        place = "" if one.path is None else f"{one.path}: " if line is None else f"{one.path}:{line}: "
        lines.append(f"{place}{one.message}")
    if len(problems) == 1:
        return InputError(lines[0], hint=problems[0].hint, code="settings")
    listed = [f"{line} ({one.hint})" for line, one in zip(lines, problems, strict=True)]
    return InputError(
        "\n".join(listed), hint="correct each of them; `prony settings` then lists every setting", code="settings"
    )


def _find_line(path: Path, keys: tuple[str, ...]) -> int | None:
    from prony.recipe.positions import mark_of
    from prony.recipe.toml_text import parse

    return mark_of(parse(_read_text(path), str(path)).marks, keys).line


def _syntax_error(path: Path, text: str) -> InputError:
    """Say where the text is no TOML, as it is said of a recipe."""
    from prony.errors import RecipeError
    from prony.recipe.toml_text import parse

    try:
        parse(text, str(path))
    except RecipeError as exc:
        return InputError(exc.message, hint=exc.hint, code="settings")
    return InputError(f"{path} is not TOML", code="settings", hint="write KEY = VALUE lines; texts need quotes")
