"""Show on the terminal what a machine can do besides running engines, and the facts that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prony.cli.output import print_columns, print_text
from prony.model.agent import Fact
from prony.model.device import AbilityReport
from prony.report.escaping import one_line

_HEADINGS = ("KIND", "NAME", "READY", "VERSION", "MEANS", "WHY NOT")


def show_abilities(abilities: Sequence[AbilityReport]) -> None:
    """Print services, container engines, launchers and probes, there or not."""
    print_columns(_HEADINGS, [_cells(one) for one in abilities])


def _cells(one: AbilityReport) -> tuple[str, ...]:
    is_ready = "yes" if one.state == "ready" else "no"
    words = (one.kind, one.name, is_ready, one.version or "-", ", ".join(one.means) or "-", one.reason or "-")
    return tuple(map(one_line, words))


def show_facts(facts: Mapping[str, Fact]) -> None:
    """Print each fact with its values."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        print_text(one_line(f"{name:<{width}}  {_values(value)}") if width else "")


def _values(value: Fact) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
