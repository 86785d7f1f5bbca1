"""Write the tables of docs/ that repeat the code: commands, settings, metrics, errors, the API, agents and the recipe.

`python -m tools.reference` replaces each table; what people wrote around the tables stays. People write the place of
a new thing: for a command its heading and the first line of its table, for a metric or an error code a line of a table
that begins with its name, for a section of the recipe the comment that names it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tools.reference.api import write_operation_table
from tools.reference.commands import write_command_tables
from tools.reference.errors import write_error_rows
from tools.reference.metrics import write_metric_rows
from tools.reference.prometheus import write_agent_metrics, write_server_metrics
from tools.reference.recipe import write_key_tables
from tools.reference.settings import write_settings_table

DOCS = Path(__file__).parents[2] / "docs"
PAGES: dict[str, Callable[[str], str]] = {
    "agents.md": write_agent_metrics,
    "api.md": lambda page: write_server_metrics(write_operation_table(page)),
    "commands.md": write_command_tables,
    "errors.md": write_error_rows,
    "metrics.md": write_metric_rows,
    "recipe.md": write_key_tables,
    "settings.md": write_settings_table,
}


def main() -> int:
    for name, write in PAGES.items():
        before = (DOCS / name).read_text()
        after = write(before)
        (DOCS / name).write_text(after)
        print(f"{name}: {'unchanged' if after == before else 'written'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
