"""Write YAML text that means the same under YAML 1.1 and 1.2."""

from __future__ import annotations

from typing import Any

import yaml

from prony.recipe.yaml_text import plain_scalar


class _Dumper(yaml.SafeDumper):
    """PyYAML's own rules for quoting know YAML 1.1 only; `1e3` and `0o17` need quotes under 1.2."""

    def represent_text(self, value: str) -> yaml.ScalarNode:
        style = None if isinstance(plain_scalar(value), str) else "'"
        # In double quotes every odd character is escaped; in any other style YAML may fold it away.
        style = style if value.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (PyYAML's name for it)
        return True


_Dumper.add_representer(str, _Dumper.represent_text)


def write_yaml(document: dict[str, Any]) -> str:
    """Return the document in block style, its keys in the order they have."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
