"""Print the options of a plug-in."""

from __future__ import annotations

from prony.cli.output import print_columns, print_json


def show_options(kind: str, name: str, *, as_json: bool) -> int:
    from prony.app.services import options_of

    rows = options_of(kind, name)
    if as_json:
        print_json({"name": name, "options": [one.model_dump(mode="json") for one in rows]})
        return 0
    print_columns(("OPTION", "DEFAULT", "WHAT IT IS"), [(one.name, one.default, one.about) for one in rows])
    return 0
