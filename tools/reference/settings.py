"""The table of docs/settings.md: every setting."""

from __future__ import annotations

from collections.abc import Iterator

from prony.cli.option_settings import list_settings
from prony.model.setting import Setting
from tools.reference.markdown import format_table, format_text, replace_table

_HEAD = ("setting", "variable", "option", "value", "default", "meaning")


def write_settings_table(page: str) -> str:
    """Return the page of settings with its table as the code has it."""
    return replace_table(page, _HEAD, format_table(_HEAD, (list(_cells(one)) for one in list_settings())))


def _cells(one: Setting) -> Iterator[str]:
    """Yield the cells of a setting; one that no file may hold has no key to write."""
    yield f"`{one.key}`" if one.in_files else one.key
    yield f"`{one.variable}`"
    yield f"`{one.option}`" if one.option else ""
    yield " or ".join(f"`{choice}`" for choice in one.choices) or one.kind
    yield f"`{one.default}`" if one.default else ""
    yield format_text(one.meaning.replace(f" ({one.default})", ""))
