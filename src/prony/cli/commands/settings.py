"""`prony settings`: show each setting, its value and where that comes from."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from prony.cli.arguments import add_json

if TYPE_CHECKING:
    from prony.app.settings import ChosenSetting, SettingsFile
    from prony.model.setting import Setting


def arguments(parser: ArgumentParser) -> None:
    """Show each setting, its value and its source: prony.toml files, .env, the environment, or a default."""
    parser.add_argument("keys", metavar="KEY", nargs="*", help="only these settings (server.port) or tables (server)")
    parser.add_argument("--set-only", action="store_true", help="hide settings with their default value")
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.app.settings import line_of, resolve_settings
    from prony.cli.option_settings import list_settings, settings_files
    from prony.cli.output import print_json

    files = settings_files("settings")
    chosen = resolve_settings(_with_home(list_settings()), files, every=True)
    wanted = _select(list(chosen.values()), options.keys)
    found = [(one, line_of(one.origin)) for one in wanted if one.value is not None or not options.set_only]
    if options.json:
        print_json(
            {
                "settings": [_document(one) | {"from": origin.level, "place": str(origin)} for one, origin in found],
                "files": [_describe_file(file) for file in files],
            }
        )
        return 0
    _print_table([(one.setting.key, one.shown or "-", str(origin) or "default") for one, origin in found], files)
    return 0


def _with_home(settings: tuple[Setting, ...]) -> list[Setting]:
    """Return the settings; the home's default is this system's usual place."""
    from dataclasses import replace

    from prony.store.home import VARIABLE, home

    usual = home({name: value for name, value in os.environ.items() if name != VARIABLE})
    return [replace(one, default=str(usual.root)) if one.key == "home" else one for one in settings]


def _select(chosen: list[ChosenSetting], keys: list[str]) -> list[ChosenSetting]:
    import difflib

    from prony.errors import NotFoundError

    known = [one.setting.key for one in chosen]
    tables = {key.partition(".")[0] for key in known}
    for key in keys:
        if key not in known and key not in tables:
            near = difflib.get_close_matches(key, [*known, *tables], n=1)
            hint = f"did you mean {near[0]}?" if near else "`prony settings` lists all"
            raise NotFoundError(f"unknown setting: {key!r}", hint=hint)
    return [one for one in chosen if not keys or {one.setting.key, one.setting.key.partition(".")[0]} & set(keys)]


def _document(one: ChosenSetting) -> dict[str, Any]:
    setting = one.setting
    return {
        "key": setting.key, "value": one.shown, "default": setting.default, "kind": setting.kind,
        "variable": setting.variable, "option": setting.option, "meaning": setting.meaning,
    }  # fmt: skip


def _describe_file(file: SettingsFile) -> dict[str, str]:
    state = file.refusal or ("read" if file.is_there else "not found")
    return {"path": str(file.path), "level": file.level, "state": state}


def _print_table(rows: list[tuple[str, str, str]], files: list[SettingsFile]) -> None:
    from prony.cli.output import print_columns, print_text

    print_columns(("SETTING", "VALUE", "FROM"), rows)
    print_text("\nFiles, lowest priority first. Environment variables override files; options override all:")
    described = [_describe_file(file) for file in files]
    print_columns(("FILE", "STATE"), [(one["path"], one["state"]) for one in described])
